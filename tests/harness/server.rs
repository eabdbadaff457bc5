//! A running server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::{
    Database, Directory, OutputText, Request, SmtpOptions, SmtpServer, command, eventually,
    forget_service, mail_settings, note_service, run_in, within_shell,
};

/// A process that serves. It is killed when this is dropped.
pub struct Server {
    pub address: String,
    pub database: Arc<Database>,
    pub data: Arc<Directory>,
    process: Child,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// Starts one on a new database, which needs no migration.
    pub fn start(settings: &[(&str, &str)]) -> Server {
        Server::start_on(&Database::create_migrated(), settings)
    }

    /// Starts one on an existing database, with a new data directory.
    pub fn start_on(database: &Arc<Database>, settings: &[(&str, &str)]) -> Server {
        Server::start_with(database, &Arc::new(Directory::create()), settings)
    }

    /// Starts one on a database and a data directory that it shares with others or that outlive it.
    pub fn start_with(
        database: &Arc<Database>,
        data: &Arc<Directory>,
        settings: &[(&str, &str)],
    ) -> Server {
        Server::spawn(command(&database.url, data, settings), database, data)
    }

    /// Starts one by a command that ends up as the binary, and waits until it listens. If `CLOAKROOM_TEST_CGROUPS`
    /// names control groups, it becomes a member of each.
    pub fn spawn(mut command: Command, database: &Arc<Database>, data: &Arc<Directory>) -> Server {
        if let Ok(groups) = std::env::var("CLOAKROOM_TEST_CGROUPS") {
            let join = format!("for group in {groups}; do echo $$ >$group/cgroup.procs; done");
            command = within_shell(&join, command);
        }
        let mut process = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut lines = BufReader::new(process.stderr.take().expect("stderr")).lines();
        let (mut log, mut address) = (String::new(), None);
        while address.is_none() {
            let Some(Ok(line)) = lines.next() else { panic!("the server ended at start: {log}") };
            let rest = line.split_once("listening on http://").map(|(_, rest)| rest);
            address = rest.and_then(|rest| rest.split(['"', ' ']).next()).map(str::to_owned);
            log.push_str(&(line + "\n"));
        }
        let log = Arc::new(Mutex::new(log));
        let copy = log.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                copy.lock().expect("log").push_str(&(line + "\n"));
            }
        });
        let (database, data) = (database.clone(), data.clone());
        let address = address.expect("an address");
        note_service(&address, &command);
        database.logs.lock().expect("no panic").push(log.clone());
        Server { address, database, data, process, log }
    }

    /// Starts another process on the same database and data directory.
    pub fn beside(&self, settings: &[(&str, &str)]) -> Server {
        Server::start_with(&self.database, &self.data, settings)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("the server runs");
    }

    /// Ends the process by a signal, and returns the database, the data directory and the exit status.
    pub fn end(self, signal: Signal) -> (Arc<Database>, Arc<Directory>, Option<i32>) {
        let (database, data) = (self.database.clone(), self.data.clone());
        self.signal(signal);
        (database, data, self.exit_code())
    }

    /// Waits for the end of the process and returns its exit status; `None` if a signal ended it.
    pub fn exit_code(mut self) -> Option<i32> {
        eventually(|| self.process.try_wait().expect("a child")).code()
    }

    /// The most memory that the process ever had resident, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// By how many bytes the most memory has grown since it was `before`. The kernel's figures are inexact
    /// (proc_pid_status(5)), so that the later one may be lower.
    pub fn peak_growth(&self, before: u64) -> u64 {
        self.peak_memory().saturating_sub(before)
    }

    /// The memory that the process has resident, in bytes.
    pub fn resident_memory(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The CPU time that the process has used so far, in clock ticks, which are hundredths of a second.
    pub fn cpu_ticks(&self) -> u64 {
        let stat = self.read("stat");
        // The name of the program, in parentheses, may hold blanks. `utime` and `stime` are the 14th and 15th fields.
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        let ticks = fields.split_whitespace().skip(11).take(2);
        ticks.map(|field| field.parse::<u64>().expect("a number")).sum()
    }

    /// A line of the process's status that is a number of KiB.
    fn memory(&self, name: &str) -> u64 {
        let status = self.read("status");
        let value = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        value.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// What the kernel tells about the process.
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.pid())).expect("a process")
    }

    /// Runs `cloakroom gc` beside the server and returns what it printed.
    pub fn collect_garbage(&self) -> String {
        self.run_beside(&["gc"]).exits(0).out()
    }

    /// Runs a command on the server's database and data directory.
    pub fn run_beside(&self, arguments: &[&str]) -> Output {
        run_in(&self.data, &self.database.url, arguments, &[])
    }

    /// Everything logged so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("log").clone()
    }

    /// Waits until a line of the log contains `text`, and returns the last such line.
    #[track_caller]
    pub fn logged(&self, text: &str) -> String {
        eventually(|| self.log().lines().rev().find(|line| line.contains(text)).map(str::to_owned))
    }

    /// A request to a path below `/api/v1`.
    pub fn request(&self, method: &str, path: &str) -> Request {
        self.request_at_root(method, &format!("/api/v1{path}"))
    }

    /// A request to a path as it is.
    pub fn request_at_root(&self, method: &str, path: &str) -> Request {
        Request::new(method, format!("http://{}{path}", self.address))
    }
}

/// A mail server, and a service that sends through it.
pub fn service_with_mail(settings: &[(&str, &str)]) -> (SmtpServer, Server) {
    let smtp = SmtpServer::start(SmtpOptions::default());
    let api = Server::start(&[settings, &mail_settings(&smtp.url())].concat());
    (smtp, api)
}

/// A setting for tests in which a statement waits until something else has happened: however slow the machine is, it is
/// not given up before.
pub const PATIENT: (&str, &str) = ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "120");

impl Drop for Server {
    fn drop(&mut self) {
        forget_service(&self.address);
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
