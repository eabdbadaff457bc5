//! Compares contents, in the data directory and in backups, with what they should be.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use super::draft::translate;
use super::{CopyError, MIN_SWEPT_AGE, Storage, age, copy_hashed, id_of};
use crate::error::Error;

/// What is wrong with a content. The text of each follows the name of the content in a sentence.
pub enum Damage {
    Missing,
    /// There is something else in its place, such as a directory.
    NoFile,
    /// Its size, and what it should be.
    Size(u64, u64),
    /// It has the right size, but not the hash that was recorded when it was written.
    Hash,
    Unreadable(io::Error),
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
            ErrorKind::NotFound => Damage::Missing,
            _ => Damage::Unreadable(error),
        }
    }
}

/// Compares a file with the size that it should have and, if given, with its SHA-256 in hexadecimal. `advance` is
/// told the size of each piece that was read for that.
pub fn examine(
    path: &Path,
    size: u64,
    hash: Option<&str>,
    advance: impl FnMut(u64),
) -> Result<(), Damage> {
    match hash {
        Some(hash) => copy_verified(path, io::sink(), size, hash, advance)?,
        None => check_size(path, size),
    }
}

/// Copies a file to `to`, and compares it with the size and the SHA-256 that it should have. Fails only where it cannot
/// be written; then, and where the file is damaged, a part may have been written.
pub fn copy_verified(
    from: &Path,
    to: impl Write,
    size: u64,
    hash: &str,
    advance: impl FnMut(u64),
) -> io::Result<Result<(), Damage>> {
    let source = check_size(from, size).and_then(|()| Ok(File::open(from)?));
    let source = match source {
        Ok(source) => source,
        Err(damage) => return Ok(Err(damage)),
    };
    Ok(match copy_hashed(source, to, advance) {
        Ok((found, _)) if found != size => Err(Damage::Size(found, size)),
        Ok((_, found)) if found != hash => Err(Damage::Hash),
        Ok(_) => Ok(()),
        Err(CopyError::Read(error)) => Err(error.into()),
        Err(CopyError::Write(error)) => return Err(error),
    })
}

/// Compares the size of a file. It is called before the file is opened, because opening a named pipe would wait for
/// somebody who writes to it.
fn check_size(path: &Path, size: u64) -> Result<(), Damage> {
    let metadata = fs::metadata(path)?;
    match metadata.len() {
        _ if !metadata.is_file() => Err(Damage::NoFile),
        found if found != size => Err(Damage::Size(found, size)),
        _ => Ok(()),
    }
}

impl Storage {
    /// Compares a content with its record, as [`examine`] does.
    pub fn examine(
        &self,
        id: Uuid,
        size: u64,
        hash: Option<&str>,
        advance: impl FnMut(u64),
    ) -> Result<(), Damage> {
        examine(&self.path(id), size, hash, advance)
    }

    /// Copies a content, as [`copy_verified`] does.
    pub fn copy_verified(
        &self,
        id: Uuid,
        to: impl Write,
        size: u64,
        hash: &str,
        advance: impl FnMut(u64),
    ) -> io::Result<Result<(), Damage>> {
        copy_verified(&self.path(id), to, size, hash, advance)
    }

    /// The time since a content was written; `None` if it is gone.
    pub fn age_of(&self, id: Uuid) -> Option<Duration> {
        age(&fs::metadata(self.path(id)).ok()?)
    }

    /// The names of old entries among the contents that this program did not make. Young ones are left out, because a
    /// process that starts makes a file there for a moment.
    pub fn foreign_entries(&self) -> Result<impl Iterator<Item = Result<String, Error>>, Error> {
        let entries = fs::read_dir(&self.contents).map_err(translate)?;
        Ok(entries.filter_map(|entry| {
            let entry = match entry {
                Ok(entry) if id_of(&entry).is_some() => return None,
                Ok(entry) => entry,
                Err(error) => return Some(Err(translate(error))),
            };
            let is_old = age(&entry.metadata().ok()?).is_some_and(|age| age > MIN_SWEPT_AGE);
            is_old.then(|| Ok(entry.file_name().to_string_lossy().into_owned()))
        }))
    }
}
