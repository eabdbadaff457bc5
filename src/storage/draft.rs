//! The content of a file while it is being written.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::direct_file::DirectFile;
use super::file_system::{remove_file, sync_parent, translate};
use crate::error::Error;
use crate::model::hex;

/// A content that is being written and hashed. Dropping it without [`Draft::keep`] removes it, so a request that fails
/// leaves nothing behind.
pub struct Draft {
    id: Uuid,
    file: DirectFile,
    /// The present path of the content.
    path: PathBuf,
    /// Its path once it is complete.
    destination: PathBuf,
    hash: Sha256,
    size: u64,
    is_kept: bool,
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
            is_kept: false,
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

    /// Appends `bytes`. Fails with [`Error::StorageFull`] if the disk is full.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write(bytes).map_err(translate)?;
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Waits until the complete content is on the disk at its destination, where it survives a loss of power, and
    /// returns its SHA-256 in hexadecimal.
    pub fn commit_to_disk(&mut self) -> Result<String, Error> {
        self.file.sync().map_err(translate)?;
        fs::rename(&self.path, &self.destination).map_err(translate)?;
        self.path.clone_from(&self.destination);
        sync_parent(&self.path).map_err(translate)?;
        Ok(hex(&self.hash.finalize_reset()))
    }

    /// Keeps the content, because it has a record, or may have one. If it has none, the sweep finds it later.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_kept {
            remove_file(&self.path);
        }
    }
}
