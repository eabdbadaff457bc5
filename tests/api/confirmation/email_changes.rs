//! Changes of one's own address that must be confirmed: until then they are wishes, of which nothing is stored.

use super::registrations::*;
use crate::harness::*;

const REQUESTED: &str = "Your Cloakroom account is about to change its e-mail address";
const CHANGED: &str = "The e-mail address of your Cloakroom account was changed";

/// Asks for another address, which is answered like every wish.
fn wish(api: &Server, user: &Tokens, email: &str) {
    let before = api.me(user).expect(200).json()["email"].clone();
    api.update_me(user, json!({ "email": email }))
        .expect(200)
        .has(json!({"email": before, "pending_email": email}));
}

#[test]
fn another_address_counts_once_it_is_confirmed_and_the_present_one_is_told_twice() {
    let settings = [("CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD", "true")];
    let (smtp, api) = confirming(&settings);
    let [ann, bob] = ["ann", "bob"].map(|name| sign_up(&smtp, &api, name));
    let reset = api.reset_token("ann@example.com");
    let change = |email: &str| {
        let body = json!({"email": email, "current_password": PASSWORD, "name": "Ann"});
        api.update_me(&ann, body).expect(200)
    };
    let body = json!({"email": "new@example.com"});
    api.update_me(&ann, body).refused(400, "Current password is incorrect");
    // Taken or not, the answer is the same.
    for (email, subject) in [("bob@example.com", TAKEN), ("New@Example.com", CONFIRM)] {
        change(email)
            .has(json!({"email": "ann@example.com", "pending_email": email, "name": "Ann"}));
        mail_to(&smtp, email, subject, 1);
    }
    mail_to(&smtp, "ann@example.com", REQUESTED, 2);
    // Only that answer has it.
    let has = |answer: Answer| answer.json().get("pending_email").is_some();
    assert!(!has(api.me(&ann)) && !has(api.update_me(&ann, json!({"name": "Ann"}))));
    api.login("new@example.com", PASSWORD).refused(401, "Invalid username or password");
    let first = token(&mail_to(&smtp, "New@Example.com", CONFIRM, 1));
    confirm_as(&api, &first, "ann3").expect(200);
    api.me(&ann).expect(200).has(json!({"email": "New@Example.com", "username": "ann"}));
    api.login("new@example.com", PASSWORD).expect(200);
    mail_to(&smtp, "ann@example.com", CHANGED, 1);
    api.reset_password(&reset, NEW_PASSWORD).refused(400, REFUSED);
    confirm(&api, &first, PASSWORD).refused(400, REFUSED);
    let events = "SELECT string_agg(action::text || ' ' || outcome, ',' ORDER BY at, action) FROM audit_events
                  WHERE action::text LIKE 'email.%' AND (actor_id, subject_id) = (
                      SELECT id, id FROM users WHERE username = 'ann')";
    let expected = "email.change failure,email.change_request success,email.change_request success,\
                    email.change success";
    wait_until(|| api.database.value::<String>(events) == expected);
    assert_eq!(
        api.database
            .count("users WHERE username = 'ann' AND is_settled AND email_changed_at < now()"),
        1
    );
    // The address in another spelling is the same one, and counts at once.
    let answer = change("NEW@example.com").has(json!({"email": "NEW@example.com"}));
    assert!(!has(answer));
    api.delete_me(&bob, PASSWORD).expect(204);
    change("bob@example.com");
    let second = token(&mail_to(&smtp, "bob@example.com", CONFIRM, 2));
    confirm(&api, &second, PASSWORD).expect(200);
}

#[test]
fn whatever_changes_the_credentials_ends_a_wish_and_only_the_latest_password_serves() {
    let (smtp, api) = confirming(&[]);
    let root = admin(&api);
    let mut asked = 0;
    let mut password = PASSWORD.to_owned();
    sign_up(&smtp, &api, "ann");
    let id = api.sign_in("ann").id().to_owned();
    let mut ended = |change: &dyn Fn(&Tokens, &str) -> Option<String>| {
        asked += 1;
        api.database.run("DELETE FROM mail_counts");
        let email = format!("next{asked}@example.com");
        let ann = api.login("ann", &password).expect(200).tokens();
        wish(&api, &ann, &email);
        let old = token(&mail_to(&smtp, &email, CONFIRM, 1));
        if let Some(new) = change(&ann, &password) {
            password = new;
        }
        confirm(&api, &old, &password).refused(400, REFUSED);
        // Nor does it come back.
        confirm(&api, &old, PASSWORD).refused(400, REFUSED);
    };
    ended(&|ann, old| {
        api.change_password(ann, old, "a new horse").expect(200);
        Some("a new horse".to_owned())
    });
    ended(&|_, _| {
        let reset = api.reset_token("ann@example.com");
        api.reset_password(&reset, "a reset horse").expect(200);
        Some("a reset horse".to_owned())
    });
    ended(&|_, _| {
        api.update_user(&root, &id, json!({"password": "a third horse"})).expect(200);
        Some("a third horse".to_owned())
    });
    ended(&|_, _| {
        api.update_user(&root, &id, json!({"email": "ann4@example.com"})).expect(200);
        None
    });
    ended(&|ann, _| {
        api.update_me(ann, json!({"email": "ANN4@example.com"})).expect(200);
        None
    });
    ended(&|_, _| {
        for is_active in [false, true] {
            api.update_user(&root, &id, json!({ "is_active": is_active })).expect(200);
        }
        None
    });
    ended(&|ann, old| {
        wish(&api, ann, "ann5@example.com");
        let other = token(&mail_to(&smtp, "ann5@example.com", CONFIRM, 1));
        confirm(&api, &other, old).expect(200);
        None
    });
    ended(&|ann, old| {
        api.delete_me(ann, old).expect(204);
        None
    });
    let changes = "audit_events WHERE action = 'email.change' AND outcome = 'success'";
    assert_eq!(api.database.count(changes), 3);
}

#[test]
fn an_address_that_another_account_has_by_now_is_refused_as_any_token() {
    let (smtp, api) = confirming(&[]);
    let ann = sign_up(&smtp, &api, "ann");
    wish(&api, &ann, "bob@example.com");
    let token = token(&mail_to(&smtp, "bob@example.com", CONFIRM, 1));
    sign_up_second(&smtp, &api, "bob", 2);
    confirm(&api, &token, PASSWORD).refused(400, REFUSED);
    api.me(&ann).expect(200).has(json!({"email": "ann@example.com"}));
    // An inactive owner of a taken address is not told.
    let root = admin(&api);
    let bob = api.sign_in("bob");
    api.update_user(&root, bob.id(), json!({"is_active": false})).expect(200);
    wish(&api, &ann, "bob@example.com");
    mail_to(&smtp, "ann@example.com", REQUESTED, 2);
    api.database.wait_for_empty_outbox();
    assert!(smtp.received().iter().all(|mail| mail.subject() != TAKEN));
}

/// As [`sign_up`], if the mailbox has had mails before.
fn sign_up_second(smtp: &SmtpServer, api: &Server, name: &str, n: usize) {
    api.register(name).expect(201);
    let mail = mail_to(smtp, &format!("{name}@example.com"), CONFIRM, n);
    confirm(api, &token(&mail), PASSWORD).expect(200);
}

#[test]
fn wrong_passwords_count_as_failed_sign_ins_and_are_failures_of_the_change() {
    let settings = [
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_AUTH", "10000"),
        ("CLOAKROOM_RATE_LIMIT_GENERAL", "10000"),
        ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let (smtp, api) = confirming(&settings);
    let ann = sign_up(&smtp, &api, "ann");
    wish(&api, &ann, "ann2@example.com");
    let token = token(&mail_to(&smtp, "ann2@example.com", CONFIRM, 1));
    let from = |address: &str, path: &str, body: Value| {
        api.request("POST", path).header("X-Forwarded-For", address).json(body).send()
    };
    let send = |address: &str, password: &str| {
        from(address, "/auth/confirm-email", json!({"token": token, "password": password}))
    };
    for _ in 0..40 {
        send("198.51.100.1", "wrong horse").refused(400, REFUSED);
    }
    let wrong = json!({"username": "ann", "password": "wrong horse"});
    for _ in 0..60 {
        from("203.0.113.1", "/auth/login", wrong.clone()).expect(401);
    }
    send("192.0.2.1", PASSWORD).refused(429, "Rate limit exceeded");
    from("192.0.2.1", "/auth/login", with_member(&wrong, "password", json!(PASSWORD))).expect(429);
    let failures = format!(
        "audit_events WHERE action = 'email.change' AND outcome = 'failure' AND subject_id = '{}'
                            AND address = '198.51.100.1'",
        ann.id()
    );
    wait_until(|| api.database.count(&failures) == 40);
    // From the network where the owner has signed in.
    confirm(&api, &token, PASSWORD).expect(200);
}

#[test]
fn an_account_has_five_wishes_a_day_and_a_sixth_changes_nothing() {
    let (smtp, api) = confirming(&[]);
    let ann = sign_up(&smtp, &api, "ann");
    let beside = confirming_beside(&smtp, &api, &[]);
    let found = parallel(12, |n| {
        let body = json!({"email": format!("next{n}@example.com")});
        [&api, &beside][n % 2].update_me(&ann, body).status
    });
    assert_eq!(tally(found), [(200, 5), (429, 7)].into());
    let body = json!({"email": "more@example.com", "name": "Ann", "username": "ann2"});
    let answer = api.update_me(&ann, body).refused(429, "Rate limit exceeded");
    let wait: u64 = answer.header("Retry-After").parse().expect("a number");
    assert!((86_000..=86_400).contains(&wait), "{wait}");
    api.me(&ann).expect(200).has(json!({"name": null, "username": "ann"}));
    // What is no wish goes on, and a name that is taken counts for none.
    sign_up(&smtp, &api, "bob");
    api.update_me(&ann, json!({"email": "ANN@example.com", "name": "Ann"})).expect(200);
    api.database.run(
        "UPDATE mail_counts SET queued_at = ARRAY(SELECT at - interval '1 day' FROM unnest(queued_at) at)",
    );
    for _ in 0..6 {
        let body = json!({"email": "more@example.com", "username": "BOB"});
        api.update_me(&ann, body).refused(409, "Username already exists");
    }
    wish(&api, &ann, "more@example.com");
    api.database.wait_for_empty_outbox();
    let to = |address: &str| smtp.received().iter().filter(|m| m.recipient == address).count();
    assert_eq!((to("more@example.com"), to("ann@example.com")), (1, 1 + 5));
    assert_eq!(to("ANN@example.com"), 1);
    assert_eq!(api.database.count("audit_events WHERE action = 'email.change_request'"), 6);
}

#[test]
fn a_mailbox_that_has_had_its_mails_gets_none_of_a_wish_which_is_answered_as_ever() {
    let (smtp, api) = confirming(&[]);
    let users = ["ann", "bob", "cyd", "dan"].map(|name| sign_up(&smtp, &api, name));
    users.iter().for_each(|user| wish(&api, user, "victim@example.com"));
    api.database.wait_for_empty_outbox();
    let all = smtp.received();
    let to = |address: &str| all.iter().filter(|mail| mail.recipient == address).count();
    assert_eq!(to("victim@example.com"), 3, "one network causes three");
    assert_eq!(to("dan@example.com"), 2, "the present address is told all the same");
    // A registration counts with them.
    begin(&api, "victim", "Victim@example.com").refused(429, "Rate limit exceeded");
}

#[test]
fn wishes_do_not_fill_the_audit_log_and_a_late_mail_of_a_dead_wish_is_not_sent() {
    let (smtp, api) = confirming(&[]);
    let root = admin(&api);
    api.database.wait_unless_hour_lasts();
    for n in 0..110 {
        api.database.run("DELETE FROM mail_counts");
        api.update_me(&root, json!({"email": format!("root{n}@example.com")})).expect(200);
    }
    assert_eq!(api.database.count("audit_events WHERE action = 'email.change_request'"), 100);
    api.database.wait_for_empty_outbox();
    // A change is made also when its event is only counted.
    let last = token(&mail_to(&smtp, "root109@example.com", CONFIRM, 1));
    confirm(&api, &last, PASSWORD).expect(200);
    let root = api.sign_in("root109@example.com");
    api.database.run("DELETE FROM mail_counts");
    smtp.misbehave(SmtpStep::Greeting, Misbehaviour::Close);
    let reached = smtp.count(SmtpStep::Greeting);
    wish(&api, &root, "dead@example.com");
    smtp.wait_for_step(SmtpStep::Greeting, reached + 1);
    api.change_password(&root, PASSWORD, NEW_PASSWORD).expect(200);
    smtp.behave();
    api.database.run("UPDATE outbox SET due_at = now()");
    api.request_reset("nobody@example.com").expect(200);
    api.database.wait_for_empty_outbox();
    assert!(smtp.received().iter().all(|mail| mail.recipient != "dead@example.com"));
}

#[test]
fn a_confirmation_beside_another_wish_or_a_change_of_the_password_does_one_after_the_other() {
    let (smtp, api) = confirming(&[]);
    let root = admin(&api);
    let mut password = [PASSWORD, NEW_PASSWORD];
    for n in 0..6 {
        let [first, second] = [format!("first{n}@example.com"), format!("second{n}@example.com")];
        api.database.run("DELETE FROM mail_counts");
        wish(&api, &root, &first);
        let token = token(&mail_to(&smtp, &first, CONFIRM, 1));
        let statuses = parallel(3, |i| match i {
            0 => confirm(&api, &token, password[0]).status,
            1 => api.update_me(&root, json!({ "email": second })).status,
            _ => api.change_password(&root, password[0], password[1]).status,
        });
        let now = api.me(&root).expect(200).json();
        assert_eq!(now["email"] == first.as_str(), statuses[0] == 200, "{statuses:?}");
        assert!([200, 400].contains(&statuses[1]), "{statuses:?}");
        if statuses[2] == 200 {
            password.reverse();
        }
        api.login(now["email"].as_str().expect("text"), password[0]).expect(200);
    }
    assert!(!api.log().contains("40P01"), "{}", api.log());
}
