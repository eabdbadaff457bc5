//! A database with its data directory: empty ones into which a backup is restored, and those of a service that is
//! stopped, for the commands that examine it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use super::{Database, Directory, OutputText, Server, command, entries, run_in};

/// A database and a data directory.
pub struct Installation {
    pub database: Arc<Database>,
    pub data: Arc<Directory>,
}

impl Installation {
    /// A new database and a new directory.
    pub fn empty() -> Installation {
        Installation::on(&Database::create())
    }

    /// That database with a new directory.
    pub fn on(database: &Arc<Database>) -> Installation {
        Installation { database: database.clone(), data: Arc::new(Directory::create()) }
    }

    /// Lets `prepare` use a service, and stops it.
    pub fn after<T>(prepare: impl FnOnce(&Server) -> T) -> (Installation, T) {
        let api = Server::start(&[]);
        let prepared = prepare(&api);
        (Installation { database: api.database.clone(), data: api.data.clone() }, prepared)
    }

    pub fn run(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
        run_in(&self.data, &self.database.url, arguments, settings)
    }

    /// The command that restores a backup into it.
    pub fn command(&self, backup: &Path, arguments: &[&str]) -> Command {
        let mut command = command(&self.database.url, &self.data, &[]);
        command.arg("restore").arg(backup).args(arguments);
        command
    }

    pub fn restore(&self, backup: &Path) -> Output {
        self.command(backup, &[]).output().expect("the binary runs")
    }

    /// Begins to restore a backup.
    pub fn begin(&self, backup: &Path) -> Child {
        let mut command = self.command(backup, &[]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs")
    }

    /// Starts a service on it.
    pub fn serve(&self) -> Server {
        Server::start_with(&self.database, &self.data, &[])
    }

    /// The names in the data directory, sorted.
    pub fn entries(&self) -> Vec<String> {
        let name = |path: &PathBuf| path.file_name()?.to_str().map(str::to_owned);
        entries(self.data.path()).iter().filter_map(name).collect()
    }

    /// Number of tables in the database.
    pub fn tables(&self) -> i64 {
        self.database
            .count("pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')")
    }

    #[track_caller]
    pub fn is_untouched(&self) {
        assert_eq!((self.entries(), self.tables()), (Vec::new(), 0));
    }

    pub fn check(&self, arguments: &[&str]) -> Output {
        self.run(&[&["check"], arguments].concat(), &[])
    }

    /// Runs the check, which must find no fault, and returns its warnings.
    #[track_caller]
    pub fn warnings(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.check(arguments).exits(0);
        assert_eq!(findings_of(&output, "fault"), [""; 0]);
        assert_eq!(output.err(), "");
        findings_of(&output, "warning")
    }

    /// Runs the check, which must find faults, and returns them.
    #[track_caller]
    pub fn faults(&self, arguments: &[&str]) -> Vec<String> {
        let output = self.check(arguments).exits(1);
        assert!(output.err().starts_with("cloakroom: "), "{}", output.err());
        findings_of(&output, "fault")
    }
}

/// The lines of an output that begin with this word, without it.
pub fn findings_of(output: &Output, word: &str) -> Vec<String> {
    let prefix = format!("{word:<8}");
    output.out().lines().filter_map(|line| Some(line.strip_prefix(&prefix)?.to_owned())).collect()
}

/// Fails unless exactly one of the lines contains all these texts.
#[track_caller]
pub fn one_names(lines: &[String], texts: &[&str]) {
    let count = lines.iter().filter(|line| texts.iter().all(|text| line.contains(text))).count();
    assert_eq!(count, 1, "{texts:?} in {lines:#?}");
}

/// Every file and directory with the time of its last change and its size. The time of a directory shows that a file
/// was made there and removed again.
pub fn listing(directory: &Path) -> BTreeMap<PathBuf, (SystemTime, u64)> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = fs::metadata(&path).expect("an entry");
        if metadata.is_dir() {
            open.extend(entries(&path));
        }
        found.insert(path, (metadata.modified().expect("a time"), metadata.len()));
    }
    found
}
