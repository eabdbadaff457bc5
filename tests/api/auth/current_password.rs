//! What signed-in users must confirm with their current password: the deletion of their own account and, if the
//! settings say so, another e-mail address. `accounts.rs` has changes of the password.

use serde_json::{Value, json};

use crate::harness::*;

const REQUIRED: (&str, &str) = ("CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD", "true");
const WRONG: &str = "Current password is incorrect";

fn new_email(password: Option<&str>) -> Value {
    match password {
        Some(password) => json!({"email": "new@example.com", "current_password": password}),
        None => json!({"email": "new@example.com"}),
    }
}

#[test]
fn another_address_needs_the_password_where_the_settings_say_so() {
    let (api, [ann]) = Server::with_users(&[REQUIRED], ["ann"]);
    for (body, reason) in [
        (new_email(None), "none"),
        (
            json!({"email": "new@example.com", "current_password": null}),
            "null is the same as absent",
        ),
        (new_email(Some(NEW_PASSWORD)), "another"),
        (new_email(Some(&PASSWORD.to_uppercase())), "its case matters"),
        (json!({"email": "ANN@example.com"}), "only the case of the address changes"),
        (json!({"email": "new@example.com", "name": "Ann"}), "among other changes"),
    ] {
        api.update_me(&ann, body).case(reason).refused(400, WRONG);
    }
    api.profile(&ann).expect(200).has(json!({"email": "ann@example.com", "name": null}));
    for (body, problem) in [
        (json!({"email": "new@example.com", "current_password": 7}), "string_type"),
        (json!({"email": "new@example.com", "current_password": "a\0"}), "value_error"),
        (json!({"email": "new@example.com", "current_password": ""}), "string_too_short"),
    ] {
        api.update_me(&ann, body).invalid(&[("body.current_password", problem)]);
    }
    // Nothing else needs it, nor does the address that the account already has.
    let same = json!({"username": "anna", "name": "Ann", "email": "ann@example.com"});
    api.update_me(&ann, same).expect(200).has(json!({"username": "anna", "name": "Ann"}));
    api.update_me(&ann, json!({"name": "A", "current_password": "wrong"})).expect(200);
    let changed = api.update_me(&ann, new_email(Some(PASSWORD))).expect(200);
    changed.has(json!({"email": "new@example.com", "username": "anna"}));
    api.me(&ann).case("no session ends").expect(200);
    // Somebody else's address is a conflict, but that is told only to those who have given the password.
    api.register("bob").expect(201);
    let taken = |password| json!({"email": "BOB@example.com", "current_password": password});
    api.update_me(&ann, taken("wrong horse")).refused(400, WRONG);
    api.update_me(&ann, taken(PASSWORD)).refused(409, "Email already exists");
}

#[test]
fn another_address_needs_no_password_by_default() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.update_me(&ann, new_email(Some("wrong horse"))).expect(200);
    api.update_me(&ann, json!({"email": "ann@example.com", "current_password": "wrong"}))
        .expect(200);
}

#[test]
fn each_way_to_give_the_password_has_five_requests_a_minute_for_a_user() {
    let (api, [ann, bob]) =
        Server::with_users(&[REQUIRED, ("CLOAKROOM_RATE_LIMIT_ENABLED", "true")], ["ann", "bob"]);
    type Way<'a> = &'a dyn Fn(&Tokens, &str) -> Answer;
    let ways: [Way; 2] =
        [&|user, password| api.update_me(user, new_email(Some(password))), &|user, password| {
            api.delete_me(user, password)
        }];
    for way in ways {
        for left in (0..5).rev() {
            let answer = way(&ann, "wrong horse").refused(400, WRONG);
            assert_eq!(answer.rate_limit(), (5, left));
        }
        let answer = way(&ann, PASSWORD).refused(429, "Rate limit exceeded");
        assert_eq!(answer.rate_limit(), (5, 0));
        assert!((1..=12).contains(&answer.header("Retry-After").parse::<u64>().unwrap()));
        way(&bob, "wrong horse").refused(400, WRONG);
    }
    // What needs no password has the limit of everything else.
    let answer = api.update_me(&ann, json!({"name": "Ann", "email": "ann@example.com"}));
    assert_eq!(answer.expect(200).rate_limit().0, 100);
    // A guess without a password counts as well.
    assert_eq!(api.update_me(&bob, new_email(None)).refused(400, WRONG).rate_limit(), (5, 3));
    for class in ["change-email", "delete-account"] {
        let counter = format!("cloakroom_rate_limit_refusals_total{{class=\"{class}\"}} 1\n");
        assert!(api.metrics().contains(&counter), "{}", api.metrics());
    }
}

#[test]
fn deleting_ones_own_account_does_what_a_deletion_by_an_admin_does() {
    let (api, [root, ann, bob]) = Server::with_users(&[], ["root", "ann", "bob"]);
    let other_session = api.sign_in("ann");
    let file = api.new_file(&ann, "a.txt", "text");
    api.update_file(&ann, &file, json!({"is_public": true})).expect(200);
    api.delete_me(&ann, "wrong horse").refused(400, WRONG);
    api.post("/users/me/delete", &ann, json!({})).invalid(&[("body.current_password", "missing")]);
    api.me(&ann).expect(200);
    assert!(api.delete_me(&ann, PASSWORD).expect(204).bytes.is_empty());
    for tokens in [&ann, &other_session] {
        api.me(tokens).refused(401, "User not found or inactive");
        api.refresh(&tokens.refresh).expect(401);
    }
    api.delete_me(&ann, PASSWORD).refused(401, "User not found or inactive");
    api.login("ann", PASSWORD).refused(401, "Invalid username or password");
    api.show_user(&root, ann.id()).refused(404, "User not found");
    api.show_file(&bob, &file).refused(404, "File not found");
    let row: String =
        api.database.value(&format!("SELECT u::text FROM users u WHERE id = '{}'", ann.id()));
    assert!(!row.to_lowercase().contains("ann"), "{row}");
    wait_until(|| api.database.count("files") == 0 && api.data.contents().is_empty());
    // The name and the address are free again.
    api.sign_up("ann");
}

#[test]
fn the_last_active_admin_cannot_delete_the_own_account() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    api.delete_me(&root, "wrong horse").refused(400, WRONG);
    api.delete_me(&root, PASSWORD).refused(409, "At least one active admin is required");
    api.me(&root).expect(200);
    let other = api.sign_up_admin("other");
    let statuses = parallel(2, |i| api.delete_me([&root, &other][i], PASSWORD).status);
    assert_eq!(tally(statuses), [(204, 1), (409, 1)].into());
}

#[test]
fn the_development_admin_cannot_delete_itself() {
    let api = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false"), REQUIRED]);
    api.delete_me(Anonymous, PASSWORD).refused(403, "Not enough permissions");
    api.update_me(Anonymous, new_email(Some(PASSWORD))).refused(403, "Not enough permissions");
}
