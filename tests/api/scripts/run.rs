//! `scripts/run` with a private PostgreSQL: the real script, with a stand-in for cargo that "builds" the binary under
//! test.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::*;

/// A script that a shell runs. SIGINT stops it also where these tests run in the background, with that signal ignored:
/// a shell cannot trap a signal that was ignored when it began (POSIX, 2.11).
fn script(name: &str) -> Command {
    let mut command = Command::new("env");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name);
    command.arg("--default-signal=INT").arg(path);
    command
}

/// A data directory with a private PostgreSQL in it, which is removed when this is dropped.
struct Installation {
    data: PathBuf,
    cargo_home: Directory,
    target: Directory,
}

impl Installation {
    /// The name is the test's: what an interrupted run left under it is removed first.
    fn create(name: &str) -> Installation {
        let data = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-{name}"));
        let installation =
            Installation { data, cargo_home: Directory::create(), target: Directory::create() };
        installation.remove();
        std::fs::create_dir(installation.cargo_home.join("bin")).expect("a directory");
        installation.install_cargo("1.100.0");
        installation
    }

    /// Puts a stand-in for cargo of that version in place.
    fn install_cargo(&self, version: &str) {
        let binary = self.target.join("release/cloakroom");
        let cargo = format!(
            "#!/bin/sh\nset -eu\n\
             [ \"$*\" != --version ] || {{ echo 'cargo {version} (0123456789 2026-01-01)'; exit; }}\n\
             [ \"$*\" = 'build --release --locked' ]\n\
             mkdir -p '{}'\nln -sf '{BINARY}' '{}'\n",
            binary.parent().expect("a directory").display(),
            binary.display(),
        );
        let path = self.cargo_home.join("bin/cargo");
        std::fs::write(&path, cargo).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode");
    }

    /// Runs `scripts/postgres` on the private cluster.
    fn postgres(&self, command: &str) -> std::process::Output {
        let mut script = script("postgres");
        script.arg(command).arg(self.data.join("postgres")).output().expect("scripts/postgres")
    }

    fn postgres_runs(&self) -> bool {
        self.postgres("url").status.success()
    }

    fn remove(&self) {
        self.postgres("remove").exits(0);
        let _ = std::fs::remove_dir_all(&self.data);
    }

    /// `scripts/run`, to be started.
    fn command(&self) -> Command {
        let mut command = script("run");
        command.env_remove("DATABASE_URL").env_remove("CLOAKROOM_DATABASE_URL");
        command.envs([
            ("CARGO_HOME", self.cargo_home.path()),
            ("CARGO_TARGET_DIR", self.target.path()),
            ("CLOAKROOM_DATA_DIR", &self.data),
        ]);
        command.envs([
            ("CLOAKROOM_LISTEN", "127.0.0.1:0"),
            ("CLOAKROOM_SCRYPT", "4,8,1"),
            ("CLOAKROOM_PG_OPTIONS", "-c fsync=off"),
        ]);
        command
    }

    fn run(&self) -> Run {
        Run::start(self.command())
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A running `scripts/run`. It is told to stop when this is dropped.
struct Run {
    process: Child,
    printed: Arc<Mutex<String>>,
}

impl Run {
    fn start(mut command: Command) -> Run {
        // Both streams are one pipe.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        command.stdin(Stdio::null()).stdout(writer.try_clone().expect("a pipe")).stderr(writer);
        let process = command.spawn().expect("scripts/run");
        let printed = Arc::new(Mutex::new(String::new()));
        let copy = printed.clone();
        thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                copy.lock().expect("a lock").push_str(&(line + "\n"));
            }
        });
        Run { process, printed }
    }

    fn printed(&self) -> String {
        self.printed.lock().expect("a lock").clone()
    }

    /// Waits until the service listens, and returns its URL. The deadline is a long one, because a first run makes a
    /// database cluster.
    fn url(&mut self) -> String {
        let begin = Instant::now();
        loop {
            let ended = self.process.try_wait().expect("a child");
            let is_late = begin.elapsed() > Duration::from_secs(120);
            assert!(ended.is_none() && !is_late, "{ended:?}: {}", self.printed());
            if let Some((_, rest)) = self.printed().split_once("listening on ") {
                return rest.split(['"', ' ', '\n']).next().expect("a URL").to_owned();
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The password of the administrator, if this run made one.
    fn password(&self) -> Option<String> {
        let printed = self.printed();
        let (_, rest) = printed.split_once("|      password ")?;
        rest.split_whitespace().next().map(str::to_owned)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("scripts/run runs");
    }

    /// Sends the signal, waits for the end and returns the exit status; `None` where the signal ended it.
    fn end(mut self, signal: Signal) -> Option<i32> {
        self.signal(signal);
        eventually(|| self.process.try_wait().expect("a child")).code()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
            let _ = self.process.wait();
        }
    }
}

/// Signs the administrator in, and returns the status.
fn sign_in(url: &str, password: &str) -> u16 {
    let body = json!({"email": "admin@example.com", "password": password});
    Request::new("POST", format!("{url}/api/v1/auth/login")).json(body).send().status
}

fn is_ready(url: &str) -> bool {
    Request::new("GET", format!("{url}/readyz")).try_send().is_ok_and(|answer| answer.status == 200)
}

#[test]
fn two_runs_at_once_share_one_private_postgresql_and_the_last_stops_it() {
    let installation = Installation::create("two");
    let (mut first, mut second) = (installation.run(), installation.run());
    let urls = [first.url(), second.url()];
    assert_ne!(urls[0], urls[1]);
    // One of them made the administrator, and both know the password that it printed.
    let passwords: Vec<_> = [&first, &second].iter().filter_map(|run| run.password()).collect();
    let [password] = &passwords[..] else { panic!("{passwords:?}") };
    assert_eq!(urls.each_ref().map(|url| sign_in(url, password)), [200, 200]);
    assert_eq!(first.end(Signal::INT), Some(0));
    assert!(is_ready(&urls[1]) && installation.postgres_runs());
    assert_eq!(second.end(Signal::TERM), Some(0));
    assert!(!installation.postgres_runs());
}

#[test]
fn a_run_has_settings_for_a_team_unless_others_are_set() {
    let installation = Installation::create("team");
    let config = |settings: &[(&str, &str)]| {
        let mut command = installation.command();
        command.arg("config").envs(settings.iter().copied());
        command.output().expect("scripts/run").exits(0).out()
    };
    let shown = |printed: &str, name: &str| {
        let line = printed.lines().find(|line| line.starts_with(&format!("CLOAKROOM_{name}=")));
        line.and_then(|line| line.split(['=', ' ']).nth(1)).unwrap_or_default().to_owned()
    };
    let mut run = installation.run();
    run.url();
    let printed = config(&[]);
    for (name, value) in [
        ("REGISTRATION", "open"),
        ("ALLOWED_UPLOAD_TYPES", "any"),
        ("MAX_UPLOAD_SIZE", "1073741824"),
        ("RATE_LIMIT_GENERAL", "1200"),
        ("PUBLIC_LIST", "on"),
    ] {
        assert_eq!(shown(&printed, name), value, "{name}: {printed}");
    }
    let [all, own] = ["STORAGE_QUOTA", "USER_STORAGE_QUOTA"]
        .map(|name| shown(&printed, name).parse::<u64>().expect("a number"));
    assert!(all > 1 << 20 && own == (all / 10).max(1 << 30), "{all} {own}");
    assert_eq!(shown(&printed, "DELETED_QUOTA"), (all / 10).to_string());
    let printed = config(&[("CLOAKROOM_MAX_UPLOAD_SIZE", "900T")]);
    assert_eq!(shown(&printed, "USER_STORAGE_QUOTA"), (900_u64 << 40).to_string());
    let printed = config(&[
        ("MAX_UPLOAD_SIZE", "5M"),
        ("CLOAKROOM_PUBLIC_LIST", "off"),
        ("CLOAKROOM_STORAGE_QUOTA", "9G"),
    ]);
    for (name, value) in
        [("MAX_UPLOAD_SIZE", "5242880"), ("PUBLIC_LIST", "off"), ("STORAGE_QUOTA", "9663676416")]
    {
        assert_eq!(shown(&printed, name), value, "{name}: {printed}");
    }
    // Another start keeps the quota, however much is free by then.
    std::fs::write(installation.data.join("storage-quota"), "12345678900\n").expect("a file");
    run.end(Signal::TERM);
    let mut run = installation.run();
    run.url();
    assert_eq!(shown(&config(&[]), "STORAGE_QUOTA"), "12345678900");
}

#[test]
fn a_run_that_is_killed_takes_its_service_along_and_leaves_the_others_alone() {
    let installation = Installation::create("killed");
    let (mut first, mut second) = (installation.run(), installation.run());
    let urls = [first.url(), second.url()];
    assert_eq!(first.end(Signal::KILL), None);
    wait_until(|| !is_ready(&urls[0]));
    assert!(is_ready(&urls[1]));
    assert_eq!(second.end(Signal::KILL), None);
    wait_until(|| !is_ready(&urls[1]));
    // Nobody was left to stop PostgreSQL. The next run finds it, and does.
    assert!(installation.postgres_runs());
    let mut third = installation.run();
    assert!(is_ready(&third.url()));
    assert_eq!(third.end(Signal::TERM), Some(0));
    assert!(!installation.postgres_runs());
}

#[test]
fn a_private_postgresql_that_was_started_by_hand_stays() {
    let installation = Installation::create("by-hand");
    installation.postgres("start").exits(0);
    let mut run = installation.run();
    assert!(is_ready(&run.url()));
    assert_eq!(run.end(Signal::TERM), Some(0));
    assert!(installation.postgres_runs());
}

#[test]
fn a_command_starts_the_private_postgresql_and_stops_it() {
    let installation = Installation::create("command");
    installation.command().arg("migrate").output().expect("scripts/run").exits(0);
    assert!(!installation.postgres_runs());
    // The administrator is made when it first serves, and a command beside that leaves it alone.
    let mut run = installation.run();
    let url = run.url();
    installation.command().arg("check").output().expect("scripts/run").exits(0);
    assert!(run.password().is_some() && is_ready(&url));
    assert_eq!(run.end(Signal::TERM), Some(0));
}

#[test]
fn a_signal_ends_a_command_and_its_private_postgresql() {
    let installation = Installation::create("signal");
    let mut run = installation.run();
    run.url(); // The administrator is made, which is an event.
    assert_eq!(run.end(Signal::TERM), Some(0));
    let mut command = installation.command();
    command.args(["audit", "--follow"]);
    let run = Run::start(command);
    wait_until(|| run.printed().contains("admin"));
    assert_eq!(run.end(Signal::TERM), Some(128 + 15));
    assert!(!installation.postgres_runs());
}

#[test]
fn after_an_interrupted_restore_no_administrator_is_made() {
    let installation = Installation::create("partial");
    std::fs::create_dir_all(installation.data.join("restore.partial")).expect("a directory");
    let refused = installation.command().output().expect("scripts/run").exits(1);
    refused.reports("A restore is running or was interrupted: run it again");
    assert!(!installation.postgres_runs() && !installation.data.join("admin-created").exists());
}

/// The oldest Rust that can build this.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

#[test]
fn an_older_cargo_is_refused_in_one_sentence_before_anything_is_made() {
    let installation = Installation::create("old-cargo");
    installation.install_cargo("1.85.1");
    let refusal = format!("needs Rust {OLDEST} or newer, and cargo is 1.85.1");
    installation.command().output().expect("scripts/run").exits(1).reports(&refusal);
    assert!(!installation.data.exists());
    // The oldest is not refused.
    installation.install_cargo(&format!("{OLDEST}.0"));
    let mut run = installation.run();
    run.url();
    assert_eq!(run.end(Signal::TERM), Some(0));
}

#[test]
fn a_missing_cargo_and_a_port_that_is_taken_are_told_before_anything_is_made() {
    let installation = Installation::create("refused");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let mut run = installation.command();
    let refusal = format!("Another program listens on {address}.");
    run.env("CLOAKROOM_LISTEN", address).output().expect("scripts/run").exits(1).reports(&refusal);
    std::fs::remove_file(installation.cargo_home.join("bin/cargo")).expect("the stand-in");
    let mut run = installation.command();
    run.env("PATH", "/usr/bin:/bin").output().expect("scripts/run").exits(1).reports(
        "\n  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal\n",
    );
    assert!(!installation.data.exists());
}

#[test]
fn each_start_says_how_to_set_the_first_administrators_password() {
    let installation = Installation::create("reset");
    let mut run = installation.run();
    run.url();
    let first = run.password().expect("a password");
    assert!(run.printed().contains("/console\n"), "{}", run.printed());
    assert_eq!(run.end(Signal::TERM), Some(0));
    let mut run = installation.run();
    let url = run.url();
    assert_eq!(run.password(), None, "it is shown once");
    let printed = run.printed();
    assert!(printed.contains("/console\n"), "{printed}");
    let typed = printed.lines().find(|line| line.contains("create-admin")).expect("a line");
    let mut shell = Command::new("/bin/bash");
    shell.args(["-c", &format!("{typed} <<<'{NEW_PASSWORD}'")]).current_dir("/");
    shell.output().expect("bash").exits(0);
    assert_eq!([&*first, NEW_PASSWORD].map(|password| sign_in(&url, password)), [401, 200]);
    assert_eq!(run.end(Signal::TERM), Some(0));
}
