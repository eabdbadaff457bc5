//! Rate limits: token buckets for each class of endpoints, and whom they count.

use std::time::Instant;

use super::access;
use crate::harness::*;

pub const ON: (&str, &str) = ("CLOAKROOM_RATE_LIMIT_ENABLED", "true");
pub const TRUSTED: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.0/8");

/// Uses up a bucket. Each of so many requests, numbered from 1, gets this status and is told how many are left and when
/// the bucket is full again, and the next is refused, unless as many tokens have come back as the time allows.
#[track_caller]
pub fn use_up(limit: u64, status: u16, send: impl Fn(u64) -> Answer) -> Answer {
    let (begin, start) = (now(), Instant::now());
    let back = || start.elapsed().as_millis() as u64 * limit / 60_000;
    for n in 1..=limit {
        let answer = send(n).expect(status);
        let (all, left) = answer.rate_limit();
        assert_eq!(all, limit, "{answer:?}");
        assert!((limit - n..=limit - n + back()).contains(&left), "{n}: {answer:?}");
        // Each request takes a token that comes back after this share of a minute.
        let (reset, full) = (number(&answer, "X-RateLimit-Reset"), 60 * n / limit);
        assert!((begin + full..=now() + full + 1).contains(&reset), "{n}: {answer:?}");
    }
    let mut more = (limit + 1..).map(|n| (n, send(n)));
    let refused = more.find(|(n, answer)| answer.status != status || *n > limit + back());
    let (_, answer) = refused.expect("an answer");
    let answer = answer.expect(429).has(json!({"error_code": "RATE_LIMITED"}));
    let message = answer.json()["detail"].to_string();
    assert!(message.contains("Rate limit exceeded") || message.contains("Too many login attempts"));
    assert_eq!(answer.rate_limit(), (limit, 0));
    let retry = number(&answer, "Retry-After");
    assert!((1..=60 / limit).contains(&retry), "{retry}");
    assert_eq!(number(&answer, "X-RateLimit-Retry-After"), retry);
    answer
}

pub fn number(answer: &Answer, header: &str) -> u64 {
    answer.header(header).parse().expect("a number")
}

#[test]
fn each_auth_endpoint_has_five_requests_a_minute_for_an_address() {
    let api = Server::start(&[ON]);
    for (name, status, message) in [
        ("register", 422, "Rate limit exceeded"),
        ("login", 422, "Too many login attempts. Please try again later."),
        ("refresh", 401, "Rate limit exceeded"),
        ("request-password-reset", 422, "Rate limit exceeded"),
        ("reset-password", 422, "Rate limit exceeded"),
    ] {
        // Requests with an empty object are refused, and count nevertheless, for the address.
        let send = |_| api.post(&format!("/auth/{name}"), Anonymous, json!({}));
        use_up(5, status, send).refused(429, message);
        let counter = format!("cloakroom_rate_limit_refusals_total{{class=\"{name}\"}} 1\n");
        assert!(api.metrics().contains(&counter));
    }
}

#[test]
fn the_general_class_counts_per_user_over_all_its_endpoints() {
    let (api, [ann, bob]) =
        Server::with_users(&[ON, ("CLOAKROOM_RATE_LIMIT_GENERAL", "10")], ["ann", "bob"]);
    use_up(10, 200, |n| if n % 2 == 0 { api.me(&ann) } else { api.profile(&ann) });
    let bad = api.request("PUT", "/users/me").by(&ann).body("not json");
    bad.send().refused(429, "Rate limit exceeded");
    api.me(&bob).expect(200);
}

#[test]
fn change_password_has_five_requests_a_minute_for_a_user() {
    let (api, [ann, bob]) = Server::with_users(&[ON], ["ann", "bob"]);
    let guess = |token: &str| api.change_password(token, "wrong horse", NEW_PASSWORD);
    use_up(5, 400, |_| guess(&ann.access));
    api.change_password(&ann, PASSWORD, NEW_PASSWORD).refused(429, "Rate limit exceeded");
    guess(&bob.access).refused(400, "Current password is incorrect");
    assert_eq!(api.me(&ann).expect(200).rate_limit().0, 100);
    // Without a good token it counts against the address, as everywhere.
    assert_eq!(guess("nonsense").expect(401).rate_limit().0, 100);
}

#[test]
fn refreshes_with_a_good_token_count_for_their_session_and_others_for_the_address() {
    let (api, [ann, bob]) = Server::with_users(&[ON], ["ann", "bob"]);
    // An office behind one address: its bad tokens use up what the address has.
    use_up(5, 401, |_| api.refresh("nonsense"));
    let in_header = |token: &str| api.request("POST", "/auth/refresh").by(token).send();
    let as_body = |body: &str| api.request("POST", "/auth/refresh").body(body).send();
    let unsigned = format!("{}x", ann.refresh);
    let expired = sign(with_member(&claims(&ann.refresh), "exp", json!(now() - 1)));
    let too_long = format!("{{\"x\": \"{}\"}}", "x".repeat(200_000));
    for (answer, reason) in [
        (api.refresh(&unsigned), "a bad signature"),
        (api.refresh(&expired), "expired"),
        (api.refresh(&ann.access), "an access token"),
        (in_header(&ann.access), "an access token in the header"),
        (as_body(""), "no token"),
        (as_body("{\"refresh_token\": 7}"), "a token of another type"),
        (as_body("nonsense"), "a body that cannot be read"),
        (as_body(&too_long), "a body that is too long"),
    ] {
        let answer = answer.case(reason).refused(429, "Rate limit exceeded");
        assert_eq!(answer.rate_limit(), (5, 0), "{reason}");
    }
    // Good tokens still work, five times a minute for each session, in the body as in the header.
    let mut ann_token = ann.refresh.clone();
    for n in 1..=5 {
        let answer = if n % 2 == 0 { in_header(&ann_token) } else { api.refresh(&ann_token) };
        let answer = answer.expect(200);
        assert_eq!(answer.rate_limit(), (5, 5 - n));
        ann_token = answer.tokens().refresh;
    }
    api.refresh(&ann_token).refused(429, "Rate limit exceeded");
    api.refresh(&ann.refresh).refused(429, "Rate limit exceeded");
    api.refresh(&bob.refresh).expect(200);
    let other_session = api.sign_in("ann");
    api.refresh(&other_session.refresh).expect(200);
    // A token of a session that has ended counts for that session as well.
    api.logout(&other_session).expect(204);
    let ended = api.refresh(&other_session.refresh).refused(401, "Invalid token");
    assert_eq!(ended.rate_limit(), (5, 3));
}

#[test]
fn guesses_at_a_password_count_for_the_session_and_for_its_address() {
    let limit = ("CLOAKROOM_RATE_LIMIT_GENERAL", "1000");
    let api = Server::start(&[ON, limit]);
    api.register("ann").expect(201);
    let tokens: Vec<_> = (0..5).map(|_| api.sign_in("ann")).collect();
    let guess = |tokens: &Tokens| api.change_password(tokens, "wrong horse", NEW_PASSWORD);
    for tokens in &tokens[..4] {
        for _ in 0..5 {
            guess(tokens).expect(400);
        }
        guess(tokens).refused(429, "Rate limit exceeded");
    }
    // Whoever opens one session after the other has four times the limit of one; a token comes back in three seconds.
    let refused = (0..5).map(|_| guess(&tokens[4])).find(|answer| answer.status != 400);
    let refused = refused.expect("a refusal").refused(429, "Rate limit exceeded");
    assert_eq!(refused.rate_limit(), (20, 0));
}

/// Every endpoint is limited and, if the settings say so, needs an API key; only probes, pages and unknown paths are
/// neither.
#[test]
fn only_probes_and_pages_have_no_limit_and_only_they_and_links_need_no_key() {
    let keys = [("CLOAKROOM_API_KEY_ENABLED", "true"), ("CLOAKROOM_API_KEY", "key")];
    let others = [("CLOAKROOM_API_KEY_SCOPE", "all"), ON];
    let api = Server::start(&[&keys[..], &others, access::settings()].concat());
    let endpoints = access::endpoints().into_iter().map(|(method, path, _)| (*method, *path));
    let files = crate::extras::pages::FILES.map(|(path, _)| ("GET", path));
    let others = ["/", "/console/users/7", "/nope"].map(|path| ("GET", path));
    for (method, path) in endpoints.chain(files).chain(others) {
        let request = api.request_at_root(method, &path.replace(['{', '}'], ""));
        let answer = request.by("no token").send();
        let is_api = path.starts_with("/api/v1/");
        assert_eq!(answer.has_header("X-RateLimit-Limit"), is_api, "{method} {path}");
        // Those that browsers open, and not scripts.
        let is_page = path.starts_with("/api/v1/auth/oidc/") && method == "GET";
        // Whoever has a link may open it, and end uploads by it; only its owner ends it.
        let is_below = path.starts_with("/api/v1/links/");
        let is_of_link = is_below && (method != "DELETE" || path.contains("/partial/"));
        let needs_key = is_api && !is_of_link && !is_page;
        assert_eq!(answer.status == 401, needs_key, "{method} {path}: {}", answer.status);
    }
}

#[test]
fn a_request_refused_by_its_role_counts_for_its_class() {
    let (api, [ann]) = Server::with_users(&[ON, ("CLOAKROOM_RATE_LIMIT_ADMIN", "2")], ["ann"]);
    use_up(2, 403, |_| api.admin_stats(&ann));
    // Another class has a bucket of its own.
    api.profile(&ann).expect(200);
}

#[test]
fn the_admin_class_is_200_a_minute_for_each_admin() {
    let api = Server::start(&[ON, ("CLOAKROOM_RATE_LIMIT_AUTH", "100")]);
    let (root, other) = (api.sign_up_admin("root"), api.sign_up_admin("other"));
    for path in ["/admin/stats", "/users", "/admin/users", "/users/no-id"] {
        assert_eq!(api.get(path, &root).rate_limit().0, 200, "{path}");
    }
    let refused =
        (0..400).map(|_| api.show_user(&root, "no-id")).find(|answer| answer.status == 429);
    refused.expect("an empty bucket").refused(429, "Rate limit exceeded");
    api.show_user(&other, "no-id").expect(422);
}

/// An empty login that a proxy forwards for this address.
fn login_from(api: &Server, forwarded: &str) -> Answer {
    let request = api.request("POST", "/auth/login").header("X-Forwarded-For", forwarded);
    request.json(json!({})).send().case(forwarded)
}

#[test]
fn a_site_with_many_ipv6_networks_has_eight_times_the_limit_of_one() {
    let api = Server::start(&[ON, TRUSTED]);
    let begin = Instant::now();
    let mut statuses = Vec::new();
    for network in 0..9 {
        // The first network is as busy as it may be and more: what it is refused costs the others nothing.
        for host in 0..if network == 0 { 20 } else { 5 } {
            let host = format!("2001:db8:1:{network:x}::{host:x}");
            statuses.push(login_from(&api, &host).status);
        }
    }
    let allowed = statuses.iter().filter(|status| **status == 422).count();
    // A token of the site comes back every 1.5 s.
    let most = 40.0 + begin.elapsed().as_secs_f64() / 1.5;
    assert!(allowed >= 40 && allowed as f64 <= most, "{allowed} of {most}: {statuses:?}");
    // An IPv6 client is its /64.
    assert!(statuses[5..20].contains(&429), "{statuses:?}");
    // Networks that have not asked before, so that only the site can be refused.
    let mut networks = 0x100..;
    let refused = eventually(|| {
        let answer = login_from(&api, &format!("2001:db8:1:{:x}::1", networks.next()?));
        (answer.status == 429).then_some(answer)
    });
    assert_eq!(refused.rate_limit(), (40, 0));
    assert!((1..=2).contains(&number(&refused, "Retry-After")), "{refused:?}");
    for other_site in ["2001:db8:2::1", "2001:db8:3::1"] {
        assert_eq!(login_from(&api, other_site).expect(422).rate_limit(), (5, 4));
    }
    // The general class has no limit for a /48.
    for network in 0..50 {
        let address = format!("2001:db8:1:{network:x}::1");
        let request = api.request("GET", "/auth/me").header("X-Forwarded-For", &address);
        assert_eq!(request.send().expect(401).rate_limit(), (100, 99));
    }
}

#[test]
fn rejected_tokens_count_against_the_address() {
    let (api, [ann]) = Server::with_users(&[ON, ("CLOAKROOM_RATE_LIMIT_GENERAL", "3")], ["ann"]);
    use_up(3, 401, |n| if n == 2 { api.profile(Anonymous) } else { api.me("nonsense") });
    api.me(&ann).expect(200);
}

#[test]
fn the_client_of_a_trusted_proxy_is_the_one_it_names() {
    let api = Server::start(&[ON, TRUSTED]);
    use_up(5, 422, |_| login_from(&api, "203.0.113.1"));
    // What the client itself wrote comes first.
    login_from(&api, "198.51.100.9, 203.0.113.1").expect(429);
    login_from(&api, "203.0.113.2").expect(422);
    api.logged("client=203.0.113.1");
}

#[test]
fn a_client_that_is_no_trusted_proxy_cannot_choose_its_address() {
    let api = Server::start(&[ON]);
    use_up(5, 422, |n| login_from(&api, &format!("203.0.113.{n}")));
    api.logged("X-Forwarded-For from");
    let warnings = api.log().matches("X-Forwarded-For from").count();
    assert_eq!(warnings, 1, "{}", api.log());
}
