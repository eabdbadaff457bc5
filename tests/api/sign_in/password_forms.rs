//! Passwords that keyboards send in different forms of Unicode: they are hashed in NFC, and what was sent is the second
//! try, so that hashes of other forms go on.

use crate::harness::*;

pub const COMPOSED: &str = "M\u{fc}llerstrasse";
pub const DECOMPOSED: &str = "Mu\u{308}llerstrasse";
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
        if has_extras() {
            let offer = json!({"current_password": typed});
            api.post("/auth/second-factor", &ann, offer).expect(200);
        }
        api.change_password(&ann, &format!("{typed}!"), NEW_PASSWORD).expect(400);
        // The new one is stored in NFC too.
        api.change_password(&ann, typed, &format!("{typed}2")).expect(200);
        api.login("ann", &format!("{set}2")).expect(200);
        let token = api.reset_token("ann@example.com");
        api.reset_password(&token, typed).expect(200);
        let ann = api.login("ann", set).expect(200).tokens();
        if has_extras() {
            api.delete_me(&ann, typed).expect(204);
        }
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
