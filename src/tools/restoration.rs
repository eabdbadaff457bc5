//! A data directory, or a store, that gets its contents from a backup.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::examination::{Damage, copy_verified};
use super::private_files::{create_file, lock};
use super::require_store;
use crate::config::Config;
use crate::db::contents::RecordedContent;
use crate::storage::{PARTIAL_RESTORATION, Storage, directory, exists, sync_directory};

/// The file that a process which restores keeps locked.
const LOCK: &str = "restore.lock";
/// The entries that the data directory must not have.
const OCCUPIED: [&str; 3] = ["files", "trash", "installation-id"];

/// A restoration that has begun. No other process restores into the same data directory meanwhile. Errors are what to
/// tell the operator.
pub struct Restoration {
    data_dir: PathBuf,
    contents: PathBuf,
    /// The locked file in the data directory.
    lock: File,
    storage: Storage,
    /// The contents that a store has got.
    stored: Vec<Uuid>,
    stored_bytes: u64,
}

impl Restoration {
    /// Fails if the data directory or the store holds anything that a restoration could overwrite. The directory need
    /// not exist. The contents of an interrupted restoration do not matter.
    pub fn check(config: &Config) -> Result<(), String> {
        let data_dir = &config.data_dir;
        let failed = |fault| format!("CLOAKROOM_DATA_DIR={}: {fault}", data_dir.display());
        let holds = |name| exists(&data_dir.join(name)).map_err(|e| failed(format!("{name}: {e}")));
        // An interrupted restoration may have made the id, but neither of the others.
        let occupied = if holds(PARTIAL_RESTORATION)? { &OCCUPIED[..2] } else { &OCCUPIED[..] };
        for name in occupied {
            if holds(name)? {
                return Err(failed(format!(
                    "it holds {name}, so it belongs to an installation: restore into a new directory"
                )));
            }
        }
        let storage = Storage::at(config)?;
        if storage.content_directory().is_some() {
            return Ok(());
        }
        require_store(&storage)?;
        let is_used = storage.installation_id()?.is_some()
            || !holds(PARTIAL_RESTORATION)? && storage.count_contents(1)? > 0;
        match is_used {
            false => Ok(()),
            true => Err(format!(
                "CLOAKROOM_STORAGE_URL: {} holds contents or an installation id: restore below an empty prefix",
                storage.place().0
            )),
        }
    }

    /// Begins a restoration: creates the data directory if there is none, and marks it. Removes the files of an
    /// interrupted restoration.
    pub fn begin(config: &Config) -> Result<Restoration, String> {
        let data_dir = &config.data_dir;
        let setting = format!("CLOAKROOM_DATA_DIR={}", data_dir.display());
        directory::prepare(data_dir).map_err(|fault| format!("{setting} {fault}"))?;
        let lock = lock(&data_dir.join(LOCK)).map_err(|e| format!("{setting}: {LOCK}: {e}"))?;
        let lock =
            lock.ok_or_else(|| format!("{setting}: another `cloakroom restore` is writing to it"))?;
        Restoration::check(config)?;
        let storage = Storage::at(config)?;
        let restoration = Restoration {
            data_dir: data_dir.to_owned(),
            contents: data_dir.join(PARTIAL_RESTORATION),
            lock,
            storage,
            stored: Vec::new(),
            stored_bytes: 0,
        };
        restoration.begin_empty().map_err(|e| restoration.describe(&e))?;
        // Those of a data directory are made by its first start.
        for path in restoration.store().map(Storage::directories).unwrap_or_default() {
            directory::prepare(path)
                .map_err(|fault| format!("{setting}: {} {fault}", path.display()))?;
        }
        Ok(restoration)
    }

    /// The store, if contents go to one.
    fn store(&self) -> Option<&Storage> {
        self.storage.content_directory().is_none().then_some(&self.storage)
    }

    /// Makes the directory of the contents, empty. Old files are removed in an order such that an interruption leaves
    /// the mark, or nothing at all.
    fn begin_empty(&self) -> io::Result<()> {
        remove_if_there(&self.data_dir.join("installation-id"))?;
        if exists(&self.contents)? {
            fs::remove_dir_all(&self.contents)?;
        }
        DirBuilder::new().mode(0o700).create(&self.contents)?;
        sync_directory(&self.data_dir)
    }

    /// Copies a content of the backup. Returns what is wrong with it if it is damaged. A file is not synced.
    pub fn add(
        &mut self,
        from: &Path,
        content: &RecordedContent,
        advance: impl FnMut(u64),
    ) -> Result<Option<Damage>, String> {
        let RecordedContent { id, size, ref sha256 } = *content;
        let Some(store) = self.store() else {
            let target = create_file(&self.contents.join(id.to_string()))?;
            let copied = copy_verified(from, target, size, sha256, advance);
            return copied.map_err(|e| self.describe(&e));
        };
        let mut draft = store.draft_of(id)?;
        let copied = copy_verified(from, &mut draft, size, sha256, advance);
        let damage = copied.map_err(|e| self.describe(&e))?;
        if damage.is_none() {
            draft.commit()?;
            draft.keep();
            self.stored.push(id);
            self.stored_bytes += size;
        }
        Ok(damage)
    }

    /// Makes the contents survive a loss of power, and returns their number and their bytes, as they are on disk now.
    pub fn sync(&self) -> Result<(u64, u64), String> {
        if self.store().is_some() {
            return Ok((self.stored.len() as u64, self.stored_bytes));
        }
        let sync_and_count = || {
            // One call for the whole file system, for the reasons that `BackupDirectory::finish` names.
            rustix::fs::syncfs(&self.lock)?;
            fs::read_dir(&self.contents)?.try_fold((0, 0), |(files, bytes), entry| {
                Ok((files + 1, bytes + entry?.metadata()?.len()))
            })
        };
        sync_and_count().map_err(|e| self.describe(&e))
    }

    /// Gives the data directory or the store its id, and its contents; from now on they can be used.
    pub fn finish(self, installation_id: Uuid) -> Result<(), String> {
        self.storage.replace_installation_id(installation_id)?;
        let finish = || {
            match self.storage.content_directory() {
                Some(contents) => fs::rename(&self.contents, contents)?,
                None => fs::remove_dir(&self.contents)?,
            }
            sync_directory(&self.data_dir)?;
            remove_if_there(&self.data_dir.join(LOCK))
        };
        finish().map_err(|e| self.describe(&e))
    }

    /// Removes the contents again, because nothing was restored to the database.
    pub fn abandon(self) -> Result<(), String> {
        if let Some(store) = self.store() {
            store.remove(&self.stored)?;
        }
        let removed = fs::remove_dir_all(&self.contents);
        let removed = removed.and_then(|()| remove_if_there(&self.data_dir.join(LOCK)));
        removed.map_err(|e| self.describe(&e))
    }

    /// Says what failed in the data directory.
    pub fn describe(&self, error: &io::Error) -> String {
        format!("{}: {error}", self.contents.display())
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
