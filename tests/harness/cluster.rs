//! A PostgreSQL server that a test may stop, start again and suspend.

use std::fs;
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

    /// Starts it again as the standby of nobody: it takes no changes.
    pub fn start_as_standby(&self) {
        let (signal, cluster) = (self.standby_signal(), self.directory.join("cluster"));
        fs::write(&signal, "").expect("a file");
        let owner = cluster.metadata().expect("a cluster");
        chown(&signal, Some(owner.uid()), Some(owner.gid())).expect("its owner");
        self.start_again();
    }

    /// Starts it again after it was a standby.
    pub fn start_as_primary(&self) {
        fs::remove_file(self.standby_signal()).expect("it was a standby");
        self.start_again();
    }

    /// The file whose presence makes it a standby.
    fn standby_signal(&self) -> PathBuf {
        self.directory.join("cluster/standby.signal")
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
        wait_until(|| {
            let processes = self.processes();
            let is_stopped = signal == Signal::STOP;
            let wrong: Vec<_> = processes.iter().filter(|it| it.1 != is_stopped).collect();
            for (process, _) in &wrong {
                // It may have ended meanwhile.
                let _ = kill_process(*process, signal);
            }
            wrong.is_empty()
        });
    }

    /// All processes of it, which work in its directory, and whether they are stopped.
    fn processes(&self) -> Vec<(Pid, bool)> {
        let directory = fs::canonicalize(self.directory.join("cluster")).expect("a cluster");
        let entries = fs::read_dir("/proc").expect("/proc").filter_map(|entry| {
            let process = entry.ok()?.path();
            let id = process.file_name()?.to_str()?.parse().ok()?;
            // The state follows the name, which is in parentheses (proc_pid_stat(5)).
            let stat = fs::read_to_string(process.join("stat")).ok()?;
            let state = stat.rsplit_once(") ")?.1.chars().next()?;
            let is_own = fs::read_link(process.join("cwd")).ok()? == directory;
            is_own.then_some((Pid::from_raw(id)?, state == 'T'))
        });
        let found: Vec<_> = entries.collect();
        assert!(!found.is_empty(), "no server in {}", directory.display());
        found
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
