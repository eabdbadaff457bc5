//! Directories of backups, and backups that are held in the middle.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::database::OpenTransaction;
use super::{Directory, OutputText, Server, command, digits_of_sha256, entries, wait_until};

/// A directory for backups.
pub struct Backups(Directory);

impl Backups {
    pub fn create() -> Backups {
        Backups(Directory::create())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The arguments of a backup into this directory.
    pub fn arguments(&self) -> [&str; 2] {
        ["backup", self.path().to_str().expect("a path of the test")]
    }

    /// Makes a backup of a running service, and returns its path and what the command printed.
    #[track_caller]
    pub fn make(&self, api: &Server) -> (PathBuf, String) {
        let before = self.whole();
        let printed = api.run_beside(&self.arguments()).exits(0).out();
        let made: Vec<_> = self.whole().into_iter().filter(|path| !before.contains(path)).collect();
        let [path] = &made[..] else { panic!("{made:?}: {printed}") };
        assert!(self.partial().is_empty());
        (path.clone(), printed)
    }

    /// The whole backups, the oldest first.
    pub fn whole(&self) -> Vec<PathBuf> {
        self.with_ending("Z")
    }

    /// The backups that are not whole.
    pub fn partial(&self) -> Vec<PathBuf> {
        self.with_ending(".partial")
    }

    fn with_ending(&self, ending: &str) -> Vec<PathBuf> {
        let mut found = entries(self.path());
        found.retain(|path| path.to_string_lossy().ends_with(ending));
        found
    }

    /// Begins a backup, and holds it where its dump begins, after the snapshot was taken.
    pub fn begin(&self, api: &Server) -> HeldBackup {
        self.begin_with(api, &[])
    }

    /// The same with further settings, such as another URL of the service's database.
    pub fn begin_with(&self, api: &Server, settings: &[(&str, &str)]) -> HeldBackup {
        // The dump waits for the locks of all tables. No other query uses this one.
        api.database.run("CREATE TABLE IF NOT EXISTS holds_dumps ()");
        let lock = api.database.begin("LOCK TABLE holds_dumps");
        let mut command = command(&api.database.url, &api.data, settings);
        let command = command.args(self.arguments()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let process = command.spawn().expect("the binary runs");
        api.database.wait_for_blocked_statement();
        HeldBackup { process, lock }
    }
}

/// A backup that waits for a lock.
pub struct HeldBackup {
    process: Child,
    lock: OpenTransaction,
}

impl HeldBackup {
    /// Lets it go on to its end.
    pub fn end(self) -> Output {
        self.lock.roll_back();
        self.process.wait_with_output().expect("the binary ends")
    }

    /// Ends it by this signal, and returns its exit status. Its `pg_dump` ends once it writes to the pipe that nobody
    /// reads any more.
    pub fn end_by(mut self, signal: Signal, api: &Server) -> Option<i32> {
        kill_process(Pid::from_child(&self.process), signal).expect("it runs");
        let status = self.process.wait().expect("the binary ends");
        self.lock.roll_back();
        wait_until(|| api.database.connections("application_name = 'pg_dump'") == 0);
        status.code()
    }
}

/// The manifest of a backup.
pub fn manifest(backup: &Path) -> Value {
    let text = fs::read_to_string(backup.join("manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

/// Changes the manifest of a backup.
pub fn rewrite_manifest(backup: &Path, change: impl FnOnce(&mut Value)) {
    let mut manifest = manifest(backup);
    change(&mut manifest);
    fs::write(backup.join("manifest.json"), manifest.to_string()).expect("a manifest");
}

/// Makes the manifest of a backup agree with the dump that it holds.
pub fn adopt_dump(backup: &Path, schema_version: i32) {
    let dump = fs::read(backup.join("database.dump")).expect("a dump");
    rewrite_manifest(backup, |manifest| {
        manifest["dump"] = json!({"size": dump.len(), "sha256": digits_of_sha256(&dump)});
        manifest["schema_version"] = json!(schema_version);
    });
}

/// The contents that a backup lists, as pairs of id and hash.
pub fn listed(backup: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(backup.join("contents.sha256")).expect("a list");
    let pair = |line: &str| {
        let (hash, id) = line.split_once("  files/").expect("a line of sha256sum");
        (id.to_owned(), hash.to_owned())
    };
    text.lines().map(pair).collect()
}

/// Inserts that many users with a file each, and stores the contents.
pub fn fill(api: &Server, count: usize) {
    api.database.run(&format!(
        "INSERT INTO users (id, username, email, email_key, password_hash)
             SELECT gen_random_uuid(), 'u' || i, 'u' || i || '@example.com', 'u' || i || '@example.com', '-'
             FROM generate_series(1, {count}) i;
         INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
             SELECT gen_random_uuid(), id, 'f', 'f', 'text/plain', length(username), '',
                    encode(sha256(convert_to(username, 'UTF8')), 'hex')
             FROM users WHERE password_hash = '-'"
    ));
    let query = "SELECT files.id::text, username FROM files JOIN users ON users.id = user_id";
    for row in api.database.client().query(query, &[]).expect("rows") {
        fs::write(api.data.content(row.get(0)), row.get::<_, &str>(1)).expect("a content");
    }
}
