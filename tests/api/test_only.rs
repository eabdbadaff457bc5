//! The endpoints for tests of clients.

use serde_json::json;

use crate::harness::{PASSWORD, Server};

const ENDPOINTS: [(&str, &str); 4] = [
    ("GET", "/users/test-only/alive"),
    ("POST", "/users/test-only/create"),
    ("DELETE", "/users/test-only/delete-all"),
    ("GET", "/users/test-only/count"),
];

#[test]
fn they_do_not_exist_for_anybody_unless_switched_on() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    for (method, path) in ENDPOINTS {
        let request = server.api(method, path);
        request.send().refused(404, "This feature is not available");
        request.bearer(&root.access).send().refused(404, "This feature is not available");
    }
    server.api("POST", "/users/test-only/count").send().refused(405, "Method Not Allowed");
    server.api("GET", "/users/test-only/other").send().refused(404, "Not Found");
    server.get("/users/me", &root.access).expect(200);
}

#[test]
fn users_are_made_of_anything_counted_and_removed() {
    let server = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let root = server.sign_up_admin("root");
    let create =
        |body| server.api("POST", "/users/test-only/create").bearer(&root.access).json(body).send();
    assert_eq!(
        server.get("/users/test-only/alive", &root.access).expect(200).json(),
        json!({"status": "test-only endpoints alive"})
    );
    let made_up = create(json!({})).expect(201).json();
    assert_ne!(made_up["username"], create(json!({})).expect(201).json()["username"]);
    let odd = json!({
        "username": "x", "email": "no address", "name": "x".repeat(1000), "role": "admin", "permissions": [""],
        "is_active": true, "created_at": "2020-01-01T00:00:00+01:00", "last_login": "2020-01-02T00:00:00Z", "password": "1",
    });
    let made = create(odd.clone()).expect(201).json();
    for field in ["username", "email", "name", "role", "permissions", "is_active"] {
        assert_eq!(made[field], odd[field], "{field}");
    }
    assert_eq!(
        (&made["created_at"], &made["last_login"]),
        (&json!("2019-12-31T23:00:00.000000Z"), &json!("2020-01-02T00:00:00.000000Z"))
    );
    server.post("/auth/login", json!({"username": "x", "password": "1"})).expect(200);
    create(json!({"username": "X"})).refused(409, "Username already exists");
    create(json!({"email": "NO address"})).refused(409, "Email already exists");
    create(json!({"username": "\0", "role": "x", "created_at": "now", "email": "x".repeat(2000), "permissions": 1, "is_active": 1})).invalid(&[
        ("body.username", "value_error"),
        ("body.role", "enum"),
        ("body.created_at", "datetime_parsing"),
        ("body.email", "string_too_long"),
        ("body.permissions", "value_error"),
        ("body.is_active", "bool_type"),
    ]);
    // The largest text that is taken, of letters that grow when they are compared and do not compress.
    let wide: String = (0..500).filter_map(|i| char::from_u32(0x4e00 + i * 37 % 20_000)).collect();
    create(json!({"username": wide, "email": wide, "name": wide})).expect(201);
    let count = || server.get("/users/test-only/count", &root.access).expect(200).json();
    assert_eq!(count(), json!({"count": 5}));
    server
        .api("DELETE", &format!("/users/{}", made_up["id"].as_str().expect("an id")))
        .bearer(&root.access)
        .send()
        .expect(204);
    assert_eq!(count(), json!({"count": 4}));
    let answer =
        server.api("DELETE", "/users/test-only/delete-all").bearer(&root.access).send().expect(200);
    assert_eq!(answer.json(), json!({"deleted": 4}));
    server.get("/users/test-only/count", &root.access).refused(401, "User not found or inactive");
    assert_eq!(server.database.value::<i64>("SELECT count(*) FROM users"), 0);
    server
        .post(
            "/auth/register",
            json!({"username": "root", "email": "root@example.com", "password": PASSWORD}),
        )
        .expect(201);
}
