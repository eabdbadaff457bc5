//! How much mail strangers can cause: a mailbox gets little from accounts that are not settled, and all mail of its
//! owner's account once that is settled.

use crate::harness::*;

const BEHIND_PROXY: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1");

/// Sends a request of a client in the network with this number.
fn send(api: &Server, network: usize, path: &str, body: Value) -> Answer {
    let client = format!("192.0.{network}.1");
    api.request("POST", path).header("X-Forwarded-For", &client).json(body).send()
}

fn sign_in(api: &Server, network: usize, name: &str, password: &str) -> Tokens {
    let body = json!({"username": name, "password": password});
    send(api, network, "/auth/login", body).expect(200).tokens()
}

/// Registers an account with this username and address and signs it in.
fn register(api: &Server, network: usize, name: &str, email: &str) -> Tokens {
    let body = json!({"username": name, "email": email, "password": PASSWORD});
    send(api, network, "/auth/register", body).expect(201);
    sign_in(api, network, name, PASSWORD)
}

/// Makes a mailbox one that has got all its mail of the day.
fn fill(api: &Server, mailbox: &str) {
    api.database.run(&format!(
        "INSERT INTO mail_counts
         VALUES (sha256('{mailbox}'), array_fill(now(), ARRAY[12]), array_fill(NULL::cidr, ARRAY[12]))
         ON CONFLICT (key) DO UPDATE SET queued_at = excluded.queued_at"
    ));
}

/// The addresses to which mail was sent, in the order of the mails.
fn recipients(smtp: &SmtpServer) -> Vec<String> {
    smtp.received().into_iter().map(|mail| mail.recipient).collect()
}

/// Requests a reset and waits until it was processed.
fn request_reset(api: &Server, email: &str) {
    api.request_reset(email).expect(200);
    wait_until(|| api.database.count("password_reset_requests") == 0);
}

#[test]
fn a_mailbox_gets_twelve_mails_a_day_from_accounts_that_are_not_settled_and_all_of_its_owner() {
    let (smtp, api) = service_with_mail(&[BEHIND_PROXY]);
    register(&api, 0, "owner", "Victim@example.com");
    api.database.run("UPDATE users SET created_at = now() - interval '1 day'");
    // All variants of one mailbox, with resets, and notices of each kind.
    let name = "You have won! Visit http://evil.example/prize";
    for n in 0..11 {
        let email = match n {
            0 => "vICTIM+@example.com".to_owned(),
            1 => "\"victim\"@example.com".to_owned(),
            _ => format!("victim+{n}+x@EXAMPLE.com"),
        };
        let user = register(&api, n, &format!("user{n}"), &email);
        api.update_me(&user, json!({ "name": name })).expect(200);
        send(&api, n, "/auth/request-password-reset", json!({ "email": email })).expect(200);
        wait_until(|| api.database.count("password_reset_requests") == 0);
        if has_extras() {
            api.new_token(&user, true);
        }
        api.change_password(&user, PASSWORD, NEW_PASSWORD).expect(200);
        let user = sign_in(&api, n, &format!("user{n}"), NEW_PASSWORD);
        for email in [&format!("gone{n}@example.net"), &email] {
            api.update_me(&user, json!({ "email": email })).expect(200);
        }
    }
    // An account that is settled still gets its mail, and however much of it does not count.
    let owner = api.sign_in("owner");
    api.change_password(&owner, PASSWORD, NEW_PASSWORD).expect(200);
    request_reset(&api, "victim@example.com");
    api.database.wait_for_empty_outbox();
    let received = smtp.received();
    let to_mailbox = |owner: bool| {
        let is_owners = |mail: &&ReceivedMail| (mail.recipient == "Victim@example.com") == owner;
        let all = received.iter().filter(|mail| !mail.recipient.ends_with("@example.net"));
        all.filter(is_owners).count()
    };
    assert_eq!((to_mailbox(false), to_mailbox(true)), (12, 2));
    for mail in &received {
        let raw = String::from_utf8_lossy(&mail.raw);
        assert!(!raw.contains("evil") && !mail.header("To").contains('<'), "{raw}");
    }
    // Another mailbox is not affected, and a day later neither is this one.
    register(&api, 0, "other", "victim2@example.com");
    request_reset(&api, "victim2@example.com");
    api.database.run(
        "UPDATE mail_counts SET queued_at = ARRAY(SELECT at - interval '1 day' FROM unnest(queued_at) at);
         DELETE FROM password_reset_messages",
    );
    request_reset(&api, "victim+5+x@example.com");
    api.database.wait_for_empty_outbox();
    assert_eq!(smtp.received().len(), received.len() + 2);
}

#[test]
fn accounts_are_settled_that_an_administrator_made_or_whose_owner_used_a_link() {
    let (smtp, api) = service_with_mail(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let root = api.sign_up_admin("root");
    let full = |email: &str| fill(&api, email);
    let email = "ann@example.com";
    api.sign_up("ann");
    let token = api.reset_token(email);
    full(email);
    let created = json!({"email": "bob@example.com", "name": "Bob", "password": PASSWORD});
    api.create_user(&root, created).expect(201);
    let created = json!({"username": "cyd", "email": "cyd@example.com"});
    api.post("/users/test-only/create", &root, created).expect(201);
    api.create_admin("dan@example.com", PASSWORD);
    api.sign_up("eve");
    for name in ["bob", "cyd", "dan", "eve"] {
        full(&format!("{name}@example.com"));
        request_reset(&api, &format!("{name}@example.com"));
    }
    api.database.wait_for_empty_outbox();
    let mut found = recipients(&smtp);
    found.sort();
    assert_eq!(found, ["ann", "bob", "cyd", "dan"].map(|name| format!("{name}@example.com")));
    // The link settles the account, so its owner is told, and gets another link.
    api.reset_password(&token, NEW_PASSWORD).expect(200);
    api.database.run("DELETE FROM password_reset_messages");
    request_reset(&api, email);
    api.database.wait_for_empty_outbox();
    assert_eq!(smtp.received().len(), 6);
}

#[test]
fn parallel_requests_and_changes_do_not_exceed_the_limit_of_a_mailbox() {
    let (smtp, one) = service_with_mail(&[BEHIND_PROXY]);
    let other = one.beside(&[&mail_settings(&smtp.url())[..], &[BEHIND_PROXY]].concat());
    for (mailbox, networks, most) in [("v", 20, 12), ("w", 1, 3)] {
        let before = smtp.received().len();
        let user = |n| {
            let email = format!("{mailbox}+{n}@example.com");
            register(&one, n % networks, &format!("{mailbox}user{n}"), &email)
        };
        let users: Vec<_> = (0..20).map(user).collect();
        parallel(20, |n| {
            let api = [&one, &other][n % 2];
            let body = json!({"email": format!("{mailbox}+{n}@example.com")});
            send(api, n % networks, "/auth/request-password-reset", body).expect(200);
            api.change_password(&users[n], PASSWORD, NEW_PASSWORD).expect(200);
        });
        wait_until(|| one.database.count("password_reset_requests") == 0);
        one.database.wait_for_empty_outbox();
        assert_eq!(smtp.received().len() - before, most, "from {networks} networks");
    }
    for api in [&one, &other] {
        assert!(!api.log().contains("deadlock"), "{}", api.log());
    }
}

#[test]
fn mail_with_a_link_goes_before_notices_that_wait() {
    let (smtp, api) = service_with_mail(&[]);
    smtp.port.close();
    for n in 0..5 {
        let user = api.sign_up(&format!("user{n}"));
        api.change_password(&user, PASSWORD, NEW_PASSWORD).expect(200);
    }
    api.sign_up("ann");
    request_reset(&api, "ann@example.com");
    wait_until(|| api.database.count("outbox") == 6);
    let (database, data, _) = api.end(Signal::TERM);
    database.run("UPDATE outbox SET due_at = now() - make_interval(mins => 10 - id::integer)");
    smtp.port.open_again();
    let _api = Server::start_with(&database, &data, &mail_settings(&smtp.url()));
    assert_eq!(smtp.wait_for(6)[0].recipient, "ann@example.com");
}

/// Otherwise an old account could move to the address of somebody else, and have mail sent there.
#[test]
fn an_account_is_not_settled_for_a_day_after_it_has_got_another_address() {
    let (smtp, api) = service_with_mail(&[]);
    let ann = api.sign_up("ann");
    api.database.run("UPDATE users SET created_at = now() - interval '8 days'");
    fill(&api, "ann@example.com");
    fill(&api, "victim@example.com");
    api.update_me(&ann, json!({"email": "victim@example.com"})).expect(200);
    request_reset(&api, "victim@example.com");
    api.database.wait_for_empty_outbox();
    assert_eq!(recipients(&smtp), ["ann@example.com"], "the notice to the old address");
    api.update_me(&ann, json!({"email": "next@example.com"})).expect(200);
    api.database.wait_for_empty_outbox();
    assert_eq!(recipients(&smtp).len(), 1, "that address was not settled");
    api.database.run("UPDATE users SET email_changed_at = now() - interval '1 day'");
    fill(&api, "next@example.com");
    api.database.run("DELETE FROM password_reset_messages");
    request_reset(&api, "next@example.com");
    api.database.wait_for_empty_outbox();
    assert_eq!(recipients(&smtp)[1..], ["next@example.com"]);
}

/// Otherwise an account could cause mail at its own address, and move to somebody else's before it is sent.
#[test]
fn mail_goes_where_the_account_was_when_it_was_caused() {
    let (smtp, api) = service_with_mail(&[]);
    let ann = api.sign_up("ann");
    api.database.run("UPDATE users SET created_at = now() - interval '8 days'");
    // So that there is time for a change before the messages are sent.
    api.database.run("ALTER TABLE outbox ALTER COLUMN due_at SET DEFAULT now() + interval '1 day'");
    if has_extras() {
        api.create_token(&ann, json!({"name": "a"})).expect(201);
    }
    request_reset(&api, "ann@example.com");
    fill(&api, "victim@example.com");
    api.update_me(&ann, json!({"email": "victim@example.com"})).expect(200);
    api.database.run("UPDATE outbox SET due_at = now()");
    api.database.run("ALTER TABLE outbox ALTER COLUMN due_at SET DEFAULT now()");
    request_reset(&api, "nobody@example.com");
    api.database.wait_for_empty_outbox();
    let notices = if has_extras() { 2 } else { 1 };
    let expected = vec!["ann@example.com"; notices];
    assert_eq!(recipients(&smtp), expected, "the notices; the link is dead");
}
