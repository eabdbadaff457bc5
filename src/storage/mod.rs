//! Contents of files, in the data directory or in a store. Nothing outside this module knows which of the two.
//!
//! A content is written and hashed in the directory `tmp/` of the data directory, then renamed to `files/` and synced
//! or acknowledged by the store, and only then recorded in the database; a deletion removes the record first. So every
//! recorded content exists and is complete, also after a crash. A crash can leave a content without a record, complete
//! or not, which `background::sweep` takes away. The file `last-backup` in the data directory names the last backup.

mod content_directory;
mod direct_file;
pub mod directory;
mod directory_sync;
mod draft;
pub mod file_system;
pub mod last_backup;
mod probe;
#[cfg(feature = "s3")]
mod s3;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::config::Config;
use crate::error::Error;
#[cfg(feature = "tools")]
pub use content_directory::id_of;
use content_directory::{ContentDirectory, old_ids};
#[cfg(feature = "tools")]
pub use directory::PARTIAL_RESTORATION;
pub use directory::refuse_partial;
pub use draft::Draft;
use file_system::remove_file;
pub use file_system::{DiskSpace, age, create_private_file, sync_directory};
#[cfg(feature = "tools")]
pub use file_system::{exists, translate};
use probe::Probe;

/// Contents younger than this may be about to be recorded, and drafts may still be written, so no sweep touches them.
pub const MIN_SWEPT_AGE: Duration = Duration::from_secs(3600);

/// Where contents are.
enum Contents {
    Directory(ContentDirectory),
    #[cfg(feature = "s3")]
    Store(s3::Store),
}

/// The contents of files.
pub struct Storage {
    contents: Arc<Contents>,
    /// The directory of contents that are being written.
    drafts: PathBuf,
    probe: Probe,
}

/// A content that is open for reading.
pub enum Content {
    /// The file that holds all of it.
    File(File),
    /// The bytes that were asked for. Reading fails rather than end early.
    #[cfg_attr(not(feature = "s3"), expect(dead_code, reason = "only a store makes it"))]
    Stream(Box<dyn Read + Send>),
}

/// Ids of contents, in batches.
type Batches<'a> = dyn Iterator<Item = Result<Vec<Uuid>, Error>> + 'a;

/// Why contents cannot be used by a command or a start: what to tell the operator.
type Refusal = String;

impl Storage {
    /// Opens the data directory. Creates directories that are missing, readable only for this user. A store is not
    /// asked for anything.
    pub fn open(config: &Config) -> Result<Storage, Refusal> {
        let storage = Storage::at(config)?;
        storage.prepare(&config.data_dir)?;
        Ok(storage)
    }

    /// Creates the directories that are missing.
    pub fn prepare(&self, data_dir: &Path) -> Result<(), Refusal> {
        let setting = format!("CLOAKROOM_DATA_DIR={}", data_dir.display());
        directory::prepare(data_dir).map_err(|fault| format!("{setting} {fault}"))?;
        refuse_partial(data_dir)?;
        let mut is_new = false;
        for path in self.directories() {
            is_new |= directory::prepare(path)
                .map_err(|fault| format!("{setting}: {} {fault}", path.display()))?;
        }
        if is_new {
            // Makes the names of the new directories survive a loss of power.
            sync_directory(data_dir).map_err(|e| format!("{setting}: {e}"))?;
        }
        Ok(())
    }

    /// Names the places of contents, without looking at them or changing anything.
    pub fn at(config: &Config) -> Result<Storage, Refusal> {
        match config.store.clone() {
            None => Ok(Storage::in_directory(config)),
            #[cfg(feature = "s3")]
            Some(settings) => {
                Ok(Storage::of(Contents::Store(s3::Store::new(&settings)?), &config.data_dir))
            }
        }
    }

    /// The same for contents in the data directory, also if the settings name a store.
    pub fn in_directory(config: &Config) -> Storage {
        let data_dir = &config.data_dir;
        Storage::of(Contents::Directory(ContentDirectory::at(data_dir)), data_dir)
    }

    fn of(contents: Contents, data_dir: &Path) -> Storage {
        let drafts = data_dir.join("tmp");
        Storage { contents: Arc::new(contents), drafts, probe: Probe::new() }
    }

    /// The place of contents, for messages, and the setting that names it.
    pub fn place(&self) -> (String, &'static str) {
        match &*self.contents {
            Contents::Directory(directory) => {
                let parent = directory.contents.parent().unwrap_or(&directory.contents);
                (parent.display().to_string(), "CLOAKROOM_DATA_DIR")
            }
            #[cfg(feature = "s3")]
            Contents::Store(store) => (store.name().to_owned(), "CLOAKROOM_STORAGE_URL"),
        }
    }

    /// Whether contents can be reached at the moment. Fails if that cannot change by itself.
    pub fn reach(&self) -> Result<bool, Refusal> {
        match &*self.contents {
            Contents::Directory(_) => Ok(true),
            #[cfg(feature = "s3")]
            Contents::Store(store) => store.reach(),
        }
    }

    /// Keeps all contents from being used, or ends that: a store that was away at the start may be another one's.
    pub fn hold(&self, is_held: bool) {
        match &*self.contents {
            Contents::Directory(_) => debug_assert!(!is_held, "a directory is never away"),
            #[cfg(feature = "s3")]
            Contents::Store(store) => store.hold(is_held),
        }
    }

    /// Whether the data directory takes contents, as an attempt of the last seconds has shown. Waits at most a second.
    pub fn takes_contents(&self) -> bool {
        let places: Vec<PathBuf> = match &*self.contents {
            Contents::Directory(directory) => vec![self.drafts.clone(), directory.contents.clone()],
            #[cfg(feature = "s3")]
            Contents::Store(_) => vec![self.drafts.clone()],
        };
        let is_usable = |path: &PathBuf| {
            let outcome = directory::check(path);
            outcome.inspect_err(|fault| log::error!("{} {fault}", path.display())).is_ok()
        };
        self.probe.check(move || places.iter().all(is_usable))
    }

    /// Whether the store serves requests, as an attempt of the last seconds has shown; `None` without a store. Waits at
    /// most a second.
    pub fn store_is_up(&self) -> Option<bool> {
        match &*self.contents {
            Contents::Directory(_) => None,
            #[cfg(feature = "s3")]
            Contents::Store(store) => Some(store.is_up()),
        }
    }

    /// The directories within the data directory: that of drafts, and those of contents if they are there.
    pub fn directories(&self) -> Vec<&Path> {
        match &*self.contents {
            Contents::Directory(of) => vec![&of.contents, &self.drafts, &of.trash],
            #[cfg(feature = "s3")]
            Contents::Store(_) => vec![&self.drafts],
        }
    }

    /// The directory of contents; `None` if a store has them.
    #[cfg(feature = "tools")]
    pub fn content_directory(&self) -> Option<&Path> {
        match &*self.contents {
            Contents::Directory(directory) => Some(&directory.contents),
            #[cfg(feature = "s3")]
            Contents::Store(_) => None,
        }
    }

    /// The directory that keeps contents without a record for some days. `None` if they stay where they are.
    pub fn trash(&self) -> Option<&Path> {
        match &*self.contents {
            Contents::Directory(directory) => Some(&directory.trash),
            #[cfg(feature = "s3")]
            Contents::Store(_) => None,
        }
    }

    /// Reads the id of the installation that the contents belong to; `None` if there is none yet.
    pub fn installation_id(&self) -> Result<Option<Uuid>, Refusal> {
        let place = || format!("{}: installation-id", self.place().0);
        let text = match &*self.contents {
            Contents::Directory(directory) => {
                directory.installation_id().map_err(|e| format!("{}: {e}", place()))?
            }
            #[cfg(feature = "s3")]
            Contents::Store(store) => store.installation_id()?,
        };
        let malformed = |_| {
            format!(
                "{} holds no id: restore it, or remove it and run `cloakroom adopt-data-dir none`, also for a store",
                place()
            )
        };
        text.map(|text| text.trim().parse().map_err(malformed)).transpose()
    }

    /// Stores the installation id where there is none.
    pub fn create_installation_id(&self, id: Uuid) -> Result<(), Refusal> {
        let is_made = match &*self.contents {
            Contents::Directory(directory) => {
                let made = directory.create_installation_id(id);
                made.map_err(|e| format!("{}: installation-id: {e}", self.place().0))?
            }
            #[cfg(feature = "s3")]
            Contents::Store(store) => {
                store.create_installation_id(id)?;
                // If another process has made one, this reads that. Where a store cannot refuse to replace one, the
                // last wins, and a process that read its own before that finds out at its next start.
                self.installation_id()? == Some(id)
            }
        };
        is_made.then_some(()).ok_or_else(|| {
            let place = self.place().0;
            format!("{place}: installation-id was made by another process meanwhile: start again")
        })
    }

    /// Stores the installation id, in place of an earlier one.
    #[cfg(feature = "tools")]
    pub fn replace_installation_id(&self, id: Uuid) -> Result<(), Refusal> {
        match &*self.contents {
            Contents::Directory(directory) => {
                let written = directory.write_installation_id(id);
                written.map_err(|e| format!("{}: installation-id: {e}", self.place().0))
            }
            #[cfg(feature = "s3")]
            Contents::Store(store) => Ok(store.write_installation_id(id)?),
        }
    }

    /// Creates an empty content with a new id.
    pub fn draft(&self) -> Result<Draft, Error> {
        Draft::create(Uuid::new_v4(), &self.drafts, self.contents.clone(), false)
    }

    /// Creates an empty content that is to have this id, in place of a draft that an interrupted command has left.
    #[cfg(feature = "tools")]
    pub fn draft_of(&self, id: Uuid) -> Result<Draft, Error> {
        match std::fs::remove_file(self.drafts.join(id.to_string())) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(translate(e)),
            _ => Draft::create(id, &self.drafts, self.contents.clone(), true),
        }
    }

    /// Opens a part of a content for reading, which has this size and this SHA-256 (in hexadecimal) in all. Fails if it
    /// is missing, or of another size. An empty part only looks whether it is there.
    pub fn read(
        &self,
        id: Uuid,
        size: u64,
        sha256: &str,
        part: Range<u64>,
    ) -> Result<Content, Error> {
        match &*self.contents {
            Contents::Directory(directory) => {
                let _ = (sha256, part); // Whoever has the file takes the part from it.
                directory.open(id, size).map(Content::File)
            }
            #[cfg(feature = "s3")]
            Contents::Store(store) => store.read(id, size, sha256, part).map(Content::Stream),
        }
    }

    /// Opens a whole content for reading, without waiting for its first bytes.
    #[cfg(feature = "tools")]
    pub fn open_content(&self, id: Uuid, size: u64, sha256: &str) -> Result<Content, Error> {
        match &*self.contents {
            #[cfg(feature = "s3")]
            Contents::Store(store) => store.open(id, size, sha256, 0..size).map(Content::Stream),
            Contents::Directory(_) => self.read(id, size, sha256, 0..size),
        }
    }

    /// Removes contents whose records are gone, unless they stay in their place for some days. What cannot be removed
    /// is logged, and left to the sweep.
    pub fn discard(&self, ids: &[Uuid]) {
        match &*self.contents {
            Contents::Directory(directory) => directory.remove(ids),
            #[cfg(feature = "s3")]
            Contents::Store(_) => {}
        }
    }

    /// Removes contents for good. One that is gone already is no failure.
    pub fn remove(&self, ids: &[Uuid]) -> Result<(), Error> {
        match &*self.contents {
            Contents::Directory(directory) => {
                directory.remove(ids);
                Ok(())
            }
            #[cfg(feature = "s3")]
            Contents::Store(store) => ids.iter().try_for_each(|id| store.remove(*id)),
        }
    }

    /// The sizes of those of these contents that exist. The ids must be in ascending order.
    pub fn sizes(&self, ids: &[Uuid]) -> Result<BTreeMap<Uuid, u64>, Error> {
        match &*self.contents {
            Contents::Directory(directory) => Ok(directory.sizes(ids)),
            #[cfg(feature = "s3")]
            Contents::Store(store) => store.sizes(ids),
        }
    }

    /// Returns the ids of the contents that are old enough to be swept, in batches, for looking up their records.
    pub fn old_contents(&self) -> Result<Box<Batches<'_>>, Error> {
        Ok(match &*self.contents {
            Contents::Directory(directory) => Box::new(directory.old_contents(MIN_SWEPT_AGE)?),
            #[cfg(feature = "s3")]
            Contents::Store(store) => Box::new(store.old_contents(MIN_SWEPT_AGE)?),
        })
    }

    /// How long ago a content was stored; `None` if it is gone.
    #[cfg(feature = "tools")]
    pub fn age_of(&self, id: Uuid) -> Result<Option<Duration>, Error> {
        match &*self.contents {
            Contents::Directory(directory) => {
                Ok(directory.path(id).metadata().ok().and_then(|metadata| age(&metadata)))
            }
            #[cfg(feature = "s3")]
            Contents::Store(store) => store.age_of(id),
        }
    }

    /// Asks for the room on the file system of the data directory.
    pub fn disk_space(&self) -> io::Result<DiskSpace> {
        DiskSpace::of(&self.drafts)
    }

    /// Counts the contents of any age, but no further than `max`.
    pub fn count_contents(&self, max: usize) -> Result<usize, Error> {
        match &*self.contents {
            Contents::Directory(directory) => directory.count(max),
            #[cfg(feature = "s3")]
            Contents::Store(store) => store.count(max),
        }
    }

    /// Moves contents to the trash, if there is one. Passes a line about each to `report`.
    pub fn move_to_trash(&self, ids: &[Uuid], mut report: impl FnMut(String)) -> Result<(), Error> {
        match &*self.contents {
            Contents::Directory(directory) => directory.move_to_trash(ids, |from, to| {
                report(format!("moved {} to {}", from.display(), to.display()));
            }),
            #[cfg(feature = "s3")]
            Contents::Store(_) => Ok(()),
        }
    }

    /// Removes what has been in the trash for more than `days` days. Returns the paths of its directories.
    pub fn empty_trash(&self, days: u32) -> Result<Vec<PathBuf>, Error> {
        match &*self.contents {
            Contents::Directory(directory) => directory.empty_trash(days),
            #[cfg(feature = "s3")]
            Contents::Store(_) => Ok(Vec::new()),
        }
    }

    /// Removes the drafts that a crash left over. Returns their paths.
    pub fn remove_old_drafts(&self) -> Result<Vec<PathBuf>, Error> {
        let mut removed = Vec::new();
        for id in old_ids(&self.drafts, MIN_SWEPT_AGE)? {
            let path = self.drafts.join(id?.to_string());
            if remove_file(&path) {
                removed.push(path);
            }
        }
        Ok(removed)
    }
}
