//! User management by administrators.

use serde_json::{Value, json};

use crate::harness::*;

#[test]
fn an_admin_makes_users_with_everything() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let mut body = json!({
        "username": "ann", "email": "Ann@Example.com", "name": " Ann ", "password": PASSWORD,
        "role": "admin", "permissions": ["read", "write"], "is_active": false,
    });
    let made = api.create_user(&root, body.clone()).expect(201);
    body.as_object_mut().expect("an object").remove("password");
    body["name"] = json!("Ann");
    body["last_login"] = json!(null);
    let made = made.has(body);
    assert_eq!(api.show_user(&root, &made.id()).expect(200).json(), made.json());
    let least = json!({"email": "bo@example.com", "name": "Bo", "password": PASSWORD});
    let defaults = json!({"username": null, "role": "user", "permissions": [], "is_active": true});
    api.create_user(&root, least).expect(201).has(defaults);
    api.login_with(json!({"email": "bo@example.com", "password": PASSWORD})).expect(200);
}

#[test]
fn bad_descriptions_of_users_are_refused_field_by_field() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let missing =
        [("body.email", "missing"), ("body.name", "missing"), ("body.password", "missing")];
    api.create_user(&root, json!({})).invalid(&missing);
    for (field, value, kind) in [
        ("username", json!("a b"), "value_error"),
        ("email", json!("nobody"), "value_error"),
        ("email", json!(1), "string_type"),
        ("name", json!("x".repeat(256)), "string_too_long"),
        ("name", json!("a\0b"), "value_error"),
        ("password", json!("short"), "string_too_short"),
        ("role", json!("root"), "enum"),
        ("role", json!("ADMIN"), "enum"),
        ("role", json!(1), "string_type"),
        ("permissions", json!("read"), "value_error"),
        ("permissions", json!({}), "value_error"),
        ("permissions", json!([1]), "value_error"),
        ("permissions", json!([""]), "string_too_short"),
        ("permissions", json!(["a\0"]), "value_error"),
        ("permissions", json!(["x".repeat(65)]), "string_too_long"),
        ("permissions", json!(vec!["x"; 101]), "value_error"),
        ("is_active", json!("true"), "bool_type"),
        ("is_active", json!(1), "bool_type"),
    ] {
        let mut body = json!({"email": "ann@example.com", "name": "Ann", "password": PASSWORD});
        body[field] = value;
        let place = format!("body.{field}");
        api.create_user(&root, body.clone()).invalid(&[(&place, kind)]);
        api.update_user(&root, root.id(), body).invalid(&[(&place, kind)]);
    }
    for c in CONTROL_CHARACTERS {
        let name = json!({ "name": format!("a{c}b") });
        let answer = api.update_user(&root, root.id(), name.clone());
        answer.invalid(&[("body.name", "value_error")]);
        let answer = api.update_me(&root, name.clone()).invalid(&[("body.name", "value_error")]);
        if c != '\0' {
            let message = "Must not contain control characters";
            assert_eq!(answer.json()["detail"][0]["msg"], message);
        }
        let mut body = json!({"email": "\"a\tb\"@example.com", "password": PASSWORD});
        api.register_with(body.clone()).invalid(&[("body.email", "value_error")]);
        body["email"] = json!("ann@example.com");
        body["name"] = name["name"].clone();
        api.register_with(body).invalid(&[("body.name", "value_error")]);
    }
    for permissions in [json!(vec!["x".repeat(64); 100]), json!([])] {
        api.update_user(&root, root.id(), json!({"permissions": permissions})).expect(200);
    }
    assert_eq!(api.database.count("users"), 1);
}

#[test]
fn taken_names_are_conflicts_without_regard_to_case() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let create = |username: &str, email: &str| {
        let body = json!({"username": username, "email": email, "name": "x", "password": PASSWORD});
        api.create_user(&root, body)
    };
    create("ANN", "new@example.com").refused(409, "Username already exists");
    create("new", "ANN@example.com").refused(409, "Email already exists");
    let update = |body: Value| api.update_user(&root, ann.id(), body);
    update(json!({"email": "Root@Example.com"})).refused(409, "Email already exists");
    update(json!({"username": "ROOT"})).refused(409, "Username already exists");
    update(json!({"email": "ANN@example.com"})).expect(200); // the account's own address in other case
}

#[test]
fn an_update_changes_what_is_given_and_nothing_else() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let before = api.show_user(&root, ann.id()).expect(200).json();
    let unchanged =
        json!({"id": before["id"], "role": before["role"], "created_at": before["created_at"]});
    for (list, field, value) in [
        ("/users", "name", json!("Ann")),
        ("/users", "email", json!("ann@example.org")),
        ("/admin/users", "username", json!("anna")),
        ("/admin/users", "permissions", json!(["a"])),
        ("/users", "permissions", json!([])),
    ] {
        let change = json!({field: value, "role": null, "id": 7});
        let answer = api.put(&format!("{list}/{}", ann.id()), &root, change).expect(200);
        let after = answer.has(json!({field: value})).has(unchanged.clone()).json();
        assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    }
    // None of these changes concerns what a token says, so the user stays signed in.
    api.profile(&ann).expect(200);
}

#[test]
fn a_blank_name_is_none() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let none = json!({ "name": null });
    let paths = ["/users/me".to_owned()];
    let of_admins = ["users", "admin/users"].map(|list| format!("/{list}/{}", ann.id()));
    let events = || api.all_events(&root, "action=user.update").len();
    for (path, sender) in
        paths.iter().map(|path| (path, &ann)).chain(of_admins.iter().map(|path| (path, &root)))
    {
        for blank in ["", " \t\u{3000}"] {
            api.put(path, sender, json!({"name": " Ann "})).expect(200).has(json!({"name": "Ann"}));
            let unset = api.put(path, sender, json!({ "name": blank })).case(path).expect(200);
            unset.has(none.clone());
            let before = events();
            api.put(path, sender, json!({ "name": blank })).expect(200).has(none.clone());
            assert_eq!(events(), before, "nothing has changed");
            api.show_user(&root, ann.id()).expect(200).has(none.clone());
        }
    }
    let mut body = json!({"email": "bo@example.com", "name": " ", "password": PASSWORD});
    api.create_user(&root, body.clone()).expect(201).has(none.clone());
    body["email"] = json!("cy@example.com");
    let signed_in = api.register_with(body.clone()).expect(201).json();
    assert_eq!(signed_in["user"]["name"], json!(null));
    body["email"] = json!("dot@example.com");
    body["username"] = json!("dot");
    api.register_with(body).expect(201);
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
