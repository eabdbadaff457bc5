//! The content of a file that comes in several requests: a draft that stays in the directory `partial/` until it is
//! complete, under the id of its upload. Whoever writes it holds the lock of the file, which the kernel gives back with
//! the process, and what follows from its bytes can be kept elsewhere, so that they need not be read again.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crc32fast::Hasher;
use sha2::digest::common::hazmat::{SerializableState, SerializedState};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Draft;
use crate::error::Error;
use crate::model::hex;
use crate::model::utf8::Utf8Check;
use crate::storage::Storage;
use crate::storage::content_directory::old_ids;
use crate::storage::file_system::{create_file, remove_file, sync_directory, translate};

/// How many bytes are read at once.
const PIECE: usize = 64 * 1024;

/// What follows from the first bytes of a content, so that the next ones can be added.
#[derive(Clone, Default)]
pub struct Sums {
    hash: Sha256,
    crc: Hasher,
    text: Utf8Check,
}

impl Sums {
    /// What [`Sums::bytes`] has made of those of so many bytes. `None` if that was another program's.
    pub fn of(bytes: &[u8], length: u64) -> Option<Sums> {
        let mut state = SerializedState::<Sha256>::default();
        let (hash, rest) = bytes.split_at_checked(state.len())?;
        let (crc, [is_broken, cut @ ..]) = rest.split_first_chunk()? else { return None };
        state.copy_from_slice(hash);
        Some(Sums {
            hash: Sha256::deserialize(&state).ok()?,
            crc: Hasher::new_with_initial_len(u32::from_le_bytes(*crc), length),
            text: Utf8Check { cut: cut.to_vec(), is_broken: *is_broken != 0 },
        })
    }

    pub fn bytes(&self) -> Vec<u8> {
        let crc = self.crc32().to_le_bytes();
        let text = &self.text;
        [&self.hash.serialize()[..], &crc, &[u8::from(text.is_broken)], &text.cut].concat()
    }

    /// SHA-256 in hexadecimal digits.
    pub fn hash(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    pub fn crc32(&self) -> u32 {
        self.crc.clone().finalize()
    }

    /// Whether it is UTF-8 without NUL.
    pub fn is_utf8(&self) -> bool {
        self.text.is_utf8(false)
    }
}

/// The bytes of uploads that are not complete.
impl Storage {
    fn partial(&self, id: Option<Uuid>) -> PathBuf {
        let directory = self.drafts.with_file_name("partial");
        id.map_or(directory.clone(), |id| directory.join(id.to_string()))
    }

    /// What the file system says of the file of an upload; `None` if there is none.
    pub fn partial_file(&self, id: Uuid) -> Result<Option<Metadata>, Error> {
        match self.partial(Some(id)).metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => found.map(Some).map_err(translate),
        }
    }

    /// Opens a content that another request has put into the directory of contents. `None` if it is not there; in a
    /// store it is safe already.
    pub fn open_content(&self, id: Uuid) -> Result<Option<File>, Error> {
        self.content_directory().map_or(Ok(None), |directory| open(&directory.join(id.to_string())))
    }

    /// Makes a content safe that another request has put into the directory of contents, and may not have synced yet.
    pub fn sync_content(&self, content: &File) -> Result<(), Error> {
        let directory = self.content_directory().map_or(Ok(()), sync_directory);
        directory.and_then(|()| content.sync_all()).map_err(translate)
    }

    /// Opens the file of an upload. `None` if there is none.
    pub fn open_partial(&self, id: Uuid) -> Result<Option<File>, Error> {
        open(&self.partial(Some(id)))
    }

    /// Makes the empty file of a new upload, whose name survives a loss of power: without it there is no such upload
    /// here, as where another host has the bytes.
    pub fn create_partial(&self, id: Uuid) -> Result<(), Error> {
        let (directory, path) = (self.partial(None), self.partial(Some(id)));
        let created = create_file(&path).or_else(|error| match error.kind() {
            ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
                directory.parent().map_or(Ok(()), sync_directory)?;
                create_file(&path)
            }
            _ => Err(error),
        });
        created.and_then(|_| sync_directory(&directory)).map_err(translate)
    }

    /// Removes the bytes of an upload. A failure is only logged: the sweep tries again.
    pub fn remove_partial(&self, id: Uuid) {
        remove_file(&self.partial(Some(id)));
    }

    /// The uploads of which nothing was written for so long.
    pub fn old_partials(&self, min_age: Duration) -> Result<Vec<Uuid>, Error> {
        let directory = self.partial(None);
        if !directory.exists() {
            return Ok(Vec::new());
        }
        old_ids(&directory, min_age)?.collect()
    }

    /// Goes on with an upload whose file is locked: to be the content `id`, and at least as long as the bytes that are
    /// synced. What was written after them counts if it `is_trusted`, and is cut off otherwise. `None` if the file is
    /// shorter than what was synced.
    pub fn resume(
        &self,
        (upload, id): (Uuid, Uuid),
        mut file: File,
        (synced, sums): (u64, Option<&[u8]>),
        is_trusted: bool,
    ) -> Result<Option<Draft>, Error> {
        let length = file.metadata().map_err(translate)?.len();
        if length < synced {
            return Ok(None);
        }
        let length = if is_trusted { length } else { synced };
        let known = sums.and_then(|bytes| Some((Sums::of(bytes, synced)?, synced)));
        let (Sums { hash, crc, text }, from) = known.unwrap_or_default();
        let cut = file.set_len(length).and_then(|()| file.seek(SeekFrom::Start(from)));
        cut.map_err(translate)?;
        let (path, contents) = (self.partial(Some(upload)), self.contents.clone());
        let (is_recorded, is_stored, is_kept) = (false, false, true);
        let mut draft = Draft {
            id,
            file,
            path,
            contents,
            hash,
            crc,
            text,
            size: from,
            is_recorded,
            is_stored,
            is_kept,
        };
        let mut piece = vec![0; PIECE];
        while draft.size < length {
            let most = PIECE.min(usize::try_from(length - draft.size).unwrap_or(PIECE));
            match draft.file.read(&mut piece[..most]) {
                Ok(0) => return Ok(None),
                Ok(count) => draft.skip(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(translate(error)),
            }
        }
        Ok(Some(draft))
    }
}

impl Draft {
    /// What follows from what was written so far.
    pub fn sums(&self) -> Sums {
        Sums { hash: self.hash.clone(), crc: self.crc.clone(), text: self.text.clone() }
    }

    /// Waits until all that was written is on the disk, and the name, too.
    pub fn sync(&self) -> Result<(), Error> {
        let directory = self.path.parent().map_or(Ok(()), sync_directory);
        directory.and_then(|()| self.file.sync_data()).map_err(translate)
    }

    /// The first bytes, at most so many.
    pub fn beginning(&self, most: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; most.min(usize::try_from(self.size).unwrap_or(most))];
        self.file.read_exact_at(&mut bytes, 0).map_err(translate)?;
        Ok(bytes)
    }
}

/// Opens a file for reading and writing. `None` if there is none.
fn open(path: &Path) -> Result<Option<File>, Error> {
    match File::options().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(translate),
    }
}

/// The boot of this host, which changes when it loses power; empty if that is unknown.
pub fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_the_first_bytes_can_be_kept_at_any_byte() {
        let content = "Gr\u{fc}\u{df}e \u{20ac} \u{1f600} ".repeat(20).into_bytes();
        let add = |sums: &mut Sums, bytes: &[u8]| {
            sums.hash.update(bytes);
            sums.crc.update(bytes);
            sums.text.add(bytes);
        };
        let mut whole = Sums::default();
        add(&mut whole, &content);
        for at in 0..content.len() {
            let mut first = Sums::default();
            add(&mut first, &content[..at]);
            let mut next = Sums::of(&first.bytes(), at as u64).unwrap_or_default();
            assert_eq!(next.hash(), first.hash());
            add(&mut next, &content[at..]);
            let found = (next.hash(), next.crc32(), next.is_utf8());
            assert_eq!(found, (whole.hash(), whole.crc32(), true), "{at}");
        }
        for bytes in [&b""[..], b"x", &whole.bytes()[..40]] {
            assert!(Sums::of(bytes, 1).is_none());
        }
    }
}
