//! Files and directories that only this user may read, and the lock of a directory.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::storage::file_system;

/// Creates a file. There must be none with this name.
pub fn create_file(path: &Path) -> Result<File, String> {
    file_system::create_file(path).map_err(|e| describe(path, &e))
}

/// Creates a directory. There must be none with this name.
pub fn create_directory(path: &Path) -> Result<(), String> {
    DirBuilder::new().mode(0o700).create(path).map_err(|e| describe(path, &e))
}

/// Opens a file, which is made if it is missing, and locks it until it is closed. Returns `None` if another process has
/// locked it. The kernel releases the lock when the process ends, however it ends. A file is locked and not its
/// directory, because NFS locks only files.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let options = &mut File::options();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Says what failed at this path.
pub fn describe(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
