//! What strangers can do with registrations whose address must be confirmed, and what happens at one moment.

use std::collections::BTreeMap;
use std::thread;

use super::registrations::*;
use crate::harness::*;

/// The settings of a service that believes a proxy on this host.
const BEHIND_PROXY: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1");

fn registration(username: &str, email: &str) -> Value {
    json!({"username": username, "email": email, "password": PASSWORD})
}

/// Lets `n` mails of registrations wait, besides those that do.
fn fill(database: &Database, n: i64) {
    database.run(&format!(
        "INSERT INTO outbox (kind, address, email_key, sealed_token)
         SELECT 'email_confirmation', 'junk' || n || '@example.com', 'junk' || n || '@example.com', '-'
         FROM generate_series(1, {n}) n"
    ));
}

#[test]
fn a_mailbox_gets_twelve_mails_a_day_of_which_one_network_causes_three_then_429_known_or_not() {
    // Rate limits are off, as in all tests that do not ask for them.
    let (smtp, api) = confirming(&[BEHIND_PROXY]);
    sign_up(&smtp, &api, "owner");
    api.database.run("DELETE FROM mail_counts");
    let mut sent = smtp.received().len();
    for mailbox in ["owner", "nobody"] {
        let ask = |client: &str, n: usize| {
            // One mailbox, whatever follows a plus sign, in any spelling.
            let email = match n {
                0 => format!("{}@EXAMPLE.com", mailbox.to_uppercase()),
                1 => format!("\"{mailbox}\"@example.com"),
                _ => format!("{mailbox}+{n}@example.com"),
            };
            begin_from(&api, client, registration(&format!("{mailbox}{n}"), &email))
        };
        let too_many = |client: &str| {
            let answer = ask(client, 99).refused(429, "Rate limit exceeded");
            let wait: u64 = answer.header("Retry-After").parse().expect("a number");
            assert!((86_000..=86_400).contains(&wait), "{wait}");
            assert_eq!(answer.header("X-RateLimit-Retry-After"), answer.header("Retry-After"));
        };
        for network in 0..4 {
            for n in 0..3 {
                let client = match network {
                    3 => format!("2001:db8:1:{n}::1"),
                    _ => format!("192.0.{network}.{}", n + 1),
                };
                ask(&client, 3 * network + n).expect(201);
            }
            too_many(["192.0.0.9", "192.0.1.9", "192.0.2.9", "2001:db8:1:9::1"][network]);
        }
        too_many("198.51.100.1");
        // A taken username comes before it.
        begin_from(&api, "198.51.100.1", registration("owner", &format!("{mailbox}@example.com")))
            .refused(400, "Username already exists");
        // Another mailbox minds none of it.
        let other = registration("other", &format!("{mailbox}2@example.com"));
        begin_from(&api, "192.0.2.1", other).expect(201);
        api.database.wait_for_empty_outbox();
        assert_eq!(smtp.received().len(), sent + 13);
        sent += 13;
        // A day after the first three there is room for three.
        api.database.run(
            "UPDATE mail_counts SET queued_at = queued_at[1:9]
                                    || ARRAY(SELECT at - interval '1 day' FROM unnest(queued_at[10:]) at)",
        );
        ask("192.0.2.1", 50).refused(429, "Rate limit exceeded");
        for n in 0..3 {
            ask("192.0.0.1", 60 + n).expect(201);
        }
        too_many("198.51.100.1");
        sent += 3;
    }
    // The owner goes on, and gets all mail that a settled account gets.
    let owner = api.sign_in("owner");
    api.change_password(&owner, PASSWORD, NEW_PASSWORD).expect(200);
    mail_to(&smtp, "owner@example.com", "Your Cloakroom password was changed", 1);
}

#[test]
fn parallel_registrations_in_two_processes_exceed_no_limit() {
    let (smtp, api) = confirming(&[BEHIND_PROXY]);
    let beside = confirming_beside(&smtp, &api, &[BEHIND_PROXY]);
    let servers = [&api, &beside];
    let found = parallel(30, |n| {
        let client = format!("192.0.2.{n}");
        let body = registration(&format!("user{n}"), "ann@example.com");
        begin_from(servers[n % 2], &client, body).status
    });
    assert_eq!(tally(found), [(201, 3), (429, 27)].into());
    let found = parallel(30, |n| {
        let body = registration(&format!("user{n}"), "bob@example.com");
        begin_from(servers[n % 2], &format!("192.0.{n}.1"), body).status
    });
    assert_eq!(tally(found), [(201, 12), (429, 18)].into());
    api.database.wait_for_empty_outbox();
    assert_eq!(smtp.received().len(), 15);
}

#[test]
fn a_link_that_is_used_twice_at_one_moment_never_calls_its_own_username_taken() {
    let (smtp, api) = confirming(&[("CLOAKROOM_DATABASE_POOL_SIZE", "12")]);
    // All accounts are inserted at the moment at which the lock is released.
    api.database.run(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END $$;
         CREATE TRIGGER wait BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    for n in 0..10 {
        let address = format!("ann{n}@example.com");
        begin(&api, &format!("ann{n}"), &address).expect(201);
        let token = token(&mail_to(&smtp, &address, CONFIRM, 1));
        let lock = api.database.begin("SELECT pg_advisory_xact_lock(1)");
        thread::scope(|scope| {
            let confirm = || confirm(&api, &token, PASSWORD);
            let uses: Vec<_> = (0..8).map(|_| scope.spawn(confirm)).collect();
            wait_until(|| api.database.blocked_statements() == 8);
            lock.roll_back();
            let mut answers: Vec<_> =
                uses.into_iter().map(|one| one.join().expect("no panic")).collect();
            answers.sort_by_key(|answer| answer.status);
            answers.remove(0).expect(200);
            answers.into_iter().for_each(|answer| drop(answer.refused(400, REFUSED)));
        });
    }
}

#[test]
fn of_twenty_confirmations_at_one_moment_one_succeeds_in_whichever_process() {
    let (smtp, api) = confirming(&[BEHIND_PROXY]);
    let beside = confirming_beside(&smtp, &api, &[BEHIND_PROXY]);
    let servers = [&api, &beside];
    let confirm_all = |tokens: &[String]| -> BTreeMap<(u16, String), usize> {
        let answers = parallel(tokens.len(), |n| {
            let answer = confirm(servers[n % 2], &tokens[n], PASSWORD);
            (answer.status, answer.json()["detail"].as_str().unwrap_or_default().to_owned())
        });
        answers.into_iter().fold(BTreeMap::new(), |mut tally, answer| {
            *tally.entry(answer).or_default() += 1;
            tally
        })
    };
    let (done, refused) = ((200, String::new()), (400, REFUSED.to_owned()));
    // One token.
    begin(&api, "ann", "ann@example.com").expect(201);
    let same = vec![token(&mail_to(&smtp, "ann@example.com", CONFIRM, 1)); 20];
    assert_eq!(confirm_all(&same), [(done.clone(), 1), (refused.clone(), 19)].into());
    // Twelve of one address.
    for n in 0..12 {
        let body = registration(&format!("bob{n}"), "bob@example.com");
        begin_from(&api, &format!("192.0.{n}.1"), body).expect(201);
    }
    let tokens = |address: &str, n: usize| -> Vec<String> {
        mail_to(&smtp, address, CONFIRM, n);
        let mut all = smtp.received();
        all.retain(|mail| mail.recipient == address);
        all.iter().map(token).collect()
    };
    let found = confirm_all(&tokens("bob@example.com", 12));
    assert_eq!(found, [(done.clone(), 1), (refused, 11)].into());
    assert_eq!(api.database.count("users WHERE email = 'bob@example.com'"), 1);
    // Twelve of one username.
    let emails: Vec<_> = (0..12).map(|n| format!("cyd{n}@example.com")).collect();
    emails.iter().for_each(|email| drop(begin(&api, "cyd", email).expect(201)));
    let tokens: Vec<_> = emails.iter().flat_map(|email| tokens(email, 1)).collect();
    let taken = (400, "Username already exists".to_owned());
    assert_eq!(confirm_all(&tokens), [(done, 1), (taken, 11)].into());
    let others =
        parallel(12, |n| confirm_as(servers[n % 2], &tokens[n], &format!("dan{n}")).status);
    assert_eq!(tally(others), [(200, 11), (400, 1)].into());
    for api in servers {
        assert!(!api.log().contains("40P01") && !api.log().contains(" 500 "), "{}", api.log());
    }
}

#[test]
fn at_most_ten_thousand_mails_of_registrations_wait_and_all_others_go_before_them() {
    let (smtp, api) = confirming(&[("CLOAKROOM_REGISTRATIONS_PER_DAY", "3")]);
    let root = admin(&api);
    smtp.port.close();
    begin(&api, "early", "early@example.com").expect(201);
    fill(&api.database, 9989);
    let found =
        parallel(30, |n| begin(&api, &format!("late{n}"), &format!("late{n}@example.com")).status);
    assert_eq!(tally(found), [(201, 10), (503, 20)].into());
    let refused = begin(&api, "one", "one@example.com");
    assert_eq!(refused.refused(503, "Service temporarily unavailable").header("Retry-After"), "5");
    begin(&api, "late", "one@example.com").expect(503);
    // A refusal counts nothing.
    let counted = "mail_counts WHERE key = sha256('one@example.com')";
    assert_eq!(api.database.count(counted), 0);
    // Nobody else minds: wishes, invitations, notices and resets have their mail.
    api.update_me(&root, json!({"email": "root2@example.com"})).expect(200);
    api.change_password(&root, PASSWORD, NEW_PASSWORD).expect(200);
    let invited = json!({"email": "guest@example.com", "name": "Guest", "invite": true});
    api.create_user(&root, invited).expect(201);
    api.request_reset("root@example.com").expect(200);
    wait_until(|| api.database.count("outbox WHERE kind = 'password_reset'") == 1);
    let (database, data, _) = api.end(Signal::TERM);
    database.run(
        "DELETE FROM outbox WHERE address LIKE 'junk%';
         UPDATE outbox SET due_at = now() - make_interval(mins => 60 * priority)",
    );
    smtp.port.open_again();
    // What waits survives the restart.
    let url = smtp.url();
    let settings = [&REQUIRED[..], &mail_settings(&url)].concat();
    let api = Server::start_with(&database, &data, &settings);
    let recipients: Vec<_> = smtp.wait_for(15).into_iter().map(|mail| mail.recipient).collect();
    // The wish died with the change of the password, so its mail is not sent.
    assert_eq!(recipients[0], "root@example.com", "the reset");
    assert!(
        recipients[1..4].iter().all(|to| to == "root@example.com" || to == "guest@example.com")
    );
    assert!(recipients[4..].iter().all(|to| to.starts_with("late") || to.starts_with("early")));
    let early = token(&mail_to(&smtp, "early@example.com", CONFIRM, 1));
    confirm(&api, &early, PASSWORD).expect(200);
}

#[test]
fn a_mail_that_is_given_up_leaves_no_row_and_who_got_none_registers_again() {
    let (smtp, api) = confirming(&[]);
    let rejects = Misbehaviour::Reply("550 5.1.1 no such user");
    smtp.misbehave_for("gone@example.com", SmtpStep::Rcpt, rejects);
    begin(&api, "gone", "gone@example.com").expect(201);
    api.logged("given up");
    wait_until(|| api.database.count("outbox") == 0);
    assert!(!api.log().contains("gone@"), "{}", api.log());
    smtp.behave();
    begin(&api, "gone", "gone@example.com").expect(201);
    let token = token(&mail_to(&smtp, "gone@example.com", CONFIRM, 1));
    confirm(&api, &token, PASSWORD).expect(200);
    // A row of an account stays for the operator, without its address and its token.
    let gone = api.sign_in("gone");
    smtp.misbehave_for("next@example.com", SmtpStep::Rcpt, rejects);
    api.update_me(&gone, json!({"email": "next@example.com"})).expect(200);
    let erased = "outbox WHERE failed_at IS NOT NULL AND address IS NULL AND sealed_token IS NULL AND network IS NULL";
    wait_until(|| api.database.count(erased) == 1);
}

#[test]
fn a_registration_leaves_no_name_address_or_hash_anywhere_and_while_its_mail_waits_the_address() {
    let settings = [
        ("CLOAKROOM_LOG", "trace"),
        ("CLOAKROOM_SCRYPT", "13,10,8"),
        ("CLOAKROOM_REGISTRATION", "open"),
    ];
    let (smtp, api) = confirming(&settings);
    smtp.misbehave(SmtpStep::Greeting, Misbehaviour::Close);
    let body = json!({"username": "ann_of_hill", "email": "ann@hill.example", "name": "Ann Lee of Hill",
                      "password": PASSWORD});
    let id = api.register_with(body).expect(201).id();
    smtp.wait_for_step(SmtpStep::Greeting, 1);
    let dump = || {
        let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
        let all = api.database.texts(tables).into_iter().flat_map(|table| {
            api.database.texts(&format!("SELECT '{table}: ' || t::text FROM {table} t"))
        });
        all.collect::<Vec<_>>().join("\n")
    };
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let holds = |text: &str, part: &str| text.contains(part) || text.contains(&hex(part));
    let waiting = dump();
    assert!(waiting.contains("ann@hill.example") && waiting.contains("outbox: "), "{waiting}");
    for part in ["ann_of_hill", "Ann Lee", "scrypt", &id, PASSWORD] {
        assert!(!holds(&waiting, part), "{part} in {waiting}");
    }
    smtp.behave();
    api.database.run("UPDATE outbox SET due_at = now()");
    let token = token(&mail_to(&smtp, "ann@hill.example", CONFIRM, 1));
    api.database.wait_for_empty_outbox();
    let sent = dump();
    for part in ["ann_of_hill", "Ann Lee", "scrypt", "hill", &id, &token] {
        assert!(!holds(&sent, part), "{part} in {sent}");
    }
    // In development the log has the token, as it has those of resets.
    let log = api.log().replace(&token, "");
    for part in ["ann_of_hill", "Ann Lee", "scrypt", "hill", PASSWORD] {
        assert!(!holds(&log, part), "{part} in {log}");
    }
}

#[test]
fn a_registration_takes_a_hundred_wrong_passwords_an_hour_and_no_other_one_minds() {
    let settings = [
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_AUTH", "10000"),
        BEHIND_PROXY,
    ];
    let (smtp, api) = confirming(&settings);
    let from = |address: &str, path: &str, body: Value| {
        api.request("POST", path).header("X-Forwarded-For", address).json(body).send()
    };
    let own = registration("ann", "ann@example.com");
    let begin = |n| {
        from("192.0.2.1", "/auth/register", own.clone()).expect(201);
        token(&mail_to(&smtp, "ann@example.com", CONFIRM, n))
    };
    let [first, second] = [begin(1), begin(2)];
    // Those of sign-ins with its names count elsewhere.
    let wrong = with_member(&own, "password", json!("wrong horse"));
    for _ in 0..100 {
        from("198.51.100.1", "/auth/login", wrong.clone()).expect(401);
    }
    from("198.51.100.1", "/auth/login", own.clone()).expect(429);
    let send = |n: usize, token: &str, password: &str| {
        let body = json!({"token": token, "password": password});
        from(&format!("198.51.100.{n}"), "/auth/confirm-email", body)
    };
    for n in 0..100 {
        send(n, &first, "wrong horse").refused(400, REFUSED);
    }
    for password in ["wrong horse", PASSWORD] {
        let answer = send(101, &first, password).refused(429, "Rate limit exceeded");
        assert!(answer.header("Retry-After").parse::<u64>().is_ok_and(|wait| wait <= 36));
    }
    send(102, &second, PASSWORD).expect(200);
    from("192.0.2.1", "/auth/login", own).expect(200);
    // Right ones count for nothing, and no refusal of another kind does.
    for n in 0..120 {
        send(n, &second, PASSWORD).refused(400, REFUSED);
    }
}

#[test]
fn each_registration_that_is_answered_201_counts_for_its_address() {
    let settings = [
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_AUTH", "10000"),
        ("CLOAKROOM_REGISTRATIONS_PER_DAY", "3"),
        BEHIND_PROXY,
    ];
    let (smtp, api) = confirming(&settings);
    let ask =
        |username: &str, email: &str| begin_from(&api, "192.0.2.1", registration(username, email));
    ask("ann", "ann@example.com").expect(201);
    let token = token(&mail_to(&smtp, "ann@example.com", CONFIRM, 1));
    confirm(&api, &token, PASSWORD).expect(200);
    for _ in 0..5 {
        ask("ann", "ann2@example.com").refused(400, "Username already exists");
    }
    ask("ann2", "ann@example.com").expect(201);
    ask("ann3", "ann3@example.com").expect(201);
    ask("ann4", "ann4@example.com").refused(429, "Rate limit exceeded");
}
