//! Directories for the files of a test, and the contents that a server stores in them.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

/// A name that no other test of this run or of one beside it uses.
pub fn unique_name() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    format!("{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// A new directory. It is removed with all it holds when this is dropped.
pub struct Directory(PathBuf);

impl Directory {
    pub fn create() -> Directory {
        let path = std::env::temp_dir().join(format!("cloakroom-test-{}", unique_name()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Directory(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.0.join(relative)
    }

    /// The path of a stored file's content.
    pub fn content(&self, file_id: &str) -> PathBuf {
        self.0.join("files").join(file_id)
    }

    /// The paths of all contents in the trash, sorted.
    pub fn trash(&self) -> Vec<PathBuf> {
        entries(self.join("trash")).into_iter().flat_map(entries).collect()
    }

    /// The paths of all stored contents and of all uploads in progress.
    pub fn contents(&self) -> Vec<PathBuf> {
        ["files", "tmp"].into_iter().flat_map(|name| entries(self.join(name))).collect()
    }
}

/// The paths of all that is in a directory, sorted.
#[track_caller]
pub fn entries(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    let found = std::fs::read_dir(directory).expect("a directory");
    let mut paths: Vec<_> = found.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The permissions of a file or directory.
pub fn mode(path: &Path) -> u32 {
    path.metadata().expect("it exists").permissions().mode() & 0o777
}

/// Sets the modification time of a file to a little over `hours` ago.
pub fn make_older(path: &Path, hours: u64) {
    let time = SystemTime::now() - Duration::from_secs(hours * 3600 + 1);
    let file = File::options().write(true).open(path).expect("a file");
    file.set_modified(time).expect("the modification time is set");
}
