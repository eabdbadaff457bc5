//! What systemd is told: over the socket of sd_notify(3), and by the priorities of lines in its journal.
//! `scripts/test-production` has a real systemd.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use crate::harness::*;

/// A supervisor's socket, and the path at which a process finds it.
fn supervisor(directory: &Directory) -> (UnixDatagram, String) {
    let path = directory.join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    (socket, path.display().to_string())
}

/// The next message, as its lines.
fn message(socket: &UnixDatagram) -> Vec<String> {
    let mut bytes = [0; 4096];
    let length = socket.recv(&mut bytes).expect("a message");
    String::from_utf8_lossy(&bytes[..length]).lines().map(str::to_owned).collect()
}

/// Everything that was sent.
fn messages(socket: &UnixDatagram) -> Vec<Vec<String>> {
    socket.set_nonblocking(true).expect("a mode");
    let mut found = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        match socket.recv(&mut bytes) {
            Ok(length) => {
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                found.push(text.lines().map(str::to_owned).collect());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return found,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_supervisor_hears_of_each_migration_then_that_it_is_ready_and_then_that_it_stops() {
    for server in ["builtin", "rouille"] {
        let (database, data) = (Database::create(), Arc::new(Directory::create()));
        let (socket, path) = supervisor(&data);
        let settings = [("NOTIFY_SOCKET", &*path), ("CLOAKROOM_HTTP_SERVER", server)];
        let api = Server::start_with(&database, &data, &settings);
        let mut steps = Vec::new();
        let ready = loop {
            let lines = message(&socket);
            if lines.contains(&"READY=1".to_owned()) {
                break lines;
            }
            // Longer than the step may take: 30 seconds for the database, an hour for a migration.
            let time = lines.iter().find_map(|line| line.strip_prefix("EXTEND_TIMEOUT_USEC="));
            let seconds = time.and_then(|time| time.parse::<u64>().ok()).unwrap() / 1_000_000;
            let status = lines.iter().find_map(|line| line.strip_prefix("STATUS=")).unwrap();
            let least = if status.starts_with("Migrating") { 3600 } else { 30 };
            assert!(seconds > least, "{lines:?}");
            steps.push(status.to_owned());
        };
        assert!(steps.contains(&"Waiting for the database".to_owned()), "{steps:?}");
        assert!(steps.contains(&"Migrating: V1__accounts".to_owned()), "{steps:?}");
        assert!(
            ready.contains(&format!("STATUS=Listening on http://{}", api.address)),
            "{ready:?}"
        );
        api.signal(Signal::TERM);
        assert!(message(&socket).contains(&"STOPPING=1".to_owned()));
        assert_eq!(api.exit_code(), Some(0));
    }
}

#[test]
fn a_start_that_fails_is_never_ready_and_says_why() {
    let data = Directory::create();
    let (socket, path) = supervisor(&data);
    fs::write(data.join("file"), "x").expect("a file");
    for (name, value, code, reason) in [
        ("CLOAKROOM_TRASH_DAYS", "x", 2, "CLOAKROOM_TRASH_DAYS holds \"x\""),
        ("CLOAKROOM_DATA_DIR", "file", 1, "CLOAKROOM_DATA_DIR=file is a file"),
    ] {
        let settings = [("NOTIFY_SOCKET", &*path), (name, value)];
        command(NOWHERE, &data, &settings).arg("serve").output().expect("it runs").exits(code);
        let sent = messages(&socket).concat();
        assert!(!sent.contains(&"READY=1".to_owned()), "{sent:?}");
        let last = sent.last().expect("a message");
        assert!(last.starts_with(&format!("STATUS={reason}")), "{sent:?}");
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

/// Runs a command with standard error in a file that the journal's variable names, or another file, and returns the
/// lines.
fn lines_in_journal(
    mut command: Command,
    directory: &Directory,
    names_another: bool,
) -> Vec<String> {
    let path = directory.join("journal");
    let file = File::create(&path).expect("a file");
    let metadata = file.metadata().expect("metadata");
    let inode = metadata.ino() + u64::from(names_another);
    command.env("JOURNAL_STREAM", format!("{}:{inode}", metadata.dev())).stderr(file);
    command.status().expect("it runs");
    fs::read_to_string(&path).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn every_line_has_its_priority_in_the_journal_and_nowhere_else() {
    let data = Directory::create();
    fs::write(data.join("file"), "x").expect("a file");
    let wrong = &[("CLOAKROOM_TRASH_DAYS", "x"), ("CLOAKROOM_SCRYPT", "x")];
    let failing = &[("CLOAKROOM_DATA_DIR", "file"), ("CLOAKROOM_LISTN", "x")];
    let serve = |settings: &[(&str, &str)], names_another| {
        let mut command = command(NOWHERE, &data, settings);
        command.arg("serve");
        lines_in_journal(command, &data, names_another)
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
