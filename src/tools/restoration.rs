//! A data directory that gets its contents from a backup.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::adopt_data_dir::write_id;
use super::private_files::{create_file, lock};
use crate::storage::{PARTIAL_RESTORATION, directory, exists, sync_directory};

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
}

impl Restoration {
    /// Fails if the data directory holds anything that a restoration could overwrite. It need not exist. The files of
    /// an interrupted restoration do not matter.
    pub fn check(data_dir: &Path) -> Result<(), String> {
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
        Ok(())
    }

    /// Begins a restoration: creates the data directory if there is none, and marks it. Removes the files of an
    /// interrupted restoration.
    pub fn begin(data_dir: &Path) -> Result<Restoration, String> {
        let setting = format!("CLOAKROOM_DATA_DIR={}", data_dir.display());
        directory::prepare(data_dir).map_err(|fault| format!("{setting} {fault}"))?;
        let lock = lock(&data_dir.join(LOCK)).map_err(|e| format!("{setting}: {LOCK}: {e}"))?;
        let lock =
            lock.ok_or_else(|| format!("{setting}: another `cloakroom restore` is writing to it"))?;
        Restoration::check(data_dir)?;
        let contents = data_dir.join(PARTIAL_RESTORATION);
        let restoration = Restoration { data_dir: data_dir.to_owned(), contents, lock };
        restoration.begin_empty().map_err(|e| restoration.describe(&e))?;
        Ok(restoration)
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

    /// Creates the file of a content. It is not synced.
    pub fn create(&self, id: Uuid) -> Result<File, String> {
        create_file(&self.contents.join(id.to_string()))
    }

    /// Makes the contents survive a loss of power, and returns their number and their bytes, as they are on disk now.
    pub fn sync(&self) -> Result<(u64, u64), String> {
        let sync_and_count = || {
            // One call for the whole file system, for the reasons that `BackupDirectory::finish` names.
            rustix::fs::syncfs(&self.lock)?;
            fs::read_dir(&self.contents)?.try_fold((0, 0), |(files, bytes), entry| {
                Ok((files + 1, bytes + entry?.metadata()?.len()))
            })
        };
        sync_and_count().map_err(|e| self.describe(&e))
    }

    /// Gives the data directory its id and its contents; from now on it can be used.
    pub fn finish(self, installation_id: Uuid) -> Result<(), String> {
        let finish = || {
            write_id(&self.data_dir, installation_id)?;
            fs::rename(&self.contents, self.data_dir.join("files"))?;
            sync_directory(&self.data_dir)?;
            remove_if_there(&self.data_dir.join(LOCK))
        };
        finish().map_err(|e| self.describe(&e))
    }

    /// Removes the contents again, because nothing was restored to the database.
    pub fn abandon(self) -> Result<(), String> {
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
