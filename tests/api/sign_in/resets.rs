//! Password reset by e-mail.

use crate::harness::*;

const REQUESTED: &str = "If the e-mail exists, a reset message has been sent";
const REFUSED: &str = "Invalid or expired token";
/// The version of the credentials that tokens of Ann's account are good for.
const VERSION_OF_ANN: &str = "SELECT credentials_version FROM users WHERE username = 'ann'";

#[test]
fn a_reset_token_sets_a_password_once() {
    let (api, [_]) = Server::with_users(&[], ["ann"]);
    // The first one stays good after a second one.
    let [token, second] = [(); 2].map(|()| api.reset_token("ANN@example.com"));
    assert_ne!(token, second);
    assert!(!api.log().contains("ann@example.com") && !api.log().contains("ANN@example.com"));
    let answer = api.reset_password(&token, "short");
    let answer = answer.invalid(&[("body.new_password", "string_too_short")]);
    let message = "Password must be at least 8 characters long";
    assert_eq!(answer.json()["field_errors"]["new_password"][0], message);
    let answer = api.reset_password(&token, NEW_PASSWORD).expect(200);
    assert_eq!(answer.json(), json!({"message": "Password has been reset"}));
    api.login("ann", PASSWORD).expect(401);
    api.login("ann", NEW_PASSWORD).expect(200);
    for dead in [&token, &second] {
        api.reset_password(dead, NEW_PASSWORD).refused(400, REFUSED);
    }
    let used = "used_password_reset_tokens JOIN users ON users.id = user_id";
    assert_eq!(api.database.count(used), 1);
}

#[test]
fn a_reset_token_dies_with_any_change_of_the_activity_and_is_none_while_the_account_is_inactive() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let version = || api.database.value::<i32>(VERSION_OF_ANN);
    let set = |change: &str| {
        api.database.run(&format!("UPDATE users SET {change} WHERE username = 'ann'"))
    };
    // Whichever statement changes it.
    let token = api.reset_token("ann@example.com");
    set("is_active = false");
    set("is_active = true");
    api.reset_password(&token, NEW_PASSWORD).refused(400, REFUSED);
    // A change that raises the version itself raises it once.
    let (before, body) = (version(), json!({"is_active": false, "email": "ann2@example.com"}));
    api.update_user(&root, ann.id(), body).expect(200);
    assert_eq!(version(), before + 1);
    // A good token of the inactive account changes nothing.
    let token = json!({"sub": ann.id(), "type": "password_reset", "ver": version(), "iat": now(), "exp": FAR_FUTURE});
    api.reset_password(&sign(token), NEW_PASSWORD).refused(400, REFUSED);
    // A request for it is no event, whatever came before.
    api.database.run("DELETE FROM password_reset_counts");
    let events = || api.database.count("audit_events WHERE action = 'password.reset_request'");
    let before = events();
    api.request_reset("ann2@example.com").expect(200);
    wait_until(|| api.database.count("password_reset_requests") == 0);
    assert_eq!(events(), before);
    set("is_active = true");
    api.sign_in("ann");
    api.reset_token("ann2@example.com");
    assert_eq!(events(), before + 1);
}

/// So whoever asks cannot tell by the time of a next request whether there was an account to work for.
#[test]
fn a_request_is_worked_on_from_the_next_full_second_on() {
    let (api, [_, ..]) = Server::with_users(&[], ["usr0", "usr1", "usr2", "usr3", "usr4"]);
    let second = api.beside(&[]);
    for n in 0..5 {
        let process = if n % 2 == 0 { &api } else { &second };
        process.request_reset(&format!("usr{n}@example.com")).expect(200);
        wait_until(|| api.database.count("password_reset_messages") == n + 1);
    }
    let early = "password_reset_messages m
                 JOIN audit_events e ON e.subject_id = m.user_id AND action = 'password.reset_request'
                 WHERE date_trunc('second', m.sent_at[1]) <= e.at";
    assert_eq!(api.database.count(early), 0);
}

#[test]
fn tokens_that_are_no_reset_tokens_are_answered_alike() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let good = json!({"sub": ann.id(), "type": "password_reset", "ver": 1, "iat": now(), "exp": now() + 600});
    let with = |name: &str, value| sign(with_member(&good, name, value));
    for (token, reason) in [
        ("", "empty"),
        ("nonsense", "not a token"),
        ("a\0b", "a NUL character"),
        (&ann.access, "an access token"),
        (&ann.refresh, "a refresh token"),
        (&with("exp", json!(now() - 1)), "expired by a second"),
        (&with("ver", json!(2)), "another version"),
        (&with("ver", json!(null)), "no version"),
        (&with("ver", json!("1")), "a version of another type"),
        (&with("sub", json!(UNKNOWN_ID)), "an unknown account"),
        (&(sign(good.clone()) + "x"), "a damaged signature"),
    ] {
        api.reset_password(token, NEW_PASSWORD).case(reason).refused(400, REFUSED);
    }
    api.login("ann", PASSWORD).expect(200);
    api.reset_password(&sign(good), NEW_PASSWORD).expect(200);
}

#[test]
fn unknown_and_unusable_addresses_get_the_same_answer_and_no_token() {
    let api = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    api.me(Anonymous).expect(200); // this makes the account of the development admin
    for name in ["ann", "bob", "eve"] {
        api.sign_up(name);
    }
    api.database.run(
        "UPDATE users SET is_deleted = true WHERE username = 'ann';
         UPDATE users SET is_active = false WHERE username = 'bob'",
    );
    for name in ["nobody", "ann", "bob", "dev_admin", "eve"] {
        let answer = api.request_reset(&format!("{name}@example.com")).expect(200);
        assert_eq!(answer.json(), json!({ "message": REQUESTED }));
    }
    // Requests are processed in their order: when there is a token for the last one, all others have been processed.
    api.logged("password reset token");
    wait_until(|| api.database.count("password_reset_requests") == 0);
    assert_eq!(api.log().matches("password reset token").count(), 1, "{}", api.log());
    api.database.wait_for_empty_outbox();
    assert_eq!(api.database.count("password_reset_messages"), 1);
    let answer = api.post("/auth/request-password-reset", Anonymous, json!({}));
    answer.invalid(&[("body.email", "missing")]);
    api.request_reset("x").invalid(&[("body.email", "value_error")]);
}

#[test]
fn a_request_stores_nothing_that_could_be_used_as_a_token() {
    let database = Database::create_migrated();
    for (table, expected) in [
        ("password_reset_requests", "id,email_key,requested_at,address,request_id"),
        // The token of a link that confirms an address is sealed, and serves with a password only.
        (
            "outbox",
            "id,kind,user_id,address,email_key,created_at,attempts,due_at,waits_for_server,failed_at,error,network,\
             sealed_token,files,is_imported,priority",
        ),
        ("password_reset_messages", "user_id,sent_at"),
    ] {
        let columns: String = database.value(&format!(
            "SELECT string_agg(column_name, ',' ORDER BY ordinal_position)
             FROM information_schema.columns WHERE table_name = '{table}'"
        ));
        assert_eq!(columns, expected);
    }
}

#[test]
fn the_record_of_a_use_expires_with_the_token_also_if_its_lifetime_is_another_by_now() {
    let (api, [_]) =
        Server::with_users(&[("CLOAKROOM_PASSWORD_RESET_EXPIRE_MINUTES", "7")], ["ann"]);
    let kept = "SELECT extract(epoch FROM max(expires_at))::bigint FROM used_password_reset_tokens";
    let token = api.reset_token("ann@example.com");
    let number = |name: &str| claims(&token)[name].as_i64().expect("a number");
    assert_eq!(number("exp") - number("iat"), 7 * 60);
    api.reset_password(&token, NEW_PASSWORD).expect(200);
    assert_eq!(api.database.value::<i64>(kept), number("exp"));
    let hash: String = api.database.value("SELECT token_hash FROM used_password_reset_tokens");
    assert!(hash.len() == 64 && !token.contains(&hash));
    // A request that another process stored is processed too.
    api.database.run(
        "DELETE FROM password_reset_messages;
         INSERT INTO password_reset_requests (email_key) VALUES ('ann@example.com')",
    );
    wait_until(|| api.log().matches("password reset token").count() == 2);
    let line = api.logged("password reset token");
    let token = line.split_whitespace().last().expect("a token");
    for (exp, status) in [(FAR_FUTURE, 200), (u64::MAX / 4, 400)] {
        let token = sign(with_member(&claims(token), "exp", exp));
        api.reset_password(&token, PASSWORD).expect(status);
    }
    assert_eq!(api.database.value::<i64>(kept), FAR_FUTURE as i64);
}

#[test]
fn an_account_gets_a_message_in_two_minutes_and_after_ten_in_a_day_one_an_hour() {
    let (api, [_, _]) = Server::with_users(&[], ["ann", "bob"]);
    // So that the mailbox of an account that is not settled does not limit them.
    api.database.run("UPDATE users SET created_at = now() - interval '1 day'");
    let latest = "SELECT max(at)::text FROM password_reset_messages, unnest(sent_at) at";
    let latest = || api.database.value::<Option<String>>(latest);
    // Instead of waiting, the messages so far become older.
    let after = |seconds: u32| {
        api.database.run(&format!(
            "UPDATE password_reset_messages SET sent_at =
             ARRAY(SELECT at - interval '{seconds} seconds' FROM unnest(sent_at) at ORDER BY at DESC)"
        ));
        let before = latest();
        api.request_reset("ann@example.com").expect(200);
        api.database.wait_for_empty_outbox();
        latest() != before
    };
    assert!(after(0), "the first");
    assert!(!after(0), "a second one at once");
    assert!(!after(60), "after a minute");
    assert!(after(60), "after two minutes");
    (3..=10).for_each(|n| assert!(after(120), "message {n} of the day"));
    assert!(!after(120), "an eleventh after two minutes");
    assert!(!after(3300), "after 57 minutes");
    assert!(after(180), "after an hour");
    assert!(!after(1800), "after half an hour more");
    assert!(after(1800), "after an hour more");
    assert!(after(24 * 3600), "a day later");
    assert!(after(120), "and two minutes later");
    // The limits are those of one account.
    api.request_reset("bob@example.com").expect(200);
    api.database.wait_for_empty_outbox();
    assert_eq!(api.database.count("password_reset_messages"), 2);
}

#[test]
fn requests_are_taken_a_hundred_at_a_time_also_if_the_planner_expects_only_one() {
    let database = Database::create_migrated();
    let mut client = database.client();
    let insert = "INSERT INTO password_reset_requests (email_key, requested_at)
                  SELECT 'nobody@example.com', '2026-01-01' FROM generate_series";
    client.batch_execute(&format!("{insert} (1, 1); ANALYZE password_reset_requests")).unwrap();
    let sql = std::fs::read_to_string("sql/mail/queue_resets.sql").unwrap();
    let statement = client.prepare(&sql).unwrap();
    // PostgreSQL keeps the plan that it makes now.
    assert_eq!(client.query_one(&statement, &[]).unwrap().get::<_, i64>("requests"), 1);
    assert_eq!(database.count("password_reset_requests"), 0);
    client.batch_execute(&format!("{insert} (1, 1000)")).unwrap();
    assert_eq!(client.query_one(&statement, &[]).unwrap().get::<_, i64>("requests"), 1000);
    assert_eq!(database.count("password_reset_requests"), 900);
}
