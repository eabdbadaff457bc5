//! The file `last-backup` in the data directory: which whole backup of it was the last one, for `cloakroom status` and
//! the metrics of the service, which do not know where backups are kept.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::file_system::{sync_parent, write_aside};
use crate::model::timestamp::Timestamp;

/// More than a time and a path ever take.
const MAX_BYTES: u64 = 8192;

/// A whole backup.
pub struct LastBackup {
    /// The moment whose state it holds.
    pub at: Timestamp,
    /// Its directory.
    pub path: PathBuf,
}

impl LastBackup {
    /// Reads the file. `None` if there is none, or nothing that [`LastBackup::write`] writes.
    pub fn read(data_dir: &Path) -> Option<LastBackup> {
        let mut text = String::new();
        File::open(place(data_dir)).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        let (at, path) = text.trim_end().split_once(' ')?;
        Some(LastBackup { at: Timestamp::parse(at)?, path: path.into() })
    }

    /// Writes the file in place of a former one, which stays whole until then.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        let path = place(data_dir);
        let line = format!("{} {}\n", self.at.text(), self.path.display());
        fs::rename(write_aside(&path, line.as_bytes())?, &path)?;
        sync_parent(&path)
    }
}

fn place(data_dir: &Path) -> PathBuf {
    data_dir.join("last-backup")
}
