//! Contents of files, in the data directory: `files/` holds one file for each content, `tmp/` those that are being
//! written, `trash/` those that had no record. Each is named after its id, which this program made; no name comes from
//! a client. The file `installation-id` says which database the directory belongs to, and `last-backup` which backup of
//! it was the last.
//!
//! A content is written and hashed in `tmp/`, synced, renamed to `files/`, and only then recorded in the database; a
//! deletion removes the record first. So every recorded content exists and is complete, also after a crash. A crash can
//! leave a content without a record, which `background::sweep` moves to the trash.

mod direct_file;
pub mod directory;
mod draft;
pub mod file_system;
pub mod last_backup;
mod probe;
mod trash;

use std::fs::{self, DirEntry, File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use crate::error::Error;
pub use draft::Draft;
pub use file_system::{DiskSpace, create_private_file, sync_directory, translate};
use file_system::{log_not_removed, remove_file};
use probe::Probe;

/// Contents younger than this may be about to be recorded, and drafts may still be written, so no sweep touches them.
pub const MIN_SWEPT_AGE: Duration = Duration::from_secs(3600);
/// Ids in a batch of [`Storage::old_contents`].
const BATCH_IDS: usize = 1000;

/// The directory that `cloakroom restore` puts the contents into until all of them are there. It marks the data
/// directory as unusable.
pub const PARTIAL_RESTORATION: &str = "restore.partial";

/// The directory of contents.
pub struct Storage {
    contents: PathBuf,
    drafts: PathBuf,
    trash: PathBuf,
    installation_id: PathBuf,
    probe: Probe,
}

impl Storage {
    /// Opens the data directory. Creates directories that are missing, readable only for this user. On
    /// failure: what to tell the operator.
    pub fn open(data_dir: &Path) -> Result<Storage, String> {
        let setting = format!("CLOAKROOM_DATA_DIR={}", data_dir.display());
        let storage = Storage::at(data_dir);
        directory::prepare(data_dir).map_err(|fault| format!("{setting} {fault}"))?;
        refuse_partial(data_dir)?;
        let mut is_new = false;
        for path in storage.directories() {
            is_new |= directory::prepare(path)
                .map_err(|fault| format!("{setting}: {} {fault}", path.display()))?;
        }
        if is_new {
            // Makes the names of the new directories survive a loss of power.
            sync_directory(data_dir).map_err(|e| format!("{setting}: {e}"))?;
        }
        Ok(storage)
    }

    /// Names the places of a data directory, without looking at it or changing anything.
    pub fn at(data_dir: &Path) -> Storage {
        Storage {
            contents: data_dir.join("files"),
            drafts: data_dir.join("tmp"),
            trash: data_dir.join("trash"),
            installation_id: data_dir.join("installation-id"),
            probe: Probe::new(),
        }
    }

    /// Whether contents can be stored, as an attempt of the last seconds has shown. Waits at most a second.
    pub fn takes_contents(&self) -> bool {
        let places = [self.drafts.clone(), self.contents.clone()];
        let is_usable = |path: &PathBuf| {
            let outcome = directory::check(path);
            outcome.inspect_err(|fault| log::error!("{} {fault}", path.display())).is_ok()
        };
        self.probe.check(move || places.iter().all(is_usable))
    }

    /// The directories within the data directory.
    pub fn directories(&self) -> [&Path; 3] {
        [&self.contents, &self.drafts, &self.trash]
    }

    /// Reads the id of the installation that the directory belongs to; `None` if it has none yet. On failure: what
    /// to tell the operator.
    pub fn installation_id(&self) -> Result<Option<Uuid>, String> {
        let path = self.installation_id.display();
        let text = match fs::read_to_string(&self.installation_id) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|e| format!("{path}: {e}"))?,
        };
        let id = text.trim().parse().map_err(|_| {
            format!("{path} holds no id: restore it, or remove it and run `cloakroom adopt-data-dir none`")
        })?;
        Ok(Some(id))
    }

    /// Stores the installation id in a directory that has none. On failure: what to tell the operator.
    pub fn create_installation_id(&self, id: Uuid) -> Result<(), String> {
        match create_private_file(&self.installation_id, format!("{id}\n").as_bytes()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!(
                "{} was made by another process meanwhile: start again",
                self.installation_id.display()
            )),
            Err(e) => Err(format!("{}: {e}", self.installation_id.display())),
        }
    }

    /// Creates an empty content with a new id.
    pub fn draft(&self) -> Result<Draft, Error> {
        Draft::create(&self.drafts, &self.contents)
    }

    /// Opens a content for reading. Fails if it is missing, or is not `size` bytes long.
    pub fn read(&self, id: Uuid, size: u64) -> Result<File, Error> {
        let damaged = |what: String| Error::Internal(format!("content of file {id}: {what}"));
        let file = File::open(self.path(id)).map_err(|e| damaged(e.to_string()))?;
        let length = file.metadata().map_err(|e| damaged(e.to_string()))?.len();
        if length == size { Ok(file) } else { Err(damaged(format!("{length} bytes, not {size}"))) }
    }

    /// Removes a content whose record is gone. A failure is logged, and the content is left to the next sweep.
    pub fn remove(&self, id: Uuid) {
        remove_file(&self.path(id));
    }

    /// Removes contents of a deleted user. One that is gone already is no failure. Any other failure is logged, and the
    /// content is left to the sweep.
    pub fn remove_all(&self, ids: &[Uuid]) {
        for path in ids.iter().map(|id| self.path(*id)) {
            match fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => log_not_removed(&path, &e),
                _ => {}
            }
        }
    }

    /// Returns the ids of the contents that are old enough to be swept, in batches, for looking up their records. The
    /// directory is read batch by batch, so memory does not grow with it.
    pub fn old_contents(&self) -> Result<impl Iterator<Item = Result<Vec<Uuid>, Error>>, Error> {
        let mut ids = old_ids(&self.contents)?;
        Ok(std::iter::from_fn(move || {
            let batch: Result<Vec<Uuid>, Error> = ids.by_ref().take(BATCH_IDS).collect();
            Some(batch).filter(|batch| batch.as_ref().map_or(true, |ids| !ids.is_empty()))
        }))
    }

    /// Asks for the room on the file system that contents are stored on.
    pub fn disk_space(&self) -> io::Result<DiskSpace> {
        DiskSpace::of(&self.contents)
    }

    /// Counts the contents of any age, but no further than `max`.
    pub fn count_contents(&self, max: usize) -> Result<usize, Error> {
        let entries = fs::read_dir(&self.contents).map_err(translate)?;
        let ids = entries
            .filter_map(|entry| entry.map(|entry| id_of(&entry)).map_err(translate).transpose());
        ids.take(max).try_fold(0, |count, id| id.map(|_| count + 1))
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

    pub fn path(&self, id: Uuid) -> PathBuf {
        self.contents.join(id.to_string())
    }
}

/// Fails if a restoration was begun and not finished. On failure: what to tell the operator.
pub fn refuse_partial(data_dir: &Path) -> Result<(), String> {
    // A path that cannot be examined cannot be used either, and the attempt to use it says why.
    if !exists(&data_dir.join(PARTIAL_RESTORATION)).unwrap_or(false) {
        return Ok(());
    }
    Err(format!(
        "CLOAKROOM_DATA_DIR={}: it holds {PARTIAL_RESTORATION}, because `cloakroom restore` is running or was \
         interrupted. If it is not running, make the database anew (dropdb, createdb) and run it again",
        data_dir.display()
    ))
}

/// Returns whether there is anything with this name, also a symbolic link that leads nowhere.
pub fn exists(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        outcome => outcome.map(|_| true),
    }
}

/// The age of a file; `None` if that is in the future, as after the clock was set back, or unknown.
pub fn age(metadata: &Metadata) -> Option<Duration> {
    metadata.modified().ok()?.elapsed().ok()
}

/// The ids of the old entries of a directory. Entries that this program did not make are left out.
fn old_ids(directory: &Path) -> Result<impl Iterator<Item = Result<Uuid, Error>>, Error> {
    let entries = fs::read_dir(directory).map_err(translate)?;
    Ok(entries.filter_map(|entry| entry.map(|entry| old_id(&entry)).map_err(translate).transpose()))
}

/// The id of an entry that this program made.
pub fn id_of(entry: &DirEntry) -> Option<Uuid> {
    let name = entry.file_name();
    let id: Uuid = name.to_str()?.parse().ok()?;
    // A UUID can be spelt in several ways, of which this program uses one.
    (name == *id.to_string()).then_some(id)
}

/// The id of an entry that this program made and that is old enough to be swept.
fn old_id(entry: &DirEntry) -> Option<Uuid> {
    let id = id_of(entry)?;
    age(&entry.metadata().ok()?).is_some_and(|age| age > MIN_SWEPT_AGE).then_some(id)
}
