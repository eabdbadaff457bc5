//! Refused actions on their way into the audit log: none is lost, and a flood of them is bounded.

use std::time::{Duration, Instant};

use crate::harness::*;

/// All failed sign-ins in the log: how many events stand for one of them, how many events count the rest, and what
/// those count.
fn failed_sign_ins(database: &Database) -> (i64, i64, i64) {
    let failures = "audit_events WHERE action = 'auth.login' AND outcome = 'failure'";
    let own =
        database.count(&format!("{failures} AND request_id IS NOT NULL AND details = '{{}}'"));
    let counts = database.count(&format!("{failures} AND request_id IS NULL AND address IS NULL"));
    let counted = "SELECT coalesce(sum((details->>'count')::bigint), 0)::bigint FROM";
    (own, counts, database.value(&format!("{counted} {failures}")))
}

fn all_failed_sign_ins(database: &Database) -> i64 {
    let (own, _, counted) = failed_sign_ins(database);
    own + counted
}

#[test]
fn a_failed_sign_in_is_in_the_log_within_a_second() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let times = [(); 5].map(|()| {
        let answer = api.login("root", "wrong").expect(401);
        let (begin, id) = (Instant::now(), answer.header("X-Request-ID"));
        let found = || api.all_events(&root, "outcome=failure");
        let event = eventually(|| found().into_iter().find(|event| event["request_id"] == id));
        assert_eq!(event["subject_id"], json!(root.id()));
        begin.elapsed()
    });
    // The fastest one, because the machine may be busy.
    assert!(times.iter().min() < Some(&Duration::from_secs(1)), "{times:?}");
}

#[test]
fn a_flood_of_failed_sign_ins_is_few_events_whose_counts_add_up() {
    let (api, [_]) = Server::with_users(&[], ["ann"]);
    let begin = Instant::now();
    parallel(8, |i| {
        for _ in 0..100 {
            let name = if i % 2 == 0 { "ann" } else { "nobody" };
            api.login(name, "wrong").expect(401);
        }
    });
    wait_until(|| all_failed_sign_ins(&api.database) == 800);
    let (own, counts, _) = failed_sign_ins(&api.database);
    let seconds = begin.elapsed().as_secs() as i64 + 2;
    assert!((1..=50 * seconds).contains(&own) && counts <= seconds, "{own} {counts} {seconds}");
    let counter = |name: &str| {
        let name = format!("cloakroom_audit_failures_total{{recorded_as=\"{name}\"}}");
        api.metric(&name).unwrap_or_default() as i64
    };
    assert_eq!((counter("event"), counter("event") + counter("count")), (own, 800));
}

#[test]
fn a_stop_writes_what_still_waits() {
    for server in ["builtin", "rouille"] {
        let api = Server::start(&[("CLOAKROOM_HTTP_SERVER", server)]);
        for _ in 0..3 {
            api.login("nobody", "wrong").expect(401);
        }
        let (database, _, status) = api.end(Signal::TERM);
        assert_eq!(status, Some(0));
        assert_eq!(failed_sign_ins(&database), (3, 0, 0));
    }
}

#[test]
fn a_database_that_comes_back_gets_every_failure_once_and_what_is_lost_is_counted() {
    let api = Server::start(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3")]);
    let errors = || api.metric("cloakroom_audit_write_errors_total").expect("a counter");
    let lost = || api.metric("cloakroom_audit_failures_lost_total").expect("a counter");
    assert_eq!((errors(), lost()), (0.0, 0.0));
    // The password is checked between the look-up and the failure, so what fails is recorded while the table is locked.
    let lock = api.database.begin("LOCK TABLE audit_events");
    for _ in 0..100 {
        api.login("nobody", "wrong").expect(401);
    }
    api.logged("background task failed, tried again soon: failures for the audit log: ");
    wait_until(|| errors() > 0.0);
    lock.roll_back();
    wait_until(|| all_failed_sign_ins(&api.database) == 100);
    api.login("nobody", "wrong").expect(401);
    api.database.end_connections("application_name = 'cloakroom'");
    wait_until(|| all_failed_sign_ins(&api.database) == 101);
    assert_eq!(lost(), 0.0);
    assert!(!api.log().contains("missing"), "{}", api.log());
    let failed = errors();
    api.database.run("ALTER TABLE audit_events RENAME TO elsewhere");
    api.login("nobody", "wrong").expect(401);
    wait_until(|| lost() == 1.0);
    assert_eq!(errors(), failed + 1.0);
    api.logged("1 failures are missing from the audit log");
}
