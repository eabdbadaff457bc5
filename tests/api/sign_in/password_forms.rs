//! Passwords that keyboards send in different forms of Unicode: they are hashed in NFC, and what was sent is the second
//! try, so that hashes of other forms go on.

use serde_json::json;

use crate::harness::*;

const COMPOSED: &str = "M\u{fc}llerstrasse";
const DECOMPOSED: &str = "Mu\u{308}llerstrasse";
/// A hash of [`DECOMPOSED`] as it stands, made by Python's `hashlib`.
const OLDER_HASH: &str = "$scrypt$ln=4,r=8,p=1$MDEyMzQ1Njc4OWFiY2RlZg$\
     sKancHXvEe9O2UUJPpBY6QfWhxXsYbT20yflU+bL1To";

/// A service with Ann, whose password was set in this form.
fn service(password: &str) -> (Server, Tokens) {
    let api = Server::start(&[]);
    let body = json!({"username": "ann", "email": "ann@example.com", "password": password});
    api.register_with(body).expect(201);
    let ann = api.login("ann", password).expect(200).tokens();
    (api, ann)
}

#[test]
fn a_password_is_the_same_in_each_form_wherever_it_is_asked_for() {
    for (set, typed) in [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)] {
        let (api, _) = service(set);
        let ann = api.login("ann", typed).expect(200).tokens();
        api.login("ann", &typed.to_uppercase()).expect(401);
        api.login("nobody", typed).expect(401);
        let offer = json!({"current_password": typed});
        api.post("/auth/second-factor", &ann, offer.clone()).expect(200);
        api.change_password(&ann, &format!("{typed}!"), NEW_PASSWORD).expect(400);
        // The new one is stored in NFC too.
        api.change_password(&ann, typed, &format!("{typed}2")).expect(200);
        api.login("ann", &format!("{set}2")).expect(200);
        let token = api.reset_token("ann@example.com");
        api.reset_password(&token, typed).expect(200);
        let ann = api.login("ann", set).expect(200).tokens();
        api.delete_me(&ann, typed).expect(204);
    }
}

#[test]
fn an_older_hash_opens_for_the_form_that_it_was_made_of_and_is_renewed_in_nfc() {
    let (api, ann) = service(PASSWORD);
    let set = format!("UPDATE users SET password_hash = '{OLDER_HASH}'");
    let hash = || api.database.value::<String>("SELECT password_hash FROM users");
    api.database.run(&set);
    api.login("ann", COMPOSED).expect(401);
    // Only a sign-in renews it, as it renews one of another cost, and no session ends.
    api.change_password(&ann, DECOMPOSED, "short").expect(422);
    api.login("ann", DECOMPOSED).expect(200);
    assert_ne!(hash(), OLDER_HASH);
    let renewed = hash();
    api.me(&ann).expect(200);
    api.login("ann", COMPOSED).expect(200);
    api.login("ann", DECOMPOSED).expect(200);
    assert_eq!(hash(), renewed);
    api.database.run(&set);
    api.change_password(&ann, DECOMPOSED, COMPOSED).expect(200);
    api.login("ann", COMPOSED).expect(200);
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
