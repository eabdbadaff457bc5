//! Limits that all accounts of one client address share: accounts are free, addresses are not.

use crate::harness::*;

const ON: (&str, &str) = ("CLOAKROOM_RATE_LIMIT_ENABLED", "true");
const TRUSTED: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.0/8");
const MANY: (&str, &str) = ("CLOAKROOM_RATE_LIMIT_AUTH", "1000");

/// `GET /auth/me` that a proxy forwards for a client.
fn me(api: &Server, sender: impl Credentials, address: &str) -> Answer {
    api.request("GET", "/auth/me").header("X-Forwarded-For", address).by(sender).send()
}

/// A registration that a proxy forwards for a client.
fn register(api: &Server, name: &str, address: &str) -> Answer {
    let email = format!("{name}@example.com");
    let body = json!({"username": name, "email": email, "password": PASSWORD});
    api.request("POST", "/auth/register").header("X-Forwarded-For", address).json(body).send()
}

#[test]
fn young_accounts_and_anonymous_callers_of_one_address_share_a_limit() {
    let (api, [ann, bob, old]) = Server::with_users(
        &[ON, TRUSTED, MANY, ("CLOAKROOM_RATE_LIMIT_ADDRESS", "10")],
        ["ann", "bob", "old"],
    );
    let age = "UPDATE users SET created_at = now() - interval '8 days' WHERE username = 'old'";
    api.database.run(age);
    let here = "203.0.113.1";
    for n in 0..10 {
        let answer = match n % 3 {
            0 => me(&api, &ann, here).expect(200),
            1 => me(&api, &bob, here).expect(200),
            _ => me(&api, Anonymous, here).expect(401),
        };
        assert_eq!(answer.rate_limit().0, 100, "the limit of its class is shown");
    }
    for refused in [me(&api, &ann, here), me(&api, Anonymous, here), register(&api, "eve", here)] {
        let refused = refused.refused(429, "Rate limit exceeded");
        assert_eq!(refused.rate_limit(), (10, 0));
        assert!((1..=6).contains(&refused.header("Retry-After").parse::<u64>().unwrap()));
    }
    // An older account is limited by itself alone, and what signs out or refreshes is never held up.
    me(&api, &old, here).expect(200);
    let from_here = |method, path| api.request(method, path).header("X-Forwarded-For", here);
    if has_extras() {
        from_here("GET", "/auth/sessions").by(&ann).send().expect(200);
    }
    from_here("POST", "/auth/refresh").by(&bob.refresh).send().expect(200);
    from_here("POST", "/auth/logout").by(&ann).send().expect(204);
    me(&api, &bob, "203.0.113.2").case("another address").expect(200);
    assert_eq!(api.metric("cloakroom_rate_limit_refusals_total{class=\"address\"}"), Some(3.0));
}

/// All requests of these services come from one address, more than it may send or make accounts with.
#[test]
fn where_addresses_have_no_limit_neither_requests_nor_registrations_are_refused() {
    let one = [("CLOAKROOM_RATE_LIMIT_ADDRESS", "1"), ("CLOAKROOM_REGISTRATIONS_PER_DAY", "1")];
    let zero = [("CLOAKROOM_RATE_LIMIT_ADDRESS", "0"), ("CLOAKROOM_REGISTRATIONS_PER_DAY", "0")];
    let off = ("CLOAKROOM_RATE_LIMIT_ENABLED", "false");
    for (settings, reason) in [
        ([ON, MANY, one[0], one[1]], "a proxy on this host that the settings do not name"),
        ([off, TRUSTED, one[0], one[1]], "no rate limits"),
        ([ON, TRUSTED, zero[0], zero[1]], "zero"),
    ] {
        let api = Server::start(&[&settings[..], &[MANY]].concat());
        let ann = api.sign_up("ann");
        for n in 0..20 {
            register(&api, &format!("user{n}"), "203.0.113.1").case(reason).expect(201);
            me(&api, &ann, "203.0.113.1").case(reason).expect(200);
        }
    }
}

#[test]
fn an_address_makes_only_so_many_accounts_a_day() {
    let api = Server::start(&[ON, TRUSTED, MANY, ("CLOAKROOM_REGISTRATIONS_PER_DAY", "3")]);
    let here = "203.0.113.1";
    register(&api, "ann", here).expect(201);
    // Only accounts that are made count.
    for _ in 0..5 {
        register(&api, "ann", here).refused(400, "Username already exists");
        register(&api, "x", here).expect(422);
    }
    let by_email = json!({"email": "bob@example.com", "password": PASSWORD});
    let request = api.request("POST", "/auth/register").header("X-Forwarded-For", here);
    request.json(by_email).send().expect(201);
    register(&api, "eve", here).expect(201);
    let refused = register(&api, "mallory", here).refused(429, "Rate limit exceeded");
    assert_eq!(refused.rate_limit(), (3, 0));
    // A token of the day comes back every eight hours.
    let retry: u64 = refused.header("Retry-After").parse().unwrap();
    assert!((28_000..=28_800).contains(&retry), "{retry}");
    register(&api, "x", here).case("before validation").refused(429, "Rate limit exceeded");
    register(&api, "dora", "203.0.113.2").case("another address").expect(201);
    assert_eq!(api.database.count("users"), 4);
}

#[test]
fn an_ipv6_site_makes_eight_times_as_many_accounts_as_one_of_its_networks() {
    let api = Server::start(&[ON, TRUSTED, MANY, ("CLOAKROOM_REGISTRATIONS_PER_DAY", "1")]);
    for n in 0..8 {
        register(&api, &format!("user{n}"), &format!("2001:db8:1:{n}::1")).expect(201);
        let again = register(&api, &format!("twin{n}"), &format!("2001:db8:1:{n}::2"));
        again.refused(429, "Rate limit exceeded");
    }
    let refused = register(&api, "user8", "2001:db8:1:8::1").refused(429, "Rate limit exceeded");
    assert_eq!(refused.rate_limit(), (8, 0));
    register(&api, "user9", "2001:db8:2::1").case("another site").expect(201);
}

#[test]
fn in_parallel_an_address_makes_no_more_accounts_than_it_may() {
    let api = Server::start(&[ON, TRUSTED, MANY, ("CLOAKROOM_REGISTRATIONS_PER_DAY", "4")]);
    let statuses = parallel(12, |n| register(&api, &format!("user{n}"), "203.0.113.1").status);
    assert_eq!(tally(statuses), [(201, 4), (429, 8)].into());
}

#[test]
fn where_registration_is_off_only_administrators_make_accounts() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let api = Server::start_on(&api.database, &[("CLOAKROOM_REGISTRATION", "off")]);
    let body = json!({"email": "ann@example.com", "name": "Ann", "password": PASSWORD});
    api.create_user(&root, body).expect(201);
    api.login("ann@example.com", PASSWORD).expect(200);
}

/// The limit of registrations, because its tokens come back so slowly that it does not matter how long the flood takes.
#[test]
fn a_flood_of_addresses_of_one_provider_makes_no_bucket_of_another_full_again() {
    const FLOOD: usize = 70_000;
    let api = Server::start(&[ON, TRUSTED, MANY, ("CLOAKROOM_REGISTRATIONS_PER_DAY", "1")]);
    let clients = ["203.0.113.1", "198.51.100.1", "2001:db9:1:1::1"];
    for (n, client) in clients.into_iter().enumerate() {
        register(&api, &format!("user{n}"), client).expect(201);
    }
    let body = "{}";
    let head = "POST /api/v1/auth/register HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n";
    // Each request makes a bucket of its /64 and one of its /48.
    parallel(4, |thread| {
        let mut connection = RawConnection::open(&api.address);
        for batch in 0..FLOOD / 400 {
            let request = |n| {
                let site = thread * FLOOD / 4 + batch * 100 + n;
                let address = format!("2001:db8:{:x}:{:x}::1", site % 65_536, site / 65_536);
                format!("{head}X-Forwarded-For: {address}\r\n\r\n{body}")
            };
            connection.send((0..100).map(request).collect::<String>());
            (0..100).for_each(|_| assert_eq!(connection.answer().status, 422));
        }
    });
    for client in clients {
        register(&api, "twin", client).case(client).refused(429, "Rate limit exceeded");
    }
    let resident = api.resident_memory();
    assert!(resident < 100 << 20, "{resident}");
}
