//! Contents in the data directory: `files/` holds one file for each content, `trash/<UTC date>/` those that had no
//! record, for some days. Each is named after its id, which this program made; no name comes from a client. The file
//! `installation-id` says which database the directory belongs to.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, DirEntry, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use time::macros::format_description;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::age;
use super::directory_sync::DirectorySync;
use super::file_system::{create_private_file, log_not_removed, sync_directory, translate};
use crate::error::Error;

/// Ids in a batch of [`ContentDirectory::old_contents`].
const BATCH_IDS: usize = 1000;

/// The places of contents in a data directory.
pub struct ContentDirectory {
    pub(super) contents: PathBuf,
    pub(super) trash: PathBuf,
    /// Syncs the names of contents.
    pub(super) names: DirectorySync,
    installation_id: PathBuf,
}

impl ContentDirectory {
    /// Names the places, without looking at them.
    pub fn at(data_dir: &Path) -> ContentDirectory {
        ContentDirectory {
            names: DirectorySync::of(data_dir.join("files")),
            contents: data_dir.join("files"),
            trash: data_dir.join("trash"),
            installation_id: data_dir.join("installation-id"),
        }
    }

    /// The text of the file `installation-id`; `None` if there is none.
    pub fn installation_id(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(&self.installation_id) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    /// Stores the installation id unless there is one. Returns whether it did.
    pub fn create_installation_id(&self, id: Uuid) -> io::Result<bool> {
        create_private_file(&self.installation_id, format!("{id}\n").as_bytes())
    }

    /// Stores the installation id, in place of an earlier one.
    #[cfg(feature = "tools")]
    pub fn write_installation_id(&self, id: Uuid) -> io::Result<()> {
        let path = &self.installation_id;
        fs::rename(super::file_system::write_aside(path, format!("{id}\n").as_bytes())?, path)?;
        super::file_system::sync_parent(path)
    }

    /// Opens a content for reading. Fails if it is missing, or is not `size` bytes long.
    pub fn open(&self, id: Uuid, size: u64) -> Result<File, Error> {
        let damaged = |what: String| Error::Internal(format!("content of file {id}: {what}"));
        let file = File::open(self.path(id)).map_err(|e| damaged(e.to_string()))?;
        let length = file.metadata().map_err(|e| damaged(e.to_string()))?.len();
        if length == size { Ok(file) } else { Err(damaged(format!("{length} bytes, not {size}"))) }
    }

    /// Removes contents. One that is gone already is no failure. Any other failure is logged, and the content is left
    /// to the sweep.
    pub fn remove(&self, ids: &[Uuid]) {
        for path in ids.iter().map(|id| self.path(*id)) {
            match fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => log_not_removed(&path, &e),
                _ => {}
            }
        }
    }

    /// The sizes of those of these contents that exist.
    pub fn sizes(&self, ids: &[Uuid]) -> BTreeMap<Uuid, u64> {
        let size = |id: &Uuid| {
            let found = fs::metadata(self.path(*id)).ok().filter(|found| found.is_file())?;
            Some((*id, found.len()))
        };
        ids.iter().filter_map(size).collect()
    }

    /// The ids of the contents that are older than `min_age`, in batches. The directory is read batch by batch, so
    /// memory does not grow with it.
    pub fn old_contents(
        &self,
        min_age: Duration,
    ) -> Result<impl Iterator<Item = Result<Vec<Uuid>, Error>>, Error> {
        let mut ids = old_ids(&self.contents, min_age)?;
        Ok(std::iter::from_fn(move || {
            let batch: Result<Vec<Uuid>, Error> = ids.by_ref().take(BATCH_IDS).collect();
            Some(batch).filter(|batch| batch.as_ref().map_or(true, |ids| !ids.is_empty()))
        }))
    }

    /// Counts the contents of any age, but no further than `max`.
    pub fn count(&self, max: usize) -> Result<usize, Error> {
        let entries = fs::read_dir(&self.contents).map_err(translate)?;
        let ids = entries
            .filter_map(|entry| entry.map(|entry| id_of(&entry)).map_err(translate).transpose());
        ids.take(max).try_fold(0, |count, id| id.map(|_| count + 1))
    }

    /// Moves contents to today's directory of the trash, and passes the old and the new path of each to `moved`. A
    /// failure with one of them is only logged: the next sweep tries again.
    pub fn move_to_trash(
        &self,
        ids: &[Uuid],
        mut moved: impl FnMut(&Path, &Path),
    ) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let today = self.trash.join(OffsetDateTime::now_utc().date().to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(&today).map_err(translate)?;
        for id in ids {
            let (from, to) = (self.path(*id), today.join(id.to_string()));
            match fs::rename(&from, &to) {
                Ok(()) => moved(&from, &to),
                // Another process has moved it already.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => log::warn!("{} was not moved to the trash: {e}", from.display()),
            }
        }
        // The directory of the new names comes first: a loss of power in between then leaves both names, and not none.
        for directory in [&today, &self.trash, &self.contents] {
            sync_directory(directory).map_err(translate)?;
        }
        Ok(())
    }

    /// Removes the directories of the trash that are more than `days` days old. Returns their paths.
    pub fn empty_trash(&self, days: u32) -> Result<Vec<PathBuf>, Error> {
        let today = OffsetDateTime::now_utc().date();
        let mut removed = Vec::new();
        for entry in fs::read_dir(&self.trash).map_err(translate)? {
            let entry = entry.map_err(translate)?;
            let date = entry.file_name().to_str().and_then(parse_date);
            if date.is_some_and(|date| (today - date).whole_days() > i64::from(days)) {
                let path = entry.path();
                match fs::remove_dir_all(&path) {
                    Ok(()) => removed.push(path),
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    Err(e) => log_not_removed(&path, &e),
                }
            }
        }
        Ok(removed)
    }

    /// The path of a content.
    pub fn path(&self, id: Uuid) -> PathBuf {
        self.contents.join(id.to_string())
    }
}

fn parse_date(name: &str) -> Option<Date> {
    Date::parse(name, format_description!("[year]-[month]-[day]")).ok()
}

/// The ids of the entries of a directory that are older than `min_age`. Entries that this program did not make are left
/// out.
pub fn old_ids(
    directory: &Path,
    min_age: Duration,
) -> Result<impl Iterator<Item = Result<Uuid, Error>> + use<>, Error> {
    let entries = fs::read_dir(directory).map_err(translate)?;
    let old_id = move |entry: DirEntry| {
        let id = id_of(&entry)?;
        age(&entry.metadata().ok()?).is_some_and(|age| age > min_age).then_some(id)
    };
    Ok(entries.filter_map(move |entry| entry.map(&old_id).map_err(translate).transpose()))
}

/// The id of an entry that this program made.
pub fn id_of(entry: &DirEntry) -> Option<Uuid> {
    let name = entry.file_name();
    let id: Uuid = name.to_str()?.parse().ok()?;
    // A UUID can be spelt in several ways, of which this program uses one.
    (name == *id.to_string()).then_some(id)
}
