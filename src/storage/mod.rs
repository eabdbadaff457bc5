//! Contents of files, in the data directory or in a store. Nothing outside this module knows which of the two.
//!
//! A content is written and hashed in the directory `tmp/` of the data directory, then renamed to `files/` and synced
//! or acknowledged by the store, and only then recorded in the database; a deletion removes the record first. So every
//! recorded content exists and is complete, also after a crash. A crash can leave a content without a record, complete
//! or not, which `background::sweep` removes. The file `last-backup` in the data directory names the last backup.

mod content_directory;
pub mod directory;
mod directory_sync;
pub mod draft;
pub mod file_system;
#[cfg(feature = "s3")]
mod s3;

#[cfg(feature = "tools")]
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::config::Config;
use crate::error::Error;
use crate::probe::Probe;
use content_directory::{ContentDirectory, old_ids};
#[cfg(feature = "tools")]
pub use directory::PARTIAL_RESTORATION;
pub use directory::refuse_partial;
use draft::CompleteDraft;
pub use draft::Draft;
use file_system::remove_file;
pub use file_system::{DiskSpace, age, create_private_file, sync_directory};
#[cfg(feature = "tools")]
pub use file_system::{exists, translate};

/// Contents younger than this may be about to be recorded, and drafts may still be written, so no sweep touches them.
pub const MIN_SWEPT_AGE: Duration = Duration::from_secs(3600);

/// How often it is found out whether contents can be stored, at most, and how long that may take: then the file system
/// or the store hangs.
const PROBE_PERIOD: Duration = Duration::from_secs(5);
const MAX_PROBE: Duration = Duration::from_secs(1);

/// The contents of files.
pub struct Storage {
    contents: Arc<dyn Contents>,
    /// The directory of contents that are being written.
    drafts: PathBuf,
    directory_probe: Probe<bool>,
    store_probe: Probe<bool>,
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
type IdBatches<'a> = dyn Iterator<Item = Result<Vec<Uuid>, Error>> + 'a;

/// Why contents cannot be used by a command or a start: what to tell the operator.
type Refusal = String;

/// A place of contents: a directory, or a store.
pub trait Contents: Send + Sync {
    /// The place, for messages, and the setting that names it.
    fn place(&self) -> (String, &'static str);

    /// The directory that has the contents; `None` if a store has them.
    fn directory(&self) -> Option<&ContentDirectory> {
        None
    }

    /// Returns why contents cannot be reached at the moment; `None` if they can. Fails if that cannot change by itself.
    fn reach(&self) -> Result<Option<String>, Refusal> {
        Ok(None)
    }

    /// Whether contents can be reached and used at the moment.
    fn is_usable(&self) -> bool {
        true
    }

    /// Refuses all use of contents, or allows it again: a store that was away at the start may be another one's.
    fn hold(&self, _is_held: bool) {}

    /// The text that names the installation which the contents belong to; `None` if there is none yet.
    fn read_installation_id(&self) -> Result<Option<String>, Refusal>;

    /// Stores the installation id unless there is one. A store that cannot refuse to replace one replaces it.
    fn add_installation_id(&self, id: Uuid) -> Result<(), Refusal>;

    /// Stores the installation id, in place of an earlier one.
    #[cfg(feature = "tools")]
    fn replace_installation_id(&self, id: Uuid) -> Result<(), Refusal>;

    /// Stores a complete draft as the content `id`. When this returns, the content survives a loss of power, or the
    /// store has acknowledged it, and the draft is gone.
    fn store(&self, id: Uuid, draft: &CompleteDraft) -> Result<(), Error>;

    /// Opens a part of a content for reading, which has this size and this SHA-256 (in hexadecimal) in all. Fails if it
    /// is missing, or of another size. An empty part only looks whether it is there. The first bytes of a stream may
    /// not have arrived yet.
    fn open_part(
        &self,
        id: Uuid,
        size: u64,
        sha256: &str,
        part: Range<u64>,
    ) -> Result<Content, Error>;

    /// The same, once the first bytes have arrived, so that most failures are still answered.
    fn read(&self, id: Uuid, size: u64, sha256: &str, part: Range<u64>) -> Result<Content, Error> {
        self.open_part(id, size, sha256, part)
    }

    /// Deletes a content. Succeeds if there is none.
    fn remove(&self, id: Uuid) -> Result<(), Error>;

    /// The sizes of those of these contents that exist. The ids must be in ascending order.
    #[cfg(feature = "tools")]
    fn sizes(&self, ids: &[Uuid]) -> Result<BTreeMap<Uuid, u64>, Error>;

    /// The ids of the contents that are older than [`MIN_SWEPT_AGE`], in batches, for looking up their records. Memory
    /// does not grow with their number.
    fn old_contents(&self) -> Result<Box<IdBatches<'_>>, Error>;

    /// How long ago a content was stored; `None` if it does not exist.
    #[cfg(feature = "tools")]
    fn age_of(&self, id: Uuid) -> Result<Option<Duration>, Error>;

    /// Counts the contents of any age, but no further than `max`.
    fn count_contents(&self, max: usize) -> Result<usize, Error>;
}

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
            let is_made = directory::prepare(path)
                .map_err(|fault| format!("{setting}: {} {fault}", path.display()))?;
            let is_of_contents = Some(path) == self.content_directory();
            if is_made && is_of_contents && self.read_installation_id()?.is_some() {
                log::error!(
                    "{} was gone, and is made anew: unless it held nothing, stop, and mount or restore what belongs \
                     there",
                    path.display()
                );
            }
            is_new |= is_made;
        }
        if is_new {
            // Makes the names of the new directories survive a loss of power.
            sync_directory(data_dir).map_err(|e| format!("{setting}: {e}"))?;
        }
        Ok(())
    }

    /// Names the places of contents, without looking at them or changing anything.
    pub fn at(config: &Config) -> Result<Storage, Refusal> {
        #[cfg(feature = "s3")]
        if let Some(settings) = &config.store {
            return Ok(Storage::of(Arc::new(s3::Store::new(settings)?), &config.data_dir));
        }
        Ok(Storage::in_directory(config))
    }

    /// The same for contents in the data directory, also if the settings name a store.
    pub fn in_directory(config: &Config) -> Storage {
        Storage::of(Arc::new(ContentDirectory::at(&config.data_dir)), &config.data_dir)
    }

    fn of(contents: Arc<dyn Contents>, data_dir: &Path) -> Storage {
        // The directories were tried at the start, so these begin as usable.
        let probe = || Probe::new(true, false, PROBE_PERIOD, MAX_PROBE);
        let (directory_probe, store_probe) = (probe(), probe());
        Storage { contents, drafts: data_dir.join("tmp"), directory_probe, store_probe }
    }

    /// Whether the data directory takes contents, as an attempt of the last seconds has shown. Waits at most a second.
    pub fn takes_contents(&self) -> bool {
        let contents = self.content_directory().map(Path::to_owned);
        let places = [Some(self.drafts.clone()), contents];
        let is_usable = |path: &PathBuf| {
            let outcome = directory::check(path);
            outcome.inspect_err(|fault| log::error!("{} {fault}", path.display())).is_ok()
        };
        self.directory_probe.check(move || places.iter().flatten().all(is_usable))
    }

    /// Whether the store serves requests, as an attempt of the last seconds has shown; `None` without a store. Waits at
    /// most a second.
    pub fn store_is_up(&self) -> Option<bool> {
        let contents = self.contents.clone();
        let is_store = self.directory().is_none();
        is_store.then(|| self.store_probe.check(move || contents.is_usable()))
    }

    /// The directories within the data directory: that of drafts, and those of contents if they are there.
    pub fn directories(&self) -> Vec<&Path> {
        let contents = [self.content_directory(), Some(&*self.drafts), self.trash()];
        contents.into_iter().flatten().collect()
    }

    /// The directory of contents; `None` if a store has them.
    pub fn content_directory(&self) -> Option<&Path> {
        self.directory().map(|directory| &*directory.contents)
    }

    /// The directory that keeps contents without a record for some days. `None` if they stay where they are.
    pub fn trash(&self) -> Option<&Path> {
        self.directory().map(|directory| &*directory.trash)
    }

    /// Reads the id of the installation that the contents belong to; `None` if there is none yet.
    pub fn installation_id(&self) -> Result<Option<Uuid>, Refusal> {
        let malformed = |_| {
            format!(
                "{}: installation-id holds no id: restore it, or remove it and run `cloakroom adopt-data-dir none`, \
                 also for a store",
                self.place().0
            )
        };
        let text = self.read_installation_id()?;
        text.map(|text| text.trim().parse().map_err(malformed)).transpose()
    }

    /// Stores the installation id where there is none.
    pub fn create_installation_id(&self, id: Uuid) -> Result<(), Refusal> {
        self.add_installation_id(id)?;
        // If another process has made one, this reads that. Where a store cannot refuse to replace one, the last wins,
        // and a process that read its own before that finds out at its next start.
        if self.installation_id()? == Some(id) {
            return Ok(());
        }
        let place = self.place().0;
        Err(format!("{place}: installation-id was made by another process meanwhile: start again"))
    }

    /// Creates an empty content with a new id.
    pub fn draft(&self) -> Result<Draft, Error> {
        Draft::create(Uuid::new_v4(), &self.drafts, self.contents.clone(), false)
    }

    /// Creates an empty content that is to have this id. It takes the place of one that is there.
    #[cfg(feature = "tools")]
    pub fn draft_of(&self, id: Uuid) -> Result<Draft, Error> {
        Draft::create(id, &self.drafts, self.contents.clone(), true)
    }

    /// Asks for the room on the file system of the data directory.
    pub fn disk_space(&self) -> io::Result<DiskSpace> {
        DiskSpace::of(&self.drafts)
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

/// What each place of contents does in its own way.
impl Deref for Storage {
    type Target = dyn Contents;

    fn deref(&self) -> &Self::Target {
        &*self.contents
    }
}
