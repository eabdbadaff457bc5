//! Makes the directories of the data directory, and finds out at the start, not at the first upload, whether they can
//! be used.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use uuid::Uuid;

use super::Refusal;
use super::file_system::{create_file, exists};

/// The directory that `cloakroom restore` puts the contents into until all of them are there. It marks the data
/// directory as unusable.
pub const PARTIAL_RESTORATION: &str = "restore.partial";

/// Creates the directory, readable only for this user, unless it exists, and checks it, but does not mind if it is
/// full: nothing has to be written to a directory that is in use already, and deletions make room. The error says what
/// is wrong with the directory, and is meant to follow its name. Returns whether the directory is new; then the caller
/// has to sync the one that it is in. Most starts create none and need not wait for the disk.
pub fn prepare(path: &Path) -> Result<bool, String> {
    let exists = path.exists();
    if !exists {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|e| format!("cannot be made by user {}: {e}", user()))?;
    }
    examine(path)?;
    Ok(!exists)
}

/// Reads the directory, and writes a file there to see whether that works: permissions alone do not tell it, as on a
/// read-only or full file system. The error says what is wrong, and is meant to follow the name of the directory.
pub fn check(path: &Path) -> Result<(), String> {
    examine(path)?.map_or(Ok(()), |error| Err(format!("is full: {error}")))
}

/// Does the work of [`check`], but returns the error of a full directory as a value.
fn examine(path: &Path) -> Result<Option<io::Error>, String> {
    match exists(path) {
        Ok(false) => return Err("does not exist".into()),
        Ok(true) if !path.is_dir() => return Err("is a file, not a directory".into()),
        _ => {}
    }
    let full = match try_writing(path).map_err(|error| (error.kind(), error)) {
        Ok(()) => None,
        Err((ErrorKind::StorageFull | ErrorKind::QuotaExceeded, error)) => Some(error),
        Err((ErrorKind::PermissionDenied, _)) => {
            return Err(format!("is not writable by user {}", user()));
        }
        Err((_, error)) => return Err(format!("is not writable: {error}")),
    };
    fs::read_dir(path).map_err(|e| format!("is not readable by user {}: {e}", user()))?;
    Ok(full)
}

/// Creates a file, writes a byte to it, and removes it.
fn try_writing(directory: &Path) -> io::Result<()> {
    let path = directory.join(format!(".probe-{}", Uuid::new_v4()));
    let mut file = create_file(&path)?;
    let written = file.write_all(b"x");
    fs::remove_file(&path)?;
    written
}

/// The user that this process runs as.
pub fn user() -> String {
    user_name(rustix::process::geteuid().as_raw())
}

/// The name of a user in `/etc/passwd`, or the number if that file has none.
fn user_name(id: u32) -> String {
    let id = id.to_string();
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then_some(name)
    });
    name.unwrap_or(&id).to_owned()
}

/// Fails if a restoration was begun and not finished.
pub fn refuse_partial(data_dir: &Path) -> Result<(), Refusal> {
    // A path that cannot be examined cannot be used either, and the attempt to use it says why.
    if !exists(&data_dir.join(PARTIAL_RESTORATION)).unwrap_or(false) {
        return Ok(());
    }
    Err(format!(
        "CLOAKROOM_DATA_DIR={}: it holds {PARTIAL_RESTORATION}, because `cloakroom restore` is running or was \
         interrupted. If it is not running, make the database anew (dropdb, createdb) and run it again",
        data_dir.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_gone_is_not_called_a_file() {
        assert_eq!(check(Path::new("/nowhere")), Err("does not exist".into()));
        assert_eq!(check(Path::new("/dev/null")), Err("is a file, not a directory".into()));
    }
}
