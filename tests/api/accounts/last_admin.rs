//! The rule that one active administrator must remain, also under requests that race.

use crate::harness::*;

const REFUSAL: &str = "At least one active admin is required";

#[test]
fn the_last_active_admin_stays() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    for change in [json!({"role": "user"}), json!({"is_active": false})] {
        api.update_user(&root, root.id(), change).refused(409, REFUSAL);
    }
    api.delete_user(&root, root.id()).refused(409, REFUSAL);
    if has_extras() {
        api.delete_me(&root, "wrong horse").refused(400, "Current password is incorrect");
        api.delete_me(&root, PASSWORD).refused(409, REFUSAL);
    }
    // Neither an inactive admin nor the development admin counts.
    let inactive = json!({
        "email": "a@example.com", "name": "A", "password": PASSWORD, "role": "admin", "is_active": false,
    });
    api.create_user(&root, inactive).expect(201);
    api.database.run(
        "INSERT INTO users (id, email, email_key, role, is_development_admin)
         VALUES (gen_random_uuid(), 'dev@example.com', 'dev@example.com', 'admin', true)",
    );
    api.delete_user(&root, root.id()).refused(409, REFUSAL);
    let harmless = json!({"role": "admin", "is_active": true, "name": "Root"});
    api.update_user(&root, root.id(), harmless).expect(200);
    // With a second active admin the first may go, and then the second must stay.
    let other = api.sign_up_admin("other");
    api.update_user(&root, root.id(), json!({"role": "user"})).expect(200);
    api.update_user(&other, other.id(), json!({"role": "user"})).refused(409, REFUSAL);
}

#[test]
fn of_two_admins_that_demote_each_other_one_stays() {
    let api = Server::start(&[]);
    for round in 0..20 {
        api.database.run("DELETE FROM users");
        let admins = ["one", "two"].map(|name| api.sign_up_admin(name));
        let statuses = parallel(2, |i| {
            let (admin, victim) = (&admins[i], &admins[1 - i]);
            match round % 4 {
                0 => api.update_user(admin, victim.id(), json!({"role": "user"})),
                1 => api.update_user(admin, victim.id(), json!({"is_active": false})),
                2 if has_extras() => api.delete_me(admin, PASSWORD),
                _ => api.delete_user(admin, victim.id()),
            }
            .status
        });
        // The slower request is refused for the rule, or because the faster one has ended its session.
        let done = statuses.iter().filter(|status| [200, 204].contains(status)).count();
        assert_eq!(done, 1, "{statuses:?}");
        let left = "users WHERE role = 'admin' AND is_active AND NOT is_deleted";
        assert_eq!(api.database.count(left), 1, "round {round}");
    }
}

/// The same race with its order forced: the second statement begins while the first is not yet committed.
#[test]
fn statements_that_overlap_cannot_remove_both_admins() {
    let api = Server::start(&[PATIENT]);
    api.sign_up_admin("one");
    let two = api.sign_up_admin("two");
    api.database
        .commit_during("UPDATE users SET role = 'user' WHERE username = 'one'", || {
            api.update_user(&two, two.id(), json!({"role": "user"}))
        })
        .refused(409, REFUSAL);
}
