//! The work that runs beside requests: in batches, and each part for itself.

use std::fs;
use std::sync::Arc;

use crate::harness::*;

/// Installs a trigger that records how many rows each statement deletes from the table, or updates in it.
fn count_rows(database: &Database, table: &str, event: &str) {
    database.run(&format!(
        "CREATE TABLE IF NOT EXISTS counts (relation text, rows bigint);
         CREATE OR REPLACE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO counts SELECT TG_TABLE_NAME, count(*) FROM old_rows;
             RETURN NULL;
         END $$;
         CREATE TRIGGER count_rows AFTER {event} ON {table} REFERENCING OLD TABLE AS old_rows
         FOR EACH STATEMENT EXECUTE FUNCTION count_rows()"
    ));
}

/// How many rows of the table that trigger has recorded, and the most of a statement.
fn counted(database: &Database, table: &str) -> (i64, i64) {
    let of = |what: &str| {
        database.value(&format!("SELECT {what}::bigint FROM counts WHERE relation = '{table}'"))
    };
    (of("sum(rows)"), of("max(rows)"))
}

/// A stopped service with one user, `ann`, and her id.
fn service() -> (Arc<Database>, Arc<Directory>, String) {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let (database, data, _) = api.end(Signal::TERM);
    (database, data, ann.id().to_owned())
}

const EXPIRING: [&str; 3] = ["sessions", "used_password_reset_tokens", "sign_in_networks"];

/// Inserts so many rows that have expired: sessions, reset tokens that were used, or networks from which the user has
/// not signed in for longer than they are remembered.
fn insert_expired(database: &Database, table: &str, user: &str, count: u32) {
    let values = match table {
        "sessions" => {
            "(id, user_id, refresh_id, expires_at)
            SELECT gen_random_uuid(), '{user}', gen_random_uuid(), now() - interval '1 day'"
        }
        "used_password_reset_tokens" => {
            "(id, user_id, token_hash, expires_at)
            SELECT gen_random_uuid(), '{user}', n::text, now() - interval '1 day'"
        }
        _ => "SELECT '{user}', '172.16.0.0'::inet + n, now() - interval '31 days'",
    };
    let values = values.replace("{user}", user);
    database.run(&format!("INSERT INTO {table} {values} FROM generate_series(1, {count}) n"));
}

/// Tables with columns, the values of a row that concerns a user or mailbox and has an age, and the ages at which a row
/// goes and at which it stays.
#[rustfmt::skip] // One row a table.
const AGES: [(&str, &str, &str, &str); 5] = [
    ("outbox (kind, user_id, failed_at)",
     "'password_changed', '{user}', now() - interval '{age}'", "31 days", "29 days"),
    ("password_reset_messages (user_id, sent_at)", "'{user}', ARRAY[now() - interval '{age}']", "25 hours", "23 hours"),
    ("own_changes (user_id, hour, in_hour, on_day)", "'{user}', now() - interval '{age}', 1, 1", "25 hours", "1 hour"),
    ("mail_counts (key, queued_at, networks)",
     "sha256('{user}'), ARRAY[now() - interval '{age}'], ARRAY[NULL::cidr]", "25 hours", "23 hours"),
    ("personal_tokens (id, user_id, token_hash, name, scope, expires_at)",
     "gen_random_uuid(), '{user}', '{user}', 'a', 'all', now() - interval '{age}'", "0 s", "-1 hour"),
];

#[test]
fn what_has_expired_or_limits_nothing_any_more_is_removed_and_nothing_else() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let (database, data, _) = api.end(Signal::TERM);
    let insert = |into: &str, values: &str, user: &Tokens, age: &str| -> String {
        let values = values.replace("{user}", user.id()).replace("{age}", age);
        let (table, _) = into.split_once(' ').expect("a table");
        database.value(&format!("INSERT INTO {into} VALUES ({values}) RETURNING {table}::text"))
    };
    let rows = AGES.map(|(into, values, goes, stays)| {
        (into, insert(into, values, &ann, goes), insert(into, values, &bob, stays))
    });
    let _api = Server::start_with(&database, &data, &[]);
    for (into, gone, left) in &rows {
        let (table, _) = into.split_once(' ').expect("a table");
        let count = |row: &str| database.count(&format!("{table} WHERE {table}::text = '{row}'"));
        wait_until(|| count(gone) == 0);
        assert_eq!(count(left), 1, "{table}");
    }
}

#[test]
fn a_backlog_of_what_has_expired_is_removed_in_batches_until_none_is_left() {
    let (database, data, ann) = service();
    for table in EXPIRING {
        insert_expired(&database, table, &ann, 2500);
        count_rows(&database, table, "DELETE");
    }
    let live = database.count("sessions WHERE expires_at > now()");
    let _api = Server::start_with(&database, &data, &[]);
    wait_until(|| database.count("sessions") == live);
    wait_until(|| database.count("used_password_reset_tokens") == 0);
    wait_until(|| database.count("sign_in_networks WHERE network << '172.16.0.0/12'") == 0);
    for table in EXPIRING {
        assert_eq!(counted(&database, table), (2500, 1000), "{table}");
    }
}

#[test]
fn sessions_that_ended_together_are_marked_in_batches_and_keep_no_personal_data() {
    let (database, data, ann) = service();
    database.insert_sessions(&ann, 2500);
    count_rows(&database, "sessions", "UPDATE");
    let api = Server::start_with(&database, &data, &[]);
    let tokens = api.login("ann", PASSWORD).expect(200).tokens();
    database.run("DELETE FROM counts");
    api.logout_scope(&tokens, "others").expect(204);
    wait_until(|| database.count("ended_epochs") == 0);
    let live = "sessions WHERE ended_at IS NULL";
    assert_eq!((database.count(live), database.live_sessions(&ann)), (1, 1));
    let personal = "ended_at IS NOT NULL AND num_nonnulls(address, user_agent) > 0";
    assert_eq!(database.count(&format!("sessions WHERE {personal}")), 0);
    // The sign-in has ended two of the user's 2,501. That the new session stays is a change of its row too.
    assert_eq!(counted(&database, "sessions"), (2500, 1000));
}

#[test]
fn the_service_rests_after_each_batch_four_times_as_long_as_that_took() {
    let (database, data, ann) = service();
    insert_expired(&database, "sessions", &ann, 5000);
    database.run(
        "CREATE TABLE moments (number serial, is_begin bool, at timestamptz);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO moments (is_begin, at) VALUES (TG_WHEN = 'BEFORE', clock_timestamp());
             RETURN NULL;
         END $$;
         CREATE TRIGGER note_begin BEFORE DELETE ON sessions FOR EACH STATEMENT EXECUTE FUNCTION note();
         CREATE TRIGGER note_end AFTER DELETE ON sessions FOR EACH STATEMENT EXECUTE FUNCTION note()",
    );
    let live = database.count("sessions WHERE expires_at > now()");
    let _api = Server::start_with(&database, &data, &[]);
    wait_until(|| database.count("sessions") == live);
    // A moment is the end of a batch; `began` is its begin, and `next` that of the batch after it.
    let rests =
        "(SELECT is_begin, at, lag(at) OVER all_moments AS began, lead(at) OVER all_moments AS next
                  FROM moments WINDOW all_moments AS (ORDER BY number)) moment
                 WHERE NOT is_begin AND next IS NOT NULL";
    assert!(database.count(rests) >= 4);
    let shorter = "next - at < least(4 * (at - began), interval '5 s')";
    assert_eq!(database.count(&format!("{rests} AND {shorter}")), 0);
}

#[test]
fn a_batch_that_takes_longer_than_a_statement_may_is_halved_until_it_does_not() {
    let (database, data, ann) = service();
    insert_expired(&database, "sessions", &ann, 2000);
    count_rows(&database, "sessions", "DELETE");
    // As on a slow memory card, on which so many rows take longer.
    database.run(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF (SELECT count(*) FROM gone) > 500 THEN
                 PERFORM pg_sleep(60);
             END IF;
             RETURN NULL;
         END $$;
         CREATE TRIGGER wait AFTER DELETE ON sessions REFERENCING OLD TABLE AS gone
         FOR EACH STATEMENT EXECUTE FUNCTION wait()",
    );
    let live = database.count("sessions WHERE expires_at > now()");
    let api = Server::start_with(&database, &data, &[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")]);
    wait_until(|| database.count("sessions") == live);
    api.logged("goes on with 500 records at a time: expired sessions");
    assert_eq!(counted(&database, "sessions"), (2000, 500));
}

#[test]
fn a_part_of_the_background_work_that_fails_keeps_no_other_from_running() {
    let deleted = format!("user_id = '{DELETED_USER}'");
    let old = "last_sign_in_at < now() - interval '30 days'";
    let tasks = [
        ("password_reset_requests", "password resets", "true"),
        ("files", "records of deleted users and files", &deleted),
        ("sessions", "expired sessions", "expires_at < now()"),
        ("used_password_reset_tokens", "used reset tokens", "true"),
        ("outbox", "mail given up", "true"),
        ("sign_in_networks", "networks of former sign-ins", old),
    ];
    for (table, task, _) in tasks {
        let (database, data, ann) = service();
        insert_deleted_user_with_a_file(&database);
        EXPIRING.iter().for_each(|table| insert_expired(&database, table, &ann, 1));
        database.run(&format!(
            "INSERT INTO password_reset_requests (email_key) VALUES ('nobody@example.com');
             INSERT INTO outbox (kind, user_id, failed_at)
             VALUES ('password_changed', '{ann}', now() - interval '31 days')"
        ));
        let draft = data.join("tmp/11111111-1111-4111-8111-111111111111");
        fs::write(&draft, "x").expect("a file");
        make_older(&draft, 1);
        database.run(&format!(
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 RAISE EXCEPTION 'broken for the test';
             END $$;
             CREATE TRIGGER fail BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION fail()"
        ));
        let api = Server::start_with(&database, &data, &[]);
        let line = api.logged(&format!("background task failed, tried again soon: {task}: "));
        assert!(line.contains("broken for the test"), "{line}");
        for (other, _, condition) in tasks {
            let left = if other == table { 1 } else { 0 };
            wait_until(|| database.count(&format!("{other} WHERE {condition}")) == left);
        }
        wait_until(|| !draft.exists());
    }
}

const DELETED_USER: &str = "22222222-2222-4222-8222-222222222222";

/// Inserts a deleted user whose only file is still recorded.
fn insert_deleted_user_with_a_file(database: &Database) {
    database.run(&format!("INSERT INTO users (id, is_deleted) VALUES ('{DELETED_USER}', true)"));
    database.insert_files(DELETED_USER, &[1]);
    database.run(&format!("INSERT INTO pending_removals VALUES ('{DELETED_USER}')"));
}
