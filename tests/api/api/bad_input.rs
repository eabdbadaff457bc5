//! Bodies that are malformed or break a rule: each is answered with what is wrong, and never with a 500.
//! `openapi/inputs.rs` sends values of another type, and NUL, in each field.

use serde_json::json;

use crate::harness::*;

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
    api: &Server,
    sender: &Tokens,
    method: &str,
    path: &str,
    body: impl Into<Vec<u8>>,
) -> Answer {
    let request = api.request(method, path).header("Content-Type", "application/json").body(body);
    // At this endpoint an Authorization header would be taken for the refresh token.
    let request = if path == "/auth/refresh" { request } else { request.by(sender) };
    request.send()
}

#[test]
fn a_body_that_is_no_json_object_is_told_so() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    for (method, path, field) in ENDPOINTS {
        for (body, kind, reason) in [
            (b"{".to_vec(), "json_invalid", "cut short"),
            (b"nonsense".to_vec(), "json_invalid", "not JSON"),
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
            send(&api, &ann, method, path, body).case(reason).invalid(&[("body", kind)]);
        }
        let deep_value = format!("{{\"{field}\": {}}}", deep(100));
        send(&api, &ann, method, path, deep_value).expect(422);
    }
}

#[test]
fn text_that_is_not_utf_8_is_told_so() {
    let api = Server::start(&[]);
    let root = api.sign_up_admin("root");
    for (path, parameter) in [
        ("/users", "email"),
        ("/users", "name"),
        ("/users", "role"),
        ("/admin/users", "search"),
        ("/uploads", "search"),
        ("/uploads", "content_type"),
        ("/users/export", "email"),
    ] {
        for (value, reason) in [
            ("a%ff", "a byte that UTF-8 does not have"),
            ("%c3", "half a character"),
            ("%c3&x=%a9", "half a character before another parameter"),
            ("%ed%a0%80", "half a surrogate pair"),
            ("user&%ff=1", "a name of a parameter"),
        ] {
            let answer = api.get(&format!("{path}?{parameter}={value}"), &root).case(reason);
            answer.invalid(&[("query", "value_error")]);
        }
        let nul = api.get(&format!("{path}?{parameter}=a%00b"), &root).expect(422).problems();
        assert_eq!(nul[0].0, format!("query.{parameter}"));
    }
    api.get("/uploads?search=caf%C3%A9", &root).expect(200);
    let form = api
        .request("POST", "/auth/login")
        .header("Content-Type", "application/x-www-form-urlencoded");
    let form = |body: &[u8]| form.clone().body(body).send();
    form(b"username=root&password=%ff").invalid(&[("body", "value_error")]);
    form(b"username=root&password=\xff").expect(422);
    form(b"username=root&password=a%00b").invalid(&[("body.password", "value_error")]);
    form(format!("username=root&password={}", PASSWORD.replace(' ', "+")).as_bytes()).expect(200);
}

#[test]
fn missing_and_empty_fields_are_reported_together() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let (email, password) = (("body.email", "missing"), ("body.password", "missing"));
    let new_password = ("body.new_password", "missing");
    for (path, missing) in [
        ("/auth/register", &[email, password][..]),
        ("/auth/login", &[("body.username", "missing"), password]),
        ("/auth/request-password-reset", &[email]),
        ("/auth/reset-password", &[("body.token", "missing"), new_password]),
        ("/users/change-password", &[("body.current_password", "missing"), new_password]),
    ] {
        for body in ["", "  ", "{}", "{\"unknown\": 1}"] {
            send(&api, &ann, "POST", path, body).invalid(missing);
        }
    }
    let nulls = json!({"username": null, "email": null, "password": null, "name": null});
    api.register_with(nulls).invalid(&[email, password]);
    let short_name = ("body.username", "string_too_short");
    api.login("", "").invalid(&[short_name, ("body.password", "string_too_short")]);
    let form = api
        .request("POST", "/auth/login")
        .header("Content-Type", "application/x-www-form-urlencoded");
    form.body("username=&other=1").send().invalid(&[short_name, password]);
}

#[test]
fn registration_fields_obey_their_rules() {
    let api = Server::start(&[]);
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
        ("email", json!("ann\u{0}@example.com"), "value_error"),
        ("email", json!("ann@example.com, bob@example.com"), "value_error"),
        ("email", json!("ann@example.com\r\nBcc: bob@example.com"), "value_error"),
        ("email", json!(format!("{}@example.com", "a".repeat(250))), "string_too_long"),
        ("password", json!("1234567"), "string_too_short"),
        ("password", json!("x".repeat(1025)), "string_too_long"),
        ("name", json!("x".repeat(256)), "string_too_long"),
    ] {
        api.register_with(with_member(&good, field, value))
            .invalid(&[(&format!("body.{field}"), kind)]);
    }
    let longest = json!({
        "username": "a".repeat(50),
        "password": "\u{1f511}".repeat(1024),
        "name": "\u{1f511}".repeat(255),
        "email": format!("{}@{}.example.com", "a".repeat(64), "b".repeat(63)),
        "is_admin": true,
        "role": "admin",
    });
    // Unknown fields are ignored.
    api.register_with(longest).expect(201).has(json!({"role": "user"}));
}

#[test]
fn bodies_are_read_whatever_their_type_says() {
    let api = Server::start(&[]);
    let types = ["text/plain", "application/x-www-form-urlencoded", "nonsense", ""];
    for (i, content_type) in types.iter().enumerate() {
        let email = format!("ann{i}@example.com");
        let body = json!({"username": format!("ann{i}"), "email": email, "password": PASSWORD});
        let request = api.request("POST", "/auth/register").header("Content-Type", content_type);
        request.body(body.to_string()).send().expect(201);
    }
}
