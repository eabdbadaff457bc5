//! Files that commands write, which only this user may read, and contents, in the data directory, in a store and in
//! backups, as they are compared with what they should be.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::error::Error;
use crate::model::hex;
use crate::storage::{Content, Storage, file_system};
use crate::tools::database::RecordedContent;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 256 * 1024;

/// Creates a file. There must be none with this name.
pub fn create_file(path: &Path) -> Result<File, String> {
    file_system::create_file(path).at(path)
}

/// Creates a directory. There must be none with this name.
pub fn create_directory(path: &Path) -> Result<(), String> {
    DirBuilder::new().mode(0o700).create(path).at(path)
}

/// Opens a file, which is made if it is missing, and locks it until it is closed. Fails with `refusal` if another
/// process has locked it. The kernel releases the lock when the process ends, however it ends. A file is locked and not
/// its directory, because NFS locks only files.
pub fn lock(path: &Path, refusal: impl Display) -> Result<File, String> {
    let mut options = File::options();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(path).at(path)?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(refusal.to_string()),
        Err(TryLockError::Error(error)) => Err(error).at(path)?,
        Ok(()) => {}
    }
    Ok(file)
}

/// Turns an error into a text for the operator, which begins with the path that it is about.
pub trait AtPath<T> {
    fn at(self, path: &Path) -> Result<T, String>;
}

impl<T, E: Display> AtPath<T> for Result<T, E> {
    fn at(self, path: &Path) -> Result<T, String> {
        self.map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// The size of a file, and its SHA-256 in hexadecimal.
#[derive(Serialize, Deserialize)]
pub struct Checksum {
    pub size: u64,
    pub sha256: String,
}

/// On which side a copy failed: a content that cannot be read is damaged, a target that cannot be written is full.
#[derive(Debug)]
pub enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

impl CopyError {
    /// Says what failed, for the operator, if the copy is made from `source` to `target`.
    pub fn between(&self, source: impl Display, target: impl Display) -> String {
        match self {
            CopyError::Read(error) => format!("{source}: {error}"),
            CopyError::Write(error) => format!("{target}: {error}"),
        }
    }
}

/// Copies all of `from` to `to`, and returns the number of bytes with their SHA-256. With [`io::sink`] it only reads.
pub fn copy_hashed(mut from: impl Read, mut to: impl Write) -> Result<Checksum, CopyError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut size, mut hash) = (0, Sha256::new());
    loop {
        let piece = match from.read(&mut buffer) {
            Ok(0) => return Ok(Checksum { size, sha256: hex(&hash.finalize()) }),
            Ok(read) => buffer.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        to.write_all(piece).map_err(CopyError::Write)?;
        hash.update(piece);
        size += piece.len() as u64;
    }
}

/// A fault of a content. Its text follows the name of the content in a sentence.
pub enum Damage {
    Missing,
    /// Something else is in its place, such as a directory.
    NoFile,
    /// Its size, and what it should be.
    Size(u64, u64),
    /// It has the right size, but not the hash that was recorded when it was written.
    Hash,
    Unreadable(io::Error),
}

impl Damage {
    /// Whether the right bytes are certainly not there: they may be in a file that cannot be read, be it for its
    /// rights, a disk with a defect or one that is away for a moment.
    pub fn is_certain(&self) -> bool {
        !matches!(self, Damage::Unreadable(_))
    }
}

impl Display for Damage {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Damage::Missing => f.write_str("is missing"),
            Damage::NoFile => f.write_str("is not a file"),
            Damage::Size(found, expected) => write!(f, "has {found} bytes, not {expected}"),
            Damage::Hash => f.write_str("has another SHA-256 than is recorded"),
            Damage::Unreadable(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl From<io::Error> for Damage {
    fn from(error: io::Error) -> Damage {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Damage::Missing,
            // The bytes from a store, which are compared as they come.
            ErrorKind::InvalidData => Damage::Hash,
            _ => Damage::Unreadable(error),
        }
    }
}

/// Compares a file with the size and, if given, with the SHA-256 in hexadecimal that it should have. Returns its fault,
/// if any.
pub fn examine(path: &Path, size: Option<u64>, sha256: Option<&str>) -> Option<Damage> {
    match sha256 {
        Some(sha256) => {
            copy_verified(path, io::sink(), size, sha256).unwrap_or_else(|e| Err(e.into())).err()
        }
        None => open_of_size(path, size).err(),
    }
}

/// Copies a file to `to`, and compares it with the SHA-256 and, if that is known, with the size that it should have.
/// Returns its size, or what is wrong with it. Fails if `to` cannot be written; then, and if the file is damaged, a
/// part may have been written.
pub fn copy_verified(
    from: &Path,
    to: impl Write,
    size: Option<u64>,
    sha256: &str,
) -> io::Result<Result<u64, Damage>> {
    match open_of_size(from, size) {
        Ok(source) => copy_compared(source, to, sha256),
        Err(damage) => Ok(Err(damage)),
    }
}

/// The same for any source.
fn copy_compared(from: impl Read, to: impl Write, sha256: &str) -> io::Result<Result<u64, Damage>> {
    match copy_hashed(from, to) {
        Ok(found) if found.sha256 == sha256 => Ok(Ok(found.size)),
        Ok(_) => Ok(Err(Damage::Hash)),
        Err(CopyError::Read(error)) => Ok(Err(error.into())),
        Err(CopyError::Write(error)) => Err(error),
    }
}

/// Contents that were looked for, many at a time, and can now be examined one by one.
pub struct FoundContents<'a> {
    storage: &'a Storage,
    /// The sizes of those in a store. Files are looked at when they are examined.
    sizes: BTreeMap<Uuid, u64>,
}

impl<'a> FoundContents<'a> {
    /// Looks for contents, whose ids must be in ascending order.
    pub fn find(storage: &'a Storage, contents: &[RecordedContent]) -> Result<Self, Error> {
        let ids: Vec<Uuid> = contents.iter().map(|content| content.id).collect();
        let is_store = storage.content_directory().is_none();
        let sizes = if is_store { storage.sizes(&ids)? } else { BTreeMap::new() };
        Ok(FoundContents { storage, sizes })
    }

    /// Compares the size of a content with its record. Returns what is wrong with it.
    pub fn examine(&self, content: &RecordedContent) -> Option<Damage> {
        let RecordedContent { id, size, .. } = content;
        match (self.storage.content_directory(), self.sizes.get(id)) {
            (Some(directory), _) => examine(&directory.join(id.to_string()), Some(*size), None),
            (None, None) => Some(Damage::Missing),
            (None, Some(found)) => (found != size).then_some(Damage::Size(*found, *size)),
        }
    }

    /// Compares the size and the hash of a content with its record. Fails if it is in a store that does not serve it.
    pub fn read(&self, content: &RecordedContent) -> Result<Option<Damage>, Error> {
        self.copy(content, io::sink()).map_err(|_| Error::StoreUnavailable)
    }

    /// Copies a content to `to`, as [`copy_verified`] does, and returns what is wrong with it. A store that does not
    /// serve it is a failure to read: it says nothing about the content, and the next ones would fail as well.
    pub fn copy(
        &self,
        content: &RecordedContent,
        to: impl Write,
    ) -> Result<Option<Damage>, CopyError> {
        let RecordedContent { id, size, sha256 } = content;
        if let Some(directory) = self.storage.content_directory() {
            let copied = copy_verified(&directory.join(id.to_string()), to, Some(*size), sha256);
            return copied.map(Result::err).map_err(CopyError::Write);
        }
        if let Some(damage) = self.examine(content) {
            return Ok(Some(damage));
        }
        let failed =
            |e| CopyError::Read(io::Error::other(format!("files/{id} cannot be read: {e}")));
        let source = match self.storage.open_part(*id, *size, sha256, 0..*size) {
            Ok(Content::Stream(source)) => source,
            Ok(Content::File(_)) => return Ok(Some(Damage::NoFile)),
            Err(error @ Error::StoreUnavailable) => return Err(failed(error.cause().into_owned())),
            Err(error) => return Ok(Some(Damage::Unreadable(io::Error::other(error.cause())))),
        };
        match copy_compared(source, to, sha256).map_err(CopyError::Write)? {
            Err(Damage::Unreadable(error)) => Err(failed(error.to_string())),
            outcome => Ok(outcome.err()),
        }
    }
}

/// Opens a file, and compares its size if that is known.
fn open_of_size(path: &Path, size: Option<u64>) -> Result<File, Damage> {
    let file = open_regular(path)?;
    let found = file.metadata()?.len();
    match size {
        Some(size) if size != found => Err(Damage::Size(found, size)),
        _ => Ok(file),
    }
}

/// Opens a file for reading. A symbolic link is no file: it would show what is elsewhere. Neither is a named pipe, for
/// whose writer opening would wait.
pub fn open_regular(path: &Path) -> Result<File, Damage> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|e| match e.raw_os_error().map(Errno::from_raw_os_error) {
        // A symbolic link, and a socket.
        Some(Errno::LOOP | Errno::NXIO) => Damage::NoFile,
        _ => e.into(),
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(Damage::NoFile) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_may_have_the_right_bytes() {
        for (error, is_certain) in
            [(Errno::IO, false), (Errno::ACCESS, false), (Errno::NOENT, true)]
        {
            assert_eq!(Damage::from(io::Error::from(error)).is_certain(), is_certain, "{error}");
        }
        assert!(Damage::Hash.is_certain() && Damage::Size(1, 2).is_certain());
    }
}
