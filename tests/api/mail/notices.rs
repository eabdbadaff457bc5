//! The messages that owners of accounts get: the link to reset a password, and notices of changes.

use serde_json::json;

use crate::harness::*;

const RESET: &str = "Reset your Cloakroom password";
const PASSWORD_CHANGED: &str = "Your Cloakroom password was changed";
const TOKEN_CREATED: &str = "A personal access token of your Cloakroom account was created";
const EMAIL_CHANGED: &str = "The e-mail address of your Cloakroom account was changed";

#[test]
fn the_link_to_reset_a_password_goes_to_the_stored_address_and_works() {
    let (smtp, api) = service_with_mail();
    let ann = api.sign_up("ann");
    api.update_me(&ann, json!({"email": "Ann@example.com", "name": "Ann B\u{e4}r"})).expect(200);
    api.request_reset("aNN@EXAMPLE.com").expect(200);
    let mail = smtp.wait_for(1).remove(0);
    assert_eq!(mail.recipient, "Ann@example.com");
    // Without the name, which anybody may choose who registers an account with somebody else's address.
    assert_eq!(mail.to(), (String::new(), "Ann@example.com".to_owned()));
    assert_eq!(mail.subject(), RESET);
    let token = mail.token(RESET_URL);
    // In development the token is logged as well. No address ever is.
    assert!(api.logged("password reset token").contains(&token));
    assert!(!api.log().to_lowercase().contains("@example.com"), "{}", api.log());
    api.reset_password(&token, NEW_PASSWORD).expect(200);
    api.login("ann", NEW_PASSWORD).expect(200);
    let notice = smtp.wait_for(2).remove(1);
    assert_eq!((&*notice.recipient, &*notice.subject()), ("Ann@example.com", PASSWORD_CHANGED));
    wait_until(|| api.database.count("outbox") == 0);
}

#[test]
fn the_token_of_an_earlier_message_stays_good_after_a_second_one() {
    let (smtp, api) = service_with_mail();
    api.sign_up("ann");
    api.request_reset("ann@example.com").expect(200);
    let first = smtp.wait_for(1)[0].token(RESET_URL);
    wait_until(|| api.database.count("outbox") == 0);
    api.database.run("DELETE FROM password_reset_messages");
    api.request_reset("ann@example.com").expect(200);
    let second = smtp.wait_for(2)[1].token(RESET_URL);
    assert_ne!(first, second);
    api.reset_password(&first, NEW_PASSWORD).expect(200);
    api.reset_password(&second, PASSWORD).refused(400, "Invalid or expired token");
}

#[test]
fn the_owner_of_an_account_is_told_of_a_new_password_and_of_a_new_address() {
    let (smtp, api) = service_with_mail();
    let root = api.sign_up_admin("root");
    // By the users themselves: with the old password, with a token, and a new address.
    let ann = api.sign_up("ann");
    api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(200);
    api.sign_up("bob");
    let token = api.reset_token("bob@example.com");
    api.reset_password(&token, NEW_PASSWORD).expect(200);
    let eve = api.sign_up("eve");
    api.update_me(&eve, json!({"email": "eve2@example.com"})).expect(200);
    // By an administrator: a new password, a new address, and both.
    let change = |name: &str, body| {
        let user = api.sign_up(name);
        api.update_user(&root, user.id(), body).expect(200);
    };
    change("cyd", json!({"password": NEW_PASSWORD}));
    change("fay", json!({"email": "fay2@example.com"}));
    change("gus", json!({"email": "gus2@example.com", "password": NEW_PASSWORD}));
    // By the operator, on the command line.
    api.sign_up("dan");
    api.create_admin("dan@example.com", NEW_PASSWORD);
    let received = smtp.wait_for(9);
    let mut found: Vec<_> =
        received.iter().map(|mail| (mail.recipient.clone(), mail.subject())).collect();
    found.sort();
    let expected = [
        ("ann@example.com", PASSWORD_CHANGED),
        ("bob@example.com", RESET),
        ("bob@example.com", PASSWORD_CHANGED),
        ("cyd@example.com", PASSWORD_CHANGED),
        ("dan@example.com", PASSWORD_CHANGED),
        ("eve@example.com", EMAIL_CHANGED),
        ("fay@example.com", EMAIL_CHANGED),
        ("gus2@example.com", PASSWORD_CHANGED),
        ("gus@example.com", EMAIL_CHANGED),
    ];
    assert_eq!(found, expected.map(|(to, subject)| (to.to_owned(), subject.to_owned())));
    // Whoever reads the old address is not told the new one.
    for mail in received.iter().filter(|mail| mail.subject() == EMAIL_CHANGED) {
        assert!(!String::from_utf8_lossy(&mail.raw).contains("2@example.com"), "{mail:?}");
    }
    wait_until(|| api.database.count("outbox") == 0);
}

#[test]
fn notices_of_endless_changes_end_after_a_few() {
    let (smtp, api) = service_with_mail();
    let ann = api.sign_up("ann");
    // The limits of an account, not those of the mailbox of one that is not settled.
    api.database.run("UPDATE users SET created_at = now() - interval '1 day'");
    for round in 0..4 {
        for address in ["victim@example.com", "ann@example.com"] {
            api.update_me(&ann, json!({"email": address})).case(round).expect(200);
        }
    }
    let mut passwords = [PASSWORD, NEW_PASSWORD];
    for _ in 0..12 {
        api.change_password(&ann, passwords[0], passwords[1]).expect(200);
        passwords.reverse();
    }
    wait_until(|| api.database.count("outbox") == 0);
    let subjects: Vec<_> = smtp.wait_for(15).iter().map(|mail| mail.subject()).collect();
    let count = |subject| subjects.iter().filter(|found| *found == subject).count();
    assert_eq!((count(EMAIL_CHANGED), count(PASSWORD_CHANGED), subjects.len()), (5, 10, 15));
}

#[test]
fn the_owner_of_an_account_is_told_of_new_personal_access_tokens_a_few_times_a_day() {
    let (smtp, api) = service_with_mail();
    let ann = api.sign_up("ann");
    let body = json!({"name": "http://evil.example", "read_only": true});
    for round in 0..7 {
        api.create_token(&ann, body.clone()).case(round).expect(201);
    }
    wait_until(|| api.database.count("outbox") == 0);
    let received = smtp.received();
    assert_eq!(received.len(), 5);
    for mail in &received {
        assert_eq!((&*mail.recipient, &*mail.subject()), ("ann@example.com", TOKEN_CREATED));
        assert!(
            mail.text().contains("a personal access token of your Cloakroom account was created")
        );
        assert!(!String::from_utf8_lossy(&mail.raw).contains("evil"), "{mail:?}");
    }
    // A token that is refused is told to nobody.
    api.create_token(&ann, json!({"name": ""})).expect(422);
    assert_eq!(api.database.count("outbox"), 0);
}

#[test]
fn the_owner_of_an_account_is_told_of_new_recovery_codes() {
    let (smtp, api) = service_with_mail();
    let ann = api.sign_up("ann");
    let factor = api.new_second_factor(&ann, PASSWORD);
    smtp.wait_for(1);
    api.renew_recovery_codes(&ann, PASSWORD, &factor.wrong_code()).refused(400, "Invalid code");
    let answer = api.renew_recovery_codes(&ann, PASSWORD, &factor.code()).expect(200);
    let mail = smtp.wait_for(2).remove(1);
    let subject = "New recovery codes of your Cloakroom account were made";
    assert_eq!((&*mail.recipient, &*mail.subject()), ("ann@example.com", subject));
    assert!(mail.text().contains("new recovery codes of your Cloakroom account were made on"));
    let codes = answer.json()["recovery_codes"].clone();
    for code in codes.as_array().expect("codes").iter().filter_map(|code| code.as_str()) {
        assert!(!mail.text().contains(code), "{mail:?}");
    }
    wait_until(|| api.database.count("outbox") == 0);
    assert_eq!(smtp.received().len(), 2);
}

#[test]
fn other_changes_and_failed_ones_send_no_notice() {
    let (smtp, api) = service_with_mail();
    let root = api.sign_up_admin("root");
    let (ann, ian) = (api.sign_up("ann"), api.sign_up("ian"));
    let taken = json!({"email": "IAN@example.com"});
    api.update_me(&ann, taken).refused(409, "Email already exists");
    api.change_password(&ann, NEW_PASSWORD, NEW_PASSWORD)
        .refused(400, "Current password is incorrect");
    api.update_me(&ann, json!({"email": "ANN@example.com", "name": "Ann", "username": "anna"}))
        .expect(200);
    let rights = json!({"role": "admin", "permissions": ["read"], "email": "Ann@example.com"});
    api.update_user(&root, ann.id(), rights).expect(200);
    let dearer = Server::start_on(&api.database, &[("CLOAKROOM_SCRYPT", "5,8,1")]);
    dearer.sign_in("anna");
    drop(dearer);
    api.delete_user(&root, ian.id()).expect(204);
    api.create_admin("new@example.com", PASSWORD);
    // Messages are sent in the order of the changes.
    let ann = api.sign_in("anna");
    api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(200);
    assert_eq!(smtp.wait_for(1)[0].subject(), PASSWORD_CHANGED);
    wait_until(|| api.database.count("outbox") == 0);
}

#[test]
fn a_user_who_is_gone_gets_only_the_notice_at_the_old_address() {
    let smtp = SmtpServer::start(SmtpOptions::default());
    let before = Server::start(&[]);
    let root = before.sign_up_admin("root");
    let (ann, bob) = (before.sign_up("ann"), before.sign_up("bob"));
    // So that there is time for more changes before the messages are sent.
    let later = "now() + interval '1 day'";
    before.database.run(&format!("ALTER TABLE outbox ALTER COLUMN due_at SET DEFAULT {later}"));
    for user in [&ann, &bob] {
        before.change_password(user, PASSWORD, NEW_PASSWORD).expect(200);
    }
    before.update_me(&ann, json!({"email": "ann2@example.com"})).expect(200);
    before.request_reset("bob@example.com").expect(200);
    wait_until(|| before.database.count("outbox") == 4);
    before.delete_user(&root, ann.id()).expect(204);
    before.update_user(&root, bob.id(), json!({"is_active": false})).expect(200);
    let (database, data) = (before.database.clone(), before.data.clone());
    drop(before);
    database.run("UPDATE outbox SET due_at = now()");
    let _api = Server::start_with(&database, &data, &mail_settings(&smtp.url()));
    wait_until(|| database.count("outbox") == 0);
    let received = smtp.wait_for(1);
    assert_eq!(received[0].recipient, "ann@example.com");
    assert_eq!(received[0].subject(), EMAIL_CHANGED);
}

#[test]
fn without_a_mail_server_messages_are_dropped() {
    for settings in [&[][..], &[("CLOAKROOM_SMTP_URL", "none")]] {
        let api = Server::start(settings);
        let ann = api.sign_up("ann");
        api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(200);
        api.update_me(&ann, json!({"email": "ann2@example.com"})).expect(200);
        wait_until(|| api.database.count("outbox") == 0);
        let metrics = api.metrics();
        assert!(metrics.contains("\ncloakroom_mail_sent_total 0\n"), "{metrics}");
    }
}
