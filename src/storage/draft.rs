//! The content of a file while it is being written.

#[cfg(feature = "extras")]
pub mod partial;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crc32fast::Hasher;
use rustix::fs::{Advice, fadvise};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Contents;
use super::file_system::{create_file, remove_file, translate};
use crate::error::Error;
use crate::model::hex;
use crate::model::utf8::Utf8Check;

/// A content that is being written and hashed. Dropping it without [`Draft::keep`] removes it, so a request that fails
/// leaves nothing behind.
pub struct Draft {
    id: Uuid,
    file: File,
    path: PathBuf,
    /// The destination of the complete content.
    contents: Arc<dyn Contents>,
    hash: Sha256,
    crc: Hasher,
    text: Utf8Check,
    size: u64,
    /// Whether there is a record already, so that a file of this name counts as the content.
    is_recorded: bool,
    is_stored: bool,
    is_kept: bool,
}

/// A draft to which nothing is added any more.
#[cfg_attr(
    not(feature = "s3"),
    expect(dead_code, reason = "a directory needs neither size nor hash")
)]
pub struct CompleteDraft<'a> {
    pub path: &'a Path,
    pub file: &'a File,
    pub size: u64,
    pub sha256: [u8; 32],
    /// Whether the content has a record already.
    pub is_recorded: bool,
}

impl Draft {
    /// Creates an empty content in the directory `drafts`, where it has a name of its own, so that processes which
    /// write the same content do not meet. Its destination is `contents`.
    pub(super) fn create(
        id: Uuid,
        drafts: &Path,
        contents: Arc<dyn Contents>,
        is_recorded: bool,
    ) -> Result<Draft, Error> {
        let path = drafts.join(Uuid::new_v4().to_string());
        Ok(Draft {
            id,
            file: create_file(&path).map_err(translate)?,
            path,
            contents,
            hash: Sha256::new(),
            crc: Hasher::new(),
            text: Utf8Check::default(),
            size: 0,
            is_recorded,
            is_stored: false,
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
        self.append(bytes).map_err(translate)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.skip(bytes);
        Ok(())
    }

    /// Counts, hashes and checks `bytes` without storing them, for a content that is not kept.
    pub fn skip(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.crc.update(bytes);
        self.text.add(bytes);
        self.size += bytes.len() as u64;
    }

    /// Whether what was written so far is UTF-8 without NUL.
    pub fn is_utf8(&self) -> bool {
        self.text.is_utf8(false)
    }

    /// The CRC-32 of what was written so far, by which archives are checked.
    pub fn crc32(&self) -> u32 {
        self.crc.clone().finalize()
    }

    /// The file that is written until the content is complete.
    #[cfg(feature = "tools")]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The SHA-256, in hexadecimal, of what was written so far.
    pub fn hash(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// Waits until the complete content is at its destination, on the disk, where it survives a loss of power, or in
    /// the store, which has acknowledged it. Returns its SHA-256 in hexadecimal.
    pub fn commit(&mut self) -> Result<String, Error> {
        let hash = self.hash.finalize_reset();
        let draft = CompleteDraft {
            path: &self.path,
            file: &self.file,
            size: self.size,
            sha256: hash.into(),
            is_recorded: self.is_recorded,
        };
        self.contents.store(self.id, &draft)?;
        self.is_stored = true;
        // It is on the disk now: the page cache has better use for the memory. A file system without this advice keeps
        // it.
        let _ = fadvise(&self.file, 0, None, Advice::DontNeed);
        Ok(hex(&hash))
    }

    /// Keeps the content, because it has a record, or may have one. If it has none, the sweep finds it later.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

#[cfg(feature = "tools")]
impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a panic it is unknown whether there is a record.
        self.is_kept |= self.is_stored && thread::panicking();
        if !self.is_stored && !self.is_kept {
            remove_file(&self.path);
        } else if !self.is_kept {
            // What cannot be removed is logged, in a store as an outage, and the sweep finds it.
            if let Err(Error::Internal(cause)) = self.contents.remove(self.id) {
                log::warn!("{cause}");
            }
        }
    }
}
