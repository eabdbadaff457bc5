//! The directory that holds backups. Each is a directory named after the UTC time of its snapshot, such as
//! `2026-01-02T03-04-05Z`; until it is whole, and again while it is removed, its name ends in `.partial`.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};
use uuid::Uuid;

use super::PARTIAL;
use super::manifest::Manifest;
use crate::commands::print_line;

/// The name of a whole backup. It has no colon, which some file systems do not allow in names.
const NAME: &[BorrowedFormatItem] =
    format_description!("[year]-[month]-[day]T[hour]-[minute]-[second]Z");
/// The file that a process which writes to the directory keeps locked.
const LOCK: &str = ".lock";
/// Pause before a name is looked for again, where this second has a backup already.
const NAME_PAUSE: Duration = Duration::from_millis(100);

/// A directory of backups, into which no other process writes one meanwhile.
pub struct BackupDirectory {
    path: PathBuf,
    /// The kernel releases its lock when the process ends, however it ends. It is a lock of a file and not of the
    /// directory, because NFS locks only files.
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
    /// Opens the directory, and creates it, readable only for this user, where there is none. Fails where another
    /// process writes a backup to it. On failure: what to tell the operator.
    pub fn open(path: &Path) -> Result<BackupDirectory, String> {
        create_directories(path)?;
        let lock = path.join(LOCK);
        let mut options = File::options();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(&lock);
        let file = file.map_err(|e| describe(&lock, &e))?;
        match file.try_lock() {
            Ok(()) => Ok(BackupDirectory { path: path.to_owned(), lock: file }),
            Err(TryLockError::WouldBlock) => {
                Err(format!("another backup is writing to {}: nothing was done", path.display()))
            }
            Err(TryLockError::Error(e)) => Err(describe(&lock, &e)),
        }
    }

    /// Removes what interrupted runs have left, and prints a line for each. No other process uses it, because this one
    /// has the lock.
    pub fn remove_partial(&self) -> Result<(), String> {
        let is_partial = |name: &str| name.strip_suffix(PARTIAL).is_some_and(is_backup_name);
        for path in self.directories(is_partial)? {
            fs::remove_dir_all(&path).map_err(|e| describe(&path, &e))?;
            print_line(format_args!("removed {}, which was not whole", path.display()));
        }
        Ok(())
    }

    /// The whole backups of an installation, the newest first. One whose manifest is damaged, or cannot be read,
    /// counts as none, and is warned about.
    pub fn backups_of(&self, installation: Uuid) -> Result<impl Iterator<Item = PathBuf>, String> {
        let mut paths = self.directories(is_backup_name)?;
        paths.sort_unstable_by(|one, other| other.cmp(one));
        let is_of_installation = move |path: &PathBuf| match Manifest::open(path) {
            Ok(manifest) => manifest.header.installation_id == installation,
            Err(fault) => {
                log::warn!("a backup cannot be used, and is left alone: {fault}");
                false
            }
        };
        Ok(paths.into_iter().filter(is_of_installation))
    }

    /// Begins a backup of this moment.
    pub fn begin(&self) -> Result<PartialBackup, String> {
        loop {
            let time = OffsetDateTime::now_utc();
            let name = time.format(NAME).map_err(|e| e.to_string())?;
            let (destination, path) =
                (self.path.join(&name), self.path.join(name.clone() + PARTIAL));
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
        rustix::fs::syncfs(&self.lock).map_err(|e| describe(&path, &e.into()))?;
        fs::rename(&path, &destination).map_err(|e| describe(&path, &e))?;
        sync_directory(&self.path)?;
        Ok(destination)
    }

    /// Removes a whole backup. It is renamed first, so that what a crash leaves of it is not taken for whole.
    pub fn remove(&self, path: &Path) -> Result<(), String> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(PARTIAL);
        let partial = PathBuf::from(partial);
        fs::rename(path, &partial).map_err(|e| describe(path, &e))?;
        sync_directory(&self.path)?;
        fs::remove_dir_all(&partial).map_err(|e| describe(&partial, &e))
    }

    /// The directories in this one whose names are of that kind.
    fn directories(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, String> {
        let failed = |e: io::Error| describe(&self.path, &e);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let is_directory = entry.file_type().map_err(failed)?.is_dir();
            if is_directory && entry.file_name().to_str().is_some_and(&is_wanted) {
                found.push(entry.path());
            }
        }
        Ok(found)
    }
}

/// Whether this is the name of a whole backup.
fn is_backup_name(name: &str) -> bool {
    PrimitiveDateTime::parse(name, NAME).is_ok()
}

/// Creates a directory that only this user can read.
pub fn create_directory(path: &Path) -> Result<(), String> {
    DirBuilder::new().mode(0o700).create(path).map_err(|e| describe(path, &e))
}

/// Creates the directories of the path that are missing.
fn create_directories(path: &Path) -> Result<(), String> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.map_err(|e| describe(path, &e))
}

/// Makes the names in a directory survive a loss of power.
fn sync_directory(path: &Path) -> Result<(), String> {
    File::open(path).and_then(|file| file.sync_all()).map_err(|e| describe(path, &e))
}

/// What failed where.
pub fn describe(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
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
