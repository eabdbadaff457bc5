//! `cloakroom audit`: the events of the audit log on the command line.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::harness::*;

#[test]
fn the_command_prints_the_events_of_a_time_oldest_first_and_needs_only_the_database() {
    let api = Server::start(&[]);
    let root = api.sign_up_admin("root");
    api.database.run(
        "INSERT INTO audit_events (at, action)
         SELECT date_trunc('second', now()) - make_interval(days => 2, secs => n), 'auth.login'
         FROM generate_series(1, 2500) n",
    );
    // Of all settings only those of the database matter.
    let broken = [
        ("CLOAKROOM_ENV", "production"),
        ("CLOAKROOM_WORKERS", "many"),
        ("CLOAKROOM_JWT_SECRET", "x"),
    ];
    let print = |arguments: &[&str]| {
        let arguments = [&["audit"], arguments].concat();
        let output = run(&api.database.url, &arguments, &broken).exits(0);
        output.out().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let recent = print(&["--since", "1h"]);
    assert_eq!(recent, print(&[]), "a day is the default");
    assert_eq!(recent.len(), 2, "{recent:?}");
    let events = api.all_events(&root, "limit=2");
    for (line, event) in recent.iter().rev().zip(events) {
        let text = |name: &str| event[name].as_str().expect("text").to_owned();
        let expected = format!(
            "{} success {} actor={id} subject=user:{id} address=127.0.0.1 request={}",
            text("at"),
            text("action"),
            text("request_id"),
            id = root.id()
        );
        let details = event["details"].as_object().expect("an object");
        let details =
            if details.is_empty() { String::new() } else { format!(" {}", event["details"]) };
        assert_eq!(*line, expected + &details);
    }
    let all = print(&["--since", "7d"]);
    assert_eq!(all.len(), 2502);
    assert!(all.is_sorted());
    for since in ["x", "1", "1s", "-1h", "99999d"] {
        run(&api.database.url, &["audit", "--since", since], &[]).exits(2);
    }
    let text = run("", &["audit"], &[]).exits(2).err();
    assert!(text.contains("CLOAKROOM_DATABASE_URL"), "{text}");
    let empty = Database::create();
    let text = run(&empty.url, &["audit"], &[]).exits(1).err();
    assert!(text.contains("audit_events"), "{text}");
    assert_eq!(empty.count("pg_tables WHERE schemaname = 'public'"), 0, "it migrates nothing");
}

#[test]
fn the_command_goes_on_printing_what_comes_until_it_is_stopped() {
    let api = Server::start(&[]);
    api.sign_up("ann");
    let mut follow = command(&api.database.url, &api.data, &[]);
    let mut process =
        follow.args(["audit", "--follow"]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    assert!(next().contains("auth.register"));
    assert!(next().contains("auth.login"));
    // One that was committed after a newer one is printed as well.
    let late = api.database.begin(
        "INSERT INTO audit_events (at, action) VALUES (now() - interval '1 s', 'admin.create')",
    );
    for name in ["bob", "eve"] {
        api.register(name).expect(201);
        assert!(next().contains("auth.register"));
    }
    late.commit();
    assert!(next().contains("admin.create"));
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    assert!(lines.next().is_none(), "each event once");
}
