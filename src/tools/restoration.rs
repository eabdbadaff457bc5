//! A data directory, or a store, that gets its contents from a backup.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::files::{AtPath, copy_verified, create_directory, create_file, lock};
use super::require_store;
use crate::config::Config;
use crate::storage::{PARTIAL_RESTORATION, Storage, directory, exists, sync_directory};

/// The file that a process which restores keeps locked.
const LOCK: &str = "restore.lock";
const INSTALLATION_ID: &str = "installation-id";
/// The entries that the data directory must not have.
const OCCUPIED: [&str; 3] = ["files", "trash", INSTALLATION_ID];

/// A restoration that has begun. No other process restores into the same data directory meanwhile. Errors are what to
/// tell the operator.
pub struct Restoration {
    data_dir: PathBuf,
    /// The directory that marks the data directory as unusable. It gets the contents, unless a store does.
    partial: PathBuf,
    /// The locked file in the data directory.
    lock: File,
    storage: Storage,
    /// Whether another restoration was interrupted before.
    is_repeated: bool,
    /// The contents that were copied, and their bytes.
    copied: Vec<Uuid>,
    copied_bytes: u64,
}

impl Restoration {
    /// Returns the place of the contents. Fails if the data directory or the store holds anything that a restoration
    /// could overwrite. The directory need not exist. The contents of an interrupted restoration do not matter.
    pub fn check(config: &Config) -> Result<Storage, String> {
        let data_dir = &config.data_dir;
        let failed = |fault| format!("CLOAKROOM_DATA_DIR={}: {fault}", data_dir.display());
        let holds = |name| exists(&data_dir.join(name)).map_err(|e| failed(format!("{name}: {e}")));
        let was_interrupted = holds(PARTIAL_RESTORATION)?;
        for name in OCCUPIED {
            // An interrupted restoration may have made the id, but neither of the others.
            if holds(name)? && !(was_interrupted && name == INSTALLATION_ID) {
                return Err(failed(format!(
                    "it holds {name}, so it belongs to an installation: restore into a new directory"
                )));
            }
        }
        let storage = Storage::at(config)?;
        require_store(&storage)?;
        let is_store = storage.content_directory().is_none();
        if is_store
            && (storage.installation_id()?.is_some()
                || !was_interrupted && storage.count_contents(1)? > 0)
        {
            return Err(format!(
                "CLOAKROOM_STORAGE_URL: {} holds contents or an installation id: restore below an empty prefix",
                storage.place().0
            ));
        }
        Ok(storage)
    }

    /// Begins a restoration: creates the data directory if there is none, and marks it. Removes the files of an
    /// interrupted restoration, in an order such that another interruption leaves the mark, or nothing at all.
    pub fn begin(config: &Config) -> Result<Restoration, String> {
        let data_dir = config.data_dir.clone();
        let setting = format!("CLOAKROOM_DATA_DIR={}", data_dir.display());
        directory::prepare(&data_dir).map_err(|fault| format!("{setting} {fault}"))?;
        let refusal = format!("{setting}: another `cloakroom restore` is writing to it");
        let lock = lock(&data_dir.join(LOCK), refusal)?;
        let storage = Restoration::check(config)?;
        let partial = data_dir.join(PARTIAL_RESTORATION);
        let is_repeated = exists(&partial).at(&partial)?;
        remove_if_there(&data_dir.join(INSTALLATION_ID)).at(&partial)?;
        if is_repeated {
            fs::remove_dir_all(&partial).at(&partial)?;
        }
        create_directory(&partial)?;
        sync_directory(&data_dir).at(&partial)?;
        // Those of a data directory are made by its first start.
        if storage.content_directory().is_none() {
            for path in storage.directories() {
                let shown = path.display();
                directory::prepare(path).map_err(|fault| format!("{setting}: {shown} {fault}"))?;
            }
        }
        let (copied, copied_bytes) = (Vec::new(), 0);
        Ok(Restoration { data_dir, partial, lock, storage, is_repeated, copied, copied_bytes })
    }

    /// The store, if contents are copied to one.
    fn store(&self) -> Option<&Storage> {
        self.storage.content_directory().is_none().then_some(&self.storage)
    }

    /// Copies a content of the backup, which has this SHA-256 in hexadecimal. Fails if it is damaged. A file is not
    /// synced.
    pub fn add(&mut self, from: &Path, id: Uuid, sha256: &str) -> Result<(), String> {
        let (copied, draft) = match self.store() {
            None => {
                let target = create_file(&self.partial.join(id.to_string()))?;
                (copy_verified(from, target, None, sha256).at(&self.partial)?, None)
            }
            Some(store) => {
                let mut draft = store.draft_of(id)?;
                (copy_verified(from, &mut draft, None, sha256).at(draft.path())?, Some(draft))
            }
        };
        // It was whole when the backup was verified, a moment ago.
        let size = copied.map_err(|damage| format!("{} {damage} now", from.display()))?;
        // Before the commit, because a store that does not answer may have taken it, and `abandon` removes it then.
        self.copied.push(id);
        self.copied_bytes += size;
        if let Some(mut draft) = draft {
            draft.commit()?;
            draft.keep();
        }
        Ok(())
    }

    /// Makes the contents survive a loss of power, and returns their number and their bytes.
    pub fn sync(&self) -> Result<(u64, u64), String> {
        // One call for the whole file system, for the reasons that `BackupDirectory::finish` names.
        rustix::fs::syncfs(&self.lock).map_err(io::Error::from).at(&self.partial)?;
        Ok((self.copied.len() as u64, self.copied_bytes))
    }

    /// Gives the data directory or the store its id, and its contents; from now on they can be used.
    pub fn finish(self, installation_id: Uuid) -> Result<(), String> {
        self.storage.replace_installation_id(installation_id)?;
        match self.storage.content_directory() {
            Some(contents) => fs::rename(&self.partial, contents).at(&self.partial)?,
            None => fs::remove_dir(&self.partial).at(&self.partial)?,
        }
        sync_directory(&self.data_dir).at(&self.partial)?;
        remove_if_there(&self.data_dir.join(LOCK)).at(&self.partial)
    }

    /// Removes the contents again, because nothing was restored to the database.
    pub fn abandon(self) -> Result<(), String> {
        if let Some(store) = self.store() {
            self.copied.iter().try_for_each(|id| store.remove(*id))?;
            if self.is_repeated {
                // What the interrupted one has copied may be there still, which the next one takes only by this mark.
                return Ok(());
            }
        }
        fs::remove_dir_all(&self.partial).at(&self.partial)?;
        remove_if_there(&self.data_dir.join(LOCK)).at(&self.partial)
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
