//! A service that is stopped, for tests of the commands that examine it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::time::SystemTime;

use super::{Database, Directory, OutputText, Server, command};

/// A stopped service.
pub struct StoppedService {
    pub database: Arc<Database>,
    pub data: Arc<Directory>,
}

impl StoppedService {
    /// Lets `prepare` use a service, and stops it.
    pub fn after<T>(prepare: impl FnOnce(&Server) -> T) -> (StoppedService, T) {
        let api = Server::start(&[]);
        let prepared = prepare(&api);
        (StoppedService { database: api.database.clone(), data: api.data.clone() }, prepared)
    }

    pub fn run(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
        let mut command = command(&self.database.url, &self.data, settings);
        command.args(arguments).output().expect("the binary runs")
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
            open.extend(
                fs::read_dir(&path).expect("a directory").map(|entry| entry.unwrap().path()),
            );
        }
        found.insert(path, (metadata.modified().expect("a time"), metadata.len()));
    }
    found
}
