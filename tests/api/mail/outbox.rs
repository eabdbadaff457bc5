//! Messages that wait to be sent: retries, mail servers that fail in every way, crashes, several processes, metrics.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::harness::*;

/// Makes every message that was not given up due now, so that a test need not wait for the next attempt.
fn make_due(database: &Database) {
    database.run("UPDATE outbox SET due_at = now() WHERE failed_at IS NULL");
}

/// Makes the messages to one account due now.
fn make_due_of(database: &Database, user: &Tokens) {
    database.run(&format!("UPDATE outbox SET due_at = now() WHERE user_id = '{}'", user.id()));
}

/// In how many seconds the only message is due.
fn seconds_until_due(database: &Database) -> f64 {
    database.value("SELECT extract(epoch FROM due_at - now())::float8 FROM outbox")
}

/// Waits until this many messages wait for another attempt.
fn wait_for_deferred(database: &Database, count: i64) {
    let deferred = "outbox WHERE failed_at IS NULL AND error IS NOT NULL AND due_at > now()";
    wait_until(|| database.count(deferred) == count);
}

/// The value of a metric that is a whole number.
fn metric(api: &Server, name: &str) -> i64 {
    api.metric(name).expect(name) as i64
}

#[test]
fn a_message_waits_for_a_mail_server_that_is_down_also_across_a_restart() {
    let (smtp, api) = service_with_mail(&[]);
    smtp.port.close();
    api.sign_up("ann");
    api.request_reset("ann@example.com").expect(200);
    wait_for_deferred(&api.database, 1);
    let line = api.logged("not sent, tried again later: connecting: ");
    assert!(line.contains("password_reset") && !line.contains("@example.com"), "{line}");
    let pause = seconds_until_due(&api.database);
    assert!((0.0..=10.0).contains(&pause), "{pause}");
    let (database, data, status) = api.end(Signal::TERM);
    assert_eq!(status, Some(0));
    smtp.port.open_again();
    make_due(&database);
    let api = Server::start_with(&database, &data, &mail_settings(&smtp.url()));
    // The token was made for this attempt.
    let token = smtp.wait_for(1)[0].token(RESET_URL);
    api.reset_password(&token, NEW_PASSWORD).expect(200);
}

#[test]
fn a_mail_server_that_is_down_is_not_asked_for_each_message() {
    let (smtp, api) = service_with_mail(&[]);
    smtp.misbehave(SmtpStep::Mail, Misbehaviour::Reply("421 4.3.2 closing"));
    let begin = Instant::now();
    let messages = 20;
    for i in 0..messages {
        let user = api.sign_up(&format!("user{i}"));
        api.change_password(&user, PASSWORD, NEW_PASSWORD).expect(200);
    }
    smtp.wait_for_step(SmtpStep::Mail, 2);
    let most = begin.elapsed().as_secs() as usize / 5 + 1;
    let asked = smtp.count(SmtpStep::Mail);
    assert!(asked <= most && most < messages, "{asked} times, where {most} are allowed");
    smtp.behave();
    make_due(&api.database);
    smtp.wait_for(messages);
}

#[test]
fn a_message_that_is_refused_for_now_is_sent_later_and_one_that_is_refused_for_good_is_not() {
    let (smtp, api) = service_with_mail(&[]);
    for (address, step, reply) in [
        ("ann@example.com", SmtpStep::Rcpt, "450 4.2.1 <ann@example.com> later"),
        ("bob@example.com", SmtpStep::Rcpt, "550 5.1.1 <bob@example.com> unknown"),
        ("cyd@example.com", SmtpStep::Content, "554 5.7.1 spam"),
    ] {
        smtp.misbehave_for(address, step, Misbehaviour::Reply(reply));
    }
    let database = &api.database;
    let users: Vec<_> = ["ann", "bob", "cyd", "eve"].map(|name| api.sign_up(name)).into();
    // The notice about a new address has an address of its own, which must not stay.
    api.update_me(&users[2], json!({"email": "cyd2@example.com"})).expect(200);
    for name in ["ann", "bob", "eve"] {
        api.request_reset(&format!("{name}@example.com")).expect(200);
    }
    // No failure holds up another message.
    assert_eq!(smtp.wait_for_mail_to("eve@example.com").recipient, "eve@example.com");
    wait_until(|| database.count("outbox WHERE failed_at IS NOT NULL") == 2);
    wait_for_deferred(database, 1);
    let line = api.logged("given up: RCPT TO: 550 5.1.1");
    assert!(line.contains("ERROR") && line.contains(users[1].id()), "{line}");
    api.logged("tried again later: RCPT TO: 450 4.2.1");
    assert!(!api.log().contains("@example.com"), "{}", api.log());
    let kept: String = database.value(
        "SELECT string_agg(concat_ws(' ', kind, address, error), ', ' ORDER BY kind)
         FROM outbox WHERE failed_at IS NOT NULL",
    );
    let expected = "email_changed message: 554 5.7.1, password_reset RCPT TO: 550 5.1.1";
    assert_eq!(kept, expected);
    smtp.behave();
    database.run("UPDATE outbox SET due_at = now()");
    smtp.wait_for(2);
    wait_until(|| database.count("outbox WHERE failed_at IS NULL") == 0);
    assert_eq!(database.count("outbox WHERE failed_at IS NOT NULL AND attempts = 1"), 2);
    // An account whose message was given up can ask for another one.
    database.run("DELETE FROM password_reset_messages");
    api.request_reset("bob@example.com").expect(200);
    smtp.wait_for_mail_to("bob@example.com");
}

#[test]
fn pauses_double_up_to_a_quarter_of_an_hour_and_after_a_day_a_message_is_given_up() {
    let (smtp, api) = service_with_mail(&[]);
    smtp.misbehave(SmtpStep::Rcpt, Misbehaviour::Reply("450 4.2.1 later"));
    let database = &api.database;
    api.sign_up("ann");
    api.request_reset("ann@example.com").expect(200);
    wait_for_deferred(database, 1);
    for (attempt, pause) in [(1, 10), (2, 20), (3, 40), (7, 640), (8, 900), (100, 900)] {
        database.run(&format!(
            "UPDATE outbox SET attempts = {attempt} - 1, error = NULL, due_at = now()"
        ));
        wait_for_deferred(database, 1);
        assert_eq!(database.value::<i32>("SELECT attempts FROM outbox"), attempt);
        let (found, pause) = (seconds_until_due(database), f64::from(pause));
        assert!((pause - 8.0..=pause).contains(&found), "attempt {attempt}: {found} s");
    }
    database.run("UPDATE outbox SET created_at = now() - interval '1 day', due_at = now()");
    wait_until(|| database.count("outbox WHERE failed_at IS NOT NULL") == 1);
    api.logged("given up: RCPT TO: 450 4.2.1");
}

/// Waits until this many messages were tried in vain, and makes them wait for a quarter of an hour.
fn hold(database: &Database, count: i64) {
    wait_until(|| {
        // One that is being sent is due in ten minutes.
        database.run(
            "UPDATE outbox SET due_at = now() + interval '15 minutes'
             WHERE error IS NOT NULL AND due_at < now() + interval '9 minutes'",
        );
        database.count(HELD) == count
    });
}

const HELD: &str = "outbox WHERE due_at > now() + interval '11 minutes'";

#[test]
fn once_a_mail_is_delivered_those_follow_that_waited_for_the_mail_server_and_no_others() {
    let (smtp, api) = service_with_mail(&[]);
    let database = &api.database;
    let root = api.sign_up_admin("root");
    let [ann, _, cyd, _, fay] = ["ann", "bob", "cyd", "eve", "fay"].map(|name| api.sign_up(name));
    let request_reset = |name: &str| {
        api.request_reset(&format!("{name}@example.com")).expect(200);
    };
    smtp.misbehave_for("eve@example.com", SmtpStep::Rcpt, Misbehaviour::Reply("450 4.2.1 later"));
    request_reset("eve");
    hold(database, 1);
    smtp.port.close();
    ["ann", "bob", "cyd", "fay"].iter().copied().for_each(request_reset);
    hold(database, 5);
    // A message that is removed unsent tells nothing about the mail server.
    api.delete_user(&root, fay.id()).expect(204);
    make_due_of(database, &fay);
    wait_until(|| database.count("outbox") == 4);
    assert_eq!(database.count(HELD), 4);
    // As if another process had taken this one.
    let taken =
        format!("UPDATE outbox SET waits_for_server = false WHERE user_id = '{}'", cyd.id());
    database.run(&taken);
    smtp.port.open_again();
    make_due_of(database, &ann);
    for name in ["ann", "bob"] {
        smtp.wait_for_mail_to(&format!("{name}@example.com"));
    }
    wait_until(|| database.count("outbox") == 2);
    assert_eq!(database.count(HELD), 2);
    assert_eq!(smtp.received().len(), 2);
}

#[test]
fn a_mail_server_that_hangs_holds_up_nothing_else() {
    let (smtp, api) = service_with_mail(&[("CLOAKROOM_DATABASE_POOL_SIZE", "1")]);
    smtp.misbehave(SmtpStep::Data, Misbehaviour::Hang);
    let root = api.sign_up_admin("root");
    let [_, bob, eve] = ["ann", "bob", "eve"].map(|name| api.sign_up(name));
    let file = api.new_file(&bob, "b.txt", "bob's");
    let begin = Instant::now();
    api.request_reset("ann@example.com").expect(200);
    smtp.wait_for_step(SmtpStep::Data, 1);
    // Requests go on, although the only database connection is theirs and the thread's that sends mail.
    api.change_password(&eve, PASSWORD, NEW_PASSWORD).expect(200);
    api.readyz().expect(200);
    // So does the other background work.
    api.delete_user(&root, bob.id()).expect(204);
    wait_until(|| !api.data.content(&file).exists());
    // A request takes the same time whether or not the address has an account.
    let time = |name: &str| {
        let begin = Instant::now();
        api.request_reset(&format!("{name}@example.com")).expect(200);
        begin.elapsed()
    };
    let (known, unknown) = (0..10).map(|_| (time("root"), time("nobody"))).unzip();
    let (known, unknown) = (median(known), median(unknown));
    let bound = |usual: Duration| 3 * usual + Duration::from_millis(20);
    assert!(known < bound(unknown) && unknown < bound(known), "{known:?}, {unknown:?}");
    wait_until(|| api.database.count("password_reset_requests") == 0);
    // All of this has happened without a reply from the mail server. A message is given up after 15 seconds.
    assert_eq!(smtp.received().len(), 0);
    assert!(smtp.count(SmtpStep::Data) as u64 <= 1 + begin.elapsed().as_secs() / 15);
    assert!(metric(&api, "cloakroom_mail_waiting") >= 3);
    // A stop does not wait for it either.
    let begin = Instant::now();
    assert_eq!(api.end(Signal::TERM).2, Some(0));
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[test]
fn a_mail_server_that_hangs_for_one_message_gets_the_others() {
    let (smtp, api) = service_with_mail(&[]);
    smtp.misbehave_for("ann@example.com", SmtpStep::Rcpt, Misbehaviour::Hang);
    for name in ["ann", "bob"] {
        api.sign_up(name);
        api.request_reset(&format!("{name}@example.com")).expect(200);
        wait_until(|| api.database.count("password_reset_requests") == 0);
    }
    smtp.wait_for_mail_to("bob@example.com");
    assert_eq!(api.database.count("outbox WHERE error IS NOT NULL"), 1);
}

#[test]
fn a_message_is_sent_although_the_process_was_killed_between_taking_and_sending_it() {
    let (smtp, api) = service_with_mail(&[]);
    smtp.misbehave(SmtpStep::Data, Misbehaviour::Hang);
    let ann = api.sign_up("ann");
    api.change_password(&ann, PASSWORD, NEW_PASSWORD).expect(200);
    smtp.wait_for_step(SmtpStep::Data, 1);
    let (database, data, _) = api.end(Signal::KILL);
    smtp.behave();
    // It still belongs to the process that was killed, for ten minutes.
    let lease = seconds_until_due(&database);
    assert!((500.0..=600.0).contains(&lease), "{lease}");
    let _api = Server::start_with(&database, &data, &mail_settings(&smtp.url()));
    make_due(&database);
    assert_eq!(smtp.wait_for(1)[0].recipient, "ann@example.com");
    database.wait_for_empty_outbox();
}

#[test]
fn of_two_processes_on_one_database_only_one_sends_each_message() {
    let smtp = SmtpServer::start(SmtpOptions::default());
    let url = smtp.url();
    let patient = [("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "60")];
    let settings = [&mail_settings(&url)[..], &patient].concat();
    let one = Server::start(&settings);
    let other = one.beside(&settings);
    let database = &one.database;
    // Both processes wait for this lock, so they begin at the same moment.
    let lock = database.begin(
        "LOCK TABLE outbox;
         INSERT INTO users (id, email, email_key, password_hash)
         SELECT gen_random_uuid(), n || '@example.com', n || '@example.com', '' FROM generate_series(1, 200) n;
         INSERT INTO outbox (kind, user_id) SELECT 'password_changed', id FROM users",
    );
    let taking = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                  AND query LIKE '-- Takes the message that has been due longest%'";
    wait_until(|| database.count(taking) == 2);
    lock.commit();
    database.wait_for_empty_outbox();
    let received = smtp.wait_for(200);
    let recipients: HashSet<_> = received.iter().map(|mail| &mail.recipient).collect();
    assert_eq!(recipients.len(), 200);
    let sent = [&one, &other].map(|api| metric(api, "cloakroom_mail_sent_total"));
    assert!(sent.iter().sum::<i64>() == 200 && sent.iter().all(|sent| *sent > 0), "{sent:?}");
}

#[test]
fn metrics_count_messages_and_the_probes_do_not_depend_on_them() {
    let (smtp, api) = service_with_mail(&[]);
    smtp.misbehave_for("bob@example.com", SmtpStep::Rcpt, Misbehaviour::Reply("550 5.1.1 unknown"));
    smtp.misbehave_for("eve@example.com", SmtpStep::Rcpt, Misbehaviour::Reply("450 4.2.1 later"));
    let mail = |api: &Server| {
        ["waiting", "failed", "oldest_seconds", "sent_total"]
            .map(|name| metric(api, &format!("cloakroom_mail_{name}")))
    };
    assert_eq!(mail(&api), [0, 0, 0, 0]);
    for name in ["ann", "bob", "eve"] {
        api.sign_up(name);
        api.request_reset(&format!("{name}@example.com")).expect(200);
    }
    wait_until(|| api.database.count("outbox WHERE error IS NOT NULL") == 2);
    wait_until(|| api.database.count("outbox") == 2);
    api.database.run("UPDATE outbox SET created_at = created_at - interval '1000 seconds'");
    let [waiting, failed, oldest, sent] = mail(&api);
    assert_eq!([waiting, failed, sent], [1, 1, 1]);
    assert!((1000..1060).contains(&oldest), "{oldest}");
    api.readyz().expect(200);
    api.healthz().expect(200);
}

#[test]
fn a_message_over_which_the_thread_panics_keeps_no_other_from_being_sent() {
    let (smtp, api) = service_with_mail(&[]);
    for name in ["ann", "bob"] {
        api.sign_up(name);
    }
    let queued_at = |time: &str| {
        api.database.run(&format!("ALTER TABLE outbox ALTER COLUMN created_at SET DEFAULT {time}"))
    };
    // The client library panics over it.
    queued_at("'20000-01-01'");
    api.request_reset("ann@example.com").expect(200);
    api.logged("background task panicked, tried again soon: sending mail");
    queued_at("now()");
    api.request_reset("bob@example.com").expect(200);
    assert_eq!(smtp.wait_for(1)[0].recipient, "bob@example.com");
    wait_until(|| api.database.count("outbox") == 1);
    api.sign_in("ann");
}

#[test]
fn a_message_that_cannot_be_made_is_tried_later_as_others_and_keeps_none_from_being_sent() {
    let (smtp, api) = service_with_mail(&[]);
    let database = &api.database;
    let ann = api.sign_up("ann");
    // Of a kind that a newer version of the program may know.
    database.run(&format!(
        "ALTER TABLE outbox DROP CONSTRAINT outbox_kind_check;
         INSERT INTO outbox (kind, user_id) VALUES ('of_later', '{}')",
        ann.id()
    ));
    wait_for_deferred(database, 1);
    let line = api.logged("not sent, tried again later: composing: no kind of mail: of_later");
    assert!(line.contains(ann.id()), "{line}");
    assert_eq!(database.count("outbox WHERE waits_for_server"), 0);
    assert!(!api.log().contains("background task"), "{}", api.log());
    api.request_reset("ann@example.com").expect(200);
    smtp.wait_for_mail_to("ann@example.com");
    database.run("UPDATE outbox SET created_at = now() - interval '1 day', due_at = now()");
    api.logged("given up: composing: no kind of mail: of_later");
    wait_until(|| database.count("outbox WHERE failed_at IS NOT NULL") == 1);
}
