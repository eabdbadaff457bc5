//! What systemd is told: over the socket of sd_notify(3), and by the priorities of lines in its journal.
//! `scripts/test-production` has a real systemd.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::harness::*;

/// A supervisor, which reads what it is sent at once: the queue of its socket is short.
struct Supervisor {
    path: String,
    messages: Receiver<Vec<String>>,
}

impl Supervisor {
    fn start(directory: &Directory) -> Supervisor {
        let path = directory.join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        let (sender, messages) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length) = socket.recv(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..length]);
                if sender.send(text.lines().map(str::to_owned).collect()).is_err() {
                    return;
                }
            }
        });
        Supervisor { path: path.display().to_string(), messages }
    }

    /// The lines of the next message.
    fn message(&self) -> Vec<String> {
        self.messages.recv_timeout(Duration::from_secs(30)).expect("a message")
    }

    /// The lines of all messages up to one with a line that begins so.
    fn up_to(&self, beginning: &str) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        loop {
            let message = self.message();
            let is_last = message.iter().any(|line| line.starts_with(beginning));
            found.push(message);
            if is_last {
                return found;
            }
        }
    }
}

/// By how many microseconds a message extends the time that the supervisor gives.
fn extended_by(message: &[String]) -> u64 {
    let time = message.iter().find_map(|line| line.strip_prefix("EXTEND_TIMEOUT_USEC="));
    time.expect("a time").parse().expect("a number")
}

#[test]
fn a_supervisor_hears_of_each_step_then_that_it_is_ready_and_then_that_it_stops() {
    for server in ["builtin", "rouille"] {
        let (database, data) = (Database::create(), Arc::new(Directory::create()));
        let supervisor = Supervisor::start(&data);
        let settings = [
            ("NOTIFY_SOCKET", &*supervisor.path),
            ("CLOAKROOM_HTTP_SERVER", server),
            ("CLOAKROOM_STOP_SECONDS", "3600"),
        ];
        let api = Server::start_with(&database, &data, &settings);
        let mut messages = supervisor.up_to("READY=1");
        let ready = messages.pop().expect("a message");
        let status = format!("STATUS=Listening on http://{}", api.address);
        assert!(ready.contains(&status), "{ready:?}");
        for lines in &messages {
            // Longer than the step may take: 30 seconds for the database, an hour for a change of the schema.
            let is_change = lines.iter().any(|line| line == "STATUS=Making the schema");
            let least = if is_change { 3_600_000_000 } else { 30_000_000 };
            assert!(extended_by(lines) > least, "{lines:?}");
        }
        for step in ["STATUS=Waiting for the database", "STATUS=Making the schema"] {
            assert!(messages.concat().iter().any(|line| line == step), "{step}: {messages:?}");
        }
        api.signal(Signal::TERM);
        let stopping = supervisor.message();
        assert!(stopping.contains(&"STOPPING=1".to_owned()), "{stopping:?}");
        assert!(extended_by(&stopping) > 3_600_000_000, "{stopping:?}");
        assert_eq!(api.exit_code(), Some(0));
    }
}

#[test]
fn a_start_that_fails_is_never_ready_and_says_why() {
    let data = Directory::create();
    let supervisor = Supervisor::start(&data);
    fs::write(data.join("file"), "x").expect("a file");
    for (name, value, code, reason) in [
        ("CLOAKROOM_TRASH_DAYS", "x", 2, "STATUS=CLOAKROOM_TRASH_DAYS holds \"x\""),
        ("CLOAKROOM_DATA_DIR", "file", 1, "STATUS=CLOAKROOM_DATA_DIR=file is a file"),
    ] {
        let settings = [("NOTIFY_SOCKET", &*supervisor.path), (name, value)];
        run_in(&data, NOWHERE, &["serve"], &settings).exits(code);
        let sent = supervisor.up_to(reason).concat();
        assert!(!sent.contains(&"READY=1".to_owned()), "{sent:?}");
    }
}

#[test]
fn a_supervisor_that_hears_nothing_stops_nobody() {
    let (database, data) = (Database::create_migrated(), Arc::new(Directory::create()));
    let nobody = data.join("nobody").display().to_string();
    let api = Server::start_with(&database, &data, &[("NOTIFY_SOCKET", &*nobody)]);
    api.healthz().expect(200);
    api.signal(Signal::TERM);
    assert_eq!(api.exit_code(), Some(0));
}

#[test]
fn every_line_has_its_priority_in_the_journal_and_nowhere_else() {
    let data = Directory::create();
    fs::write(data.join("file"), "x").expect("a file");
    let wrong = &[("CLOAKROOM_TRASH_DAYS", "x"), ("CLOAKROOM_SCRYPT", "x")];
    let failing = &[("CLOAKROOM_DATA_DIR", "file"), ("CLOAKROOM_LISTN", "x")];
    // Serves with standard error in a file that the journal's variable names, or another file, and returns the lines.
    let serve = |settings: &[(&str, &str)], names_another| {
        let file = File::create(data.join("journal")).expect("a file");
        let metadata = file.metadata().expect("metadata");
        let inode = metadata.ino() + u64::from(names_another);
        let mut command = command(NOWHERE, &data, settings);
        command.env("JOURNAL_STREAM", format!("{}:{inode}", metadata.dev())).arg("serve");
        command.stderr(file).status().expect("it runs");
        let text = fs::read_to_string(data.join("journal")).expect("text");
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let refused = serve(wrong, false);
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(refused.iter().all(|line| line.starts_with("<3>")), "{refused:?}");
    let failed = serve(failing, false);
    let [warning, error] = &failed[..] else { panic!("{failed:?}") };
    assert!(warning.starts_with("<4>2") && warning.contains("CLOAKROOM_LISTN"), "{warning}");
    assert_eq!(error, "<3>cloakroom: CLOAKROOM_DATA_DIR=file is a file, not a directory");
    for settings in [wrong, failing] {
        let plain = serve(settings, true);
        assert!(plain.iter().all(|line| !line.starts_with('<')), "{plain:?}");
    }
}
