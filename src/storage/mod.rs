//! Contents of files, in the data directory: `files/` holds one file for each content, `tmp/` those that are being
//! written. A name there is always the id that this program made, never one that a client sent.
//!
//! A content is written and hashed in `tmp/`, synced, renamed to `files/`, and only then recorded in the database; a
//! deletion removes the record first. So every recorded content exists and is complete, also after a crash. What a
//! crash can leave over is a content without a record, which `background::sweep` removes.

mod draft;

use std::fs::{self, DirBuilder, DirEntry, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use crate::error::Error;
pub use draft::Draft;
use draft::{remove_file, sync_directory, translate};

/// Contents younger than this may be about to be recorded, and drafts may still be written, so no sweep touches them.
const MIN_SWEPT_AGE: Duration = Duration::from_secs(3600);
/// Ids in a batch of [`Storage::old_contents`].
const BATCH_IDS: usize = 1000;

/// The directory of contents.
pub struct Storage {
    contents: PathBuf,
    drafts: PathBuf,
}

impl Storage {
    /// Opens the data directory. Creates its directories where they are missing, readable only for this user.
    pub fn open(data_dir: &Path) -> Result<Storage, Error> {
        let storage = Storage { contents: data_dir.join("files"), drafts: data_dir.join("tmp") };
        for directory in [&storage.contents, &storage.drafts] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .and_then(|()| sync_directory(data_dir))
                .map_err(|e| Error::Internal(format!("{}: {e}", directory.display())))?;
        }
        Ok(storage)
    }

    /// Creates an empty content with a new id.
    pub fn draft(&self) -> Result<Draft, Error> {
        Draft::create(&self.drafts, &self.contents)
    }

    /// Opens a content for reading. Fails where it is missing, or is not `size` bytes long.
    pub fn read(&self, id: Uuid, size: u64) -> Result<File, Error> {
        let damaged = |what: String| Error::Internal(format!("content of file {id}: {what}"));
        let file = File::open(self.path(id)).map_err(|e| damaged(e.to_string()))?;
        let length = file.metadata().map_err(|e| damaged(e.to_string()))?.len();
        if length == size { Ok(file) } else { Err(damaged(format!("{length} bytes, not {size}"))) }
    }

    /// Removes a content whose record is gone, and returns its path. Where that fails, which is logged, the content is
    /// left to the next sweep.
    pub fn remove(&self, id: Uuid) -> Option<PathBuf> {
        Some(self.path(id)).filter(|path| remove_file(path))
    }

    /// Removes several contents whose records are gone, like [`Storage::remove`].
    pub fn remove_all(&self, ids: &[Uuid]) {
        for id in ids {
            self.remove(*id);
        }
    }

    /// Whether there is a content with that id.
    pub fn has(&self, id: Uuid) -> bool {
        self.path(id).is_file()
    }

    /// Returns the ids of the contents that are old enough to be swept, in batches, for looking up their records. The
    /// directory is read on the way, so memory does not grow with it.
    pub fn old_contents(&self) -> Result<impl Iterator<Item = Result<Vec<Uuid>, Error>>, Error> {
        let mut ids = old_ids(&self.contents)?;
        Ok(std::iter::from_fn(move || {
            let batch: Result<Vec<Uuid>, Error> = ids.by_ref().take(BATCH_IDS).collect();
            Some(batch).filter(|batch| batch.as_ref().map_or(true, |ids| !ids.is_empty()))
        }))
    }

    /// Removes the drafts that a crash left over. Returns their paths.
    pub fn remove_old_drafts(&self) -> Result<Vec<PathBuf>, Error> {
        let mut removed = Vec::new();
        for id in old_ids(&self.drafts)? {
            let path = self.drafts.join(id?.to_string());
            if remove_file(&path) {
                removed.push(path);
            }
        }
        Ok(removed)
    }

    fn path(&self, id: Uuid) -> PathBuf {
        self.contents.join(id.to_string())
    }
}

/// The ids of the old entries of a directory. Entries that this program did not make are left out.
fn old_ids(directory: &Path) -> Result<impl Iterator<Item = Result<Uuid, Error>>, Error> {
    let entries = fs::read_dir(directory).map_err(translate)?;
    Ok(entries.filter_map(|entry| entry.map(|entry| old_id(&entry)).map_err(translate).transpose()))
}

/// The id of an entry that this program made and that is old enough to be swept.
fn old_id(entry: &DirEntry) -> Option<Uuid> {
    let name = entry.file_name();
    let id: Uuid = name.to_str()?.parse().ok()?;
    let modified = entry.metadata().ok()?.modified().ok()?;
    // `elapsed` fails for a time in the future, as after the clock was set back: then the age is unknown.
    let is_old = modified.elapsed().is_ok_and(|age| age > MIN_SWEPT_AGE);
    // A UUID can be spelt in several ways, of which this program uses one.
    (is_old && name == *id.to_string()).then_some(id)
}
