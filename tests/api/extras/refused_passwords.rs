//! Passwords that attackers try first: wherever a password is set, those of a file and, in production, the most used
//! ones are refused.

use std::fs;

use crate::harness::*;
use crate::sign_in::password_forms::{COMPOSED, DECOMPOSED};

/// Expects a 422 that says so of the field.
fn is_known(answer: Answer, field: &str) {
    answer.expect(422).has(json!({"detail": [{
        "loc": ["body", field], "msg": "This password is known to attackers", "type": "value_error"
    }]}));
}

/// A file of passwords, whose lines end in both ways, and one of whose lines is no UTF-8.
fn list(directory: &Directory) -> String {
    let path = directory.join("passwords");
    fs::write(
        &path,
        b"Correct Horse 1\r\nno utf-8 \xff\n\n\xc3\x84rger im B\xc3\xbcro\nthe last line",
    )
    .unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn whoever_sets_a_password_of_the_file_is_refused_and_who_has_one_goes_on() {
    let directory = Directory::create();
    let path = list(&directory);
    let database = Database::create();
    let before = Server::start_on(&database, &[]);
    before
        .register_with(
            json!({"username": "old", "email": "old@example.com", "password": "the last line"}),
        )
        .expect(201);
    drop(before);
    let api = Server::start_on(&database, &[("CLOAKROOM_REFUSED_PASSWORDS", &path)]);
    assert!(
        api.log().contains("CLOAKROOM_REFUSED_PASSWORDS: 1 lines are no UTF-8, and refuse nothing")
    );
    let (ann, root) = (api.sign_up("ann"), api.sign_up_admin("root"));
    for known in ["Correct Horse 1", "CORRECT HORSE 1", "\u{e4}RGER im b\u{dc}ro", "the last line"]
    {
        let body = json!({"username": "bob", "email": "bob@example.com", "name": "Bob", "password": known});
        is_known(api.register_with(body.clone()), "password");
        is_known(api.register_with(without_member(&body, "username")), "password");
        is_known(api.create_user(&root, body), "password");
        is_known(api.update_user(&root, ann.id(), json!({ "password": known })), "password");
        // It is told before whether the current password is the right one.
        is_known(api.change_password(&ann, "wrong horse", known), "new_password");
        is_known(api.reset_password("nonsense", known), "new_password");
    }
    // A line is the whole password, blanks included, and one that is no UTF-8 refuses nothing.
    let others = [PASSWORD, "Correct Horse 12", " Correct Horse 1", "no utf-8 \u{fffd}"];
    for change in others.windows(2) {
        api.change_password(&ann, change[0], change[1]).expect(200);
    }
    assert_eq!(api.database.count("users"), 3);
    let token = api.reset_token("ann@example.com");
    is_known(api.reset_password(&token, "the last line"), "new_password");
    api.reset_password(&token, NEW_PASSWORD).expect(200);
    let old = api.login("old", "the last line").expect(200).tokens();
    api.change_password(&old, "the last line", NEW_PASSWORD).expect(200);
    let admin = |password: &str| {
        let settings = [
            ("CLOAKROOM_ADMIN_PASSWORD", password),
            ("CLOAKROOM_REFUSED_PASSWORDS", path.as_str()),
        ];
        run(&api.database.url, &["create-admin", "--email", "old@example.com"], &settings)
    };
    admin("The Last Line").exits(1).reports("password: This password is known to attackers");
    admin(NEW_PASSWORD).exits(0);
}

#[test]
fn production_refuses_the_most_used_passwords_and_development_does_not() {
    let known = "Password123";
    let body = json!({"username": "ann", "email": "ann@example.com", "password": known});
    let production = Server::start(&PRODUCTION);
    is_known(production.register_with(body.clone()), "password");
    production.register_with(with_member(&body, "password", json!(PASSWORD))).expect(201);
    Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]).register_with(body).expect(201);
}

#[test]
fn accounts_for_tests_may_have_any_password() {
    let directory = Directory::create();
    let path = list(&directory);
    let settings = [
        ("CLOAKROOM_REFUSED_PASSWORDS", path.as_str()),
        ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true"),
    ];
    let (api, [root]) = Server::with_users(&settings, ["root"]);
    api.post("/users/test-only/create", &root, json!({"password": "the last line"})).expect(201);
}

#[test]
fn a_file_that_cannot_be_read_or_is_too_large_is_refused_at_the_start() {
    let (database, directory) = (Database::create(), Directory::create());
    let large = directory.join("large");
    fs::File::create(&large).unwrap().set_len((64 << 20) + 1).unwrap();
    let missing = directory.join("missing");
    for (path, reason) in [
        (&missing, "No such file or directory"),
        (&large, "larger than 64 MiB"),
        (&directory.join("."), "Is a directory"),
    ] {
        let path = path.to_str().unwrap();
        let setting = [("CLOAKROOM_REFUSED_PASSWORDS", path)];
        let text = format!("CLOAKROOM_REFUSED_PASSWORDS: {path}: {reason}");
        for command in [&["serve"][..], &["create-admin", "--email", "a@example.com"]] {
            run(&database.url, command, &setting).exits(2).reports(&text);
        }
        run(&database.url, &["doctor"], &setting).exits(1).prints(&text);
    }
}

#[test]
fn lengths_and_refused_passwords_are_those_of_nfc() {
    let directory = Directory::create();
    let list = directory.join("passwords");
    std::fs::write(&list, format!("{DECOMPOSED}\nStra\u{df}enbahn\n")).unwrap();
    let api = Server::start(&[("CLOAKROOM_REFUSED_PASSWORDS", list.to_str().unwrap())]);
    let set = |password: &str| {
        let email = format!("{}@example.com", api.database.count("users"));
        api.register_with(json!({"email": email, "password": password}))
    };
    for known in [COMPOSED, "MU\u{308}LLERSTRA\u{17f}SE", "STRA\u{1e9e}ENBAHN"] {
        set(known).expect(422).has(json!({"detail": [{
            "loc": ["body", "password"], "msg": "This password is known to attackers", "type": "value_error"
        }]}));
    }
    let nfd = |n: usize| "u\u{308}".repeat(n);
    set(&nfd(7)).invalid(&[("body.password", "string_too_short")]);
    set(&nfd(8)).expect(201);
    set(&nfd(1024)).expect(201);
    set(&nfd(1025)).invalid(&[("body.password", "string_too_long")]);
    let admin = ["create-admin", "--email", "root@example.com"];
    let create =
        |password: &str| run(&api.database.url, &admin, &[("CLOAKROOM_ADMIN_PASSWORD", password)]);
    create(&nfd(7)).exits(1).reports("Password must be at least 8 characters long");
    create(&nfd(9)).exits(0);
    api.login("root@example.com", &"\u{fc}".repeat(9)).expect(200);
}
