//! Registrations whose e-mail address must be confirmed: there is no account before the link is opened.

use crate::harness::*;

pub const PAGE: &str = "https://app.example.com/confirm?{token}";
pub const REFUSED: &str = "Invalid or expired token";
pub const REQUIRED: [(&str, &str); 2] =
    [("CLOAKROOM_EMAIL_CONFIRMATION", "required"), ("CLOAKROOM_EMAIL_CONFIRMATION_URL", PAGE)];

/// A service that asks for confirmations, and its mail server.
pub fn confirming(settings: &[(&str, &str)]) -> (SmtpServer, Server) {
    service_with_mail(&[&REQUIRED, settings].concat())
}

/// Another process of the service.
pub fn confirming_beside(smtp: &SmtpServer, api: &Server, settings: &[(&str, &str)]) -> Server {
    api.beside(&[&REQUIRED[..], &mail_settings(&smtp.url()), settings].concat())
}

/// Waits for the latest mail to this address with this subject, of which there must be `n`.
#[track_caller]
pub fn mail_to(smtp: &SmtpServer, address: &str, subject: &str, n: usize) -> ReceivedMail {
    eventually(|| {
        let mut all = smtp.received();
        all.retain(|mail| {
            mail.recipient.eq_ignore_ascii_case(address) && mail.subject() == subject
        });
        if all.len() >= n { all.pop() } else { None }
    })
}

pub const CONFIRM: &str = "Confirm your e-mail address for Cloakroom";
pub const TAKEN: &str = "You have a Cloakroom account already";

/// The words of a mail, with one blank between them.
fn words(mail: &ReceivedMail) -> String {
    mail.text().split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

pub fn token(mail: &ReceivedMail) -> String {
    mail.token(PAGE)
}

pub fn confirm(api: &Server, token: &str, password: &str) -> Answer {
    let body = json!({"token": token, "password": password});
    api.post("/auth/confirm-email", Anonymous, body)
}

/// Confirms with another username.
pub fn confirm_as(api: &Server, token: &str, username: &str) -> Answer {
    let body = json!({"token": token, "password": PASSWORD, "username": username});
    api.post("/auth/confirm-email", Anonymous, body)
}

/// Begins a registration with the usual password.
pub fn begin(api: &Server, username: &str, email: &str) -> Answer {
    api.register_with(json!({"username": username, "email": email, "password": PASSWORD}))
}

/// Begins one from an address, which the service must take from a proxy.
pub fn begin_from(api: &Server, client: &str, body: Value) -> Answer {
    api.request("POST", "/auth/register").header("X-Forwarded-For", client).json(body).send()
}

/// Registers an account and confirms its address.
pub fn sign_up(smtp: &SmtpServer, api: &Server, name: &str) -> Tokens {
    api.register(name).expect(201);
    let mail = mail_to(smtp, &format!("{name}@example.com"), CONFIRM, 1);
    confirm(api, &token(&mail), PASSWORD).expect(200);
    api.sign_in(name)
}

#[test]
fn there_is_no_account_before_the_link_is_opened_with_the_password_and_then_the_one_that_was_shown()
{
    let (smtp, api) = confirming(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    let body = json!({"username": "ann", "email": "Ann@Example.com", "password": PASSWORD, "name": " Ann Lee "});
    let shown = begin_from(&api, "192.0.2.77", body).expect(201);
    let same = json!({"id": shown.id(), "username": "ann", "email": "Ann@Example.com", "name": "Ann Lee",
        "role": "user"});
    let new =
        json!({"permissions": [], "is_active": true, "last_login": null, "second_factor": false});
    let shown = shown.has(same.clone()).has(new);
    assert_eq!(shown.json()["created_at"], shown.json()["updated_at"]);
    // The form without a username answers alike, without tokens, and an empty name is none.
    let other = json!({"email": "bo@example.com", "password": PASSWORD, "name": ""});
    let other = api.register_with(other).expect(201).has(json!({"username": null, "name": null}));
    assert_eq!(other.member_names(), shown.member_names());
    for name in ["access_token", "refresh_token", "pending_email", "email_confirmed"] {
        assert!(shown.json().get(name).is_none(), "{name}");
    }

    let mail = mail_to(&smtp, "Ann@Example.com", CONFIRM, 1);
    let text = words(&mail);
    let asked = "UTC, somebody in the network 192.0.2.0/24 asked to use this e-mail address for the Cloakroom account \
                 ann.";
    assert!(text.contains(asked) && text.contains("within 2 days"), "{text}");
    assert!(!text.contains("Lee"), "{text}");
    let without = words(&mail_to(&smtp, "bo@example.com", CONFIRM, 1));
    assert!(without.contains("for the Cloakroom account without a username."), "{without}");
    api.database.wait_for_empty_outbox();
    for table in ["users", "listed_users", "account_totals", "sessions", "audit_events", "outbox"] {
        assert_eq!(api.database.count(table), 0, "{table}");
    }

    let token = token(&mail);
    for name in ["ann", "ANN@example.com", "nobody"] {
        let hint = "Check both. If you have just registered, open the link in the mail first.";
        api.login(name, PASSWORD)
            .refused(401, "Invalid username or password")
            .has(json!({"reason": "BAD_CREDENTIALS", "hint": hint}));
    }
    confirm(&api, &token, "wrong horse").refused(400, REFUSED);
    let answer = confirm(&api, &token, PASSWORD).expect(200);
    assert_eq!(answer.json(), json!({"message": "E-mail address has been confirmed"}));
    api.sign_in("Ann@example.com");
    let ann = api.sign_in("ann");
    api.me(&ann).expect(200).has(same);
    // It is used, whatever the password and the name.
    confirm(&api, &token, PASSWORD).refused(400, REFUSED);
    confirm(&api, &token, "wrong horse").refused(400, REFUSED);
    confirm_as(&api, &token, "ann2").refused(400, REFUSED);
    let made = format!(
        "audit_events WHERE action = 'auth.register' AND outcome = 'success' AND actor_id = '{0}'
                        AND subject_id = '{0}' AND address = '127.0.0.1'",
        ann.id()
    );
    assert_eq!(api.database.count(&made), 1);
    assert_eq!(api.database.count("audit_events WHERE action::text LIKE 'email.%'"), 0);
    assert_eq!(api.database.count("users WHERE is_settled AND is_self_registered"), 1);
    // Who has deleted the account cannot make it again with the old link.
    api.delete_me(&ann, PASSWORD).expect(204);
    confirm(&api, &token, PASSWORD).refused(400, REFUSED);
    confirm_as(&api, &token, "ann2").refused(400, REFUSED);
    assert!(!api.log().to_lowercase().contains("ann@"), "{}", api.log());
}

#[test]
fn in_development_the_token_is_logged() {
    let api = Server::start(&[("CLOAKROOM_EMAIL_CONFIRMATION", "required")]);
    api.register("ann").expect(201);
    let line = api.logged("e-mail confirmation token");
    confirm(&api, line.split_whitespace().last().expect("a token"), PASSWORD).expect(200);
    api.sign_in("ann");
}

#[test]
fn a_link_holds_the_longest_names_of_any_writing() {
    let (smtp, api) = confirming(&[]);
    let (long, domain) = ("x".repeat(64), format!("{}.example.com", "y".repeat(60)));
    let name = "\u{1F9E5}".repeat(255);
    let mut lengths = Vec::new();
    for (username, email) in [
        ("z".repeat(50), format!("{long}@{domain}")),
        ("umlaut".to_owned(), format!("Jorg@{}.example", "b\u{fc}".repeat(20))),
        ("accent".to_owned(), format!("{}@{domain}", "\u{f6}".repeat(32))),
    ] {
        let body =
            json!({"username": username, "email": email, "password": PASSWORD, "name": name});
        api.register_with(body).expect(201);
        let mail = eventually(|| smtp.received().get(lengths.len()).cloned());
        // No line is longer than a mail server must take (RFC 5321, 4.5.3.1.6).
        let longest = mail.raw.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
        assert!(longest.is_some_and(|length| length <= 998), "{longest:?}");
        let token = token(&mail);
        lengths.push(token.len());
        confirm(&api, &token, PASSWORD).expect(200);
        api.me(api.sign_in(&username)).expect(200).has(json!({"email": email, "name": name}));
    }
    assert!(lengths.iter().all(|length| *length < 2000), "{lengths:?}");
    api.register_with(json!({"email": "a@example.com", "password": PASSWORD})).expect(201);
    let usual = token(&eventually(|| smtp.received().get(3).cloned())).len();
    assert!(usual < 350, "{usual}");
}

#[test]
fn refusals_come_in_their_order_and_a_username_that_is_taken_leaves_the_link_good() {
    let (smtp, api) = confirming(&[]);
    let send = |body: Value| api.post("/auth/confirm-email", Anonymous, body);
    let missing = [("body.token", "missing"), ("body.password", "missing")];
    send(json!({})).invalid(&missing);
    for (username, problem) in [
        (json!(1), "string_type"),
        (json!("an"), "string_too_short"),
        (json!("a b c"), "value_error"),
    ] {
        send(json!({"token": "", "password": PASSWORD, "username": username}))
            .invalid(&[("body.username", problem)]);
    }
    let begin = |username: &str, email: &str| {
        begin(&api, username, email).expect(201);
        token(&mail_to(&smtp, email, CONFIRM, 1))
    };
    let [first, second] = [begin("ann", "ann@example.com"), begin("Ann", "bob@example.com")];
    let third = begin("cyd", "cyd@example.com");
    confirm(&api, &first, PASSWORD).expect(200);
    // The password comes before the name. The hint is the same for all.
    let wrong = confirm(&api, &second, "wrong horse").refused(400, REFUSED).json();
    let hint = "Check the password. A token works once and expires after two days. If several mails came, a later one \
                may be the right one; if none does, register or ask for the address again.";
    assert_eq!(wrong["hint"], hint);
    assert_eq!(wrong, confirm(&api, "nonsense", PASSWORD).refused(400, REFUSED).json());
    assert_eq!(wrong, confirm(&api, &first, PASSWORD).refused(400, REFUSED).json());
    for _ in 0..2 {
        confirm(&api, &second, PASSWORD)
            .refused(400, "Username already exists")
            .has(json!({"reason": "USERNAME_TAKEN"}));
    }
    confirm_as(&api, &second, "ANN").refused(400, "Username already exists");
    confirm_as(&api, &second, "bob").expect(200);
    api.me(api.sign_in("bob")).expect(200).has(json!({"email": "bob@example.com"}));
    // So does an address that an account has by now.
    api.create_admin("CYD@example.com", NEW_PASSWORD);
    assert_eq!(wrong, confirm_as(&api, &third, "ann").refused(400, REFUSED).json());
    assert_eq!(wrong, confirm(&api, &third, PASSWORD).refused(400, REFUSED).json());
    // Where registration is off, only wishes of accounts can be confirmed.
    let last = begin("dan", "dan@example.com");
    let off = confirming_beside(&smtp, &api, &[("CLOAKROOM_REGISTRATION", "off")]);
    assert_eq!(wrong, confirm(&off, &last, PASSWORD).refused(400, REFUSED).json());
    let bob = off.sign_in("bob");
    off.update_me(&bob, json!({"email": "bob2@example.com"})).expect(200);
    let wish = token(&mail_to(&smtp, "bob2@example.com", CONFIRM, 1));
    confirm(&off, &wish, PASSWORD).expect(200);
    // Forms send the field that was left empty, too.
    confirm_as(&api, &last, "").expect(200);
    api.sign_in("dan");
}

#[test]
fn the_form_without_a_username_can_get_one_from_its_link_or_none() {
    let (smtp, api) = confirming(&[]);
    for (email, username) in [("ann@example.com", Some("ann")), ("bob@example.com", None)] {
        api.register_with(json!({"email": email, "password": PASSWORD})).expect(201);
        let token = token(&mail_to(&smtp, email, CONFIRM, 1));
        match username {
            Some(name) => confirm_as(&api, &token, name).expect(200),
            None => confirm(&api, &token, PASSWORD).expect(200),
        };
        api.me(api.sign_in(email)).expect(200).has(json!({ "username": username }));
    }
}

#[test]
fn a_taken_username_is_said_and_a_taken_address_is_not_but_its_owner_is_told() {
    let (smtp, api) = confirming(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    let owner = sign_up(&smtp, &api, "owner");
    let refused = begin(&api, "OWNER", "other@example.com");
    refused.refused(400, "Username already exists").has(json!({"reason": "USERNAME_TAKEN"}));
    let counted = |mailbox: &str| {
        let sql = format!(
            "SELECT coalesce(max(cardinality(queued_at)), 0) FROM mail_counts WHERE key = sha256('{mailbox}')"
        );
        api.database.value::<i32>(&sql)
    };
    assert_eq!(counted("other@example.com"), 0);
    // The answer is that of a free address, and so is what it costs the mailbox, though it belongs to a settled owner.
    let ask = |n: usize, email: &str| {
        let body =
            json!({"username": format!("knocker{n}"), "email": email, "password": NEW_PASSWORD});
        begin_from(&api, "192.0.2.1", body).expect(201)
    };
    let [known, unknown] = [ask(1, "Owner@Example.com"), ask(2, "nobody@example.com")];
    assert_eq!(known.member_names(), unknown.member_names());
    assert_eq!((counted("owner@example.com"), counted("nobody@example.com")), (2, 1));
    let text = words(&mail_to(&smtp, "owner@example.com", TAKEN, 1));
    let told = "somebody in the network 192.0.2.0/24 asked to use this e-mail address for the Cloakroom account \
                knocker1. There is an account";
    assert!(text.contains(told) && !text.contains("https"), "{text}");
    // Whom it reaches is decided when it is sent: nobody inactive, and who is not an owner any more gets the link.
    let root = admin(&api);
    let delay = |by: &str| {
        api.database.run(&format!(
            "ALTER TABLE outbox ALTER COLUMN due_at SET DEFAULT now() + interval '{by}'"
        ))
    };
    let send = || {
        api.database.run("UPDATE outbox SET due_at = now()");
        api.request_reset("nobody@example.com").expect(200);
        api.database.wait_for_empty_outbox();
    };
    delay("1 day");
    ask(3, "owner@example.com");
    api.update_user(&root, owner.id(), json!({"is_active": false})).expect(200);
    send();
    let of_owner = || smtp.received().iter().filter(|m| m.recipient == "owner@example.com").count();
    assert_eq!(of_owner(), 2);
    api.database.run("DELETE FROM mail_counts");
    ask(4, "owner@example.com");
    api.delete_user(&root, owner.id()).expect(204);
    send();
    let late = token(&mail_to(&smtp, "owner@example.com", CONFIRM, 2));
    confirm(&api, &late, NEW_PASSWORD).expect(200);
    api.login("knocker4", NEW_PASSWORD).expect(200);
}

#[test]
fn of_several_mails_to_one_mailbox_each_is_for_its_own_password_and_the_first_that_is_used_counts()
{
    let (smtp, api) = confirming(&[]);
    let begin = |username: &str, password: &str, n: usize| {
        let body =
            json!({"username": username, "email": "victim@example.com", "password": password});
        api.register_with(body).expect(201);
        token(&mail_to(&smtp, "victim@example.com", CONFIRM, n))
    };
    let of_stranger = begin("stranger", "the stranger's password", 1);
    let [lost, own] = [begin("victim", PASSWORD, 2), begin("victim", PASSWORD, 3)];
    // The mail that a stranger caused is of no use to the owner.
    confirm(&api, &of_stranger, PASSWORD).refused(400, REFUSED);
    confirm(&api, &own, "the stranger's password").refused(400, REFUSED);
    confirm(&api, &own, PASSWORD).expect(200);
    api.sign_in("victim");
    confirm(&api, &lost, PASSWORD).refused(400, REFUSED);
    confirm(&api, &of_stranger, "the stranger's password").refused(400, REFUSED);
    api.login("stranger", "the stranger's password").expect(401);
    assert_eq!(api.database.count("users"), 1);
}

/// Addresses of one key may be several mailboxes if a name is not ASCII. One of them is proven, and is written to
/// later.
#[test]
fn an_account_has_the_address_that_its_mail_went_to() {
    let (smtp, api) = confirming(&[]);
    let sent_to = |mailbox: &str, subject: &str| {
        let mails = || smtp.received().into_iter();
        eventually(|| mails().find(|it| it.recipient == mailbox && it.subject() == subject))
    };
    let umlaut = "j\u{f6}rg@xn--bcher-kva.example";
    let domain = "Ann@B\u{dc}cher.example";
    for (name, typed, stored, mailbox) in [
        // The Kelvin sign, whose lower case is a k.
        ("kim", "\u{212A}im@example.com", "kim@example.com", "kim@example.com"),
        ("umlaut", "J\u{d6}rg@b\u{fc}cher.example", umlaut, umlaut),
        ("ann", domain, domain, "Ann@xn--bcher-kva.example"),
    ] {
        let email = json!({ "email": stored });
        begin(&api, name, typed).expect(201).has(email.clone());
        confirm(&api, &token(&sent_to(mailbox, CONFIRM)), PASSWORD).expect(200);
        let user = api.sign_in(name);
        api.me(&user).expect(200).has(email.clone());
        // A spelling is confirmed neither by another one, nor by an address that was there before.
        api.update_me(&user, json!({ "email": typed })).expect(200).has(email);
        api.request_reset(typed).expect(200);
        sent_to(mailbox, "Reset your Cloakroom password");
        let wish = json!({"email": format!("new-{typed}")});
        let pending = json!({"email": stored, "pending_email": format!("new-{stored}")});
        api.update_me(&user, wish).expect(200).has(pending);
        let confirmed = token(&sent_to(&format!("new-{mailbox}"), CONFIRM));
        confirm(&api, &confirmed, PASSWORD).expect(200);
        api.me(&user).expect(200).has(json!({"email": format!("new-{stored}")}));
    }
}

#[test]
fn switching_it_on_locks_nobody_out_and_switched_off_nothing_of_it_is_there() {
    let database = Database::create();
    let api = Server::start_on(&database, &[]);
    let ann = api.sign_up("ann");
    let off = |api: &Server| {
        api.post("/auth/confirm-email", Anonymous, json!({}))
            .refused(404, "This feature is not available");
        let hint = api.login("nobody", PASSWORD).expect(401).json()["hint"].to_string();
        assert!(!hint.contains("mail"), "{hint}");
    };
    off(&api);
    drop(api);
    let smtp = SmtpServer::start(SmtpOptions::default());
    let url = smtp.url();
    let settings = [
        ("CLOAKROOM_EMAIL_CONFIRMATION", "required"),
        ("CLOAKROOM_PUBLIC_URL", "https://files.example.com"),
        ("CLOAKROOM_CONSOLE", "on"),
    ];
    let api = Server::start_on(&database, &[&settings[..], &mail_settings(&url)].concat());
    api.me(api.sign_in("ann")).expect(200).has(json!({"id": ann.id()}));
    api.register("bob").expect(201);
    let mail = mail_to(&smtp, "bob@example.com", CONFIRM, 1);
    let page = "https://files.example.com/console/confirm#token={token}";
    confirm(&api, &mail.token(page), PASSWORD).expect(200);
    let bob = api.sign_in("bob");
    // What administrators and invitations make, and addresses that administrators set, need no confirmation.
    let root = admin(&api);
    let made = json!({"email": "made@example.com", "name": "Made", "password": PASSWORD});
    api.create_user(&root, made).expect(201);
    api.sign_in("made@example.com");
    let invited = json!({"email": "guest@example.com", "name": "Guest", "invite": true});
    api.create_user(&root, invited).expect(201);
    let mail = mail_to(&smtp, "guest@example.com", "You have a Cloakroom account", 1);
    api.reset_password(&mail.token(RESET_URL), PASSWORD).expect(200);
    api.sign_in("guest@example.com");
    api.update_user(&root, bob.id(), json!({"email": "bob2@example.com"})).expect(200);
    api.sign_in("bob2@example.com");
    // A mail that waits is not sent once nothing takes its token.
    api.database.wait_for_empty_outbox();
    smtp.misbehave(SmtpStep::Greeting, Misbehaviour::Close);
    let reached = smtp.count(SmtpStep::Greeting);
    api.register("eve").expect(201);
    smtp.wait_for_step(SmtpStep::Greeting, reached + 1);
    drop(api);
    smtp.behave();
    let sent = smtp.received().len();
    database.run("UPDATE outbox SET due_at = now()");
    let api = Server::start_on(&database, &mail_settings(&url));
    off(&api);
    api.database.wait_for_empty_outbox();
    assert_eq!(smtp.received().len(), sent);
    api.register("eve").expect(201);
    api.sign_in("eve");
}

/// An administrator, made by the command.
pub fn admin(api: &Server) -> Tokens {
    api.create_admin("root@example.com", PASSWORD);
    api.sign_in("root@example.com")
}
