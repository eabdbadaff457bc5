//! What holds for every endpoint: request ids, methods, paths, headers, error bodies, CORS, probes, logs.

use serde_json::{Value, json};

use crate::harness::*;

#[test]
fn a_request_id_is_kept_where_it_is_a_uuid() {
    let api = Server::start(&[]);
    let id = |sent: &str| {
        let request = api.request_at_root("GET", "/healthz").header("X-Request-ID", sent);
        request.send().expect(200).header("X-Request-ID").to_owned()
    };
    let kept = "c0ffee00-1234-4abc-8def-0123456789ab";
    for (sent, reason) in [
        (kept, "the usual form"),
        ("C0FFEE00-1234-4ABC-8DEF-0123456789AB", "upper case becomes lower case"),
        ("c0ffee0012344abc8def0123456789ab", "hyphens are added"),
    ] {
        assert_eq!(id(sent), kept, "{reason}");
    }
    for bad in ["", "7", "c0ffee00-1234-4abc-8def-0123456789ag", "' OR 1=1"] {
        let made = id(bad);
        assert!(made != bad && made.len() == 36 && &made[14..15] == "4", "{made}");
    }
    api.logged(kept);
}

#[test]
fn every_answer_carries_the_common_headers() {
    let api = Server::start(&[]);
    for (method, path, status, no_store) in [
        ("GET", "/healthz", 200, false),
        ("GET", "/api/v1/auth/me", 401, true),
        ("POST", "/api/v1/auth/login", 422, true),
        ("GET", "/api/v1/nope", 404, true),
        ("DELETE", "/api/v1/auth/me", 405, true),
        // No cache may keep an error, wherever it is.
        ("GET", "/nope", 404, true),
        ("GET", "/%61pi/v1/auth/me", 401, true),
        ("GET", "/api/%76%31/uploads/x", 401, true),
        ("PUT", "/%61pi/v1/auth/me", 405, true),
        ("GET", "/%61pi/v1/nope", 404, true),
        ("GET", "/%61pi/v1/%ff", 404, true),
        ("GET", "/api/v1", 404, true),
        ("GET", "/api/v1/", 404, true),
        ("GET", "/api/v10/auth/me", 404, true),
        ("GET", "/api%2Fv1/auth/me", 404, true),
    ] {
        let answer = api.request_at_root(method, path).send().expect(status);
        assert_eq!(answer.header("X-Request-ID").len(), 36);
        assert_eq!(answer.header("X-Content-Type-Options"), "nosniff");
        assert_eq!(answer.header("Referrer-Policy"), "no-referrer");
        let cache = answer.headers.get("Cache-Control");
        assert_eq!(cache.is_some_and(|value| value == "no-store"), no_store, "{path}");
        assert_eq!(answer.header("Content-Type"), "application/json");
    }
}

#[test]
fn a_path_is_known_with_and_without_a_trailing_slash_and_head_like_get() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    for (method, path, status) in [
        ("GET", "/api/v1/auth/me/", 200),
        ("GET", "/readyz/", 200),
        ("HEAD", "/api/v1/auth/me", 200),
        ("GET", "/api/v1/auth/me//", 404),
        ("GET", "/api/v2/auth/me", 404),
        ("GET", "/", 404),
    ] {
        let answer = api.request_at_root(method, path).by(&ann).send().expect(status);
        assert_eq!(answer.bytes.is_empty(), method == "HEAD", "{method} {path}");
        if status == 404 {
            answer.refused(404, "Not Found");
        }
    }
}

#[test]
fn another_method_is_refused_with_those_allowed() {
    let api = Server::start(&[]);
    for (method, path, allow, reason) in [
        ("POST", "/api/v1/auth/me", "GET, HEAD", "a wrong method"),
        ("GET", "/api/v1/auth/login/", "POST", "a trailing slash"),
        ("BREW", "/healthz", "GET, HEAD", "an unknown method"),
        ("OPTIONS", "/api/v1/auth/me", "GET, HEAD", "OPTIONS without CORS"),
        ("DELETE", "/api/v1/users/me", "GET, HEAD, PUT", "a literal segment is no id"),
        ("GET", &format!("/api/v1/admin/users/{UNKNOWN_ID}"), "PUT", "a path with an id"),
    ] {
        let answer = api.request_at_root(method, path).send().case(reason);
        let answer = answer.refused(405, "Method Not Allowed");
        assert_eq!(answer.header("Allow"), allow, "{method} {path}: {reason}");
    }
}

#[test]
fn errors_have_the_configured_format() {
    let detail = Server::start(&[]);
    let body = json!({"username": "x", "email": "x", "password": "x"});
    let short_name = "Must be at least 3 characters long";
    let bad_address = "Invalid e-mail address";
    let short_password = "Password must be at least 8 characters long";
    assert_eq!(
        detail.register_with(body).expect(422).json(),
        json!({
            "detail": [
                {"loc": ["body", "username"], "msg": short_name, "type": "string_too_short"},
                {"loc": ["body", "email"], "msg": bad_address, "type": "value_error"},
                {"loc": ["body", "password"], "msg": short_password, "type": "string_too_short"},
            ],
            "error_code": "VALIDATION_ERROR",
            "reason": "VALIDATION_FAILED",
            "field_errors": {"username": [short_name], "email": [bad_address], "password": [short_password]},
        })
    );
    let envelope = Server::start(&[("CLOAKROOM_ERROR_FORMAT", "envelope")]);
    let mut body = envelope.login_with(json!({"username": "ann"})).expect(422).json();
    let timestamp = body["error"]["timestamp"].take();
    assert!(
        timestamp.as_str().is_some_and(|text| text.ends_with('Z') && text.len() == 27),
        "{timestamp}"
    );
    let details =
        json!([{"loc": ["body", "password"], "msg": "Field required", "type": "missing"}]);
    assert_eq!(
        body["error"],
        json!({
            "code": "VALIDATION_ERROR",
            "reason": "VALIDATION_FAILED",
            "message": "Validation failed",
            "details": details,
            "timestamp": null,
        })
    );
    let body = envelope.request_at_root("GET", "/nope").send().expect(404).json();
    let hint = "The endpoints of the API are below /api/v1; /docs describes them.";
    let error = with_member(&body["error"], "timestamp", Value::Null);
    assert_eq!(
        error,
        json!({
            "code": "NOT_FOUND",
            "reason": "PATH_NOT_FOUND",
            "message": "Not Found",
            "details": [{ "hint": hint }],
            "timestamp": null,
        })
    );
}

const ALLOW_ORIGIN: &str = "Access-Control-Allow-Origin";

fn preflight(api: &Server, path: &str, origin: &str) -> Answer {
    let request = api.request_at_root("OPTIONS", path).header("Origin", origin);
    request.header("Access-Control-Request-Method", "PUT").send()
}

/// A request of a page of this origin, without a token.
fn cross_origin(api: &Server, origin: &str) -> Answer {
    api.request("GET", "/auth/me").header("Origin", origin).send().expect(401)
}

#[test]
fn cors_is_off_unless_configured() {
    let api = Server::start(&[]);
    assert!(!cross_origin(&api, "https://app.example").has_header(ALLOW_ORIGIN));
    preflight(&api, "/api/v1/auth/me", "https://app.example").expect(405);
}

#[test]
fn cors_allows_the_configured_origins_and_no_others() {
    let api =
        Server::start(&[("CLOAKROOM_CORS_ORIGINS", "https://app.example, http://localhost:3000")]);
    let answer = preflight(&api, "/api/v1/users/me", "https://app.example").expect(204);
    assert_eq!(answer.header(ALLOW_ORIGIN), "https://app.example");
    assert_eq!(answer.header("Access-Control-Allow-Methods"), "GET, HEAD, PUT");
    let words = |answer: &Answer, name: &str| {
        answer.header(name).split(", ").map(str::to_owned).collect::<Vec<_>>()
    };
    let allowed = words(&answer, "Access-Control-Allow-Headers");
    for name in [
        "Authorization",
        "Content-Type",
        "Range",
        "If-Range",
        "If-None-Match",
        "If-Match",
        "Idempotency-Key",
    ] {
        assert!(allowed.iter().any(|word| word == name), "{name}: {allowed:?}");
    }
    assert_eq!(answer.header("Vary"), "Origin");
    let answer = cross_origin(&api, "http://localhost:3000");
    assert_eq!(answer.header(ALLOW_ORIGIN), "http://localhost:3000");
    let exposed = words(&answer, "Access-Control-Expose-Headers");
    for name in ["X-Request-ID", "ETag", "Content-Range", "Location", "Repr-Digest"] {
        assert!(exposed.iter().any(|word| word == name), "{name}: {exposed:?}");
    }
    for origin in ["https://evil.example", "null", "https://app.example.evil.example"] {
        let answer = preflight(&api, "/api/v1/users/me", origin).expect(204);
        assert!(!answer.has_header(ALLOW_ORIGIN), "{origin}");
    }
    preflight(&api, "/api/v1/nope", "https://app.example").expect(404);
}

#[test]
fn cors_for_any_origin_allows_no_credentials() {
    let api = Server::start(&[("CLOAKROOM_CORS_ORIGINS", "*")]);
    let answer = preflight(&api, "/api/v1/users/me", "https://app.example").expect(204);
    assert_eq!(answer.header(ALLOW_ORIGIN), "*");
    assert!(!answer.has_header("Access-Control-Allow-Credentials"));
}

#[test]
fn each_request_is_one_line_without_secrets() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    api.login("ann@example.com", "wrong horse").expect(401);
    api.get("/auth/me?token=s3cret&email=ann@example.com", &ann).expect(200);
    for path in ["/users/ann@example.com/x", "/users/ann%40example.com/x", "/a%0AINFO%20forged"] {
        api.get(path, Anonymous).expect(404);
    }
    api.logged(" /api/v1/a%0A"); // the last request
    let log = api.log();
    assert!(log.contains(" GET (not-logged) 404 "), "{log}");
    for secret in ["s3cret", "example.com", PASSWORD, "wrong horse", &ann.access, &ann.refresh] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
    assert_eq!(log.lines().filter(|line| line.contains("request_id=")).count(), 7, "{log}");
    assert!(!log.contains("\nINFO forged"));
}

/// What stands in a line between its level and the time that the request took, which is the only part that is not known
/// beforehand, and what stands after that.
fn around_the_time(line: &str) -> (String, String) {
    let (_, line) = line.split_once(" INFO  ").expect("a level");
    let (start, end) = line.split_once(" ms ").expect("a time");
    let (start, ms) = start.rsplit_once(' ').expect("a number");
    assert!(ms.split_once('.').is_some_and(|(_, tenth)| tenth.len() == 1), "{line}");
    assert!(ms.parse::<f64>().is_ok_and(|ms| ms < 60_000.0), "{line}");
    (start.to_owned(), end.to_owned())
}

#[test]
fn a_line_has_its_parts_in_order_and_the_message_of_a_refusal() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let expect = |answer: Answer, before: &str, after: &str| {
        let id = answer.header("X-Request-ID");
        let expected = format!("{after} client=127.0.0.1 request_id={id}");
        assert_eq!(around_the_time(&api.logged(id)), (before.to_owned(), expected));
    };
    let user = format!("user={}", ann.id());
    expect(api.me(&ann), "GET /api/v1/auth/me 200", &user);
    expect(api.me("nonsense"), "GET /api/v1/auth/me 401", "\"Invalid token\" user=-");
    let by_ann = |message: &str| format!("\"{message}\" {user}");
    let stats = by_ann("Admin privileges required.");
    expect(api.admin_stats(&ann), "GET /api/v1/admin/stats 403", &stats);
    let update = api.update_me(&ann, json!({"email": "s3cret"}));
    expect(update, "PUT /api/v1/users/me 422", &by_ann("Validation failed"));
    let upload = api.upload_form(&ann, file_form("a.html", "text/html", b"<p>"));
    expect(upload, "POST /api/v1/uploads 415", &by_ann("File type not allowed"));
    let (method, path) = ("X".repeat(30), format!("/{}", "y".repeat(300)));
    for (method, path, cut) in [
        ("GET", "/nope", "GET /nope"),
        ("GET", "/a%20b%0A%22c%22", "GET /a%20b%0A%22c%22"),
        (&method, &path, &format!("{} {}", &method[..20], &path[..200])),
    ] {
        let answer = api.request_at_root(method, path).send();
        expect(answer, &format!("{cut} 404"), "\"Not Found\" user=-");
    }
}

#[test]
fn a_head_that_is_refused_is_logged_as_far_as_it_is_known() {
    let head = "GET /s3cret HTTP/1.1\r\nHost: x\r\nExpect: s3cret\r\n\r\n";
    let api = Server::start(&[]);
    let id = ask(&api.address, head).1.request_id();
    let end = format!("\"Expectation failed\" user=- client=127.0.0.1 request_id={id}");
    assert_eq!(around_the_time(&api.logged(&id)), ("- - 417".to_owned(), end));

    let json = Server::start(&[("CLOAKROOM_LOG_FORMAT", "json")]);
    let id = ask(&json.address, head).1.request_id();
    let mut line: Value = serde_json::from_str(&json.logged(&id)).expect("JSON");
    assert!(line["timestamp"].take().is_string() && line["ms"].take().is_number(), "{line}");
    assert_eq!(
        line,
        json!({
            "timestamp": null, "level": "INFO", "target": "cloakroom::access", "message": "request", "status": 417,
            "ms": null, "error": "Expectation failed", "user": "-", "client": "127.0.0.1", "request_id": id,
        })
    );
    assert!(!(api.log() + &json.log()).contains("s3cret"));
}

#[test]
fn a_line_names_the_account_as_soon_as_it_is_known() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let user_of = |answer: Answer| {
        let line = api.logged(answer.header("X-Request-ID"));
        let (_, rest) = line.split_once(" user=").expect("a user");
        rest.split(' ').next().expect("an id").to_owned()
    };
    let bob = api.register("bob").expect(201);
    assert_eq!(bob.id(), user_of(bob));
    let carl =
        api.register_with(json!({"email": "carl@example.com", "password": PASSWORD})).expect(201);
    assert_eq!(carl.tokens().id(), user_of(carl));
    assert_eq!(user_of(api.register("ann").expect(400)), "-");
    assert_eq!(user_of(api.login("ann", PASSWORD).expect(200)), ann.id());
    assert_eq!(user_of(api.login("Ann@example.com", "wrong horse").expect(401)), ann.id());
    assert_eq!(user_of(api.login("nobody", PASSWORD).expect(401)), "-");
    assert_eq!(user_of(api.refresh(&ann.refresh).expect(200)), ann.id());
    assert_eq!(user_of(api.refresh("nonsense").expect(401)), "-");
    api.logout(&ann).expect(204);
    assert_eq!(user_of(api.refresh(&ann.refresh).expect(401)), ann.id(), "an ended session");
    api.database.run("UPDATE users SET is_active = false WHERE username = 'ann'");
    assert_eq!(user_of(api.login("ann", PASSWORD).expect(403)), ann.id(), "inactive");
}

#[test]
fn json_logs_are_one_object_a_line() {
    let api = Server::start(&[("CLOAKROOM_LOG_FORMAT", "json")]);
    let ann = api.sign_up("ann");
    let upload = api.upload_form(&ann, file_form("a.html", "text/html", b"<p>"));
    let unknown = api.request_at_root("GET", "/nope%20%0A").send();
    for (answer, method, path, status, error, user) in [
        (api.me(&ann), "GET", "/api/v1/auth/me", 200, Value::Null, ann.id()),
        (upload, "POST", "/api/v1/uploads", 415, json!("File type not allowed"), ann.id()),
        (unknown, "GET", "/nope%20%0A", 404, json!("Not Found"), "-"),
    ] {
        let id = answer.header("X-Request-ID");
        let mut line: Value = serde_json::from_str(&api.logged(id)).expect("JSON");
        assert!(line["timestamp"].take().is_string() && line["ms"].take().is_number(), "{line}");
        let mut expected = json!({
            "timestamp": null, "level": "INFO", "target": "cloakroom::access", "message": "request",
            "method": method, "path": path, "status": status, "ms": null, "user": user, "client": "127.0.0.1",
            "request_id": id,
        });
        if !error.is_null() {
            expected["error"] = error;
        }
        assert_eq!(line, expected);
    }
    for line in api.log().lines() {
        serde_json::from_str::<Value>(line).expect(line);
    }
}

/// Libraries log statement parameters at their lower levels.
#[test]
fn no_log_level_shows_e_mail_addresses() {
    for (name, value) in [
        ("CLOAKROOM_LOG", "info"),
        ("RUST_LOG", "cloakroom=info,tokio_postgres=trace"),
        ("RUST_LOG", "info"),
    ] {
        let api = Server::start(&[(name, value)]);
        api.sign_up("ann");
        api.logged(" /api/v1/auth/register ");
        assert!(!api.log().contains("ann@example.com"), "{}", api.log());
    }
}
