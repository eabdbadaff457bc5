//! The database hangs, dies and comes back, under load. The service must say so, and recover alone.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Database, Directory, Server, eventually};

/// A PostgreSQL of the test's own.
struct Cluster {
    directory: Directory,
    url: String,
}

impl Cluster {
    fn start() -> Cluster {
        let directory = Directory::create();
        // The script wants to make it.
        let data = directory.0.join("postgres");
        let url = postgres("start", &data);
        Cluster { directory, url }
    }

    fn restart(&self) {
        let data = self.directory.0.join("postgres");
        postgres("stop", &data);
        assert_eq!(postgres("start", &data), self.url);
    }

    /// Stops the server and all its sessions, or lets them go on. A signal takes a moment, and the
    /// server may begin a session in it: so until all are seen as they should be.
    fn hang(&self, hung: bool) {
        let port = self.url.rsplit_once(':').map(|(_, rest)| rest);
        let port = port.and_then(|rest| rest.split('/').next()).expect("a port");
        let signal = if hung { Signal::STOP } else { Signal::CONT };
        eventually(|| {
            let processes = processes_of(port);
            for (pid, _) in processes.iter().filter(|(_, stopped)| *stopped != hung) {
                let _ = kill_process(*pid, signal); // it may have ended meanwhile
            }
            let done = processes.iter().all(|(_, stopped)| *stopped == hung);
            done.then_some(())
        });
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        postgres("remove", &self.directory.0.join("postgres"));
    }
}

fn postgres(command: &str, directory: &Path) -> String {
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/postgres"))
        .arg(command)
        .arg(directory)
        .env("CLOAKROOM_PG_OPTIONS", "-c fsync=off -c max_connections=60")
        .output()
        .expect("scripts/postgres");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command}: {error}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// The server that listens on the port, and its children, and whether each is stopped.
fn processes_of(port: &str) -> Vec<(Pid, bool)> {
    let numbers = std::fs::read_dir("/proc").expect("/proc").filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<i32>().ok()
    });
    // A process may end while it is looked at.
    let about = |pid: i32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
    let rows: Vec<(i32, String, String)> = numbers
        .filter_map(|pid| Some((pid, about(pid, "stat")?, about(pid, "cmdline")?)))
        .collect();
    // The name in parentheses, then the state and the parent.
    let parent = |stat: &str| {
        let after = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned())?;
        after.split(' ').nth(1)?.parse::<i32>().ok()
    };
    let arguments = format!("\0-p\0{port}\0");
    let named: Vec<_> = rows
        .iter()
        .filter(|(_, _, line)| line.contains("\0-D\0") && line.contains(&arguments))
        .collect();
    // A session that has just begun still bears the server's name: it is a child of the one meant.
    let begun = |stat: &str| named.iter().any(|(pid, ..)| parent(stat) == Some(*pid));
    let server = named
        .iter()
        .find(|(_, stat, _)| !begun(stat))
        .unwrap_or_else(|| panic!("no server on {port}"))
        .0;
    let is_stopped =
        |stat: &str| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
    rows.iter()
        .filter(|row| row.0 == server || parent(&row.1) == Some(server))
        .filter_map(|row| Some((Pid::from_raw(row.0)?, is_stopped(&row.1))))
        .collect()
}

/// A cluster that does nothing, until this is dropped.
struct Hung<'a>(&'a Cluster);

impl Hung<'_> {
    fn new(cluster: &Cluster) -> Hung<'_> {
        cluster.hang(true);
        Hung(cluster)
    }
}

impl Drop for Hung<'_> {
    fn drop(&mut self) {
        self.0.hang(false);
    }
}

/// Ends the load, also where the test fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asks from many threads while `during` runs, and gives every status with the time it took.
fn under_load(server: &Server, token: &str, during: impl FnOnce()) -> Vec<(u16, Duration)> {
    let (over, seen) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    let status = server.get("/users/me", token).status;
                    seen.lock().expect("seen").push((status, begin.elapsed()));
                }
            });
        }
        let _end = Ending(&over);
        during();
    });
    seen.into_inner().expect("seen")
}

#[test]
fn a_database_that_hangs_is_answered_with_503_in_time_and_forgiven() {
    let cluster = Cluster::start();
    let database = Database::create_on(&cluster.url);
    let server = Server::start_on(&database, &[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")]);
    let token = server.sign_up("ann").access;
    let seen = under_load(&server, &token, || {
        let hung = Hung::new(&cluster);
        for _ in 0..5 {
            server.request("GET", "/healthz").send().expect(200);
            let ready = server.request("GET", "/readyz").send();
            ready.refused(503, "Service temporarily unavailable");
        }
        drop(hung);
        eventually(|| (server.get("/users/me", &token).status == 200).then_some(()));
    });
    let failed = seen.iter().filter(|(status, _)| *status != 200).count();
    assert!(failed >= 16, "the outage was met by {failed} of {}", seen.len());
    for (status, took) in &seen {
        assert!([200, 503, 504].contains(status), "{status}");
        assert!(*took < Duration::from_secs(4), "{status} after {took:?}");
    }
    for _ in 0..50 {
        server.get("/users/me", &token).expect(200);
    }
}

#[test]
fn after_a_restart_of_the_database_nothing_fails() {
    let cluster = Cluster::start();
    let database = Database::create_on(&cluster.url);
    let server = Server::start_on(&database, &[]);
    let token = server.sign_up("ann").access;
    let seen = under_load(&server, &token, || cluster.restart());
    for (status, took) in &seen {
        assert!([200, 503].contains(status), "{status}");
        assert!(*took < Duration::from_secs(7), "{status} after {took:?}");
    }
    let after = under_load(&server, &token, || thread::sleep(Duration::from_secs(1)));
    assert!(after.len() > 50);
    assert!(after.iter().all(|(status, _)| *status == 200), "{after:?}");
}
