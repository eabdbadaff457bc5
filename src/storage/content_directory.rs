//! Contents in the data directory: `files/` holds one file for each content, `trash/<UTC date>/` those that had no
//! record, for some days. Each is named after its id, which this program made; no name comes from a client. The file
//! `installation-id` says which database the directory belongs to.

#[cfg(feature = "tools")]
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, DirEntry, File};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use time::macros::format_description;
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use super::directory_sync::DirectorySync;
use super::draft::CompleteDraft;
use super::file_system::{create_private_file, log_not_removed, sync_directory, translate};
use super::{Content, Contents, IdBatches, MIN_SWEPT_AGE, age};
use crate::error::Error;

/// Ids in a batch of contents that may be swept.
const BATCH_IDS: usize = 1000;

/// The places of contents in a data directory.
pub struct ContentDirectory {
    data_dir: PathBuf,
    pub(super) contents: PathBuf,
    pub(super) trash: PathBuf,
    /// Syncs the names of contents.
    names: DirectorySync,
}

impl ContentDirectory {
    /// Names the places, without looking at them.
    pub fn at(data_dir: &Path) -> ContentDirectory {
        ContentDirectory {
            names: DirectorySync::of(data_dir.join("files")),
            contents: data_dir.join("files"),
            trash: data_dir.join("trash"),
            data_dir: data_dir.to_owned(),
        }
    }

    /// Moves contents to today's directory of the trash, and passes a line about each to `report`. A
    /// failure with one of them is only logged: the next sweep tries again.
    pub fn move_to_trash(&self, ids: &[Uuid], mut report: impl FnMut(String)) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let today = self.trash.join(OffsetDateTime::now_utc().date().to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(&today).map_err(translate)?;
        for id in ids {
            let (from, to) = (self.path(*id), today.join(id.to_string()));
            match fs::rename(&from, &to) {
                Ok(()) => report(format!("moved {} to {}", from.display(), to.display())),
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
    fn path(&self, id: Uuid) -> PathBuf {
        self.contents.join(id.to_string())
    }

    /// The file that names the installation.
    fn installation_id(&self) -> PathBuf {
        self.data_dir.join("installation-id")
    }
}

impl Contents for ContentDirectory {
    fn place(&self) -> (String, &'static str) {
        (self.data_dir.display().to_string(), "CLOAKROOM_DATA_DIR")
    }

    fn directory(&self) -> Option<&ContentDirectory> {
        Some(self)
    }

    fn read_installation_id(&self) -> Result<Option<String>, String> {
        let path = self.installation_id();
        match fs::read_to_string(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            other => other.map(Some).map_err(|e| format!("{}: {e}", path.display())),
        }
    }

    fn add_installation_id(&self, id: Uuid) -> Result<(), String> {
        let path = self.installation_id();
        let added = create_private_file(&path, format!("{id}\n").as_bytes());
        added.map(drop).map_err(|e| format!("{}: {e}", path.display()))
    }

    #[cfg(feature = "tools")]
    fn replace_installation_id(&self, id: Uuid) -> Result<(), String> {
        let path = self.installation_id();
        let replaced = super::file_system::replace_file(&path, format!("{id}\n").as_bytes());
        replaced.map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Changes both names before the first wait, so that the disk takes all of it at once. The draft must be on the
    /// same file system. If that fails, the content is the draft again.
    fn store(&self, id: Uuid, draft: &CompleteDraft) -> Result<(), Error> {
        if draft.is_recorded {
            draft.file.sync_all().map_err(translate)?;
        }
        fs::rename(draft.path, self.path(id)).map_err(translate)?;
        let renamed = self.names.now();
        let synced = draft.file.sync_all().and_then(|()| self.names.wait_since(renamed));
        synced.map_err(|error| {
            let undone = fs::rename(self.path(id), draft.path);
            drop(undone.inspect_err(|error| log_not_removed(&self.path(id), error)));
            translate(error)
        })
    }

    /// Opens the whole file, from which the caller takes the part.
    fn open_part(&self, id: Uuid, size: u64, _: &str, _: Range<u64>) -> Result<Content, Error> {
        let damaged = |what: String| Error::Internal(format!("content of file {id}: {what}"));
        let file = File::open(self.path(id)).map_err(|e| damaged(e.to_string()))?;
        let length = file.metadata().map_err(|e| damaged(e.to_string()))?.len();
        match length == size {
            true => Ok(Content::File(file)),
            false => Err(damaged(format!("{length} bytes, not {size}"))),
        }
    }

    fn remove(&self, id: Uuid) -> Result<(), Error> {
        match fs::remove_file(self.path(id)) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(Error::Internal(format!("content of file {id} was not removed: {e}")))
            }
            _ => Ok(()),
        }
    }

    #[cfg(feature = "tools")]
    fn sizes(&self, ids: &[Uuid]) -> Result<BTreeMap<Uuid, u64>, Error> {
        let size = |id: &Uuid| {
            let found = fs::metadata(self.path(*id)).ok().filter(|found| found.is_file())?;
            Some((*id, found.len()))
        };
        Ok(ids.iter().filter_map(size).collect())
    }

    fn old_contents(&self) -> Result<Box<IdBatches<'_>>, Error> {
        let mut ids = old_ids(&self.contents, MIN_SWEPT_AGE)?;
        Ok(Box::new(std::iter::from_fn(move || {
            let batch: Result<Vec<Uuid>, Error> = ids.by_ref().take(BATCH_IDS).collect();
            Some(batch).filter(|batch| batch.as_ref().map_or(true, |ids| !ids.is_empty()))
        })))
    }

    #[cfg(feature = "tools")]
    fn age_of(&self, id: Uuid) -> Result<Option<Duration>, Error> {
        Ok(self.path(id).metadata().ok().and_then(|metadata| age(&metadata)))
    }

    fn count_contents(&self, max: usize) -> Result<usize, Error> {
        let entries = fs::read_dir(&self.contents).map_err(translate)?;
        let ids = entries
            .filter_map(|entry| entry.map(|entry| id_of(&entry)).map_err(translate).transpose());
        ids.take(max).try_fold(0, |count, id| id.map(|_| count + 1))
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
fn id_of(entry: &DirEntry) -> Option<Uuid> {
    let name = entry.file_name();
    let id: Uuid = name.to_str()?.parse().ok()?;
    // A UUID can be spelt in several ways, of which this program uses one.
    (name == *id.to_string()).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_whose_name_cannot_be_synced_is_a_draft_again() -> std::io::Result<()> {
        let data_dir = std::env::temp_dir().join(Uuid::new_v4().to_string());
        let mut places = ContentDirectory::at(&data_dir);
        places.names = DirectorySync::of(data_dir.join("missing"));
        fs::create_dir_all(&places.contents)?;
        let (path, id) = (data_dir.join("draft"), Uuid::new_v4());
        fs::write(&path, "content")?;
        let file = File::open(&path)?;
        let draft = CompleteDraft {
            path: &path,
            file: &file,
            size: 7,
            sha256: [0; 32],
            is_recorded: false,
        };
        assert!(places.store(id, &draft).is_err());
        assert_eq!(fs::read(&path)?, b"content");
        assert!(!places.path(id).exists());
        fs::remove_dir_all(data_dir)
    }
}
