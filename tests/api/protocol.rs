//! What holds for every endpoint: ids, methods, paths, headers, error bodies, CORS, probes, logs.

use serde_json::{Value, json};

use crate::harness::{PASSWORD, Server};

#[test]
fn a_request_id_is_kept_where_it_is_a_uuid() {
    let server = Server::start(&[]);
    let id = |sent: &str| {
        let answer =
            server.request("GET", "/healthz").header("X-Request-ID", sent).send().expect(200);
        answer.header("X-Request-ID").to_owned()
    };
    let kept = "c0ffee00-1234-4abc-8def-0123456789ab";
    assert_eq!(id(kept), kept);
    assert_eq!(id("C0FFEE00-1234-4ABC-8DEF-0123456789AB"), kept, "lower case");
    assert_eq!(id("c0ffee0012344abc8def0123456789ab"), kept, "hyphenated");
    for bad in ["", "7", "c0ffee00-1234-4abc-8def-0123456789ag", "' OR 1=1"] {
        let made = id(bad);
        assert!(made != bad && made.len() == 36 && &made[14..15] == "4", "{made}");
    }
    server.logged(kept);
}

#[test]
fn every_answer_carries_the_common_headers() {
    let server = Server::start(&[]);
    for (method, path, status, no_store) in [
        ("GET", "/healthz", 200, false),
        ("GET", "/api/v1/auth/me", 401, true),
        ("POST", "/api/v1/auth/login", 422, true),
        ("GET", "/api/v1/nope", 404, true),
        ("DELETE", "/api/v1/auth/me", 405, true),
        ("GET", "/nope", 404, false),
    ] {
        let answer = server.request(method, path).send().expect(status);
        assert_eq!(answer.header("X-Request-ID").len(), 36);
        assert_eq!(answer.header("X-Content-Type-Options"), "nosniff");
        assert_eq!(
            answer.headers.get("Cache-Control").is_some_and(|v| v == "no-store"),
            no_store,
            "{path}"
        );
        assert_eq!(answer.header("Content-Type"), "application/json");
    }
}

#[test]
fn paths_methods_and_trailing_slashes() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    for (method, path, status, allow) in [
        ("GET", "/api/v1/auth/me/", 200, None),
        ("HEAD", "/api/v1/auth/me", 200, None),
        ("GET", "/api/v1/auth/me//", 404, None),
        ("GET", "/api/v2/auth/me", 404, None),
        ("GET", "/", 404, None),
        ("POST", "/api/v1/auth/me", 405, Some("GET, HEAD")),
        ("GET", "/api/v1/auth/login/", 405, Some("POST")),
        ("DELETE", "/api/v1/users/me", 405, Some("GET, HEAD, PUT")),
        ("GET", "/api/v1/users/change-password", 405, Some("POST")),
        ("BREW", "/healthz", 405, Some("GET, HEAD")),
        ("OPTIONS", "/api/v1/auth/me", 405, Some("GET, HEAD")),
    ] {
        let answer = server.request(method, path).bearer(&ann.access).send();
        assert_eq!(answer.status, status, "{method} {path}");
        match status {
            404 => drop(answer.refused(404, "Not Found")),
            405 => {
                let answer = answer.refused(405, "Method Not Allowed");
                assert_eq!(Some(answer.header("Allow")), allow, "{method} {path}");
            }
            _ if method == "HEAD" => assert!(answer.bytes.is_empty()),
            _ => {}
        }
    }
}

#[test]
fn errors_come_in_the_configured_shape() {
    let plain = Server::start(&[]);
    let body = plain
        .post("/auth/register", json!({"username": "x", "email": "x", "password": "x"}))
        .expect(422)
        .json();
    assert_eq!(
        body,
        json!({
            "detail": [
                {"loc": ["body", "username"], "msg": "Must be at least 3 characters long", "type": "string_too_short"},
                {"loc": ["body", "email"], "msg": "Invalid e-mail address", "type": "value_error"},
                {"loc": ["body", "password"], "msg": "Password must be at least 8 characters long", "type": "string_too_short"},
            ],
            "error_code": "VALIDATION_ERROR",
            "field_errors": {
                "username": ["Must be at least 3 characters long"],
                "email": ["Invalid e-mail address"],
                "password": ["Password must be at least 8 characters long"],
            },
        })
    );
    let server = Server::start(&[("CLOAKROOM_ERROR_FORMAT", "envelope")]);
    let mut body = server.post("/auth/login", json!({"username": "ann"})).expect(422).json();
    let timestamp = body["error"]["timestamp"].take();
    assert!(timestamp.as_str().is_some_and(|t| t.ends_with('Z') && t.len() == 27), "{timestamp}");
    let details =
        json!([{"loc": ["body", "password"], "msg": "Field required", "type": "missing"}]);
    assert_eq!(
        body,
        json!({"error": {"code": "VALIDATION_ERROR", "message": "Validation failed", "details": details, "timestamp": null}})
    );
    let body = server.request("GET", "/nope").send().expect(404).json();
    assert_eq!(
        (&body["error"]["code"], &body["error"]["message"], &body["error"]["details"]),
        (&json!("NOT_FOUND"), &json!("Not Found"), &Value::Null)
    );
}

#[test]
fn cors_is_off_unless_configured() {
    let server = Server::start(&[]);
    let answer =
        server.api("GET", "/auth/me").header("Origin", "https://app.example").send().expect(401);
    assert!(answer.headers.get("Access-Control-Allow-Origin").is_none());
    preflight(&server, "/api/v1/auth/me", "https://app.example").expect(405);
}

fn preflight(server: &Server, path: &str, origin: &str) -> crate::harness::Answer {
    server
        .request("OPTIONS", path)
        .header("Origin", origin)
        .header("Access-Control-Request-Method", "PUT")
        .send()
}

#[test]
fn configured_origins_may_call_and_others_may_not() {
    let server =
        Server::start(&[("CLOAKROOM_CORS_ORIGINS", "https://app.example, http://localhost:3000")]);
    let answer = preflight(&server, "/api/v1/users/me", "https://app.example").expect(204);
    assert_eq!(answer.header("Access-Control-Allow-Origin"), "https://app.example");
    assert_eq!(answer.header("Access-Control-Allow-Methods"), "GET, HEAD, PUT");
    assert!(answer.header("Access-Control-Allow-Headers").contains("Authorization"));
    assert_eq!(answer.header("Vary"), "Origin");
    let answer =
        server.api("GET", "/auth/me").header("Origin", "http://localhost:3000").send().expect(401);
    assert_eq!(answer.header("Access-Control-Allow-Origin"), "http://localhost:3000");
    assert!(answer.header("Access-Control-Expose-Headers").contains("X-Request-ID"));
    for origin in ["https://evil.example", "null", "https://app.example.evil.example"] {
        let answer = preflight(&server, "/api/v1/users/me", origin).expect(204);
        assert!(answer.headers.get("Access-Control-Allow-Origin").is_none(), "{origin}");
    }
    preflight(&server, "/api/v1/nope", "https://app.example").expect(404);
    let any = Server::start(&[("CLOAKROOM_CORS_ORIGINS", "*")]);
    let answer = preflight(&any, "/api/v1/users/me", "https://app.example").expect(204);
    assert_eq!(answer.header("Access-Control-Allow-Origin"), "*");
    assert!(answer.headers.get("Access-Control-Allow-Credentials").is_none());
}

#[test]
fn probes_need_no_token() {
    let server = Server::start(&[]);
    for path in ["/healthz", "/readyz", "/readyz/"] {
        assert_eq!(server.request("GET", path).send().expect(200).json(), json!({"status": "ok"}));
    }
}

#[test]
fn each_request_is_one_line_without_secrets() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    server
        .post("/auth/login", json!({"username": "ann@example.com", "password": "wrong horse"}))
        .expect(401);
    server
        .api("GET", "/auth/me?token=s3cret&email=ann@example.com")
        .bearer(&ann.access)
        .send()
        .expect(200);
    server.request("GET", "/api/v1/users/ann@example.com/x").send().expect(404);
    server.request("GET", "/api/v1/users/ann%40example.com/x").send().expect(404);
    server.request("GET", "/api/v1/a%0AINFO%20forged").send().expect(404);
    server.logged("path=/api/v1/a%0A"); // the last one
    let log = server.log();
    let line = server.logged("path=/api/v1/auth/me");
    for part in [
        "request_id=",
        "method=GET",
        "status=200",
        " ms=",
        &format!("user={}", ann.id()),
        "client=127.0.0.1",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    for secret in ["s3cret", "example.com", PASSWORD, "wrong horse", &ann.access, &ann.refresh] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
    assert_eq!(log.lines().filter(|line| line.contains("request_id=")).count(), 7, "{log}");
    assert!(!log.contains("\nINFO forged"));
}

#[test]
fn json_logs_are_one_object_a_line() {
    let server = Server::start(&[("CLOAKROOM_LOG_FORMAT", "json")]);
    server.request("GET", "/healthz").send().expect(200);
    let line: Value = serde_json::from_str(&server.logged("/healthz")).expect("JSON");
    assert_eq!(
        (&line["level"], &line["method"], &line["status"]),
        (&json!("INFO"), &json!("GET"), &json!(200))
    );
    assert!(
        line["ms"].is_number() && line["timestamp"].is_string() && line["request_id"].is_string(),
        "{line}"
    );
    for line in server.log().lines() {
        serde_json::from_str::<Value>(line).expect(line);
    }
}

#[test]
fn the_log_level_is_a_setting() {
    for (name, value) in [
        ("CLOAKROOM_LOG", "info"),
        ("RUST_LOG", "cloakroom=info,tokio_postgres=trace"),
        ("RUST_LOG", "info"),
    ] {
        let server = Server::start(&[(name, value)]);
        server.sign_up("ann");
        server.logged("path=/api/v1/auth/register");
        assert!(!server.log().contains("ann@example.com"), "{}", server.log());
    }
}
