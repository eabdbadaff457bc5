//! Looks at contents without changing any, for `cloakroom check`.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
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
    /// It has the right size, but not the hash of what was uploaded.
    Hash,
    Unreadable(io::Error),
}

impl Display for Damage {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Damage::Missing => f.write_str("is missing"),
            Damage::NoFile => f.write_str("is not a file"),
            Damage::Size(found, expected) => write!(f, "has {found} bytes, not {expected}"),
            Damage::Hash => f.write_str("has another SHA-256 than what was uploaded"),
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

impl From<CopyError> for Damage {
    fn from((CopyError::Read(error) | CopyError::Write(error)): CopyError) -> Damage {
        error.into()
    }
}

/// Compares a file with the size that it should have and, if given, with its SHA-256 in hexadecimal. `advance` is
/// called after each piece that was read for that.
pub fn examine(
    path: &Path,
    size: u64,
    hash: Option<&str>,
    mut advance: impl FnMut(),
) -> Result<(), Damage> {
    // Before it is opened, because opening a named pipe would wait for somebody who writes to it.
    let metadata = fs::metadata(path)?;
    match metadata.len() {
        _ if !metadata.is_file() => return Err(Damage::NoFile),
        found if found != size => return Err(Damage::Size(found, size)),
        _ => {}
    }
    let Some(hash) = hash else { return Ok(()) };
    let (found, found_hash) = copy_hashed(File::open(path)?, io::sink(), |_| advance())?;
    match found == size {
        true if found_hash == hash => Ok(()),
        true => Err(Damage::Hash),
        false => Err(Damage::Size(found, size)),
    }
}

impl Storage {
    /// Compares a content with its record, as [`examine`] does.
    pub fn examine(
        &self,
        id: Uuid,
        size: u64,
        hash: Option<&str>,
        advance: impl FnMut(),
    ) -> Result<(), Damage> {
        examine(&self.path(id), size, hash, advance)
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
