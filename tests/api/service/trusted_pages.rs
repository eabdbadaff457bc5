//! What a service of a developer allows to this host without a token must not be open to web pages that a browser on
//! this host shows: neither to one whose name resolves to this host (DNS rebinding), nor to one that sends requests
//! without reading the answers.

use crate::harness::*;

const OFF: (&str, &str) = ("CLOAKROOM_AUTH_ENABLED", "false");
const LISTED: (&str, &str) = ("CLOAKROOM_CORS_ORIGINS", "https://app.example.com");

/// The headers of a request, and whether a page that is trusted can have sent them. The unit tests of
/// `http/request.rs` have more.
const CASES: [(&[(&str, &str)], bool); 5] = [
    (&[("Host", "evil.example")], false),
    (&[("Origin", "https://evil.example")], false),
    (&[("Host", "evil.example"), ("Origin", "http://localhost")], false),
    (&[("Host", "localhost:8000")], true),
    (&[("Origin", "https://app.example.com")], true),
];

fn send(api: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = api.request(method, path);
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    request.json(json!({})).send().case(format!("{headers:?}"))
}

#[test]
fn a_foreign_page_exports_nothing_from_a_service_in_development() {
    let api = Server::start(&[LISTED]);
    for (headers, is_trusted) in CASES {
        for path in ["/users/export", "/users/export-full", "/users/export-alive"] {
            let answer = send(&api, "GET", path, headers);
            match is_trusted {
                true => answer.expect(200),
                false => answer.refused(401, "Authentication required"),
            };
        }
    }
    // With a token it does not matter which page sends it, because no foreign page has one.
    let ann = api.sign_up("ann");
    let request = api.request("GET", "/users/export").header("Host", "evil.example");
    request.by(&ann).send().expect(200);
    // Exports that are open to anyone stay open.
    let open = Server::start(&[("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "true")]);
    send(&open, "GET", "/users/export", CASES[0].0).expect(200);
}

#[test]
fn a_foreign_page_is_no_development_admin() {
    let api = Server::start(&[OFF, LISTED, ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    for (headers, is_trusted) in CASES {
        for (method, path, status) in [
            ("GET", "/users", 200),
            ("POST", "/users/test-only/create", 201),
            ("GET", "/users/export", 200),
        ] {
            let answer = send(&api, method, path, headers);
            match is_trusted {
                true => answer.expect(status),
                false => answer.refused(403, "Not enough permissions"),
            };
        }
    }
    // Probes and what anyone may do are as open as ever.
    let request = api.request_at_root("GET", "/healthz").header("Host", "evil.example");
    request.send().expect(200);
    send(&api, "POST", "/auth/login", CASES[0].0).expect(422);
}

#[test]
fn an_origin_that_everybody_has_is_not_listed() {
    let api = Server::start(&[OFF, ("CLOAKROOM_CORS_ORIGINS", "*")]);
    send(&api, "GET", "/users", &[("Origin", "https://evil.example")])
        .refused(403, "Not enough permissions");
    send(&api, "GET", "/users", &[("Origin", "http://localhost:3000")]).expect(200);
}

#[test]
fn refused_pages_are_limited_like_rejected_tokens() {
    let limits = [("CLOAKROOM_RATE_LIMIT_ENABLED", "true"), ("CLOAKROOM_RATE_LIMIT_GENERAL", "2")];
    let api = Server::start(&[&[OFF], &limits[..]].concat());
    let foreign = || send(&api, "GET", "/users", CASES[0].0);
    foreign().refused(403, "Not enough permissions");
    foreign().refused(403, "Not enough permissions");
    foreign().refused(429, "Rate limit exceeded");
}
