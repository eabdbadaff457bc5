//! What strangers can do with addresses that are not confirmed, for how long, and what happens at one moment.

use serde_json::{Value, json};

use super::confirmation::{CONFIRM, confirm, confirming, mail_to, token};
use crate::harness::*;

const REFUSED: &str = "Invalid or expired token";

fn wait(api: &Server, name: &str, email: &str, password: &str) -> Answer {
    api.register_with(json!({"username": name, "email": email, "password": password}))
}

/// Moves the end of all confirmations this many hours nearer.
fn age(api: &Server, hours: i32) {
    api.database.run(&format!(
        "UPDATE users SET confirmation_ends_at = confirmation_ends_at - interval '{hours} hours'
         WHERE confirmation_ends_at IS NOT NULL"
    ));
}

#[test]
fn of_twenty_confirmations_at_one_moment_one_succeeds_whoever_confirms() {
    let (smtp, api) = confirming(&[]);
    let email = "ann@example.com";
    let statuses = |work: &(dyn Fn(usize) -> u16 + Sync)| tally(parallel(20, work));
    wait(&api, "ann", email, PASSWORD).expect(201);
    let same = token(&mail_to(&smtp, email, CONFIRM, 1));
    let own = [
        ("CLOAKROOM_EMAIL_CONFIRMATION", "required"),
        ("CLOAKROOM_EMAIL_CONFIRMATION_URL", "https://app.example.com/confirm?{token}"),
    ];
    let beside = api.beside(&[&own[..], &mail_settings(&smtp.url())].concat());
    let servers = [&api, &beside];
    // Ten tries, of which the first that is right ends the others.
    let found = statuses(&|n| confirm(servers[n % 2], &same, PASSWORD).status);
    assert_eq!(found, [(200, 1), (400, 19)].into());
    // Twenty accounts that claim one address, each with its own token and password.
    let email = "bob@example.com";
    let password = |n: usize| format!("battery staple {n}");
    for n in 0..20 {
        wait(&api, &format!("bob{n}"), email, &password(n)).expect(201);
    }
    let first = token(&mail_to(&smtp, email, CONFIRM, 1));
    let sub = |n: usize| {
        let id = format!("SELECT id::text FROM users WHERE username = 'bob{n}'");
        api.database.value::<String>(&id)
    };
    let tokens: Vec<_> =
        (0..20).map(|n| sign(with_member(&claims(&first), "sub", json!(sub(n))))).collect();
    let found = statuses(&|n| {
        let name = format!("bob{n}");
        let body = json!({"token": tokens[n], "password": password(n), "username": name});
        servers[n % 2].post("/auth/confirm-email", Anonymous, body).status
    });
    assert_eq!(found, [(200, 1), (400, 19)].into());
    wait_until(|| api.database.count("users WHERE email = 'bob@example.com'") == 1);
    assert_eq!(api.database.count("users WHERE confirmation_ends_at IS NOT NULL"), 0);
}

#[test]
fn a_confirmation_beside_a_change_of_the_address_gives_one_of_the_two_addresses_that_were_asked_for()
 {
    let (smtp, api) = confirming(&[]);
    api.create_admin("root@example.com", PASSWORD);
    let ann = api.sign_in("root@example.com");
    for n in 0..10 {
        let [first, second] = [format!("first{n}@example.com"), format!("second{n}@example.com")];
        let before = api.me(&ann).json()["email"].clone();
        api.database.run("DELETE FROM mail_counts");
        api.update_me(&ann, json!({ "email": first })).expect(200);
        let token = token(&mail_to(&smtp, &first, CONFIRM, 1));
        let statuses = parallel(2, |i| match i {
            0 => confirm(&api, &token, PASSWORD).status,
            _ => api.update_me(&ann, json!({ "email": second })).expect(200).status,
        });
        let now = api.me(&ann).expect(200).json();
        // Confirmed first, or not at all; the second wish stays in either case.
        assert_eq!(now["pending_email"], second, "{statuses:?}");
        assert_eq!(now["email"], if statuses[0] == 200 { json!(first) } else { before });
        api.update_me(&ann, json!({"email": now["email"]})).expect(200);
    }
}

#[test]
fn a_token_takes_ten_tries_and_another_mail_ten_more() {
    let (smtp, api) = confirming(&[]);
    wait(&api, "ann", "ann@example.com", PASSWORD).expect(201);
    let first = token(&mail_to(&smtp, "ann@example.com", CONFIRM, 1));
    for _ in 0..10 {
        confirm(&api, &first, "wrong horse").refused(400, REFUSED);
    }
    confirm(&api, &first, PASSWORD).refused(400, REFUSED);
    // None is made while an earlier one is being sent.
    api.database.wait_for_empty_outbox();
    let ask = |email: &str| {
        let body = json!({ "email": email });
        api.post("/auth/request-email-confirmation", Anonymous, body).expect(200).json()
    };
    let answers = ["nobody@example.com", "ANN@example.com"].map(ask);
    assert_eq!(answers[0], answers[1]);
    let second = token(&mail_to(&smtp, "ann@example.com", CONFIRM, 2));
    confirm(&api, &second, PASSWORD).expect(200);
    // No mail to an address that nobody asks for, or that is confirmed.
    ask("ann@example.com");
    wait_until(|| api.database.count("password_reset_requests") == 0);
    api.database.wait_for_empty_outbox();
    assert_eq!(smtp.received().len(), 2);
}

#[test]
fn strangers_do_not_use_up_what_lets_an_owner_confirm() {
    let (smtp, api) = confirming(&[]);
    let mails = |address: &str| {
        api.database.wait_for_empty_outbox();
        let mut mails = smtp.received();
        mails.retain(|mail| mail.recipient == address && mail.subject() == CONFIRM);
        mails
    };
    // Other forms of the address get half of the mails of a mailbox.
    for n in 0..12 {
        let form = format!("ann+{n}@example.com");
        wait(&api, &format!("stranger{n}"), &form, "a stranger's own").expect(201);
    }
    wait(&api, "ann", "ann@example.com", PASSWORD).expect(201);
    confirm(&api, &token(&mails("ann@example.com")[0]), PASSWORD).expect(200);
    assert_eq!(smtp.received().len(), 7);
    // Mails of wishes that were taken back help the owner all the same.
    let strangers = [1, 2, 3].map(|n| {
        let email = format!("ann+{n}@example.com");
        confirm(&api, &token(&mails(&email)[0]), "a stranger's own").expect(200);
        api.login(&email, "a stranger's own").expect(200).tokens()
    });
    api.database.run("DELETE FROM mail_counts");
    for stranger in &strangers {
        for _ in 0..5 {
            api.update_me(stranger, json!({"email": "bob@example.com"})).expect(200);
            api.database.wait_for_empty_outbox();
            let own = json!({"email": stranger.user["email"]});
            api.update_me(stranger, own).expect(200).has(json!({"pending_email": null}));
        }
    }
    let sent = mails("bob@example.com");
    assert_eq!(sent.len(), 12);
    wait(&api, "bob", "bob@example.com", PASSWORD).expect(201);
    assert_eq!(mails("bob@example.com").len(), 12);
    confirm(&api, &token(&sent[0]), PASSWORD).expect(200);
    // A wish that is repeated keeps its place, and a token its tries.
    let wish = || api.update_me(&strangers[0], json!({"email": "cy@example.com"})).expect(200);
    let ends = "SELECT confirmation_ends_at::text FROM users WHERE username = 'stranger1'";
    api.database.run("DELETE FROM mail_counts");
    wish();
    let (of_cy, end) = (token(&mails("cy@example.com")[0]), api.database.value::<String>(ends));
    for _ in 0..10 {
        confirm(&api, &of_cy, "wrong horse").refused(400, REFUSED);
    }
    wish();
    assert_eq!(api.database.value::<String>(ends), end);
    confirm(&api, &of_cy, "a stranger's own").refused(400, REFUSED);
}

#[test]
fn a_mail_confirms_the_mailbox_that_it_went_to() {
    let (smtp, api) = confirming(&[]);
    // The Kelvin sign, whose lower case is a k.
    wait(&api, "stranger", "\u{212A}im@example.com", "a stranger's own").expect(201);
    mail_to(&smtp, "kim@example.com", CONFIRM, 1);
    wait(&api, "umlaut", "J\u{d6}rg@b\u{fc}cher.example", PASSWORD).expect(201);
    let mail = mail_to(&smtp, "j\u{f6}rg@xn--bcher-kva.example", CONFIRM, 1);
    confirm(&api, &token(&mail), PASSWORD).expect(200);
    let body = json!({"email": "J\u{d6}rg@b\u{fc}cher.example"});
    api.me(api.sign_in("umlaut")).expect(200).has(body);
}

#[test]
fn wrong_passwords_before_the_confirmation_do_not_keep_the_owner_out_after_it() {
    let settings = [
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_AUTH", "10000"),
        ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1"),
    ];
    let (smtp, api) = confirming(&settings);
    let from = |address: &str, path: &str, body: Value| {
        let request = api.request("POST", path).header("X-Forwarded-For", address);
        request.json(body).send()
    };
    let own = json!({"email": "ann@example.com", "password": PASSWORD});
    from("192.0.2.1", "/auth/register", own.clone()).expect(201);
    let token = token(&mail_to(&smtp, "ann@example.com", CONFIRM, 1));
    let wrong = with_member(&own, "password", json!("wrong horse"));
    for _ in 0..100 {
        from("198.51.100.1", "/auth/login", wrong.clone()).expect(401);
    }
    from("198.51.100.1", "/auth/login", own.clone()).expect(429);
    let body = with_member(&own, "token", json!(token));
    from("192.0.2.1", "/auth/confirm-email", body).expect(200);
    from("192.0.2.1", "/auth/login", own).expect(200);
}

#[test]
fn an_account_that_waits_is_no_administrator_who_is_left_and_wishes_do_not_fill_the_audit_log() {
    let (_smtp, api) = confirming(&[]);
    api.create_admin("root@example.com", PASSWORD);
    let root = api.sign_in("root@example.com");
    let ann = wait(&api, "ann", "ann@example.com", PASSWORD).expect(201).id();
    api.update_user(&root, &ann, json!({"role": "admin"})).expect(200);
    api.delete_user(&root, root.id()).refused(409, "At least one active admin is required");
    api.database.wait_unless_hour_lasts();
    for n in 0..150 {
        let body = json!({"email": format!("root{n}@example.com")});
        api.update_me(&root, body).expect(200);
    }
    assert_eq!(api.database.count("audit_events WHERE action = 'email.change_request'"), 100);
}

#[test]
fn a_wish_beside_requests_for_its_mail_and_create_admin_beside_confirmations_do_not_deadlock() {
    let (_smtp, api) = confirming(&[]);
    api.create_admin("root@example.com", PASSWORD);
    let root = api.sign_in("root@example.com");
    for round in 0..8 {
        let wish = json!({"email": "new@example.com"});
        let statuses = parallel(8, |n| match n % 2 {
            0 => api.post("/auth/request-email-confirmation", Anonymous, wish.clone()).status,
            _ => api.update_me(&root, wish.clone()).status,
        });
        assert_eq!(tally(statuses), [(200, 8)].into());
        let email = format!("boss{round}@example.com");
        api.database.run(&format!(
            "DELETE FROM mail_counts;
             INSERT INTO users (id, username, email, password_hash, email_confirmed, email_to_confirm,
                                confirmation_ends_at)
                 SELECT gen_random_uuid(), 'boss{round}_' || n, '{email}', password_hash, false, '{email}',
                        now() + n * interval '1 minute'
                 FROM generate_series(1, 500) n, users WHERE email = 'root@example.com'"
        ));
        let claims = json!({"sub": UNKNOWN_ID, "jti": uuid(round), "type": "email_confirmation", "email": email,
            "exp": FAR_FUTURE});
        let body = json!({"token": sign(claims), "password": PASSWORD, "username": format!("boss{round}_7")});
        parallel(2, |n| match n {
            0 => api.create_admin(&email, NEW_PASSWORD),
            _ => {
                let status = api.post("/auth/confirm-email", Anonymous, body.clone()).status;
                assert!([200, 400].contains(&status), "{status}");
            }
        });
    }
    assert!(!api.log().contains("40P01"), "{}", api.log());
}

#[test]
fn who_does_not_confirm_within_two_days_is_gone_and_the_name_is_free() {
    let (smtp, api) = confirming(&[]);
    wait(&api, "ann", "ann@example.com", PASSWORD).expect(201);
    let of_ann = token(&mail_to(&smtp, "ann@example.com", CONFIRM, 1));
    wait(&api, "bob", "bob@example.com", PASSWORD).expect(201);
    confirm(&api, &token(&mail_to(&smtp, "bob@example.com", CONFIRM, 1)), PASSWORD).expect(200);
    let bob = api.sign_in("bob");
    api.update_me(&bob, json!({"email": "bob2@example.com"})).expect(200);
    let of_bob = token(&mail_to(&smtp, "bob2@example.com", CONFIRM, 1));
    age(&api, 47);
    wait(&api, "eve", "eve@example.com", PASSWORD).expect(201);
    api.login("ann", PASSWORD).expect(403);
    wait(&api, "ann", "other@example.com", PASSWORD).refused(400, "Username already exists");
    age(&api, 1);
    // The time counts, not when the rows go.
    confirm(&api, &of_ann, PASSWORD).refused(400, REFUSED);
    confirm(&api, &of_bob, PASSWORD).refused(400, REFUSED);
    wait_until(|| api.database.count("users WHERE username = 'ann'") == 0);
    wait(&api, "ann", "ann@example.com", PASSWORD).expect(201);
    api.login("eve", PASSWORD).expect(403);
    wait_until(|| api.me(&bob).expect(200).json()["pending_email"].is_null());
    api.sign_in("bob");
    let totals = "SELECT sum(accounts)::bigint FROM account_totals";
    assert_eq!(api.database.value::<i64>(totals), 3, "ann, bob and eve are counted");
}

#[test]
fn a_thousand_accounts_that_wait_cause_twelve_mails_and_are_gone_after_two_days() {
    let (smtp, api) = confirming(&[]);
    wait(&api, "owner", "victim@example.com", PASSWORD).expect(201);
    confirm(&api, &token(&mail_to(&smtp, "victim@example.com", CONFIRM, 1)), PASSWORD).expect(200);
    let begin = smtp.received().len();
    let variant = |n: usize| match n % 3 {
        0 => "VICTIM@example.com".to_owned(),
        1 => "\"victim\"@example.com".to_owned(),
        _ => format!("victim+{n}@example.com"),
    };
    tally(parallel(20, |part| {
        for n in part * 50..part * 50 + 50 {
            wait(&api, &format!("junk{n}"), &variant(n), PASSWORD).expect(201);
        }
        201
    }));
    for _ in 0..3 {
        let body = json!({"email": "victim@example.com"});
        api.post("/auth/request-email-confirmation", Anonymous, body).expect(200);
    }
    wait_until(|| api.database.count("password_reset_requests") == 0);
    api.database.wait_for_empty_outbox();
    // Twelve a day, the owner's own one included, whatever the spelling.
    assert_eq!(smtp.received().len() - begin, 11);
    // The owner goes on, and gets all mail that a settled account gets.
    let owner = api.login("victim@example.com", PASSWORD).expect(200).tokens();
    api.change_password(&owner, PASSWORD, NEW_PASSWORD).expect(200);
    mail_to(&smtp, "victim@example.com", "Your Cloakroom password was changed", 1);
    assert_eq!(api.database.count("users WHERE NOT email_confirmed"), 1000);
    age(&api, 48);
    wait_until(|| api.database.count("users") == 1);
    assert_eq!(api.database.count("listed_users"), 1);
    assert_eq!(api.database.value::<i64>("SELECT sum(accounts)::bigint FROM account_totals"), 1);
}

#[test]
fn at_most_ten_thousand_accounts_wait_and_nobody_who_is_confirmed_minds() {
    let (smtp, api) = confirming(&[]);
    wait(&api, "ann", "ann@example.com", PASSWORD).expect(201);
    confirm(&api, &token(&mail_to(&smtp, "ann@example.com", CONFIRM, 1)), PASSWORD).expect(200);
    api.database.run(
        "INSERT INTO users (id, username, email, password_hash, email_confirmed, email_to_confirm, confirmation_ends_at)
             SELECT gen_random_uuid(), 'u' || n, 'u@example.com', '-', false, 'u@example.com',
                    now() + interval '1 hour'
             FROM generate_series(1, 9990) n",
    );
    let statuses = parallel(30, |n| {
        wait(&api, &format!("late{n}"), &format!("late{n}@example.com"), PASSWORD).status
    });
    assert_eq!(tally(statuses), [(201, 10), (429, 20)].into());
    let answer = wait(&api, "one", "one@example.com", PASSWORD).expect(429);
    assert_eq!(answer.header("Retry-After"), "600");
    let ann = api.sign_in("ann");
    api.update_me(&ann, json!({"email": "ann2@example.com"})).expect(200);
    api.create_admin("root@example.com", PASSWORD);
    let root = api.sign_in("root@example.com");
    let made = json!({"email": "u@example.com", "name": "U", "password": PASSWORD});
    api.create_user(&root, made).expect(201);
    api.login("u@example.com", PASSWORD).expect(200);
    // Ten thousand who wait for one address do not hold up the confirmation of another, nor their own end.
    age(&api, 1);
    wait_until(|| api.database.count("users WHERE username LIKE 'u%'") == 0);
    wait(&api, "one", "one@example.com", PASSWORD).expect(201);
}
