//! The work that runs beside requests: in batches, and each part for itself.

use std::fs;
use std::sync::Arc;

use crate::harness::*;

const DAY_AGO: &str = "now() - interval '1 day'";

/// Installs a trigger that records how many rows each statement deletes from the table.
fn count_deletions(database: &Database, table: &str) {
    database.run(&format!(
        "CREATE TABLE IF NOT EXISTS deletions (relation text, deleted bigint);
         CREATE OR REPLACE FUNCTION count_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO deletions SELECT TG_TABLE_NAME, count(*) FROM gone;
             RETURN NULL;
         END $$;
         CREATE TRIGGER count_deletion AFTER DELETE ON {table} REFERENCING OLD TABLE AS gone
         FOR EACH STATEMENT EXECUTE FUNCTION count_deletion()"
    ));
}

/// A stopped service with one user, `ann`, and her id.
fn service() -> (Arc<Database>, Arc<Directory>, String) {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    (api.database.clone(), api.data.clone(), ann.id().to_owned())
}

fn insert_expired_sessions(database: &Database, user: &str, count: u32) {
    database.run(&format!(
        "INSERT INTO sessions (id, user_id, refresh_id, expires_at)
         SELECT gen_random_uuid(), '{user}', gen_random_uuid(), {DAY_AGO} FROM generate_series(1, {count})"
    ));
}

fn insert_used_tokens(database: &Database, user: &str, count: u32) {
    database.run(&format!(
        "INSERT INTO used_password_reset_tokens (id, user_id, token_hash, expires_at)
         SELECT gen_random_uuid(), '{user}', n::text, {DAY_AGO} FROM generate_series(1, {count}) n"
    ));
}

/// Networks from which the user has not signed in for longer than they are remembered.
fn insert_old_networks(database: &Database, user: &str, count: u32) {
    database.run(&format!(
        "INSERT INTO sign_in_networks
         SELECT '{user}', '172.16.0.0'::inet + n, now() - interval '31 days' FROM generate_series(1, {count}) n"
    ));
}

#[test]
fn a_backlog_of_what_has_expired_is_removed_in_batches_until_none_is_left() {
    let (database, data, ann) = service();
    insert_expired_sessions(&database, &ann, 2500);
    insert_used_tokens(&database, &ann, 2500);
    insert_old_networks(&database, &ann, 2500);
    let tables = ["sessions", "used_password_reset_tokens", "sign_in_networks"];
    for table in tables {
        count_deletions(&database, table);
    }
    let live = database.count("sessions WHERE expires_at > now()");
    let _api = Server::start_with(&database, &data, &[]);
    wait_until(|| database.count("sessions") == live);
    wait_until(|| database.count("used_password_reset_tokens") == 0);
    wait_until(|| database.count("sign_in_networks WHERE network << '172.16.0.0/12'") == 0);
    for table in tables {
        let of = |what: &str| {
            database.value::<i64>(&format!(
                "SELECT {what}::bigint FROM deletions WHERE relation = '{table}'"
            ))
        };
        assert_eq!((of("sum(deleted)"), of("max(deleted)")), (2500, 1000), "{table}");
    }
}

#[test]
fn sessions_that_ended_together_are_marked_in_batches_and_keep_no_personal_data() {
    let (database, data, ann) = service();
    database.insert_sessions(&ann, 2500);
    database.run(
        "CREATE TABLE marks (marked bigint);
         CREATE FUNCTION count_marks() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO marks SELECT count(*) FROM marked;
             RETURN NULL;
         END $$;
         CREATE TRIGGER count_marks AFTER UPDATE ON sessions REFERENCING NEW TABLE AS marked
         FOR EACH STATEMENT EXECUTE FUNCTION count_marks()",
    );
    let api = Server::start_with(&database, &data, &[]);
    let tokens = api.login("ann", PASSWORD).expect(200).tokens();
    database.run("DELETE FROM marks");
    api.logout_scope(&tokens, "others").expect(204);
    wait_until(|| database.count("ended_epochs") == 0);
    let live = "sessions WHERE ended_at IS NULL";
    assert_eq!((database.count(live), database.live_sessions(&ann)), (1, 1));
    assert_eq!(
        database
            .count("sessions WHERE ended_at IS NOT NULL AND num_nonnulls(address, user_agent) > 0"),
        0
    );
    let of = |what: &str| database.value::<i64>(&format!("SELECT {what}::bigint FROM marks"));
    // The sign-in has ended two of the user's 2,501. That the new session stays is a change of its row too.
    assert_eq!((of("sum(marked)"), of("max(marked)")), (2500, 1000));
}

#[test]
fn the_service_rests_after_each_batch_four_times_as_long_as_that_took() {
    let (database, data, ann) = service();
    insert_expired_sessions(&database, &ann, 5000);
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
    insert_expired_sessions(&database, &ann, 2000);
    count_deletions(&database, "sessions");
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
    assert_eq!(database.value::<i64>("SELECT sum(deleted)::bigint FROM deletions"), 2000);
    assert!(database.count("deletions WHERE deleted > 500") == 0);
}

#[test]
fn a_part_of_the_background_work_that_fails_keeps_no_other_from_running() {
    for (table, task) in [
        ("password_reset_requests", "password resets"),
        ("files", "records of deleted users and files"),
        ("sessions", "expired sessions"),
        ("used_password_reset_tokens", "used reset tokens"),
        ("outbox", "mail given up"),
        ("sign_in_networks", "networks of former sign-ins"),
    ] {
        let (database, data, ann) = service();
        let user = insert_deleted_user_with_a_file(&database);
        insert_expired_sessions(&database, &ann, 1);
        insert_used_tokens(&database, &ann, 1);
        insert_old_networks(&database, &ann, 1);
        database.run(&format!(
            "INSERT INTO password_reset_requests (email) VALUES ('nobody@example.com');
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
        for (other, condition) in [
            ("password_reset_requests", "true".to_owned()),
            ("files", format!("user_id = '{user}'")),
            ("sessions", "expires_at < now()".to_owned()),
            ("used_password_reset_tokens", "true".to_owned()),
            ("outbox", "true".to_owned()),
            ("sign_in_networks", "last_sign_in_at < now() - interval '30 days'".to_owned()),
        ] {
            let left = if other == table { 1 } else { 0 };
            wait_until(|| database.count(&format!("{other} WHERE {condition}")) == left);
        }
        wait_until(|| !draft.exists());
    }
}

/// Inserts a deleted user whose only file is still recorded, and returns the user's id.
fn insert_deleted_user_with_a_file(database: &Database) -> String {
    let user = "22222222-2222-4222-8222-222222222222";
    database.run(&format!("INSERT INTO users (id, is_deleted) VALUES ('{user}', true)"));
    database.insert_files(user, &[1]);
    database.run(&format!("INSERT INTO pending_removals VALUES ('{user}')"));
    user.to_owned()
}
