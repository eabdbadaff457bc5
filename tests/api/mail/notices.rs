//! The messages that owners of accounts get: the link to reset a password, and notices of changes.

use crate::harness::*;

const RESET: &str = "Reset your Cloakroom password";
const PASSWORD_CHANGED: &str = "Your Cloakroom password was changed";
const TOKEN_CREATED: &str = "A personal access token of your Cloakroom account was created";
const EMAIL_CHANGED: &str = "The e-mail address of your Cloakroom account was changed";
const FACTOR_ENABLED: &str = "Your Cloakroom account has a second factor";
const CODES_RENEWED: &str = "New recovery codes of your Cloakroom account were made";

#[test]
fn the_link_to_reset_a_password_goes_to_the_stored_address_and_works() {
    // In development the token is logged as well. No address ever is.
    let production = [&PRODUCTION[..], &[("CLOAKROOM_LOG", "debug")]].concat();
    for (settings, is_logged) in [(&[][..], true), (&production, false)] {
        let (smtp, api) = service_with_mail(settings);
        let ann = api.sign_up("ann");
        let change = json!({"email": "Ann@example.com", "name": "Ann B\u{e4}r"});
        api.update_me(&ann, change).expect(200);
        // Where the link leads is in the settings, whatever the request says of its host.
        let mut request = api.request("POST", "/auth/request-password-reset");
        for name in ["Host", "X-Forwarded-Host", "X-Original-Host", "X-Host"] {
            request = request.header(name, "evil.example");
        }
        let request = request.header("Forwarded", "host=evil.example;proto=http");
        request.json(json!({"email": "aNN@EXAMPLE.com"})).send().expect(200);
        let mail = smtp.wait_for(1).remove(0);
        assert_eq!(mail.recipient, "Ann@example.com");
        assert!(!mail.text().contains("evil.example"), "{}", mail.text());
        // Without the name, which anybody may choose who registers an account with somebody else's address.
        assert_eq!(mail.to(), (String::new(), "Ann@example.com".to_owned()));
        assert_eq!(mail.subject(), RESET);
        let token = mail.token(RESET_URL);
        api.database.wait_for_empty_outbox();
        api.reset_password(&token, NEW_PASSWORD).expect(200);
        api.login("ann", NEW_PASSWORD).expect(200);
        let notice = smtp.wait_for(2).remove(1);
        assert_eq!((&*notice.recipient, &*notice.subject()), ("Ann@example.com", PASSWORD_CHANGED));
        api.database.wait_for_empty_outbox();
        if is_logged {
            assert!(api.logged("password reset token").contains(&token));
        }
        let (log, signature) = (api.log(), token.rsplit('.').next().expect("a signature"));
        assert!(!log.to_lowercase().contains("@example.com"), "{log}");
        for secret in [signature, "reset token"] {
            assert_eq!(log.contains(secret), is_logged, "{secret} in {log}");
        }
    }
}

/// What happens, its status, the subjects of the mails that go to the address at which the user signed up, then those
/// of the mails to the address with a 2, and what does it for an administrator and the user.
type Change = (
    &'static str,
    u16,
    &'static [&'static str],
    &'static [&'static str],
    fn(&Server, &Tokens, &Tokens) -> Answer,
);

const OF_EXTRAS: [&str; 3] = ["a token", "recovery codes", "a token that is refused"];
const CHANGES: [Change; 17] = [
    ("a new password", 200, &[PASSWORD_CHANGED], &[], |api, _, user| {
        api.change_password(user, PASSWORD, NEW_PASSWORD)
    }),
    ("a reset", 200, &[RESET, PASSWORD_CHANGED], &[], |api, _, user| {
        api.reset_password(&api.reset_token(&email(user)), NEW_PASSWORD)
    }),
    ("a new address", 200, &[EMAIL_CHANGED], &[], |api, _, user| {
        api.update_me(user, json!({"email": email2(user)}))
    }),
    ("an administrator's password", 200, &[PASSWORD_CHANGED], &[], |api, root, user| {
        api.update_user(root, user.id(), json!({"password": NEW_PASSWORD}))
    }),
    ("an administrator's address", 200, &[EMAIL_CHANGED], &[], |api, root, user| {
        api.update_user(root, user.id(), json!({"email": email2(user)}))
    }),
    ("both", 200, &[EMAIL_CHANGED], &[PASSWORD_CHANGED], |api, root, user| {
        api.update_user(root, user.id(), json!({"email": email2(user), "password": NEW_PASSWORD}))
    }),
    ("create-admin", 200, &[PASSWORD_CHANGED], &[], |api, root, user| {
        api.create_admin(&email(user), NEW_PASSWORD);
        api.me(root)
    }),
    ("a token", 201, &[TOKEN_CREATED], &[], |api, _, user| {
        api.create_token(user, json!({"name": "http://evil.example", "read_only": true}))
    }),
    ("recovery codes", 200, &[FACTOR_ENABLED, CODES_RENEWED], &[], |api, _, user| {
        let factor = api.new_second_factor(user, PASSWORD);
        let refused = api.renew_recovery_codes(user, PASSWORD, &factor.wrong_code());
        refused.refused(400, "Invalid code");
        api.renew_recovery_codes(user, PASSWORD, &factor.code())
    }),
    ("a token that is refused", 422, &[], &[], |api, _, user| {
        api.create_token(user, json!({"name": ""}))
    }),
    ("a taken address", 409, &[], &[], |api, _, user| {
        api.update_me(user, json!({"email": "ROOT@example.com"}))
    }),
    ("a wrong password", 400, &[], &[], |api, _, user| {
        api.change_password(user, NEW_PASSWORD, NEW_PASSWORD)
    }),
    ("other changes", 200, &[], &[], |api, _, user| {
        let change = json!({"email": email(user).to_uppercase(), "name": "A", "username": "other"});
        api.update_me(user, change)
    }),
    ("an administrator's other changes", 200, &[], &[], |api, root, user| {
        let change = json!({
            "role": "admin", "permissions": ["read"], "email": email(user).to_uppercase(),
        });
        api.update_user(root, user.id(), change)
    }),
    ("a hash that is renewed", 200, &[], &[], |api, _, user| {
        let dearer = Server::start_on(&api.database, &[("CLOAKROOM_SCRYPT", "5,8,1")]);
        dearer.login(&email(user), PASSWORD)
    }),
    ("a deletion", 204, &[], &[], |api, root, user| api.delete_user(root, user.id())),
    ("a new administrator", 200, &[], &[], |api, root, user| {
        api.create_admin(&email2(user), PASSWORD);
        api.me(root)
    }),
];

fn email(user: &Tokens) -> String {
    user.user["email"].as_str().expect("an address").to_owned()
}

fn email2(user: &Tokens) -> String {
    email(user).replace('@', "2@")
}

#[test]
fn owners_of_accounts_are_told_of_changes_that_could_lock_them_out_and_of_no_others() {
    let (smtp, api) = service_with_mail(&[]);
    let root = api.sign_up_admin("root");
    for (n, (change, status, to_old, to_new, work)) in CHANGES.into_iter().enumerate() {
        if OF_EXTRAS.contains(&change) && !has_extras() {
            continue;
        }
        let user = api.sign_up(&format!("user_{}", char::from(b'a' + n as u8)));
        let before = smtp.received().len();
        work(&api, &root, &user).case(change).expect(status);
        api.database.wait_for_empty_outbox();
        let (to_user, others): (Vec<_>, Vec<_>) = smtp
            .received()
            .split_off(before)
            .into_iter()
            .partition(|m| m.recipient == email(&user));
        let subjects = |mails: &[ReceivedMail]| mails.iter().map(ReceivedMail::subject).collect();
        let found: [Vec<String>; 2] = [subjects(&to_user), subjects(&others)];
        assert_eq!(found, [to_old, to_new].map(<[_]>::to_vec), "{change}");
        assert!(others.iter().all(|mail| mail.recipient == email2(&user)), "{change}");
    }
    for mail in smtp.received() {
        let (text, subject) = (mail.text(), mail.subject());
        // Whoever reads the old address is not told the new one.
        let raw = String::from_utf8_lossy(&mail.raw);
        assert!(subject != EMAIL_CHANGED || !raw.contains("2@example.com"), "{raw}");
        assert!(!raw.contains("evil"), "{raw}");
        // A recovery code has four parts of letters and digits.
        let is_code = |word: &str| {
            word.matches('-').count() == 3
                && word.chars().all(|c| c == '-' || c.is_ascii_alphanumeric())
        };
        assert!(!text.split_whitespace().any(is_code), "{text}");
    }
}

#[test]
fn notices_of_endless_changes_end_after_a_few() {
    let (smtp, api) = service_with_mail(&[]);
    let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
    // The limits of an account, not those of the mailbox of one that is not settled.
    api.database.run("UPDATE users SET created_at = now() - interval '1 day'");
    for round in 0..4 {
        for address in ["victim@example.com", "ann@example.com"] {
            api.update_me(&ann, json!({"email": address})).case(round).expect(200);
        }
    }
    api.database.run("UPDATE users SET email_changed_at = NULL");
    let of_tokens = if has_extras() { 5 } else { 0 };
    for _ in 0..of_tokens + 2 {
        if has_extras() {
            api.new_token(&bob, true);
        }
    }
    let mut passwords = [PASSWORD, NEW_PASSWORD];
    for _ in 0..12 {
        api.change_password(&ann, passwords[0], passwords[1]).expect(200);
        passwords.reverse();
    }
    api.database.wait_for_empty_outbox();
    let subjects: Vec<_> = smtp.received().iter().map(ReceivedMail::subject).collect();
    let count = |subject| subjects.iter().filter(|found| *found == subject).count();
    let counts = [EMAIL_CHANGED, PASSWORD_CHANGED, TOKEN_CREATED].map(count);
    assert_eq!((counts, subjects.len()), ([5, 10, of_tokens], 15 + of_tokens));
}

#[test]
fn a_user_who_is_gone_gets_only_the_notice_at_the_old_address() {
    let smtp = SmtpServer::start(SmtpOptions::default());
    let (before, [root, ann, bob]) = Server::with_users(&[], ["root", "ann", "bob"]);
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
    let (database, data, _) = before.end(Signal::TERM);
    database.run("UPDATE outbox SET due_at = now()");
    let _api = Server::start_with(&database, &data, &mail_settings(&smtp.url()));
    wait_until(|| database.count("outbox") == 0);
    let mail = smtp.wait_for(1).remove(0);
    assert_eq!((&*mail.recipient, &*mail.subject()), ("ann@example.com", EMAIL_CHANGED));
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
