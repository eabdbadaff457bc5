//! What is switched off by the settings: for no method does it exist.

use crate::harness::*;

const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"];

/// Expects 404 for every method of the path, with and without a token, and of a page of another origin, which sees it
/// because a preflight says nothing else than for any path that does not exist.
fn expect_missing(api: &Server, path: &str, message: &str, root: &Tokens, is_forwarded: bool) {
    let preflight = |method: &str| {
        let request = api.request_at_root(method, path).header("Origin", "https://app.example.com");
        request.header("Access-Control-Request-Method", "POST")
    };
    for method in METHODS {
        let plain = api.request_at_root(method, path);
        for request in [plain.clone(), plain.by(root), preflight(method)] {
            let sent = if is_forwarded { request.header("Forwarded", "for=a") } else { request };
            let is_preflight = method == "OPTIONS" && sent.has("Origin");
            let answer = sent.send().case(format_args!("{method} {path}"));
            if is_preflight {
                let allowed = answer.expect(204);
                assert_eq!(allowed.header("Access-Control-Allow-Methods"), "POST", "{path}");
                continue;
            }
            let answer = answer.expect(404);
            if method != "HEAD" {
                assert_eq!(answer.json()["detail"], message, "{method} {path}");
            }
            assert!(!answer.has_header("Allow"), "{method} {path}");
        }
    }
}

#[test]
fn a_feature_that_is_switched_off_is_404_for_every_method() {
    let open = Server::start(&[]);
    let root = open.sign_up_admin("root");
    let settings = [
        ("CLOAKROOM_CORS_ORIGINS", "https://app.example.com"),
        ("CLOAKROOM_REGISTRATION", "off"),
        ("CLOAKROOM_SMTP_URL", "none"),
        ("CLOAKROOM_DOCS", "off"),
        ("CLOAKROOM_CONSOLE", "off"),
        ("CLOAKROOM_METRICS", "off"),
    ];
    let api = Server::start_with(&open.database, &open.data, &settings);
    let others = [
        "/api/v1/users/test-only/alive",
        "/api/v1/users/test-only/create",
        "/api/v1/users/test-only/delete-all",
        "/api/v1/users/test-only/count",
        "/api/v1/auth/request-password-reset",
        "/api/v1/auth/reset-password",
        "/api/v1/auth/confirm-email",
        "/api/v1/auth/register",
        "/api/v1/uploads/public",
        "/console/users/7",
        "/",
    ];
    let of_extras = |path: &str| {
        path == "/"
            || path.starts_with("/console")
            || path.ends_with("/confirm-email")
            || path.ends_with("/public")
    };
    for path in crate::extras::pages::FILES.map(|(path, _)| path).into_iter().chain(others) {
        let is_known = has_extras() || !of_extras(path);
        let message = if is_known { "This feature is not available" } else { "Not Found" };
        expect_missing(&api, path, message, &root, false);
    }
    for path in ["/metrics", "/api/v1/users/test-only/other"] {
        expect_missing(&api, path, "Not Found", &root, false);
    }
}

#[test]
fn metrics_do_not_exist_by_any_method_for_whom_they_are_not() {
    for server in ["builtin", "rouille"] {
        let api = Server::start(&[
            ("CLOAKROOM_CORS_ORIGINS", "https://app.example.com"),
            ("CLOAKROOM_HTTP_SERVER", server),
        ]);
        let root = api.sign_up_admin("root");
        expect_missing(&api, "/metrics", "Not Found", &root, true);
        api.request_at_root("GET", "/metrics").send().expect(200);
        api.request_at_root("HEAD", "/metrics").send().expect(200);
        let answer = api.request_at_root("POST", "/metrics").send().expect(405);
        assert_eq!(answer.header("Allow"), "GET, HEAD");
    }
}
