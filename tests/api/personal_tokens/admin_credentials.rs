//! What administrators cannot do with a personal access token: whoever steals one must not be able to keep the power of
//! an administrator. `accounts/current_password.rs` has what they confirm with their password.

use crate::harness::*;

const REFUSED: &str = "Not enough permissions";

fn new_account(role: Value) -> Value {
    json!({"email": "new@example.com", "name": "New", "password": PASSWORD, "role": role})
}

#[test]
fn a_personal_token_makes_no_administrator() {
    let (api, [root, ann]) =
        Server::with_users(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")], ["root", "ann"]);
    let token = api.new_token(&root, false);
    let test_only = "/users/test-only/create";
    let of_ann = [format!("/users/{}", ann.id()), format!("/admin/users/{}", ann.id())];
    api.create_user(&token, new_account(json!("admin"))).refused(403, REFUSED);
    api.post(test_only, &token, json!({"role": "admin"})).refused(403, REFUSED);
    for path in &of_ann {
        api.put(path, &token, json!({"role": "admin"})).refused(403, REFUSED);
    }
    // That comes before validation.
    api.create_user(&token, json!({"role": "admin", "email": 7})).refused(403, REFUSED);
    api.post(test_only, &token, json!({"role": "admin", "is_active": 7})).refused(403, REFUSED);
    api.put(&of_ann[0], &token, json!({"role": "admin", "name": 7})).refused(403, REFUSED);
    assert_eq!(api.database.count("users WHERE role = 'admin'"), 1);
    // Other accounts it makes and changes, and bad roles are bad fields.
    api.create_user(&token, new_account(json!("user"))).expect(201);
    api.put(&of_ann[0], &token, json!({"name": "Ann", "role": "user"})).expect(200);
    api.put(&of_ann[0], &token, json!({"role": "root"})).invalid(&[("body.role", "enum")]);
    // The session of an administrator does all of it.
    api.post(test_only, &root, json!({"role": "admin"})).expect(201);
    api.put(&of_ann[1], &root, json!({"role": "admin"})).expect(200);
}

#[test]
fn a_personal_token_neither_changes_nor_deletes_an_administrator() {
    let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let (root, other, ann) =
        (api.sign_up_admin("root"), api.sign_up_admin("other"), api.sign_up("ann"));
    let token = api.new_token(&root, false);
    for admin in [&root, &other] {
        for path in ["/users", "/admin/users"] {
            let path = format!("{path}/{}", admin.id());
            // An empty change too, and before a body that is wrong.
            for body in [json!({}), json!({"password": NEW_PASSWORD}), json!({"role": "x"})] {
                api.put(&path, &token, body).refused(403, REFUSED);
            }
        }
        api.delete_user(&token, admin.id()).refused(403, REFUSED);
        api.show_user(&token, admin.id()).expect(200).has(json!({"name": null}));
    }
    api.delete("/users/test-only/delete-all", &token).refused(403, REFUSED);
    api.update_user(&token, UNKNOWN_ID, json!({})).refused(404, "User not found");
    api.delete_user(&token, UNKNOWN_ID).refused(404, "User not found");
    api.delete_user(&token, ann.id()).expect(204);
    api.update_user(&root, other.id(), json!({"name": "Other"})).expect(200);
    api.delete_user(&root, other.id()).expect(204);
}
