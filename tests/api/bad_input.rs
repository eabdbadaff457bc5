//! Bodies that strangers send: an answer of the contract, never a 500.

use serde_json::{Value, json};

use crate::harness::{Answer, PASSWORD, Server};

/// Every endpoint with a JSON body, and a text field of it.
const ENDPOINTS: [(&str, &str, &str); 7] = [
    ("POST", "/auth/register", "email"),
    ("POST", "/auth/login", "username"),
    ("POST", "/auth/refresh", "refresh_token"),
    ("POST", "/auth/request-password-reset", "email"),
    ("POST", "/auth/reset-password", "new_password"),
    ("PUT", "/users/me", "name"),
    ("POST", "/users/change-password", "current_password"),
];

fn send(
    server: &Server,
    token: &str,
    method: &str,
    path: &str,
    body: impl Into<Vec<u8>>,
) -> Answer {
    let request = server.api(method, path).header("Content-Type", "application/json").body(body);
    // An Authorization header would be the refresh token.
    if path == "/auth/refresh" { request.send() } else { request.bearer(token).send() }
}

#[test]
fn what_is_no_json_object_is_told_so() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    for (method, path, field) in ENDPOINTS {
        for (body, kind, reason) in [
            (b"{".to_vec(), "json_invalid", "cut short"),
            (b"nonsense".to_vec(), "json_invalid", "no JSON"),
            (b"{\"a\":1}}".to_vec(), "json_invalid", "more than one value"),
            (b"{'a': 1}".to_vec(), "json_invalid", "single quotes"),
            (b"{\"a\": \"\xff\"}".to_vec(), "json_invalid", "invalid UTF-8"),
            (b"{\"a\": \"\\ud800\"}".to_vec(), "json_invalid", "half a surrogate pair"),
            (b"\xef\xbb\xbf{}".to_vec(), "json_invalid", "a byte order mark"),
            (deep(10_000).into_bytes(), "json_invalid", "deep nesting"),
            (
                format!("{{\"{field}\": {}}}", deep(200)).into_bytes(),
                "json_invalid",
                "deep nesting in a field",
            ),
            (b"[]".to_vec(), "value_error", "a list"),
            (b"\"text\"".to_vec(), "value_error", "a text"),
            (b"null".to_vec(), "value_error", "null"),
            (b"7".to_vec(), "value_error", "a number"),
        ] {
            let answer = send(&server, &ann.access, method, path, body);
            assert_eq!(answer.status, 422, "{path}: {reason}");
            let body = answer.json();
            assert_eq!(body["detail"][0]["loc"], json!(["body"]), "{path}: {reason}");
            assert_eq!(body["detail"][0]["type"], kind, "{path}: {reason}: {body}");
        }
        let deep_value = format!("{{\"{field}\": {}}}", deep(100));
        send(&server, &ann.access, method, path, deep_value).expect(422);
    }
}

#[test]
fn fields_of_another_type_and_nul_characters_are_told_so() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    for (method, path, field) in ENDPOINTS {
        for value in [json!(7), json!(true), json!([]), json!({}), json!(1.5)] {
            let mut body = json!({});
            body[field] = value;
            let answer =
                send(&server, &ann.access, method, path, body.to_string()).expect(422).json();
            let faults = answer["detail"].as_array().unwrap();
            assert!(
                faults
                    .iter()
                    .any(|f| f["loc"] == json!(["body", field]) && f["type"] == "string_type"),
                "{path}: {answer}"
            );
        }
        if path != "/auth/refresh" {
            let body = json!({ field: "abcdefgh\u{0}ij" });
            let answer =
                send(&server, &ann.access, method, path, body.to_string()).expect(422).json();
            let faults = answer["detail"].as_array().unwrap();
            assert!(
                faults
                    .iter()
                    .any(|f| f["loc"] == json!(["body", field]) && f["type"] == "value_error"),
                "{path}: {answer}"
            );
        }
    }
    server.post("/auth/refresh", json!({"refresh_token": "a\u{0}b"})).refused(401, "Invalid token");
}

#[test]
fn missing_and_empty_fields_are_reported_together() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let missing = |path: &str, fields: &[&str]| {
        let expected: Vec<_> = fields.iter().map(|f| (format!("body.{f}"), "missing")).collect();
        let expected: Vec<_> = expected.iter().map(|(f, t)| (f.as_str(), *t)).collect();
        for body in ["", "  ", "{}", "{\"unknown\": 1}"] {
            send(&server, &ann.access, "POST", path, body).invalid(&expected);
        }
    };
    missing("/auth/register", &["email", "password"]);
    missing("/auth/login", &["username", "password"]);
    missing("/auth/request-password-reset", &["email"]);
    missing("/auth/reset-password", &["token", "new_password"]);
    missing("/users/change-password", &["current_password", "new_password"]);
    let nulls = json!({"username": null, "email": null, "password": null, "name": null});
    server
        .post("/auth/register", nulls)
        .invalid(&[("body.email", "missing"), ("body.password", "missing")]);
    server
        .post("/auth/login", json!({"username": "", "password": ""}))
        .invalid(&[("body.username", "string_too_short"), ("body.password", "string_too_short")]);
    server
        .api("POST", "/auth/login")
        .form("username=&other=1")
        .send()
        .invalid(&[("body.username", "string_too_short"), ("body.password", "missing")]);
}

#[test]
fn registration_fields_obey_their_rules() {
    let server = Server::start(&[]);
    let good =
        json!({"username": "ann", "email": "ann@example.com", "password": PASSWORD, "name": "Ann"});
    for (field, value, kind) in [
        ("username", json!("ab"), "string_too_short"),
        ("username", json!(""), "string_too_short"),
        ("username", json!("a".repeat(51)), "string_too_long"),
        ("username", json!("ann lee"), "value_error"),
        ("username", json!("ann@example.com"), "value_error"),
        ("username", json!("\u{e4}nne"), "value_error"),
        ("email", json!(""), "value_error"),
        ("email", json!("ann"), "value_error"),
        ("email", json!("ann@example.com, bob@example.com"), "value_error"),
        ("email", json!("ann@example.com\r\nBcc: bob@example.com"), "value_error"),
        ("email", json!(format!("{}@example.com", "a".repeat(250))), "string_too_long"),
        ("password", json!("1234567"), "string_too_short"),
        ("password", json!("x".repeat(1025)), "string_too_long"),
        ("name", json!("x".repeat(256)), "string_too_long"),
    ] {
        let mut body = good.clone();
        body[field] = value;
        server.post("/auth/register", body).invalid(&[(&format!("body.{field}"), kind)]);
    }
    let mut longest: Value = good;
    longest["username"] = json!("a".repeat(50));
    longest["password"] = json!("\u{1f511}".repeat(1024));
    longest["name"] = json!("\u{1f511}".repeat(255));
    longest["email"] = json!(format!("{}@{}.example.com", "a".repeat(64), "b".repeat(63)));
    longest["is_admin"] = json!(true);
    longest["role"] = json!("admin");
    let user = server.post("/auth/register", longest).expect(201).json();
    assert_eq!(user["role"], "user", "unknown fields are ignored");
}

#[test]
fn a_body_over_128_kib_is_refused() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let name = |size: usize| {
        let mut body = json!({"name": "Ann", "other": ""}).to_string();
        let padding = "x".repeat(size - body.len());
        body.insert_str(body.len() - 2, &padding);
        assert_eq!(body.len(), size);
        body
    };
    send(&server, &ann.access, "PUT", "/users/me", name(128 * 1024)).expect(200);
    let answer = send(&server, &ann.access, "PUT", "/users/me", name(128 * 1024 + 1));
    let answer = answer.refused(413, "Request body too large");
    assert_eq!(answer.json()["error_code"], "PAYLOAD_TOO_LARGE");
    // Who may not enter is told that first.
    server
        .api("PUT", "/users/me")
        .body(name(200_000))
        .send()
        .refused(401, "Authentication required");
}

#[test]
fn bodies_are_read_whatever_their_type_says() {
    let server = Server::start(&[]);
    for (i, content_type) in
        ["text/plain", "application/x-www-form-urlencoded", "nonsense", ""].iter().enumerate()
    {
        let body = json!({"username": format!("ann{i}"), "email": format!("ann{i}@example.com"), "password": PASSWORD});
        let request = server.api("POST", "/auth/register").header("Content-Type", content_type);
        request.body(body.to_string()).send().expect(201);
    }
}
