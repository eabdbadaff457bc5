//! Places into which backups are restored, and backups that are not as they were made.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Database, Directory, Server, command, manifest, sha256};

/// An empty database and an empty data directory.
pub struct Target {
    pub database: Arc<Database>,
    pub data: Arc<Directory>,
}

impl Target {
    pub fn create() -> Target {
        Target::of(&Database::create())
    }

    /// That database with a new data directory.
    pub fn of(database: &Arc<Database>) -> Target {
        Target { database: database.clone(), data: Arc::new(Directory::create()) }
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

    /// Runs any command of the binary on it.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = command(&self.database.url, &self.data, &[]);
        command.args(arguments).output().expect("the binary runs")
    }

    pub fn serve(&self) -> Server {
        Server::start_with(&self.database, &self.data, &[])
    }

    /// The names in the data directory, sorted.
    pub fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.data.path()).expect("a directory");
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
        names.sort();
        names
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
    let hash = sha256(&dump).trim_start_matches("sha256:").to_owned();
    rewrite_manifest(backup, |manifest| {
        manifest["dump"] = json!({"size": dump.len(), "sha256": hash});
        manifest["schema_version"] = json!(schema_version);
    });
}
