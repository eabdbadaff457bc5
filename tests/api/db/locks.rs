//! Something locks a table or a row for long. Only requests that need it may fail, and none may wait longer than
//! promised.

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

#[test]
fn a_locked_table_stops_neither_downloads_nor_sign_ins() {
    let settings =
        [("CLOAKROOM_DATABASE_POOL_SIZE", "8"), ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "12")];
    let (api, [ann, bob, carl]) = Server::with_users(&settings, ["ann", "bob", "carl"]);
    let file = api.new_file(&ann, "a.txt", "content");
    let files = [&ann, &bob, &carl].map(|user| (user, api.new_file(user, "b.txt", "content")));
    // As of an index that is built: the table can be read, and not changed.
    let lock = api.database.begin("LOCK TABLE files IN SHARE MODE");
    thread::scope(|scope| {
        // Two of each run at once, which are all that may.
        let change = |n: usize| {
            let (user, file) = &files[n % 3];
            api.update_file(*user, file, json!({"filename": "c.txt"}))
        };
        let changes: Vec<_> = (0..9).map(|n| scope.spawn(move || change(n))).collect();
        wait_until(|| api.database.blocked_statements() == 6);
        let begin = Instant::now();
        for _ in 0..20 {
            assert_eq!(api.download(&ann, &file).expect(200).text(), "content");
        }
        // Nobody waits for half of the timeout of 12 seconds, after which the first of the changes give up.
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        api.login("ann", PASSWORD).expect(200);
        for change in changes {
            let status = change.join().expect("no panic").status;
            assert!([503, 504].contains(&status), "{status}");
        }
    });
    lock.roll_back();
    let line = api.logged("canceling statement due to lock timeout (55P03)");
    assert!(line.contains("pg_locks"), "{line}");
    api.update_file(&ann, &file, json!({"filename": "b.txt"})).expect(200);
}

/// Contents are looked for every five seconds.
#[test]
fn a_locked_table_keeps_no_background_work_waiting_that_has_nothing_to_do() {
    let api = Server::start(&[]);
    let _lock = api.database.begin("LOCK TABLE files IN ACCESS EXCLUSIVE MODE");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(6) {
        assert_eq!(api.database.blocked_statements(), 0);
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn all_queries_of_a_request_together_take_no_longer_than_one_may() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "6")], ["ann"]);
    // The look-up of the session takes 4 seconds, and the change that follows it never ends.
    api.database.run(
        "ALTER TABLE sessions RENAME TO sessions_of_before;
         CREATE VIEW sessions AS SELECT s.* FROM sessions_of_before s, (SELECT pg_sleep(4)) slow;
         CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
         CREATE TRIGGER hang BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION hang()",
    );
    let begin = Instant::now();
    api.update_me(&ann, json!({"name": "Ann"})).refused(504, "Request timed out");
    let took = begin.elapsed();
    assert!(took >= Duration::from_secs(4), "the first query was not slow: {took:?}");
    // With 6 seconds for each query this would be 10.
    assert!(took < Duration::from_millis(9500), "{took:?}");
}

#[test]
fn an_upload_waits_for_the_quota_as_long_as_a_statement_may_take() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "10")], ["ann"]);
    let lock = api.database.begin("SELECT FROM storage_shards FOR UPDATE");
    thread::scope(|scope| {
        let upload = scope.spawn(|| api.upload(&ann, "a.txt", "content"));
        // Longer than half of the timeout.
        let waiting =
            "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                       AND query_start < now() - interval '6 s'";
        wait_until(|| api.database.count(waiting) == 1);
        lock.roll_back();
        upload.join().expect("no panic").expect(201);
    });
    // It does not hold for the statements that follow on the connection.
    let lock = api.database.begin("LOCK TABLE files");
    let begin = Instant::now();
    api.upload(&ann, "b.txt", "content").refused(504, "Request timed out");
    assert!(begin.elapsed() < Duration::from_millis(9500), "{:?}", begin.elapsed());
    lock.roll_back();
}
