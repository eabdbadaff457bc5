//! The content of a file while it is being written.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::direct_file::DirectFile;
use crate::error::Error;
use crate::model::hex::hex;

/// A content that is being written and hashed. It is removed when it is dropped before [`Draft::release`], so a request
/// that fails leaves nothing behind.
pub struct Draft {
    id: Uuid,
    file: DirectFile,
    /// Where the content is now.
    path: PathBuf,
    /// Where it goes once it is complete.
    destination: PathBuf,
    hash: Sha256,
    size: u64,
    is_released: bool,
}

impl Draft {
    /// Creates an empty content with a new id in the directory `drafts`. Once complete it goes to `contents`, which
    /// must be on the same file system. In both its name is its id.
    pub(super) fn create(drafts: &Path, contents: &Path) -> Result<Draft, Error> {
        let id = Uuid::new_v4();
        let path = drafts.join(id.to_string());
        Ok(Draft {
            id,
            file: DirectFile::create(&path).map_err(translate)?,
            path,
            destination: contents.join(id.to_string()),
            hash: Sha256::new(),
            size: 0,
            is_released: false,
        })
    }

    /// The id of the file to be.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Bytes written so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends `bytes`. Fails with [`Error::StorageFull`] where the disk is full.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write(bytes).map_err(translate)?;
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Moves the complete content to its destination and returns its SHA-256 in hexadecimal. File and directory are
    /// synced, so the content survives a loss of power.
    pub fn settle(&mut self) -> Result<String, Error> {
        self.file.sync().map_err(translate)?;
        fs::rename(&self.path, &self.destination).map_err(translate)?;
        self.path.clone_from(&self.destination);
        sync_directory(self.destination.parent().unwrap_or(Path::new("."))).map_err(translate)?;
        let hash = self.hash.finalize_reset();
        Ok(hex(&hash))
    }

    /// Keeps the content, because it has a record, or may have one. If it has none, the sweep finds it later.
    pub fn release(mut self) {
        self.is_released = true;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_released {
            remove_file(&self.path);
        }
    }
}

/// Removes a file and returns whether that worked. A failure is only logged: the sweep tries again.
pub(super) fn remove_file(path: &Path) -> bool {
    fs::remove_file(path).inspect_err(|error| log_not_removed(path, error)).is_ok()
}

pub(super) fn log_not_removed(path: &Path, error: &io::Error) {
    log::warn!("{} was not removed: {error}", path.display());
}

/// Makes the names in a directory survive a loss of power.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Translates an error of the data directory for the request that met it. A full disk is no internal error.
pub(super) fn translate(error: io::Error) -> Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => {
            log::error!("data directory: {error}");
            Error::StorageFull
        }
        _ => Error::Internal(format!("data directory: {error}")),
    }
}
