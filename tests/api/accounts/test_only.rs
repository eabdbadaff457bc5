//! The endpoints that exist for tests of clients only.

use crate::harness::*;

#[test]
fn users_are_made_of_anything_counted_and_removed() {
    let (api, [root]) =
        Server::with_users(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")], ["root"]);
    let create = |body: Value| api.post("/users/test-only/create", &root, body);
    let alive = api.get("/users/test-only/alive", &root).expect(200);
    assert_eq!(alive.json(), json!({"status": "test-only endpoints alive"}));
    let invented = create(json!({})).expect(201);
    assert_ne!(invented.json()["username"], create(json!({})).expect(201).json()["username"]);
    let odd = json!({
        "username": "x", "email": "no address", "name": "x".repeat(1000), "role": "admin", "permissions": [""],
        "is_active": true, "created_at": "2020-01-01T00:00:00+01:00", "last_login": "2020-01-02T00:00:00Z",
    });
    let made = create(with_member(&odd, "password", "1")).expect(201);
    let odd = with_member(&odd, "created_at", "2019-12-31T23:00:00.000000Z");
    made.has(with_member(&odd, "last_login", "2020-01-02T00:00:00.000000Z"));
    api.login("x", "1").expect(200);
    create(json!({"username": "X"})).refused(409, "Username already exists");
    create(json!({"email": "NO address"})).refused(409, "Email already exists");
    let bad = json!({
        "username": "\0", "role": "x", "created_at": "now", "email": "x".repeat(2000), "permissions": 1, "is_active": 2,
    });
    create(bad).invalid(&[
        ("body.username", "value_error"),
        ("body.role", "enum"),
        ("body.created_at", "datetime_parsing"),
        ("body.email", "string_too_long"),
        ("body.permissions", "value_error"),
        ("body.is_active", "bool_type"),
    ]);
    // The longest text that is accepted, of letters that do not compress: their index entries are as large as possible.
    let wide: String = (0..500).filter_map(|i| char::from_u32(0x4e00 + i * 37 % 20_000)).collect();
    create(json!({"username": wide, "email": wide, "name": wide})).expect(201);
    let count = || api.get("/users/test-only/count", &root).expect(200).json();
    assert_eq!(count(), json!({"count": 5, "total": 5}));
    api.delete_user(&root, &invented.id()).expect(204);
    assert_eq!(count(), json!({"count": 4, "total": 4}));
    let deleted = api.delete("/users/test-only/delete-all", &root).expect(200);
    assert_eq!(deleted.json(), json!({"deleted": 4}));
    api.get("/users/test-only/count", &root).refused(401, "User not found or inactive");
    assert_eq!(api.database.count("users WHERE NOT is_deleted OR email IS NOT NULL"), 0);
    api.register("root").expect(201);
}
