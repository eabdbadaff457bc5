//! Refused actions on their way into the audit log: none is lost, and a flood of them is bounded.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

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

#[test]
fn a_failed_sign_in_is_in_the_log_within_a_second() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let mut times: Vec<_> = (0..5)
        .map(|_| {
            let answer = api.login("root", "wrong").expect(401);
            let begin = Instant::now();
            let id = json!(answer.header("X-Request-ID"));
            let find = || {
                api.all_events(&root, "outcome=failure").into_iter().find(|e| e["request_id"] == id)
            };
            let event: Value = eventually(find);
            assert_eq!(event["subject_id"], json!(root.id()));
            begin.elapsed()
        })
        .collect();
    times.sort();
    // The fastest one, because the machine may be busy.
    assert!(times[0] < Duration::from_secs(1), "{times:?}");
}

#[test]
fn a_flood_of_failed_sign_ins_is_few_events_whose_counts_add_up() {
    let api = Server::start(&[]);
    api.sign_up("ann");
    let begin = Instant::now();
    parallel(8, |i| {
        for _ in 0..100 {
            let name = if i % 2 == 0 { "ann" } else { "nobody" };
            api.login(name, "wrong").expect(401);
        }
    });
    let total = || {
        let (own, _, counted) = failed_sign_ins(&api.database);
        own + counted
    };
    wait_until(|| total() == 800);
    let (own, counts, _) = failed_sign_ins(&api.database);
    let seconds = begin.elapsed().as_secs() as i64 + 2;
    assert!((1..=50 * seconds).contains(&own) && counts <= seconds, "{own} {counts} {seconds}");
    let metrics = api.metrics();
    let counter = |name: &str| {
        let prefix = format!("cloakroom_audit_failures_total{{recorded_as=\"{name}\"}} ");
        let number = metrics.lines().find_map(|line| line.strip_prefix(&prefix));
        number.map_or(0, |number| number.parse().expect("a number"))
    };
    assert_eq!((counter("event"), counter("event") + counter("count")), (own, 800));
}

#[test]
fn a_stop_writes_what_still_waits() {
    for server in ["builtin", "rouille"] {
        let api = Server::start(&[("CLOAKROOM_HTTP_SERVER", server)]);
        let database = api.database.clone();
        for _ in 0..3 {
            api.login("nobody", "wrong").expect(401);
        }
        api.signal(Signal::TERM);
        assert_eq!(api.exit_code(), Some(0));
        assert_eq!(failed_sign_ins(&database), (3, 0, 0));
    }
}

#[test]
fn a_database_that_comes_back_gets_every_failure_once() {
    let cluster = Cluster::start("audit");
    let api = cluster.serve(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")]);
    // The password is checked between the look-up and the failure, so what fails is recorded while the table is locked.
    let lock = api.database.begin("LOCK TABLE audit_events");
    for _ in 0..100 {
        api.login("nobody", "wrong").expect(401);
    }
    api.logged("background task failed, tried again soon: failures for the audit log: ");
    lock.roll_back();
    wait_until(|| {
        let (own, _, counted) = failed_sign_ins(&api.database);
        own + counted == 100
    });
    api.login("nobody", "wrong").expect(401);
    api.database.end_connections("application_name = 'cloakroom'");
    wait_until(|| {
        let (own, _, counted) = failed_sign_ins(&api.database);
        own + counted == 101
    });
    assert!(!api.log().contains("missing"), "{}", api.log());
}
