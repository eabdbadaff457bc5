//! Rate limits.

use serde_json::json;

use crate::harness::{PASSWORD, Server};
use crate::tokens::now;

const ON: (&str, &str) = ("CLOAKROOM_RATE_LIMIT_ENABLED", "true");
const TRUSTED: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.0/8");

#[test]
fn each_auth_endpoint_has_five_requests_a_minute_for_an_address() {
    let server = Server::start(&[ON]);
    for (path, message) in [
        ("register", "Rate limit exceeded"),
        ("login", "Too many login attempts. Please try again later."),
        ("refresh", "Rate limit exceeded"),
        ("request-password-reset", "Rate limit exceeded"),
        ("reset-password", "Rate limit exceeded"),
    ] {
        let ask = || server.post(&format!("/auth/{path}"), json!({}));
        for left in (0..5).rev() {
            let answer = ask();
            assert!(
                [401, 422].contains(&answer.status),
                "bad requests count: {path} {}",
                answer.status
            );
            assert_eq!(answer.header("X-RateLimit-Limit"), "5");
            assert_eq!(answer.header("X-RateLimit-Remaining"), left.to_string());
            let reset: u64 = answer.header("X-RateLimit-Reset").parse().unwrap();
            let expected = now() + 12 * (5 - left);
            assert!(
                (expected - 2..=expected + 2).contains(&reset),
                "{reset}, not about {expected}"
            );
        }
        let answer = ask().refused(429, message);
        assert_eq!(answer.json()["error_code"], "RATE_LIMITED");
        assert_eq!(answer.header("X-RateLimit-Remaining"), "0");
        let retry: u64 = answer.header("Retry-After").parse().unwrap();
        assert!((1..=12).contains(&retry), "{retry}");
        assert_eq!(answer.header("X-RateLimit-Retry-After"), retry.to_string());
        let metrics = server.request("GET", "/metrics").send().expect(200).bytes;
        let counted = format!("cloakroom_rate_limit_refusals_total{{class=\"{path}\"}} 1\n");
        assert!(String::from_utf8_lossy(&metrics).contains(&counted));
    }
}

#[test]
fn the_general_class_counts_per_user() {
    let server = Server::start(&[ON, ("CLOAKROOM_RATE_LIMIT_GENERAL", "10")]);
    let (ann, bob) = (server.sign_up("ann"), server.sign_up("bob"));
    for left in (0..10).rev() {
        let path = ["/auth/me", "/users/me"][left % 2];
        let answer = server.get(path, &ann.access).expect(200);
        assert_eq!(
            answer.header("X-RateLimit-Remaining"),
            left.to_string(),
            "one bucket for both paths"
        );
    }
    server.get("/auth/me", &ann.access).refused(429, "Rate limit exceeded");
    server
        .api("PUT", "/users/me")
        .bearer(&ann.access)
        .body("not json")
        .send()
        .refused(429, "Rate limit exceeded");
    server.get("/auth/me", &bob.access).expect(200);
}

#[test]
fn rejected_tokens_count_against_the_address() {
    let server = Server::start(&[ON, ("CLOAKROOM_RATE_LIMIT_GENERAL", "3")]);
    let ann = server.sign_up("ann");
    server.get("/auth/me", "nonsense").expect(401);
    server.api("GET", "/users/me").send().expect(401);
    let answer = server.get("/auth/me", "nonsense").expect(401);
    assert_eq!(answer.header("X-RateLimit-Limit"), "3");
    assert_eq!(answer.header("X-RateLimit-Remaining"), "0");
    server.get("/auth/me", "nonsense").refused(429, "Rate limit exceeded");
    server.get("/auth/me", &ann.access).expect(200);
}

#[test]
fn unknown_paths_and_probes_are_not_limited() {
    let server = Server::start(&[ON, ("CLOAKROOM_RATE_LIMIT_GENERAL", "1")]);
    for _ in 0..5 {
        for (path, status) in [("/healthz", 200), ("/readyz", 200), ("/nope", 404)] {
            let answer = server.request("GET", path).send().expect(status);
            assert!(answer.headers.get("X-RateLimit-Limit").is_none());
        }
    }
}

#[test]
fn behind_a_trusted_proxy_the_client_is_who_it_says() {
    let server = Server::start(&[ON, TRUSTED]);
    let ask = |forwarded: &str| {
        server
            .api("POST", "/auth/login")
            .header("X-Forwarded-For", forwarded)
            .json(json!({}))
            .send()
            .status
    };
    for _ in 0..5 {
        assert_eq!(ask("203.0.113.1"), 422);
    }
    for (forwarded, status, reason) in [
        ("203.0.113.1", 429, "the same client"),
        ("::ffff:203.0.113.1", 429, "the same, IPv4-mapped"),
        ("198.51.100.9, 203.0.113.1", 429, "what the client wrote itself does not count"),
        ("203.0.113.1, 127.0.0.9", 429, "a second trusted proxy"),
        ("203.0.113.2", 422, "another client"),
        ("2001:db8:1:2::1", 422, "IPv6"),
    ] {
        assert_eq!(ask(forwarded), status, "{reason}");
    }
    for i in 2..=5 {
        assert_eq!(ask(&format!("2001:db8:1:2::{i}")), 422);
    }
    assert_eq!(ask("2001:db8:1:2:ffff::1"), 429, "an IPv6 client is its /64");
    assert_eq!(ask("2001:db8:1:3::1"), 422, "another /64");
    assert!(server.log().contains("client=203.0.113.1"), "{}", server.log());
}

#[test]
fn a_stranger_cannot_choose_its_address() {
    let server = Server::start(&[ON]);
    let ask = |i: usize| {
        let request =
            server.api("POST", "/auth/login").header("X-Forwarded-For", &format!("203.0.113.{i}"));
        request.json(json!({"username": "ann", "password": PASSWORD})).send().status
    };
    let statuses: Vec<_> = (0..6).map(ask).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429]);
    assert_eq!(
        server.log().matches("X-Forwarded-For from").count(),
        1,
        "warned once: {}",
        server.log()
    );
}
