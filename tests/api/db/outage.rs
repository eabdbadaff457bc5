//! A database that hangs, or restarts under load. The service must say so, and recover without help.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

/// Sends requests on 16 threads while `during` runs, and returns every status and how long it took. `during` is given a
/// function that counts the answers so far.
fn under_load(
    request: impl Fn() -> u16 + Sync,
    during: impl FnOnce(&dyn Fn() -> usize),
) -> Vec<(u16, Duration)> {
    let (over, seen) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    let status = request();
                    seen.lock().expect("seen").push((status, begin.elapsed()));
                }
            });
        }
        let _stop = SetOnDrop(&over);
        during(&|| seen.lock().expect("seen").len());
    });
    seen.into_inner().expect("seen")
}

/// Expects these statuses only, and none after more than `limit`.
fn expect_only(seen: &[(u16, Duration)], statuses: &[u16], limit: Duration) {
    for (status, took) in seen {
        assert!(statuses.contains(status), "{status} after {took:?}");
        assert!(*took < limit, "{status} after {took:?}");
    }
}

/// Sends a change, which waits for a lock, and breaks its connection after `during`.
fn broken_change(api: &Server, ann: &Tokens, during: impl FnOnce()) {
    let lock = api.database.begin("LOCK TABLE users IN EXCLUSIVE MODE");
    thread::scope(|scope| {
        let change = scope.spawn(|| api.update_me(ann, json!({"name": "Ann"})));
        // The background threads may wait as well.
        let blocked =
            "wait_event_type = 'Lock' AND query LIKE '-- A user''s changes to their own%'";
        wait_until(|| api.database.connections(blocked) == 1);
        during();
        api.database.end_connections(blocked);
        change.join().expect("no panic").refused(503, "Service temporarily unavailable");
    });
    lock.roll_back();
}

#[test]
fn a_database_that_hangs_is_answered_with_503_in_time_and_used_again_when_it_is_back() {
    let cluster = Cluster::start("hang");
    let api = cluster.serve(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")]);
    let ann = api.sign_up("ann");
    let seen = under_load(
        || api.profile(&ann).status,
        |count| {
            let suspended = cluster.suspend();
            let before = count();
            wait_until(|| {
                api.healthz().expect(200);
                api.readyz().refused(503, "Service temporarily unavailable");
                count() >= before + 48
            });
            drop(suspended);
            wait_until(|| api.profile(&ann).status == 200);
        },
    );
    expect_only(&seen, &[200, 503, 504], Duration::from_secs(20));
    let failed: Vec<_> =
        seen.iter().filter(|(status, _)| *status != 200).map(|(_, took)| *took).collect();
    assert!(failed.len() >= 16, "only {} of {} requests met the outage", failed.len(), seen.len());
    // With the default timeout of 5 seconds this would be longer.
    assert!(median(failed.clone()) < Duration::from_secs(4), "{failed:?}");
    for _ in 0..50 {
        api.profile(&ann).expect(200);
    }
}

/// The URL of two hosts in one, with the credentials and the database of the first.
fn with_both_hosts(first: &str, second: &str) -> String {
    let (credentials, rest) = first.rsplit_once('@').expect("a URL with a user");
    let (host, database) = rest.split_once('/').expect("a URL with a database");
    let (_, second) = second.rsplit_once('@').expect("a URL with a user");
    let (second, _) = second.split_once('/').expect("a URL with a database");
    format!("{credentials}@{host},{second}/{database}&target_session_attrs=read-write")
}

#[test]
fn a_host_that_hangs_is_left_for_the_next_one_by_a_service_that_runs_and_by_one_that_starts() {
    let database = Database::create();
    let [first, second] = [(); 2].map(|()| DatabaseProxy::start(&database.url));
    let url = with_both_hosts(&first.url, &second.url);
    let data = Arc::new(Directory::create());
    let serve = || Server::spawn(command(&url, &data, &[]), &database, &data);
    let api = serve();
    let ann = api.sign_up("ann");
    // Several connections, each of which hangs.
    parallel(8, |_| api.profile(&ann).expect(200));
    assert_eq!(second.count_sent(|_| true), 0, "the first host is used while it answers");
    first.hold(b"");
    // One request may use a connection that has answered a moment ago. It hangs until its statement should have ended.
    let begin = Instant::now();
    let statuses = [api.profile(&ann).status, api.profile(&ann).status];
    assert_eq!(statuses[1], 200, "{statuses:?}");
    assert!([200, 503].contains(&statuses[0]), "{statuses:?}");
    // The default timeout of 5 seconds, each, and some for a busy machine.
    assert!(begin.elapsed() < Duration::from_secs(20));
    for _ in 0..50 {
        api.profile(&ann).expect(200);
    }
    assert!(second.count_sent(|_| true) > 0);
    api.logged(" is back after ");
    serve().profile(&ann).expect(200);
}

#[test]
fn after_a_restart_of_the_database_nothing_fails() {
    let cluster = Cluster::start("restart-under-load");
    let api = cluster.serve(&[]);
    let ann = api.sign_up("ann");
    let seen = under_load(
        || api.profile(&ann).status,
        |_| {
            cluster.stop();
            cluster.start_again();
        },
    );
    expect_only(&seen, &[200, 503], Duration::from_secs(20));
    let after = under_load(|| api.profile(&ann).status, |count| wait_until(|| count() > 500));
    expect_only(&after, &[200], Duration::from_secs(20));
}

#[test]
fn a_change_that_breaks_after_the_outage_it_met_is_no_second_outage() {
    let database = Database::create();
    let [first, second] = [(); 2].map(|()| DatabaseProxy::start(&database.url));
    let url = with_both_hosts(&first.url, &second.url) + "&connect_timeout=1";
    let data = Arc::new(Directory::create());
    // The change must not reach the end of its time before the outage is over.
    let settings = [("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "60"), ("CLOAKROOM_LOG_FORMAT", "json")];
    let api = Server::spawn(command(&url, &data, &settings), &database, &data);
    let ann = api.sign_up("ann");
    // The background thread, too, uses connections, one of which is checked before its use if it has idled for 100 ms.
    let busy = "application_name = 'cloakroom' AND wait_event_type IS DISTINCT FROM 'Lock'
                AND (state <> 'idle' OR state_change > now() - interval '200 ms')";
    let wait_until_idle = || wait_until(|| database.connections(busy) == 0);
    wait_until_idle();
    broken_change(&api, &ann, || {
        // Now there is another connection.
        api.profile(&ann).expect(200);
        wait_until_idle();
        first.hold(b"");
        api.profile(&ann).expect(200);
        api.logged(" is back after ");
    });
    api.profile(&ann).expect(200);
    let lines = lines_beside_requests(&api.log());
    assert_eq!(lines.len(), 2, "{lines:#?}");
}

#[test]
fn an_error_that_only_a_pooler_of_transactions_causes_is_logged_with_what_to_do() {
    let api = Server::start(&[]);
    for (number, code) in ["26000", "42P05"].into_iter().enumerate() {
        api.database.run(&format!(
            "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END $$;
             CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION fail()"
        ));
        let answer = api.register(&format!("ann{number}")).refused(500, "Internal server error");
        answer.has(json!({"reason": "INTERNAL_ERROR"}));
        let line = api.logged(&format!("ERROR: no ({code})"));
        assert!(line.contains("must use session pooling"), "{line}");
    }
}

/// The level and the message of every line of a log in JSON that is not about a request, after the one about the start.
fn lines_beside_requests(log: &str) -> Vec<(String, String)> {
    let text = |line: &Value, name: &str| line[name].as_str().expect("a text").to_owned();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines
        .filter(|line| line["target"] != "cloakroom::access")
        .map(|line| (text(&line, "level"), text(&line, "message")))
        .skip_while(|(_, message)| !message.contains("listening on"))
        .skip(1)
        .collect()
}

#[test]
fn a_database_stopped_for_five_seconds_under_load_gives_exactly_two_lines() {
    let cluster = Cluster::start("two-lines");
    let json = ("CLOAKROOM_LOG_FORMAT", "json");
    // Half of this is how long a request may wait for another one that changes the same account.
    let api = cluster.serve(&[json, ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3")]);
    let ann = api.sign_up("ann");
    let number = AtomicUsize::new(0);
    // Reads, writes, and failures for the audit log. Background work looks at the database every five seconds.
    let request = || match number.fetch_add(1, Ordering::Relaxed) % 4 {
        0 => api.update_me(&ann, json!({"name": "Ann"})).status,
        1 => api.login("ann", "wrong password").status,
        2 => api.request_reset("nobody@example.com").status,
        _ => api.profile(&ann).status,
    };
    let seen = under_load(request, |count| {
        wait_until(|| count() > 100);
        cluster.stop();
        thread::sleep(Duration::from_secs(5));
        cluster.start_again();
        wait_until(|| api.log().contains("is back after"));
        // Longer than the period of the background work, which is under way again too.
        thread::sleep(Duration::from_secs(6));
    });
    assert!(seen.iter().any(|(status, _)| *status == 503), "no request met the outage");
    let server = cluster.address();
    let lines = lines_beside_requests(&api.log());
    let [(lost_level, lost), (back_level, back)] = &lines[..] else { panic!("{lines:#?}") };
    let (lost_level, back_level) = (lost_level.as_str(), back_level.as_str());
    assert_eq!((lost_level, back_level), ("ERROR", "INFO"));
    let beginning = format!("no connection to the database at {server}: ");
    assert!(lost.starts_with(&beginning), "{lost}");
    let seconds = back
        .strip_prefix(&format!("the database at {server} is back after "))
        .and_then(|rest| rest.strip_suffix(" s")?.parse::<u32>().ok())
        .unwrap_or_else(|| panic!("{back}"));
    assert!((5..=30).contains(&seconds), "{back}");
    assert_eq!(api.end(Signal::TERM).2, Some(0));
}

#[test]
fn a_broken_connection_under_a_change_is_two_lines_and_replaced() {
    let settings = [("CLOAKROOM_DATABASE_POOL_SIZE", "4"), ("CLOAKROOM_LOG_FORMAT", "json")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    // More than one connection, so that others are idle when one breaks.
    parallel(16, |_| api.profile(&ann).expect(200));
    broken_change(&api, &ann, || ());
    for _ in 0..20 {
        api.profile(&ann).expect(200);
    }
    let lines = lines_beside_requests(&api.log());
    let [(_, lost), (_, back)] = &lines[..] else { panic!("{lines:#?}") };
    // The end of the connection may be seen before what the server says about it.
    let reasons =
        ["FATAL: terminating connection due to administrator command (57P01)", "connection closed"];
    assert!(reasons.iter().any(|reason| lost.ends_with(&format!(": {reason}"))), "{lost}");
    assert!(back.contains(" is back after "), "{back}");
}
