//! The file system as the other files of this module use it: small files that are whole or absent, names that survive a
//! loss of power, the removal of files, and the room that is left.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use crate::error::Error;
use crate::model::timestamp::Timestamp;

/// The file in the data directory that names the last whole backup, written by `cloakroom backup`, because the service
/// does not know where backups are kept: the moment whose state it has, a blank, and its path.
pub const LAST_BACKUP: &str = "last-backup";
/// More than a time and a path ever take.
const MAX_LAST_BACKUP_BYTES: u64 = 8192;

/// Creates an empty file, which only this user may read. Fails if there is one at `path` already.
pub fn create_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Writes a file that is whole or absent, also after a crash, and readable only for this user, unless there is one with
/// this name already. Returns whether it did. Processes of this machine that do so at the same moment wait for each
/// other, for as long as the disk takes, so one of them succeeds. That is up to a lock of the directory, which every
/// file system has: some have no hard links, as exFAT, or no renaming that fails if the name exists, as NFS and much of
/// FUSE.
pub fn create_private_file(path: &Path, content: &[u8]) -> io::Result<bool> {
    let directory = File::open(parent(path))?;
    directory.lock()?; // until it is closed
    let is_new = !exists(path)?;
    if is_new {
        replace_file(path, content)?;
    }
    Ok(is_new)
}

/// Writes a file in place of any with this name. It is whole or as it was, also after a crash.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    fs::rename(write_aside(path, content)?, path)?;
    sync_directory(parent(path))
}

/// The directory that a path is in.
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Writes a synced file under another name beside `path`, and returns its path.
fn write_aside(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let temporary = path.with_extension(Uuid::new_v4().to_string());
    let mut file = create_file(&temporary)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    if written.is_err() {
        remove_file(&temporary); // otherwise each attempt on a full disk would leave one
    }
    written.map(|()| temporary)
}

/// Makes the names in a directory survive a loss of power.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Removes a file, if it is there, and returns whether it did. A failure is only logged: the sweep tries again.
pub(super) fn remove_file(path: &Path) -> bool {
    let outcome = fs::remove_file(path);
    match &outcome {
        Err(error) if error.kind() != ErrorKind::NotFound => log_not_removed(path, error),
        _ => {}
    }
    outcome.is_ok()
}

pub(super) fn log_not_removed(path: &Path, error: &io::Error) {
    log::warn!("{} was not removed: {error}", path.display());
}

/// Returns whether there is anything with this name, also a symbolic link that leads nowhere.
pub fn exists(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        outcome => outcome.map(|_| true),
    }
}

/// The age of a file; `None` if that is in the future, as after the clock was set back, or unknown.
pub fn age(metadata: &Metadata) -> Option<Duration> {
    metadata.modified().ok()?.elapsed().ok()
}

/// Translates an error of the data directory for the request that met it. A full disk is no internal error.
pub fn translate(error: io::Error) -> Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => {
            log::error!("data directory: {error}");
            Error::StorageFull
        }
        _ => Error::Internal(format!("data directory: {error}")),
    }
}

/// Returns the moment and the path of the last backup. `None` if there was none, or the file holds anything else.
pub fn last_backup(data_dir: &Path) -> Option<(Timestamp, PathBuf)> {
    let mut text = String::new();
    let file = File::open(data_dir.join(LAST_BACKUP)).ok()?;
    file.take(MAX_LAST_BACKUP_BYTES).read_to_string(&mut text).ok()?;
    let (at, path) = text.trim_end().split_once(' ')?;
    Some((Timestamp::parse(at)?, path.into()))
}

/// The size of a file system, and how much of it an ordinary user may still take.
pub struct DiskSpace {
    pub total_bytes: u64,
    pub free_bytes: u64,
    /// Each file takes one inode. Both counts are 0 if the file system has no fixed number, as Btrfs.
    pub total_inodes: u64,
    pub free_inodes: u64,
}

impl DiskSpace {
    /// Asks the file system of `directory`.
    pub fn of(directory: &Path) -> io::Result<DiskSpace> {
        let found = rustix::fs::statvfs(directory)?;
        Ok(DiskSpace {
            total_bytes: found.f_blocks.saturating_mul(found.f_frsize),
            free_bytes: found.f_bavail.saturating_mul(found.f_frsize),
            total_inodes: found.f_files,
            free_inodes: found.f_favail,
        })
    }
}
