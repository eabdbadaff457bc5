//! Invitations: accounts that administrators make without a password, which their owners choose by a link in a mail.

use crate::harness::*;

fn cyd() -> Value {
    json!({"email": "cyd@example.com", "name": "Cyd", "username": "cyd", "invite": true})
}

/// Waits for the token that is logged in development.
fn logged_token(api: &Server) -> String {
    let line = api.logged("password reset token of user");
    line.split_whitespace().last().expect("a token").to_owned()
}

#[test]
fn an_invited_user_gets_a_link_by_mail_that_works_once_and_for_seven_days() {
    let (smtp, api) = service_with_mail(&[]);
    let root = api.sign_up_admin("root");
    let user = api.create_user(&root, cyd()).expect(201);
    let user = user.has(json!({"email": "cyd@example.com", "is_active": true, "last_login": null}));
    let mail = smtp.wait_for(1).remove(0);
    assert_eq!(mail.recipient, "cyd@example.com");
    assert_eq!(mail.subject(), "You have a Cloakroom account");
    let (text, token) = (mail.text(), mail.token(RESET_URL));
    assert!(text.contains("once, within 7 days: until"), "{text}");
    assert!(!text.contains("Cyd"), "no text that a user chose: {text}");
    let claims = claims(&token);
    let number = |name: &str| claims[name].as_i64().expect("a number");
    assert_eq!(number("exp") - number("iat"), 7 * 86_400);
    wait_until(|| api.database.count("outbox") == 0);
    // Nobody can sign in before, with whatever password.
    api.login("cyd", "").expect(422);
    for password in ["-", PASSWORD, &token] {
        api.login("cyd", password).refused(401, "Invalid username or password");
    }
    api.reset_password(&token, NEW_PASSWORD).expect(200);
    assert_eq!(api.login("cyd", NEW_PASSWORD).expect(200).tokens().id(), user.id());
    api.reset_password(&token, PASSWORD).refused(400, "Invalid or expired token");
    // A second invitation of the same address is a second account of it.
    api.create_user(&root, cyd()).refused(409, "Username already exists");
    let again = json!({"email": "CYD@example.com", "name": "Cyd", "invite": true});
    api.create_user(&root, again).refused(409, "Email already exists");
}

/// An import spreads its invitations over hours, and lets all other mail of accounts pass.
#[cfg(feature = "extras")]
#[test]
fn an_invitation_of_an_import_that_waits_is_sent_at_once_if_an_administrator_asks() {
    let (smtp, api) = service_with_mail(&[]);
    let root = api.sign_up_admin("root");
    let user = api.create_user(&root, cyd()).expect(201);
    smtp.wait_for(1);
    wait_until(|| api.database.count("outbox") == 0);
    api.database.run(&format!(
        "INSERT INTO outbox (kind, user_id, created_at, due_at, is_imported)
         SELECT 'invitation', '{}', at, at, true FROM (SELECT now() + interval '20 hours' AS at) later",
        user.id()
    ));
    api.post(&format!("/users/{}/password-link", user.id()), &root, json!({})).expect(204);
    assert_eq!(smtp.wait_for(2)[1].recipient, "cyd@example.com");
    wait_until(|| api.database.count("outbox") == 0);
}

#[test]
fn an_invitation_that_is_not_used_in_time_is_replaced_by_a_reset() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    api.create_user(&root, cyd()).expect(201);
    let token = logged_token(&api);
    let late = sign(with_member(&claims(&token), "exp", now() - 1));
    api.reset_password(&late, NEW_PASSWORD).refused(400, "Invalid or expired token");
    let reset = api.reset_token("cyd@example.com");
    api.reset_password(&reset, PASSWORD).expect(200);
    api.sign_in("cyd");
    // That was a change of the password, so the invitation is dead.
    api.reset_password(&token, NEW_PASSWORD).refused(400, "Invalid or expired token");
}

#[test]
fn a_password_beside_invite_is_that_of_an_ordinary_account_also_without_mail() {
    for settings in [&[][..], &[("CLOAKROOM_SMTP_URL", "none")]] {
        let (api, [root]) = Server::with_users(settings, ["root"]);
        if !settings.is_empty() {
            api.create_user(&root, cyd()).refused(404, "This feature is not available");
        }
        api.create_user(&root, with_member(&cyd(), "password", PASSWORD)).expect(201);
        assert_eq!(api.database.count("outbox"), 0);
        api.sign_in("cyd");
        assert!(!api.log().contains("password reset token"), "{}", api.log());
    }
}

#[test]
fn only_administrators_invite_and_their_tokens_invite_no_administrators() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let with = |name: &str, value: Value| with_member(&cyd(), name, value);
    api.create_user(&ann, cyd()).refused(403, "Admin privileges required.");
    assert_eq!(api.database.count("users"), 2);
    if !has_extras() {
        return;
    }
    // A token of an administrator invites users, but no administrators.
    let token = api.new_token(&root, false);
    api.create_user(&token, with("role", json!("admin"))).refused(403, "Not enough permissions");
    assert_eq!(api.database.count("users"), 2);
    api.create_user(&token, cyd()).expect(201);
    logged_token(&api);
}

#[test]
fn an_invitation_that_waited_is_not_sent_once_the_account_has_other_credentials() {
    let smtp = SmtpServer::start(SmtpOptions::default());
    let (before, [root]) = Server::with_users(&[], ["root"]);
    let later = "now() + interval '1 day'";
    before.database.run(&format!("ALTER TABLE outbox ALTER COLUMN due_at SET DEFAULT {later}"));
    let invite = |name: &str| {
        let email = format!("{name}@example.com");
        let body = json!({"email": email, "name": name, "username": name, "invite": true});
        before.create_user(&root, body).expect(201).id()
    };
    let [moved, inactive, set, deleted, _] =
        ["moved", "inactive", "set", "deleted", "waits"].map(invite);
    before.update_user(&root, &moved, json!({"email": "moved2@example.com"})).expect(200);
    before.update_user(&root, &inactive, json!({"is_active": false})).expect(200);
    before.update_user(&root, &set, json!({"password": PASSWORD})).expect(200);
    before.delete_user(&root, &deleted).expect(204);
    let (database, data, _) = before.end(Signal::TERM);
    assert_eq!(database.count("outbox WHERE kind = 'invitation'"), 5);
    database.run("DELETE FROM outbox WHERE kind <> 'invitation'; UPDATE outbox SET due_at = now()");
    let _api = Server::start_with(&database, &data, &mail_settings(&smtp.url()));
    wait_until(|| database.count("outbox") == 0);
    let recipients: Vec<_> = smtp.received().into_iter().map(|mail| mail.recipient).collect();
    assert_eq!(recipients, ["waits@example.com"]);
}

#[test]
fn an_account_and_its_invitation_are_made_together_or_not_at_all() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    api.database.run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
         CREATE TRIGGER refused BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    api.create_user(&root, cyd()).expect(500);
    assert_eq!(api.database.count("users"), 1);
    assert_eq!(api.database.count("audit_events WHERE action = 'user.create'"), 0);
}

#[test]
fn invitations_do_not_count_among_the_mails_that_strangers_cause_for_a_mailbox() {
    let (smtp, api) = service_with_mail(&[]);
    let root = api.sign_up_admin("root");
    for n in 0..15 {
        let email = format!("cyd+{n}@example.com");
        let body = json!({"email": email, "name": "Cyd", "invite": true});
        api.create_user(&root, body).expect(201);
    }
    assert_eq!(smtp.wait_for(15).len(), 15);
    assert_eq!(api.database.count("mail_counts WHERE key = sha256('cyd@example.com')"), 0);
}

#[test]
fn an_administrator_has_a_link_mailed_that_is_the_invitation_until_there_is_a_password() {
    if !has_extras() {
        return;
    }
    let (smtp, api) = service_with_mail(&[]);
    let root = api.sign_up_admin("root");
    let id = api.create_user(&root, cyd()).expect(201).id();
    let send = || api.post(&format!("/users/{id}/password-link"), &root, json!({}));
    let latest = |recipient: &str, subject: &str| {
        wait_until(|| api.database.count("outbox") == 0);
        let mails = smtp.received().into_iter();
        let mut links = mails.filter(|mail| !mail.subject().contains("was changed"));
        let mail = links.rfind(|mail| mail.recipient == recipient).expect("a mail");
        assert_eq!(mail.subject(), subject);
        mail.token(RESET_URL)
    };
    let [invitation, reset] = ["You have a Cloakroom account", "Reset your Cloakroom password"];
    let lost = latest("cyd@example.com", invitation);
    assert!(send().expect(204).bytes.is_empty());
    assert_ne!(latest("cyd@example.com", invitation), lost);
    // To another address it is the invitation too, and the first one is dead then.
    api.update_user(&root, &id, json!({"email": "cyd2@example.com"})).expect(200);
    api.reset_password(&lost, NEW_PASSWORD).refused(400, "Invalid or expired token");
    send().expect(204);
    let moved = latest("cyd2@example.com", invitation);
    api.update_user(&root, &id, json!({"is_active": false})).expect(200);
    send().refused(409, "User is inactive");
    api.update_user(&root, &id, json!({"is_active": true})).expect(200);
    api.reset_password(&moved, NEW_PASSWORD).refused(400, "Invalid or expired token");
    // Half a dozen in a row are mailed: an administrator asks for them, not a stranger.
    for _ in 0..6 {
        send().expect(204);
        latest("cyd2@example.com", invitation);
    }
    let token = latest("cyd2@example.com", invitation);
    api.reset_password(&token, NEW_PASSWORD).expect(200);
    for _ in 0..3 {
        send().expect(204);
        latest("cyd2@example.com", reset);
    }
    let token = latest("cyd2@example.com", reset);
    api.reset_password(&token, PASSWORD).expect(200);
    api.sign_in("cyd");
    // One that waits is not doubled, and every request is an event of the administrator.
    wait_until(|| api.database.count("outbox") == 0);
    let later = "ALTER TABLE outbox ALTER COLUMN due_at SET DEFAULT now() + interval '1 day'";
    api.database.run(later);
    for _ in 0..3 {
        send().expect(204);
    }
    assert_eq!(api.database.count("outbox"), 1);
    let events = "audit_events WHERE action = 'password.reset_request' AND subject_id =";
    let by = |actor: &str| api.database.count(&format!("{events} '{id}' AND actor_id = '{actor}'"));
    assert_eq!((by(root.id()), api.database.count(&format!("{events} '{id}'"))), (14, 14));
}

#[test]
fn no_link_is_mailed_to_whom_there_is_not_by_whom_may_not_or_without_mail() {
    if !has_extras() {
        return;
    }
    let (api, [root, ann, bob]) = Server::with_users(&[], ["root", "ann", "bob"]);
    let path = |id: &str| format!("/users/{id}/password-link");
    api.post(&path(UNKNOWN_ID), &root, json!({})).refused(404, "User not found");
    api.post(&path("no-id"), &root, json!({})).invalid(&[("path.user_id", "uuid_parsing")]);
    api.post(&path(bob.id()), &ann, json!({})).refused(403, "Admin privileges required.");
    let token = api.new_token(&root, false);
    api.post(&path(bob.id()), &token, json!({})).refused(403, "Not enough permissions");
    api.delete_user(&root, bob.id()).expect(204);
    api.post(&path(bob.id()), &root, json!({})).refused(404, "User not found");
    api.get(&path(ann.id()), &root).refused(405, "Method Not Allowed");
    let off = api.beside(&[("CLOAKROOM_SMTP_URL", "none")]);
    off.post(&path(ann.id()), &root, json!({})).refused(404, "This feature is not available");
    for nothing in [
        "outbox WHERE kind IN ('password_reset', 'invitation')",
        "audit_events WHERE action = 'password.reset_request'",
    ] {
        assert_eq!(api.database.count(nothing), 0);
    }
}
