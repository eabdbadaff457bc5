//! E-mail addresses that count only once their owner has confirmed them.

use serde_json::{Value, json};

use crate::harness::*;

const PAGE: &str = "https://app.example.com/confirm?{token}";
const REFUSED: &str = "Invalid or expired token";
const NOT_CONFIRMED: &str = "E-mail address is not confirmed";

/// A service that asks for confirmations, and its mail server.
pub fn confirming(settings: &[(&str, &str)]) -> (SmtpServer, Server) {
    let own =
        [("CLOAKROOM_EMAIL_CONFIRMATION", "required"), ("CLOAKROOM_EMAIL_CONFIRMATION_URL", PAGE)];
    service_with_mail(&[&own, settings].concat())
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
const TAKEN: &str = "You have a Cloakroom account already";

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

/// Registers an account and confirms its address.
fn sign_up(smtp: &SmtpServer, api: &Server, name: &str) -> Tokens {
    api.register(name).expect(201);
    let mail = mail_to(smtp, &format!("{name}@example.com"), CONFIRM, 1);
    confirm(api, &token(&mail), PASSWORD).expect(200);
    api.sign_in(name)
}

#[test]
fn an_account_waits_until_its_owner_has_confirmed_the_address_with_the_password() {
    let (smtp, api) = confirming(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    let body = json!({"username": "ann", "email": "Ann@Example.com", "password": PASSWORD});
    let request = api.request("POST", "/auth/register").header("X-Forwarded-For", "192.0.2.77");
    let shown = json!({"username": "ann", "email_confirmed": false, "pending_email": null});
    let answer = request.json(body).send().expect(201).has(shown);
    assert!(answer.json().get("access_token").is_none());
    // The form without a username answers alike.
    let other = json!({"email": "bo@example.com", "password": PASSWORD});
    let other = api.register_with(other).expect(201);
    assert_eq!(other.member_names(), answer.member_names());

    let mail = mail_to(&smtp, "Ann@Example.com", CONFIRM, 1);
    let text = words(&mail);
    let asked = "UTC, somebody in the network 192.0.2.0/24 asked for this message. It is about the Cloakroom \
                 account ann,";
    assert!(text.contains(asked) && text.contains("within 2 days"), "{text}");
    let without = words(&mail_to(&smtp, "bo@example.com", CONFIRM, 1));
    assert!(without.contains("the Cloakroom account without a username, which"), "{without}");

    for name in ["ann", "ANN@example.com"] {
        api.login(name, PASSWORD)
            .refused(403, NOT_CONFIRMED)
            .has(json!({"reason": "EMAIL_NOT_CONFIRMED"}));
        api.login(name, "wrong horse").refused(401, "Invalid username or password");
    }
    let token = token(&mail);
    confirm(&api, &token, "wrong horse").refused(400, REFUSED);
    let wrong = json!({"token": token, "password": PASSWORD, "username": "bob"});
    api.post("/auth/confirm-email", Anonymous, wrong).refused(400, REFUSED);
    let answer = confirm(&api, &token, PASSWORD).expect(200);
    assert_eq!(answer.json(), json!({"message": "E-mail address has been confirmed"}));
    api.sign_in("Ann@example.com");
    let ann = api.sign_in("ann");
    api.me(&ann).expect(200).has(json!({"email_confirmed": true, "pending_email": null}));
    confirm(&api, &token, PASSWORD).refused(400, REFUSED);

    let events =
        "SELECT string_agg(action::text || ' ' || outcome, ',' ORDER BY at, id) FROM audit_events
                  WHERE action::text LIKE 'email.%'";
    let expected =
        "email.confirm failure,email.confirm failure,email.confirm success,email.confirm failure";
    wait_until(|| api.database.value::<String>(events) == expected);
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
fn what_is_sent_is_checked_before_the_token_and_tokens_for_another_purpose_are_refused() {
    let (smtp, api) = confirming(&[]);
    let ann = sign_up(&smtp, &api, "ann");
    api.register("bob").expect(201);
    let good = token(&mail_to(&smtp, "bob@example.com", CONFIRM, 1));
    let claims = claims(&good);
    assert_eq!(claims["email"], "bob@example.com");
    let with = |name: &str, value| sign(with_member(&claims, name, value));
    for refused in [
        "nonsense",
        &ann.access,
        &(good.clone() + "x"),
        &with("type", json!("password_reset")),
        &with("exp", json!(now() - 1)),
        &with("email", json!("ann@example.com")),
        &with("email", json!(null)),
        &with("jti", json!(null)),
    ] {
        confirm(&api, refused, PASSWORD).case(refused).refused(400, REFUSED);
    }
    api.reset_password(&good, NEW_PASSWORD).refused(400, REFUSED);
    let send = |body: Value| api.post("/auth/confirm-email", Anonymous, body);
    let missing = [("body.token", "missing"), ("body.password", "missing")];
    send(json!({})).invalid(&missing);
    send(json!({"token": good, "password": PASSWORD, "username": 1}))
        .invalid(&[("body.username", "string_type")]);
    let ask = |body: Value| api.post("/auth/request-email-confirmation", Anonymous, body);
    ask(json!({})).invalid(&[("body.email", "missing")]);
    ask(json!({"email": "nonsense"})).expect(422);
    // A form sends the fields that were left empty, too.
    send(json!({"token": good, "password": PASSWORD, "username": ""})).expect(200);
}

#[test]
fn of_several_who_wait_for_an_address_the_password_says_which_gets_it_and_the_others_go() {
    let (smtp, api) = confirming(&[]);
    let email = "victim@example.com";
    let wait = |name: &str, password: &str| {
        let body = json!({"username": name, "email": email, "password": password});
        api.register_with(body).expect(201)
    };
    wait("stranger", "the stranger's password");
    let first = token(&mail_to(&smtp, email, CONFIRM, 1));
    // An account that has another address, and asks for this one.
    let mover = sign_up(&smtp, &api, "mover");
    api.update_me(&mover, json!({ "email": email })).expect(200);
    wait("victim", PASSWORD);
    wait("later", "another stranger's");
    // The owner opens the link of the mail that the stranger has caused.
    confirm(&api, &first, PASSWORD).expect(200);
    api.sign_in("victim");
    api.me(api.sign_in("mover")).expect(200).has(json!({"email": "mover@example.com"}));
    wait_until(|| {
        api.database.count("users WHERE NOT email_confirmed OR pending_email IS NOT NULL") == 0
    });
    api.login("stranger", "the stranger's password").refused(401, "Invalid username or password");
    confirm(&api, &first, "the stranger's password").refused(400, REFUSED);
    // The names are free again.
    api.register("stranger").expect(201);
    // Who waits for the address of another account is told nothing, and the owner is.
    wait("knocker", "a knocker's password");
    let mail = mail_to(&smtp, email, TAKEN, 1);
    let text = words(&mail);
    assert!(
        text.contains("account knocker. There is an account") && !text.contains("https"),
        "{text}"
    );
    api.login("knocker", "a knocker's password").refused(403, NOT_CONFIRMED);
    api.login(email, "a knocker's password").refused(401, "Invalid username or password");
    api.login(email, PASSWORD).expect(200);
    let forged = json!({"sub": api.database.value::<String>("SELECT id::text FROM users WHERE username = 'knocker'"),
        "jti": UNKNOWN_ID, "type": "email_confirmation", "email": email, "exp": now() + 600, "iat": now()});
    confirm(&api, &sign(forged), "a knocker's password").refused(400, REFUSED);
}

#[test]
fn without_a_username_the_eight_newest_are_tried_and_of_two_with_one_password_the_newest() {
    let (smtp, api) = confirming(&[]);
    let wait = |n: usize, password: &str| {
        let name = format!("user{n}");
        let body = json!({"username": name, "email": "ann@example.com", "password": password});
        api.register_with(body).expect(201);
    };
    wait(0, PASSWORD);
    let own = token(&mail_to(&smtp, "ann@example.com", CONFIRM, 1));
    (1..9).for_each(|n| wait(n, &format!("battery staple {}", n / 2)));
    let other = with_member(&claims(&own), "sub", json!(UNKNOWN_ID));
    let other = with_member(&other, "jti", json!(UNKNOWN_ID));
    confirm(&api, &sign(other), PASSWORD).refused(400, REFUSED);
    // Of the two with this one, the later.
    confirm(&api, &own, "battery staple 1").expect(200);
    api.login("user3", "battery staple 1").expect(200);
    // The account of the mail is one of them, however many are newer.
    let (smtp, api) = confirming(&[]);
    let wait = |body: Value| api.register_with(body).expect(201);
    wait(json!({"email": "ann@example.com", "password": PASSWORD}));
    let own = token(&mail_to(&smtp, "ann@example.com", CONFIRM, 1));
    for n in 0..8 {
        wait(json!({"email": "ann@example.com", "password": format!("battery staple {n}")}));
    }
    confirm(&api, &own, PASSWORD).expect(200);
    api.sign_in("ann@example.com");
    let (smtp, api) = confirming(&[]);
    let wait = |name: &str| {
        let body = json!({"username": name, "email": "ann@example.com", "password": PASSWORD});
        api.register_with(body).expect(201);
    };
    wait("one");
    wait("two");
    let token = token(&mail_to(&smtp, "ann@example.com", CONFIRM, 2));
    let body = json!({"token": token, "password": PASSWORD, "username": "ONE"});
    api.post("/auth/confirm-email", Anonymous, body).expect(200);
    api.sign_in("one");
}

#[test]
fn another_address_of_ones_own_counts_once_it_is_confirmed_and_the_old_one_is_told() {
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
        let shown = json!({"email": "ann@example.com", "email_confirmed": true, "pending_email": email, "name": "Ann"});
        change(email).has(shown);
        mail_to(&smtp, email, subject, 1);
    }
    let requested = "Your Cloakroom account is about to change its e-mail address";
    mail_to(&smtp, "ann@example.com", requested, 2);
    let first = token(&mail_to(&smtp, "New@Example.com", CONFIRM, 1));
    // The present one takes it back, and needs no password.
    api.update_me(&ann, json!({"email": "ann@example.com"}))
        .expect(200)
        .has(json!({"pending_email": null}));
    confirm(&api, &first, PASSWORD).refused(400, REFUSED);
    change("New@Example.com");
    api.login("new@example.com", PASSWORD).refused(401, "Invalid username or password");
    // A token proves one mailbox only.
    change("other@example.com");
    confirm(&api, &first, PASSWORD).refused(400, REFUSED);
    change("New@Example.com");
    let of_bob = json!({"token": first, "password": PASSWORD, "username": "bob"});
    api.post("/auth/confirm-email", Anonymous, of_bob).refused(400, REFUSED);
    confirm(&api, &first, PASSWORD).expect(200);
    api.me(&ann).expect(200).has(json!({"email": "New@Example.com", "pending_email": null}));
    api.login("new@example.com", PASSWORD).expect(200);
    mail_to(
        &smtp,
        "ann@example.com",
        "The e-mail address of your Cloakroom account was changed",
        1,
    );
    api.reset_password(&reset, NEW_PASSWORD).refused(400, REFUSED);
    let events = "SELECT string_agg(action::text, ',' ORDER BY at, action) FROM audit_events
                  WHERE action::text LIKE 'email.%' AND outcome = 'success' AND actor_id = (
                      SELECT id FROM users WHERE username = 'ann')";
    let wish = "email.change_request,";
    let expected = format!("email.confirm,{}email.confirm,email.change", wish.repeat(5));
    assert_eq!(api.database.value::<String>(events), expected);
    // The address in another spelling is the same one.
    let answer = change("NEW@example.com");
    answer.has(json!({"email": "NEW@example.com", "pending_email": null}));
    api.post("/users/me/delete", &bob, json!({"current_password": PASSWORD})).expect(204);
    // Five mails a day for one account.
    change("bob@example.com").has(json!({"pending_email": "bob@example.com"}));
    api.database.run("DELETE FROM mail_counts");
    change("bob@example.com");
    let second = token(&mail_to(&smtp, "bob@example.com", CONFIRM, 2));
    api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(200);
    confirm(&api, &second, PASSWORD).refused(400, REFUSED);
    confirm(&api, &second, NEW_PASSWORD).expect(200);
}

#[test]
fn what_administrators_set_and_used_links_are_confirmed() {
    let (smtp, api) = confirming(&[]);
    api.create_admin("root@example.com", PASSWORD);
    let root = api.sign_in("root@example.com");
    let made = json!({"email": "made@example.com", "name": "Made", "password": PASSWORD});
    api.create_user(&root, made).expect(201).has(json!({"email_confirmed": true}));
    api.sign_in("made@example.com");
    let invited = json!({"email": "guest@example.com", "name": "Guest", "invite": true});
    let invited = api.create_user(&root, invited).expect(201).id();
    let mail = mail_to(&smtp, "guest@example.com", "You have a Cloakroom account", 1);
    api.reset_password(&mail.token(RESET_URL), PASSWORD).expect(200);
    api.show_user(&root, &invited).expect(200).has(json!({"email_confirmed": true}));
    // By hand.
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| api.register(name).expect(201).id());
    api.show_user(&root, &ann).expect(200).has(json!({"email_confirmed": false}));
    // What was read can be written back, in another spelling too, and confirms nothing.
    let shown = api.show_user(&root, &ann).expect(200).json();
    api.update_user(&root, &ann, with_member(&shown, "email", json!("ANN@example.com")))
        .expect(200)
        .has(json!({"email": "ANN@example.com", "email_confirmed": false}));
    api.update_user(&root, &ann, json!({"email_confirmed": true}))
        .expect(200)
        .has(json!({"email_confirmed": true}));
    let ann = api.sign_in("ann");
    api.update_user(&root, ann.id(), json!({"email": "ann@example.com"})).expect(200);
    let confirmed = "audit_events WHERE action = 'email.confirm' AND actor_id = (
                         SELECT id FROM users WHERE email = 'root@example.com')";
    assert_eq!(api.database.count(confirmed), 1);
    // Neither that nor another spelling takes back a wish, and another address does.
    api.update_me(&ann, json!({"email": "ann2@example.com"})).expect(200);
    api.update_user(&root, ann.id(), json!({"email_confirmed": true}))
        .expect(200)
        .has(json!({"email": "ann@example.com", "pending_email": "ann2@example.com"}));
    api.update_user(&root, ann.id(), json!({"email": "Ann@example.com"}))
        .expect(200)
        .has(json!({"email": "Ann@example.com", "pending_email": "ann2@example.com"}));
    api.update_user(&root, ann.id(), json!({"email": "ann3@example.com"}))
        .expect(200)
        .has(json!({"email": "ann3@example.com", "pending_email": null}));
    api.update_user(&root, &bob, json!({"email": "bob2@example.com"}))
        .expect(200)
        .has(json!({"email_confirmed": true}));
    // One that waits for an address which another account has stays as it is.
    api.register_with(
        json!({"username": "late", "email": "bob2@example.com", "password": PASSWORD}),
    )
    .expect(201);
    let late = api.database.value::<String>("SELECT id::text FROM users WHERE username = 'late'");
    api.update_user(&root, &late, json!({"email_confirmed": true}))
        .refused(409, "Email already exists");
    api.update_user(&root, &eve, json!({"is_active": false})).expect(200);
    api.login("eve", PASSWORD).refused(403, "Inactive or deleted user.");
    confirm(&api, &token(&mail_to(&smtp, "eve@example.com", CONFIRM, 1)), PASSWORD)
        .refused(400, REFUSED);
    // A reset goes to the newest that waits, and confirms it.
    let wait = |name: &str| {
        let body = json!({"username": name, "email": "sam@example.com", "password": PASSWORD});
        api.register_with(body).expect(201)
    };
    wait("sam1");
    wait("sam2");
    let reset = api.reset_token("sam@example.com");
    let confirmation = token(&mail_to(&smtp, "sam@example.com", CONFIRM, 2));
    api.reset_password(&reset, NEW_PASSWORD).expect(200);
    api.login("sam2", NEW_PASSWORD).expect(200);
    let by_reset = "audit_events WHERE action = 'email.confirm' AND actor_id = (
                        SELECT id FROM users WHERE username = 'sam2')";
    assert_eq!(api.database.count(by_reset), 1);
    confirm(&api, &confirmation, PASSWORD).refused(400, REFUSED);
    wait_until(|| api.database.count("users WHERE username = 'sam1'") == 0);
    // A command lets one in who waits, and whose name is wanted.
    wait("boss");
    api.register_with(
        json!({"username": "chief", "email": "chief@example.com", "password": PASSWORD}),
    )
    .expect(201);
    let password = [("CLOAKROOM_ADMIN_PASSWORD", NEW_PASSWORD)];
    let arguments = ["create-admin", "--email", "Chief@example.com", "--username", "chief"];
    run(&api.database.url, &arguments, &password).exits(0);
    assert_eq!(api.login("chief", NEW_PASSWORD).expect(200).tokens().user["role"], "admin");
    assert_eq!(api.database.count("users WHERE username IN ('chief', 'boss')"), 2);
}

#[test]
fn switching_it_on_locks_nobody_out_and_without_it_nothing_of_it_is_there() {
    let database = Database::create();
    let api = Server::start_on(&database, &[]);
    let ann = api.sign_up("ann");
    let absent = json!({"email_confirmed": null, "pending_email": null});
    api.me(&ann).expect(200).has(absent.clone());
    assert_eq!(
        api.login("ann", PASSWORD).expect(200).json()["user"]["email_confirmed"],
        json!(null)
    );
    let off = |api: &Server| {
        for path in ["/auth/confirm-email", "/auth/request-email-confirmation"] {
            api.post(path, Anonymous, json!({})).refused(404, "This feature is not available");
        }
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
    api.me(api.sign_in("ann")).expect(200).has(json!({"email_confirmed": true}));
    api.register("bob").expect(201);
    let mail = mail_to(&smtp, "bob@example.com", CONFIRM, 1);
    let page = "https://files.example.com/console/confirm#token={token}";
    confirm(&api, &mail.token(page), PASSWORD).expect(200);
    let bob = api.sign_in("bob");
    api.update_me(&bob, json!({"email": "victim@example.com"})).expect(200);
    api.database.wait_for_empty_outbox();
    smtp.misbehave(SmtpStep::Greeting, Misbehaviour::Close);
    let reached = smtp.count(SmtpStep::Greeting);
    api.register("eve").expect(201);
    smtp.wait_for_step(SmtpStep::Greeting, reached + 1);
    drop(api);
    // Whoever waits then still does, and an administrator can help. No mail offers what is not there.
    smtp.behave();
    let sent = smtp.received().len();
    database.run("UPDATE outbox SET due_at = now()");
    let api = Server::start_on(&database, &mail_settings(&url));
    off(&api);
    api.database.wait_for_empty_outbox();
    assert_eq!(smtp.received().len(), sent);
    // An address that was only asked for is not known to be the account's own.
    let bob = api.sign_in("bob");
    api.update_me(&bob, json!({"email": "victim@example.com"})).expect(200);
    let unsettled = "users WHERE username = 'bob' AND email_changed_at > now() - interval '1 hour'
                     AND pending_email IS NULL AND email_to_confirm IS NULL AND confirmation_ends_at IS NULL";
    assert_eq!(database.count(unsettled), 1);
    api.login("eve", PASSWORD).refused(403, NOT_CONFIRMED);
    let root = api.sign_up_admin("root");
    let eve = api.database.value::<String>("SELECT id::text FROM users WHERE username = 'eve'");
    api.update_user(&root, &eve, json!({"email_confirmed": true})).expect(200).has(absent);
    api.sign_in("eve");
    api.sign_in("bob");
}
