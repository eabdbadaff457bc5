//! User management by administrators.

use crate::harness::*;

#[test]
fn an_admin_makes_users_with_everything() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let body = json!({
        "username": "ann", "email": "Ann@Example.com", "name": " Ann ", "password": PASSWORD,
        "role": "admin", "permissions": ["read", "write"], "is_active": false,
    });
    let made = api.create_user(&root, body.clone()).expect(201);
    let made = made.has(with_member(&without_member(&body, "password"), "name", "Ann"));
    let made = made.has(json!({"last_login": null}));
    assert_eq!(api.show_user(&root, &made.id()).expect(200).json(), made.json());
    let least = json!({"email": "bo@example.com", "name": "Bo", "password": PASSWORD});
    let defaults = json!({"username": null, "role": "user", "permissions": [], "is_active": true});
    api.create_user(&root, least).expect(201).has(defaults);
    api.login_with(json!({"email": "bo@example.com", "password": PASSWORD})).expect(200);
}

#[test]
fn names_have_no_control_characters_and_permissions_at_most_a_hundred_words() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    for c in CONTROL_CHARACTERS {
        let name = json!({ "name": format!("a{c}b") });
        let answer = api.update_user(&root, root.id(), name.clone());
        answer.invalid_in("body", "name value_error");
        let answer = api.update_me(&root, name.clone()).invalid_in("body", "name value_error");
        if c != '\0' {
            let message = "Must not contain control characters";
            assert_eq!(answer.json()["detail"][0]["msg"], message);
        }
        let body = json!({"email": "ann@example.com", "name": name["name"], "password": PASSWORD});
        api.register_with(body).invalid_in("body", "name value_error");
    }
    let body = json!({"email": "\"a\tb\"@example.com", "password": PASSWORD});
    api.register_with(body).invalid_in("body", "email value_error");
    for permissions in [json!(vec!["x".repeat(64); 100]), json!([])] {
        api.update_user(&root, root.id(), json!({"permissions": permissions})).expect(200);
    }
    assert_eq!(api.database.count("users"), 1);
}

#[test]
fn a_blank_name_is_none() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let none = json!({ "name": null });
    let [by_id, of_admins] = ["users", "admin/users"].map(|list| format!("/{list}/{}", ann.id()));
    let events = || api.database.count("audit_events WHERE action = 'user.update'");
    for (path, sender) in [("/users/me", &ann), (&by_id, &root), (&of_admins, &root)] {
        for blank in ["", " \t\u{3000}"] {
            let put = |name: &str| api.put(path, sender, json!({ "name": name })).expect(200);
            put(" Ann ").has(json!({"name": "Ann"}));
            put(blank).has(none.clone());
            let before = events();
            put(blank).has(none.clone());
            assert_eq!(events(), before, "nothing has changed");
            api.show_user(&root, ann.id()).expect(200).has(none.clone());
        }
    }
    let body = json!({"email": "bo@example.com", "name": " ", "password": PASSWORD});
    // An account that an administrator makes has a name.
    for blank in ["", " ", "\t\n", "\u{a0}"] {
        let invited = json!({"email": "bo@example.com", "name": blank, "invite": true});
        for body in [with_member(&body, "name", blank), invited] {
            api.create_user(&root, body).invalid_in("body", "name string_too_short");
        }
    }
    let body = with_member(&body, "email", "cy@example.com");
    let signed_in = api.register_with(body.clone()).expect(201).json();
    assert_eq!(signed_in["user"]["name"], json!(null));
    let body = with_member(&body, "email", "dot@example.com");
    api.register_with(with_member(&body, "username", "dot")).expect(201);
    assert_eq!(api.database.count("users WHERE name = ''"), 0);
    // Former versions stored an empty one.
    api.database.run("UPDATE users SET name = '' WHERE username = 'ann'");
    api.show_user(&root, ann.id()).expect(200).has(json!({"name": ""}));
    api.update_me(&ann, json!({"name": ""})).expect(200).has(none);
}

#[test]
fn ids_are_uuids() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    for id in ["1", "abc", "%00", "00000000-0000-0000-0000-00000000000g", &"x".repeat(500)] {
        for method in ["GET", "PUT", "DELETE"] {
            let request = api.request(method, &format!("/users/{id}")).by(&root).json(json!({}));
            request.send().invalid(&[("path.user_id", "uuid_parsing")]);
        }
    }
}
