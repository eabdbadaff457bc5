//! `cloakroom audit`: the events of the audit log on the command line.

use std::io::{BufRead, BufReader, Lines, Read};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::*;

#[test]
fn the_command_prints_the_events_of_a_time_oldest_first_and_needs_only_the_database() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    api.database.run(
        "INSERT INTO audit_events (at, action)
         SELECT date_trunc('second', now()) - make_interval(days => 2, secs => n), 'auth.login'
         FROM generate_series(1, 2500) n",
    );
    // Of all settings only those of the database matter.
    let print = |arguments: &[&str]| {
        let arguments = [&["audit"], arguments].concat();
        let output = run(&api.database.url, &arguments, &[("CLOAKROOM_WORKERS", "many")]).exits(0);
        output.out().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let recent = print(&["--since", "1h"]);
    assert_eq!(recent, print(&[]), "a day is the default");
    assert_eq!(recent.len(), 2, "{recent:?}");
    let (id, events) = (root.id(), api.all_events(&root, "limit=2"));
    for (line, event) in recent.iter().rev().zip(events) {
        let text = |name: &str| event[name].as_str().expect("text").to_owned();
        let [at, action, request] = ["at", "action", "request_id"].map(text);
        let expected = format!(
            "{at} success {action} actor={id} actor_name=root subject=user:{id} subject_name=root \
             address=127.0.0.1 request={request} {}",
            event["details"]
        );
        assert_eq!(*line, expected.trim_end_matches(" {}"));
    }
    let all = print(&["--since", "7d"]);
    assert_eq!(all.len(), 2502);
    assert!(all.is_sorted());
    for since in ["x", "1", "1s", "-1h", "99999d"] {
        run(&api.database.url, &["audit", "--since", since], &[]).exits(2);
    }
    run("", &["audit"], &[]).exits(2).reports("CLOAKROOM_DATABASE_URL");
    let empty = Database::create();
    run(&empty.url, &["audit"], &[]).exits(1).reports("audit_events");
    assert_eq!(empty.count("pg_tables WHERE schemaname = 'public'"), 0, "it migrates nothing");
}

#[test]
fn as_json_each_event_is_a_line_as_the_list_shows_it() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let file = api.new_file(&root, "caf\u{e9} 'b' \u{1f600}.txt", "a");
    api.delete_file(&root, &file).expect(204);
    api.login("root", "wrong horse").expect(401);
    let mut events = Vec::new();
    wait_until(|| {
        events = api.all_events(&root, "");
        events.len() == 5
    });
    let output = run(&api.database.url, &["audit", "--format", "json"], &[]).exits(0).out();
    let lines = output.lines().map(|line| serde_json::from_str::<Value>(line).expect("it"));
    let lines: Vec<_> = lines.collect();
    events.reverse();
    assert_eq!(lines, events);
    assert!(lines.iter().any(|event| event["details"]["filename"].is_string()), "{lines:?}");
    // Also those that come later, each once.
    let mut follower = Follower::start_with(&api.database.url, &["--format", "json"]);
    for expected in &events {
        assert_eq!(serde_json::from_str::<Value>(&follower.next()).expect("it"), *expected);
    }
    api.logout(&root).expect(204);
    let later: Value = serde_json::from_str(&follower.next()).expect("an event");
    assert_eq!(later["action"], "auth.logout");
    run(&api.database.url, &["audit", "--format", "xml"], &[]).exits(2);
}

/// A running `cloakroom audit --follow`. It is killed when this is dropped.
struct Follower {
    process: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

impl Follower {
    fn start(database_url: &str) -> Follower {
        Follower::start_with(database_url, &[])
    }

    fn start_with(database_url: &str, arguments: &[&str]) -> Follower {
        let mut command = command(database_url, &Directory::create(), &[]);
        command
            .args(["audit", "--follow"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.current_dir("/").spawn().expect("it starts");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        Follower { process, lines: Some(output.lines()) }
    }

    fn next(&mut self) -> String {
        self.lines.as_mut().and_then(Iterator::next).expect("a line").expect("text")
    }

    /// Expects the next event to be of this action.
    #[track_caller]
    fn expect(&mut self, action: &str) {
        let line = self.next();
        assert!(line.contains(&format!(" success {action}")), "{action}: {line}");
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
    }

    /// Expects that a signal ends it without a further event, so that it has printed each once.
    #[track_caller]
    fn ends_after(self, signal: Signal) {
        self.signal(signal);
        assert_eq!(self.end(), (Some(128 + signal.as_raw()), Vec::new(), String::new()));
    }

    /// Waits for the end of the process, and returns its exit status, what it still printed, and its errors.
    fn end(mut self) -> (Option<i32>, Vec<String>, String) {
        let status = eventually(|| self.process.try_wait().expect("a child"));
        let lines = self.lines.take().into_iter().flatten().map_while(Result::ok).collect();
        let mut errors = String::new();
        let stderr = self.process.stderr.as_mut().expect("its errors");
        stderr.read_to_string(&mut errors).expect("text");
        (status.code(), lines, errors)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_command_goes_on_printing_what_comes_until_a_signal_ends_it() {
    let api = Server::start(&[]);
    api.sign_up("ann");
    for (signal, name) in [(Signal::INT, "bob"), (Signal::TERM, "eve")] {
        let count = api.database.count("audit_events");
        let mut follower = Follower::start(&api.database.url);
        (0..count).for_each(|_| drop(follower.next()));
        api.register(name).expect(201);
        follower.expect("auth.register");
        follower.ends_after(signal);
    }
}

#[test]
fn an_event_is_printed_however_late_it_is_committed_and_none_twice() {
    let api = Server::start(&[]);
    let database = &api.database;
    api.sign_up("ann");
    let mut follower = Follower::start(&database.url);
    follower.expect("auth.register");
    follower.expect("auth.login");
    let insert = "INSERT INTO audit_events (at, action) VALUES";
    let late = database.begin(&format!("{insert} (now() - interval '5 min', 'admin.create')"));
    // The clock of a host that writes events may be ahead of the others.
    database.run(&format!("{insert} (now() + interval '1 hour', 'user.create')"));
    follower.expect("user.create");
    for name in ["bob", "eve"] {
        api.register(name).expect(201);
        follower.expect("auth.register");
    }
    late.commit();
    follower.expect("admin.create");
    follower.ends_after(Signal::TERM);
}

#[test]
fn the_event_of_a_reset_is_printed_however_long_its_request_waited_for_the_service() {
    let (service, _) = Installation::after(|api| api.register("ann").expect(201));
    let database = &service.database;
    database.run(
        "INSERT INTO password_reset_requests (email_key, requested_at)
         VALUES ('ann@example.com', now() - interval '3 hours')",
    );
    let mut follower = Follower::start(&database.url);
    follower.expect("auth.register");
    for _ in 0..2 {
        database.run("INSERT INTO audit_events (action) VALUES ('user.update')");
        follower.expect("user.update");
    }
    let _api = service.serve();
    follower.expect("password.reset_request");
    database.run("INSERT INTO audit_events (action) VALUES ('user.update')");
    follower.expect("user.update");
    follower.ends_after(Signal::TERM);
}

/// What is asked before each look at the log: a later look begins where no unfinished transaction can add anything.
#[test]
fn events_of_a_transaction_that_is_not_finished_are_still_to_come() {
    let database = Database::create_migrated();
    let sql = include_str!("../../sql/tools/audit/settled_before.sql").replace("$1::float8", "0");
    let seconds = |of: &str| -> f64 {
        database.value(&format!("SELECT extract(epoch FROM {of})::float8 FROM ({sql}) AS found"))
    };
    let age = || seconds("clock_timestamp() - settled_before");
    wait_until(|| age() < 1.0);
    let reads = database.begin("SELECT count(*) FROM audit_events");
    let writes = database.begin("INSERT INTO audit_events (action) VALUES ('user.create')");
    let begun: f64 = database.value(
        "SELECT extract(epoch FROM xact_start)::float8 FROM pg_stat_activity
         WHERE backend_xid IS NOT NULL AND datname = current_database()
         ORDER BY xact_start LIMIT 1",
    );
    wait_until(|| age() > 1.0);
    let found = seconds("settled_before");
    assert!((found - begun).abs() < 0.001, "{found} {begun}");
    writes.commit();
    wait_until(|| age() < 1.0); // a transaction that only reads adds nothing
    reads.commit();
}

#[test]
fn the_command_ends_quietly_when_nobody_reads_it_any_more() {
    let api = Server::start(&[]);
    api.sign_up("ann");
    let mut follower = Follower::start(&api.database.url);
    follower.expect("auth.register");
    follower.lines = None;
    assert_eq!(follower.end(), (Some(0), Vec::new(), String::new()), "without a further event");
}

#[test]
fn the_command_waits_for_a_database_that_went_away_and_says_so_once() {
    let cluster = Cluster::start("follow");
    let api = cluster.serve(&[]);
    api.sign_up("ann");
    let mut follower = Follower::start(&api.database.url);
    follower.expect("auth.register");
    follower.expect("auth.login");
    cluster.stop();
    // Long enough for several attempts.
    wait_until(|| api.login("ann", PASSWORD).status == 503);
    assert_eq!(api.login("ann", PASSWORD).status, 503);
    cluster.start_again();
    wait_until(|| api.login("ann", PASSWORD).status == 200);
    follower.expect("auth.login");
    api.register("bob").expect(201);
    follower.expect("auth.register");
    cluster.stop();
    follower.signal(Signal::INT);
    let begin = Instant::now();
    let (status, lines, errors) = follower.end();
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_eq!((status, lines), (Some(130), Vec::new()));
    let lost = errors.matches("no connection to the database at").count();
    assert!((1..=2).contains(&lost), "once for each of the two times: {errors}");
    assert!(errors.contains("is back after"), "{errors}");
}
