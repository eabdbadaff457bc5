//! The limit of failed sign-ins to one account or with one name, which counts over all addresses, but for the networks
//! that have a limit of their own because the account has signed in from there.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use crate::harness::*;

const ON: (&str, &str) = ("CLOAKROOM_RATE_LIMIT_ENABLED", "true");
const TRUSTED: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.0/8");
const TOO_MANY: &str = "Too many login attempts. Please try again later.";
const WRONG: &str = "Invalid username or password";

/// A service behind a proxy that counts failures, with these users.
fn service(names: &[&str]) -> Server {
    let api = Server::start(&[ON, TRUSTED]);
    names.iter().for_each(|name| drop(api.register(name).expect(201)));
    api
}

fn login_from(api: &Server, address: &str, name: &str, password: &str) -> Answer {
    let request = api.request("POST", "/auth/login").header("X-Forwarded-For", address);
    request.json(json!({"username": name, "password": password})).send()
}

/// An address in an IPv4 /24 that no other request of the test comes from, so that the limit of an address never
/// matters.
fn new_address() -> String {
    static NETWORKS: AtomicU32 = AtomicU32::new(0);
    let network = NETWORKS.fetch_add(1, Ordering::Relaxed);
    Ipv4Addr::from(0x0a00_0001 + (network << 8)).to_string()
}

/// Signs in with a wrong password, each time from another network, until that is refused, and returns the refusal. The
/// caller then has at least 20 of the 36 seconds after which another attempt is allowed.
#[track_caller]
fn fail_until_refused(api: &Server, name: &str) -> Answer {
    go_on_until_refused(api, name, 0, Instant::now())
}

/// The same after `failures` that count for the same account, the first of them at `begin`.
#[track_caller]
fn go_on_until_refused(api: &Server, name: &str, failures: u64, begin: Instant) -> Answer {
    fail_from(api, name, |_| new_address(), failures, begin)
}

/// The same from the addresses that `address` gives for the numbers of the attempts.
#[track_caller]
fn fail_from(
    api: &Server,
    name: &str,
    address: impl Fn(u64) -> String,
    mut failures: u64,
    begin: Instant,
) -> Answer {
    for attempt in 0.. {
        let answer = login_from(api, &address(attempt), name, "wrong horse");
        if answer.status == 429 {
            let most = 100 + begin.elapsed().as_secs() / 36;
            assert!((100..=most).contains(&failures), "{failures} of {most}: {answer:?}");
            if answer.header("Retry-After").parse::<u32>().unwrap() >= 20 {
                return answer;
            }
        } else {
            answer.refused(401, WRONG);
            failures += 1;
        }
    }
    unreachable!("attempts have no end")
}

/// Also if the username is another one by then, and whatever the address was typed like.
#[test]
fn all_names_of_an_account_count_together() {
    let api = Server::start(&[ON, TRUSTED]);
    let body = json!({"username": "bob", "email": "Bo@b\u{fc}cher.example", "password": PASSWORD});
    api.register_with(body).expect(201);
    let bob = login_from(&api, "203.0.113.7", "bob", PASSWORD).expect(200).tokens();
    let addresses =
        ["bo@b\u{fc}cher.example", "BO@xn--bcher-kva.example", "bo@b\u{fc}cher.ex\u{ff41}mple"];
    let begin = Instant::now();
    for name in addresses.iter().chain(&["bob", "BOB"]) {
        for _ in 0..16 {
            login_from(&api, &new_address(), name, "wrong horse").refused(401, WRONG);
        }
    }
    api.update_me(&bob, json!({"username": "rob"})).expect(200);
    go_on_until_refused(&api, "rob", 80, begin);
    for name in addresses {
        login_from(&api, &new_address(), name, PASSWORD).refused(429, TOO_MANY);
        login_from(&api, "203.0.113.8", name, PASSWORD).expect(200);
    }
    // A name that nobody has counts for itself, also if an account had it, or if it is the id of one.
    for name in ["bob", bob.id()] {
        login_from(&api, &new_address(), name, PASSWORD).refused(401, WRONG);
    }
}

#[test]
fn after_a_hundred_failures_a_name_is_refused_whether_or_not_an_account_has_it() {
    let api = service(&["ann"]);
    for name in ["ann", "nobody"] {
        let answer = fail_until_refused(&api, name).refused(429, TOO_MANY);
        answer.has(json!({"error_code": "RATE_LIMITED"}));
        let answer = login_from(&api, &new_address(), name, PASSWORD).refused(429, TOO_MANY);
        assert_eq!(answer.rate_limit(), (100, 0));
        let retry: u64 = answer.header("Retry-After").parse().unwrap();
        assert!((1..=36).contains(&retry), "{retry}");
        assert_eq!(answer.header("X-RateLimit-Retry-After"), retry.to_string());
        let reset: u64 = answer.header("X-RateLimit-Reset").parse().unwrap();
        assert!((now() + 3500..=now() + 3601).contains(&reset), "{reset}");
        // The name's case does not matter.
        login_from(&api, &new_address(), &name.to_uppercase(), PASSWORD).refused(429, TOO_MANY);
        // Nor whether it is the account's other name.
        if name == "ann" {
            login_from(&api, &new_address(), "ann@example.com", PASSWORD).refused(429, TOO_MANY);
        }
    }
    let counter = api.metric("cloakroom_rate_limit_refusals_total{class=\"login-name\"}");
    assert!(counter >= Some(6.0), "{counter:?}");
    // Other accounts are not refused.
    api.register("bob").expect(201);
    login_from(&api, &new_address(), "bob", PASSWORD).expect(200);
}

/// In many locales PostgreSQL's lower case of a dotted capital I is `i`, and Rust's is not.
#[test]
fn every_spelling_that_signs_in_to_an_account_counts_for_the_same_name() {
    let api = service(&["ivi"]);
    login_from(&api, "203.0.113.7", "ivi", PASSWORD).expect(200);
    fail_until_refused(&api, "ivi");
    for name in ["IVI", "\u{130}vi", "iv\u{130}", "\u{130}V\u{130}"] {
        let signs_in = login_from(&api, "203.0.113.7", name, PASSWORD).status == 200;
        let is_refused = login_from(&api, &new_address(), name, "wrong horse").status == 429;
        assert_eq!(is_refused, signs_in, "{name}");
    }
}

#[test]
fn successful_sign_ins_and_requests_without_a_password_do_not_count() {
    let api = service(&["ann"]);
    for (password, status) in [(PASSWORD, 200), ("", 422)] {
        for _ in 0..110 {
            login_from(&api, &new_address(), "ann", password).expect(status);
        }
    }
    fail_until_refused(&api, "ann");
}

#[test]
fn parallel_attempts_do_not_exceed_the_limit() {
    let api = service(&["ann"]);
    let begin = Instant::now();
    let statuses = parallel(16, |_| {
        let attempt = |_| login_from(&api, &new_address(), "ann", "wrong horse").status;
        (0..10).map(attempt).collect::<Vec<_>>()
    });
    let counts = tally(statuses.into_iter().flatten());
    let most = 100 + begin.elapsed().as_secs() as usize / 36;
    assert!((100..=most).contains(&counts[&401]), "{counts:?}");
    assert_eq!(counts[&401] + counts[&429], 160, "{counts:?}");
}

#[test]
fn owners_sign_in_from_where_they_did_before_while_strangers_fail() {
    let api = service(&["ann", "bob"]);
    for address in ["203.0.113.7", "2001:db8:1:2::3"] {
        login_from(&api, address, "ann", PASSWORD).expect(200);
    }
    login_from(&api, "192.0.2.1", "bob", PASSWORD).expect(200);
    fail_until_refused(&api, "ann");
    for (address, status, reason) in [
        ("203.0.113.7", 200, "the same address"),
        ("203.0.113.200", 200, "the same /24"),
        ("::ffff:203.0.113.9", 200, "the same /24, IPv4-mapped"),
        ("203.0.112.7", 429, "another /24"),
        ("2001:db8:1:2::3", 200, "the same IPv6 address"),
        ("2001:db8:1:ffff::1", 200, "the same /48"),
        ("2001:db8:2:2::3", 429, "another /48"),
        ("192.0.2.1", 429, "the network of another account"),
    ] {
        login_from(&api, address, "ann", PASSWORD).case(reason).expect(status);
    }
    // A wrong password is wrong there, and no sign-in.
    login_from(&api, "203.0.113.8", "ann", "wrong horse").refused(401, WRONG);
    // An owner's sign-in gives a stranger no attempt more.
    login_from(&api, &new_address(), "ann", "wrong horse").refused(429, TOO_MANY);
    // The other name of the account has the same limit and the same networks.
    login_from(&api, &new_address(), "ann@example.com", PASSWORD).refused(429, TOO_MANY);
    login_from(&api, "203.0.113.10", "ann@example.com", PASSWORD).expect(200);
}

/// Networks from which somebody fails, with the address of each attempt.
type Network = (&'static str, fn(u64) -> String);

const NETWORKS: [Network; 4] = [
    ("all that the account does not know", |_| new_address()),
    ("a /24 that it knows", |n| format!("203.0.113.{}", n % 250)),
    ("another /24 that it knows", |n| format!("::ffff:198.51.100.{}", n % 250)),
    ("a /48 that it knows", |n| format!("2001:db8:1:{}::{n:x}", n % 1000)),
];

#[test]
fn each_network_that_an_account_knows_has_a_hundred_failures_of_its_own_and_so_have_all_others() {
    for first in [0, 3] {
        let api = Server::start(&[ON, TRUSTED, ("CLOAKROOM_RATE_LIMIT_AUTH", "1000")]);
        ["ann", "bob"].iter().for_each(|name| drop(api.register(name).expect(201)));
        for (_, address) in &NETWORKS[1..] {
            login_from(&api, &address(1), "ann", PASSWORD).expect(200);
        }
        let order = (first..NETWORKS.len()).chain(0..first);
        let mut exhausted = Vec::new();
        for network in order {
            let (name, address) = NETWORKS[network];
            let refused = fail_from(&api, "ann", address, 0, Instant::now());
            refused.refused(429, TOO_MANY);
            exhausted.push(network);
            for (n, (other, address)) in NETWORKS.into_iter().enumerate() {
                let what = format!("from {other} after {name}");
                let answer = login_from(&api, &address(200), "ann", PASSWORD).case(&what);
                // The first one may have got a token back meanwhile.
                match n {
                    _ if n == network => answer.refused(429, TOO_MANY),
                    _ if exhausted.contains(&n) => continue,
                    _ => answer.expect(200),
                };
            }
            // They are networks of this account alone.
            login_from(&api, &address(201), "bob", PASSWORD).expect(200);
        }
    }
}

#[test]
fn a_network_is_known_for_thirty_days_after_the_last_sign_in() {
    let api = service(&["ann"]);
    login_from(&api, "203.0.113.7", "ann", PASSWORD).expect(200);
    fail_until_refused(&api, "ann");
    let set_age = |hours: u32| {
        api.database.run(&format!(
            "UPDATE sign_in_networks SET last_sign_in_at = now() - interval '{hours} hours'"
        ));
    };
    set_age(30 * 24 + 1);
    login_from(&api, "203.0.113.8", "ann", PASSWORD).refused(429, TOO_MANY);
    set_age(30 * 24 - 1);
    login_from(&api, "203.0.113.9", "ann", PASSWORD).expect(200);
    // The sign-in renews it.
    let renewed = "sign_in_networks WHERE last_sign_in_at > now() - interval '1 hour'";
    assert_eq!(api.database.count(renewed), 1);
}

#[test]
fn a_name_of_no_account_counts_in_all_its_spellings_and_a_registration_makes_its_network_known() {
    let api = Server::start(&[ON, TRUSTED]);
    let is_refused = |address: &str, name: &str| {
        login_from(&api, address, name, PASSWORD).refused(429, TOO_MANY);
    };
    fail_until_refused(&api, "bo@b\u{fc}cher.example");
    for name in ["BO@xn--bcher-kva.example", "bo@b\u{fc}cher.ex\u{ff41}mple"] {
        is_refused(&new_address(), name);
    }
    // The id of an account is no name of it.
    let id = api.register("eve").expect(201).id();
    fail_until_refused(&api, &id);
    login_from(&api, &new_address(), "eve", PASSWORD).expect(200);
    let request = api.request("POST", "/auth/register").header("X-Forwarded-For", "203.0.113.7");
    request.json(json!({"email": "ann@example.com", "password": PASSWORD})).send().expect(201);
    fail_until_refused(&api, "ann@example.com");
    login_from(&api, "203.0.113.8", "ann@example.com", PASSWORD).expect(200);
    is_refused("203.0.114.8", "ann@example.com");
}

#[test]
fn without_rate_limits_failures_do_not_count() {
    let api = Server::start(&[]);
    api.register("ann").expect(201);
    for _ in 0..110 {
        api.login("ann", "wrong horse").refused(401, WRONG);
    }
    api.login("ann", PASSWORD).expect(200);
}

#[test]
fn an_account_has_at_most_its_twenty_latest_networks() {
    let api = Server::start(&[TRUSTED]);
    for name in ["ann", "bob"] {
        api.register(name).expect(201);
        login_from(&api, "203.0.113.7", name, PASSWORD).expect(200);
    }
    for network in 1..=25 {
        login_from(&api, &format!("198.51.{network}.1"), "ann", PASSWORD).expect(200);
        // The third stays, because it is used again.
        login_from(&api, "198.51.3.9", "ann", PASSWORD).expect(200);
    }
    let of = |name: &str| {
        let networks: Vec<String> = api.database.value(&format!(
            "SELECT array_agg(network::text ORDER BY network) FROM sign_in_networks
             WHERE user_id = (SELECT id FROM users WHERE username = '{name}')"
        ));
        networks
    };
    let expected = [3].into_iter().chain(7..=25).map(|network| format!("198.51.{network}.0/24"));
    assert_eq!(of("ann"), expected.collect::<Vec<_>>());
    assert_eq!(of("bob"), ["203.0.113.0/24"]);
    // Also from many networks at once. Each statement sees what was committed before it began.
    parallel(16, |_| login_from(&api, &new_address(), "ann", PASSWORD).expect(200));
    login_from(&api, &new_address(), "ann", PASSWORD).expect(200);
    assert_eq!(of("ann").len(), 20);
}

#[test]
fn networks_go_with_the_account() {
    let test_only = ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true");
    let (api, [root, ann, bob, _]) =
        Server::with_users(&[test_only], ["root", "ann", "bob", "cid"]);
    let networks = || api.database.count("sign_in_networks");
    assert_eq!(networks(), 4);
    match has_extras() {
        true => api.delete_me(&ann, PASSWORD).expect(204),
        false => api.delete_user(&root, ann.id()).expect(204),
    };
    api.delete_user(&root, bob.id()).expect(204);
    assert_eq!(networks(), 2);
    api.delete("/users/test-only/delete-all", &root).expect(200);
    assert_eq!(networks(), 0);
}
