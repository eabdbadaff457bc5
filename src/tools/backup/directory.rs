//! The directory that holds backups. Each is a directory named after the UTC time of its snapshot, such as
//! `2026-01-02T03-04-05Z`; until it is whole, and again while it is removed, its name ends in `.partial`.

use std::cmp::Reverse;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};
use uuid::Uuid;

use super::manifest::{Manifest, PARTIAL};
use crate::storage::sync_directory;
use crate::tools::files::{AtPath, create_directory, lock};
use crate::tools::output::print_line;

/// The name of a whole backup. It has no colon, which some file systems do not allow in names.
const NAME: &[BorrowedFormatItem] =
    format_description!("[year]-[month]-[day]T[hour]-[minute]-[second]Z");
/// The file that a process which writes to the directory keeps locked.
const LOCK: &str = ".lock";
/// Pause before a name is looked for again, if this second has a backup already.
const NAME_PAUSE: Duration = Duration::from_millis(100);

/// A directory of backups, into which no other process writes one meanwhile.
pub struct BackupDirectory {
    path: PathBuf,
    /// The locked file in it.
    lock: File,
}

/// A backup that is being written.
pub struct PartialBackup {
    pub path: PathBuf,
    /// The time that it is named after.
    pub time: OffsetDateTime,
    destination: PathBuf,
}

impl BackupDirectory {
    /// Opens the directory, and creates it, readable only for this user, if there is none. Fails if another process
    /// writes a backup to it. On failure: what to tell the operator.
    pub fn open(path: &Path) -> Result<BackupDirectory, String> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).at(path)?;
        let refusal = format!("another backup is writing to {}: nothing was done", path.display());
        Ok(BackupDirectory { path: path.to_owned(), lock: lock(&path.join(LOCK), refusal)? })
    }

    /// Removes the partial backups of interrupted runs, and prints a line for each. No other process uses them, because
    /// this one has the lock.
    pub fn remove_partial(&self) -> Result<(), String> {
        let is_partial = |name: &str| name.strip_suffix(PARTIAL).is_some_and(is_backup_name);
        for path in self.directories(is_partial)? {
            fs::remove_dir_all(&path).at(&path)?;
            print_line(format_args!("removed {}, which was not whole", path.display()));
        }
        Ok(())
    }

    /// Returns the whole backups of an installation with their manifests, the last one first: in the order in which
    /// they were made. A backup whose manifest is damaged, or cannot be read, is warned about and left out.
    pub fn backups_of(&self, installation: Uuid) -> Result<Vec<(PathBuf, Manifest)>, String> {
        let mut found = Vec::new();
        for path in self.directories(is_backup_name)? {
            match Manifest::read(&path) {
                Ok(manifest) if manifest.installation_id == installation => {
                    found.push((path, manifest));
                }
                Ok(_) => {}
                Err(fault) => log::warn!("a backup cannot be used, and is left alone: {fault}"),
            }
        }
        found.sort_by_key(|(_, manifest)| Reverse(manifest.sequence));
        Ok(found)
    }

    /// Begins a backup of this moment.
    pub fn begin(&self) -> Result<PartialBackup, String> {
        loop {
            let time = OffsetDateTime::now_utc();
            let name = time.format(NAME).map_err(|e| e.to_string())?;
            let destination = self.path.join(name);
            let path = partial(&destination);
            if !destination.exists() {
                create_directory(&path)?;
                return Ok(PartialBackup { path, time, destination });
            }
            // The one before took less than a second.
            thread::sleep(NAME_PAUSE);
        }
    }

    /// Makes a backup survive a loss of power, and gives it the name of a whole one. Returns its path.
    pub fn finish(&self, backup: PartialBackup) -> Result<PathBuf, String> {
        let PartialBackup { path, destination, .. } = backup;
        // One call for the whole file system: a call for each of many thousand files would wait for the disk as often.
        // It reports the failures since its file was opened, which is before the first content was written.
        rustix::fs::syncfs(&self.lock).map_err(io::Error::from).at(&path)?;
        fs::rename(&path, &destination).at(&path)?;
        sync_directory(&self.path).at(&self.path)?;
        Ok(destination)
    }

    /// Removes a whole backup. It is renamed first, so that the rest of it after a crash is not taken for a whole one.
    pub fn remove(&self, path: &Path) -> Result<(), String> {
        let partial = partial(path);
        fs::rename(path, &partial).at(path)?;
        sync_directory(&self.path).at(&self.path)?;
        fs::remove_dir_all(&partial).at(&partial)
    }

    /// Returns the directories in this one that have a wanted name.
    fn directories(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, String> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).at(&self.path)? {
            let entry = entry.at(&self.path)?;
            let is_directory = entry.file_type().at(&self.path)?.is_dir();
            if is_directory && entry.file_name().to_str().is_some_and(&is_wanted) {
                found.push(entry.path());
            }
        }
        Ok(found)
    }
}

/// The path of a backup while it is not whole.
fn partial(whole: &Path) -> PathBuf {
    let mut path = whole.as_os_str().to_owned();
    path.push(PARTIAL);
    path.into()
}

/// Returns whether this is the name of a whole backup.
fn is_backup_name(name: &str) -> bool {
    PrimitiveDateTime::parse(name, NAME).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_are_names_of_backups() {
        assert!(is_backup_name("2026-01-02T03-04-05Z"));
        for name in [
            "2026-01-02T03-04-05Z.partial",
            "2026-01-02T03:04:05Z",
            "2026-13-02T03-04-05Z",
            "2026-1-2T03-04-05Z",
            "2026-01-02T03-04-05",
            "files",
            "",
        ] {
            assert!(!is_backup_name(name), "{name}");
        }
    }
}
