//! A PostgreSQL server that a test may stop, start again and suspend.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::{Database, Directory, OutputText, Server, certificate, wait_until};

/// A PostgreSQL server of the test's own. It is removed when this is dropped.
pub struct Cluster {
    pub directory: PathBuf,
    pub url: String,
}

impl Cluster {
    /// Starts one. The name is the test's: what an interrupted run left under it is removed first.
    pub fn start(name: &str) -> Cluster {
        let asked = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("postgres-{name}"));
        script("remove", &asked, "");
        let (url, messages) = script("start", &asked, "");
        // For root it may be elsewhere, because PostgreSQL runs as another user, who must reach it.
        let elsewhere = messages.lines().find_map(|line| line.split_once("the cluster is in "));
        let directory = elsewhere.map_or(asked, |(_, directory)| directory.into());
        Cluster { directory, url }
    }

    /// Starts a server on a new database of it.
    pub fn serve(&self, settings: &[(&str, &str)]) -> Server {
        Server::start_on(&Database::create_on(&self.url), settings)
    }

    /// Its host and port.
    pub fn address(&self) -> &str {
        let after_user = self.url.rsplit_once('@').map(|(_, rest)| rest);
        after_user.and_then(|rest| rest.split('/').next()).expect("a host")
    }

    pub fn stop(&self) {
        script("stop", &self.directory, "");
    }

    /// Starts it again, at the same address.
    pub fn start_again(&self) {
        self.start_with("");
    }

    /// Starts it again with more server options.
    pub fn start_with(&self, options: &str) {
        assert_eq!(script("start", &self.directory, options).0, self.url);
    }

    /// Starts it again with a certificate, `server.crt`, which this makes in the directory. PostgreSQL insists that the
    /// key is its own user's.
    pub fn start_with_certificate(&self, directory: &Directory) {
        let options = certificate(directory);
        let owner = self.directory.metadata().expect("a cluster");
        let key = directory.join("server.key");
        chown(key, Some(owner.uid()), Some(owner.gid())).expect("its owner");
        self.start_with(&options);
    }

    /// Suspends all its processes until the guard is dropped: connections stay open, and nothing answers.
    pub fn suspend(&self) -> Suspended<'_> {
        self.signal_all(Signal::STOP);
        Suspended(self)
    }

    /// Stops or continues all processes. A signal takes effect a moment later, and the server may start a process for a
    /// new connection meanwhile, so this repeats until it sees all processes in the wanted state.
    fn signal_all(&self, signal: Signal) {
        let (_, port) = self.address().rsplit_once(':').expect("a port");
        let wanted = signal == Signal::STOP;
        wait_until(|| {
            let processes = processes_of(port);
            for process in processes.iter().filter(|process| process.is_stopped != wanted) {
                // It may have ended meanwhile.
                let _ = kill_process(process.pid(), signal);
            }
            processes.iter().all(|process| process.is_stopped == wanted)
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        script("remove", &self.directory, "");
    }
}

/// Keeps a cluster suspended, also if the test fails.
pub struct Suspended<'a>(&'a Cluster);

impl Drop for Suspended<'_> {
    fn drop(&mut self) {
        self.0.signal_all(Signal::CONT);
    }
}

/// Runs `scripts/postgres`. Returns what it printed to standard output and to standard error.
fn script(command: &str, directory: &Path, options: &str) -> (String, String) {
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/postgres"))
        .arg(command)
        .arg(directory)
        .env("CLOAKROOM_PG_OPTIONS", format!("-c fsync=off -c max_connections=60 {options}"))
        .output()
        .expect("scripts/postgres");
    let output = output.exits(0);
    (output.out().trim().to_owned(), output.err())
}

struct Process {
    id: i32,
    parent: i32,
    is_stopped: bool,
    command_line: String,
}

impl Process {
    /// Reads `/proc/PID/stat`, where the state and the parent follow the name in parentheses, and `cmdline`. Gives
    /// nothing if the process has ended.
    fn read(id: i32) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let command_line = std::fs::read_to_string(format!("/proc/{id}/cmdline")).ok()?;
        let (state, rest) = stat.rsplit_once(") ")?.1.split_once(' ')?;
        let parent = rest.split(' ').next()?.parse().ok()?;
        Some(Process { id, parent, is_stopped: state == "T", command_line })
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.id).expect("a process id")
    }
}

/// The PostgreSQL server that listens on the port, and its children.
fn processes_of(port: &str) -> Vec<Process> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let all: Vec<_> = ids.filter_map(Process::read).collect();
    let arguments = format!("\0-p\0{port}\0");
    let named: Vec<_> = all
        .iter()
        .filter(|process| {
            process.command_line.contains("\0-D\0") && process.command_line.contains(&arguments)
        })
        .collect();
    // A process for a new connection has the server's command line at first: the server is the one that is no child.
    let is_child = |process: &Process| named.iter().any(|other| other.id == process.parent);
    let server = named
        .iter()
        .find(|process| !is_child(process))
        .unwrap_or_else(|| panic!("no server on {port}"))
        .id;
    all.into_iter().filter(|process| process.id == server || process.parent == server).collect()
}
