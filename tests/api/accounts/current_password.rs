//! What signed-in users must confirm with their current password: the deletion of their own account, an administrator's
//! own password and address by id, and, if the settings say so, another e-mail address of anybody. `own_account.rs` has
//! changes of the password.

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
fn another_own_address_needs_the_password_by_id_and_where_the_settings_say_so() {
    let (api, [root, _]) = Server::with_users(&[REQUIRED], ["root", "bob"]);
    let by_id = ["users", "admin/users"].map(|list| format!("/{list}/{}", root.id()));
    for path in ["/users/me", &by_id[0], &by_id[1]] {
        let put = |body: Value| api.put(path, &root, body.clone()).case(format!("{path} {body}"));
        for body in [
            new_email(None),
            json!({"email": "new@example.com", "current_password": null}),
            new_email(Some(NEW_PASSWORD)),
            new_email(Some(&PASSWORD.to_uppercase())),
            json!({"email": "ROOT@example.com"}),
            json!({"email": "new@example.com", "name": "Root"}),
        ] {
            put(body).refused(400, WRONG);
        }
        api.profile(&root).expect(200).has(json!({"email": "root@example.com", "name": null}));
        // Nothing else needs it, nor does the address that the account already has.
        let same = json!({"username": "admin", "name": "Root", "email": "root@example.com"});
        put(same).expect(200).has(json!({"username": "admin", "name": "Root"}));
        put(json!({"username": "root", "name": "", "current_password": "wrong"})).expect(200);
    }
    let failures = "audit_events WHERE outcome = 'failure' AND actor_id = subject_id";
    wait_until(|| api.database.count(failures) == 18);
    for (path, email) in [("/users/me", "new@example.com"), (&by_id[0], "next@example.com")] {
        let change = json!({"email": email, "current_password": PASSWORD});
        api.put(path, &root, change).expect(200).has(json!({"email": email}));
    }
    api.me(&root).case("no session ends").expect(200);
    // Somebody else's address is a conflict, but that is told only to those who have given the password.
    let taken = |password| json!({"email": "BOB@example.com", "current_password": password});
    api.update_me(&root, taken("wrong horse")).refused(400, WRONG);
    api.update_me(&root, taken(PASSWORD)).refused(409, "Email already exists");
}

#[test]
fn administrators_need_their_password_for_another_own_one_and_for_nobody_elses() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let other = api.sign_up_admin("other");
    let new = json!({"password": NEW_PASSWORD});
    let with = |password: &str| with_member(&new, "current_password", password);
    for list in ["users", "admin/users"] {
        let put = |body: Value| api.put(&format!("/{list}/{}", root.id()), &root, body);
        put(new.clone()).refused(400, WRONG);
        put(with(NEW_PASSWORD)).refused(400, WRONG);
        put(json!({"password": "short"})).invalid(&[("body.password", "string_too_short")]);
    }
    let failures = "audit_events WHERE outcome = 'failure' AND actor_id = subject_id";
    wait_until(|| api.database.count(failures) == 4);
    api.update_user(&root, root.id(), with(PASSWORD)).expect(200);
    let root = api.login("root", NEW_PASSWORD).expect(200).tokens();
    api.update_user(&root, other.id(), new).expect(200);
    api.login("other", PASSWORD).refused(401, "Invalid username or password");
    api.login("other", NEW_PASSWORD).expect(200);
}

#[test]
fn another_address_needs_no_password_by_default_and_a_deletion_always_does() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.update_me(&ann, new_email(Some("wrong horse"))).expect(200);
    if has_extras() {
        api.delete_me(&ann, "wrong horse").refused(400, WRONG);
        api.post("/users/me/delete", &ann, json!({}))
            .invalid(&[("body.current_password", "missing")]);
    }
    api.me(&ann).expect(200).has(json!({"email": "new@example.com"}));
}

#[test]
fn each_way_to_give_the_password_has_five_requests_a_minute_for_a_user() {
    let (api, [root, ann, bob]) = Server::with_users(
        &[REQUIRED, ("CLOAKROOM_RATE_LIMIT_ENABLED", "true")],
        ["root", "ann", "bob"],
    );
    let (other, limits) = (api.sign_up_admin("other"), "cloakroom_rate_limit_refusals_total");
    type Way<'a> = &'a dyn Fn(&Tokens, &str) -> Answer;
    let email: Way = &|user, password| api.update_me(user, new_email(Some(password)));
    let deletion: Way = &|user, password| api.delete_me(user, password);
    let by_id: Way = &|user, password| {
        let body = json!({"password": NEW_PASSWORD, "current_password": password});
        api.update_user(user, user.id(), body)
    };
    for (what, way, user, other, class) in [
        ("an address", email, &ann, &bob, Some("change-email")),
        ("a deletion", deletion, &ann, &bob, Some("delete-account")),
        ("an administrator's own password", by_id, &root, &other, None),
    ] {
        if what == "a deletion" && !has_extras() {
            continue;
        }
        for left in (0..5).rev() {
            let answer = way(user, "wrong horse").case(what).refused(400, WRONG);
            assert_eq!(answer.rate_limit(), (5, left), "{what}");
        }
        let answer = way(user, PASSWORD).case(what).refused(429, "Rate limit exceeded");
        assert_eq!(answer.rate_limit(), (5, 0), "{what}");
        assert!((1..=12).contains(&answer.header("Retry-After").parse::<u64>().unwrap()), "{what}");
        way(other, "wrong horse").case(what).refused(400, WRONG);
        if let Some(class) = class {
            let refusals = api.metric(&format!("{limits}{{class=\"{class}\"}}"));
            assert_eq!(refusals, Some(1.0), "{what}");
        }
    }
    // What needs no password has the limit of everything else.
    let answer = api.update_me(&ann, json!({"name": "Ann", "email": "ann@example.com"}));
    assert_eq!(answer.expect(200).rate_limit().0, 100);
    api.update_user(&root, root.id(), json!({"name": "Root"})).expect(200);
    // A guess without a password counts as well.
    assert_eq!(api.update_me(&bob, new_email(None)).refused(400, WRONG).rate_limit(), (5, 3));
}
