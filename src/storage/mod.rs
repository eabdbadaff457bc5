//! Contents of files, in a directory. A content is written to `tmp/` and hashed on the way, synced,
//! and renamed to its place in `files/`; its name is the id that this program made. A record of it is
//! made after that and removed before it, so whatever is recorded is there, whole.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::error::Error;

/// What is younger may be about to be recorded, and is not swept away.
const SWEPT_AGE: Duration = Duration::from_secs(3600);
/// How many contents are looked up at once.
const BATCH: usize = 1000;

/// Gives those of some ids that have a record.
pub type Recorded<'a> = &'a dyn Fn(&[Uuid]) -> Result<HashSet<Uuid>, Error>;

/// The directory of contents.
pub struct Storage {
    contents: PathBuf,
    drafts: PathBuf,
}

impl Storage {
    /// Makes the directories where they are missing, for this user's eyes only.
    pub fn open(data_dir: &Path) -> Result<Storage, Error> {
        let files = Storage { contents: data_dir.join("files"), drafts: data_dir.join("tmp") };
        for directory in [&files.contents, &files.drafts] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .and_then(|()| sync_directory(data_dir))
                .map_err(|e| Error::Internal(format!("{}: {e}", directory.display())))?;
        }
        Ok(files)
    }

    /// An empty content of a new id.
    pub fn draft(&self) -> Result<Draft, Error> {
        let id = Uuid::new_v4();
        let path = self.drafts.join(id.to_string());
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        Ok(Draft {
            id,
            file: file.map_err(fault)?,
            place: self.path(id),
            path,
            hash: Sha256::new(),
            size: 0,
            is_released: false,
        })
    }

    /// The content, open for reading, where it is there in its whole length.
    pub fn read(&self, id: Uuid, size: u64) -> Result<File, Error> {
        let missing = |what: String| Error::Internal(format!("content of file {id}: {what}"));
        let file = File::open(self.path(id)).map_err(|e| missing(e.to_string()))?;
        let length = file.metadata().map_err(|e| missing(e.to_string()))?.len();
        if length == size { Ok(file) } else { Err(missing(format!("{length} bytes, not {size}"))) }
    }

    /// Removes a content whose record is gone. What fails is left to the sweep.
    pub fn remove(&self, id: Uuid) {
        if let Err(error) = fs::remove_file(self.path(id)) {
            log::warn!("content of file {id} was not removed: {error}");
        }
    }

    /// Removes the contents of a user whose records are gone.
    pub fn remove_all(&self, ids: &[Uuid]) {
        ids.iter().for_each(|id| self.remove(*id));
    }

    /// Whether a content of that id is there.
    pub fn has(&self, id: Uuid) -> bool {
        self.path(id).is_file()
    }

    /// Removes drafts and contents without a record, none younger than an hour; `removed` is told
    /// each path.
    pub fn sweep(&self, recorded: Recorded, removed: &mut dyn FnMut(&Path)) -> Result<(), Error> {
        sweep_directory(&self.drafts, &|_| Ok(HashSet::new()), removed)?;
        sweep_directory(&self.contents, recorded, removed)
    }

    fn path(&self, id: Uuid) -> PathBuf {
        self.contents.join(id.to_string())
    }
}

/// A content on its way into the directory. Dropped before it is released, it is removed.
pub struct Draft {
    id: Uuid,
    file: File,
    /// Where it is now, and where it belongs.
    path: PathBuf,
    place: PathBuf,
    hash: Sha256,
    size: u64,
    is_released: bool,
}

impl Draft {
    /// The id it was given.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Bytes written so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds to the end. A full disk is [`Error::StorageFull`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(fault)?;
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Puts it into its place, so that it outlives a loss of power, and gives its SHA-256 in
    /// hexadecimal.
    pub fn settle(&mut self) -> Result<String, Error> {
        self.file.sync_all().map_err(fault)?;
        fs::rename(&self.path, &self.place).map_err(fault)?;
        self.path.clone_from(&self.place);
        sync_directory(self.place.parent().unwrap_or(Path::new("."))).map_err(fault)?;
        let hash = self.hash.finalize_reset();
        Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Leaves it where it is: it is recorded, or the sweep will see whether it is.
    pub fn release(mut self) {
        self.is_released = true;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_released
            && let Err(error) = fs::remove_file(&self.path)
        {
            log::warn!("{} was not removed: {error}", self.path.display());
        }
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// What an error of the data directory means to an upload.
fn fault(error: io::Error) -> Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => {
            log::error!("data directory: {error}");
            Error::StorageFull
        }
        _ => Error::Internal(format!("data directory: {error}")),
    }
}

/// Looks contents up after they were listed: one that is old and not recorded then will never be.
fn sweep_directory(
    directory: &Path,
    recorded: Recorded,
    removed: &mut dyn FnMut(&Path),
) -> Result<(), Error> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut entries = fs::read_dir(directory).map_err(fault)?;
    loop {
        let entry = entries.next().transpose().map_err(fault)?;
        let is_last = entry.is_none();
        batch.extend(entry.as_ref().and_then(old_content));
        if batch.len() == BATCH || is_last {
            let kept = recorded(&batch)?;
            for id in batch.drain(..).filter(|id| !kept.contains(id)) {
                let path = directory.join(id.to_string());
                match fs::remove_file(&path) {
                    Ok(()) => removed(&path),
                    Err(error) => log::warn!("{} was not removed: {error}", path.display()),
                }
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

/// The id of an entry that this program made over an hour ago.
fn old_content(entry: &fs::DirEntry) -> Option<Uuid> {
    let name = entry.file_name();
    let id: Uuid = name.to_str()?.parse().ok()?;
    let modified = entry.metadata().ok()?.modified().ok()?;
    // A time in the future is no age.
    let is_old = modified.elapsed().is_ok_and(|age| age > SWEPT_AGE);
    (is_old && name == *id.to_string()).then_some(id)
}
