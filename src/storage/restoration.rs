//! A data directory that gets its contents from a backup.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::draft::sync_directory;
use super::{directory, private_file};

/// Where the contents are until all of them are there. It marks the data directory as unusable.
const PARTIAL: &str = "restore.partial";
/// The file that a process which restores keeps locked.
const LOCK: &str = "restore.lock";
/// What the data directory must not hold.
const OCCUPIED: [&str; 3] = ["files", "trash", "installation-id"];

/// A restoration that has begun. No other process restores into the same data directory meanwhile.
pub struct Restoration {
    data_dir: PathBuf,
    contents: PathBuf,
    /// The kernel releases its lock when the process ends, however it ends. It is a lock of a file and not of the
    /// directory, because NFS locks only files.
    lock: File,
}

/// Fails where a restoration was begun and not finished. On failure: what to tell the operator.
pub fn refuse_partial(data_dir: &Path) -> Result<(), String> {
    // What cannot be looked at cannot be used either, and the one who tries says why.
    if !exists(&data_dir.join(PARTIAL)).unwrap_or(false) {
        return Ok(());
    }
    Err(format!(
        "CLOAKROOM_DATA_DIR={}: it holds {PARTIAL}, because `cloakroom restore` is running or was interrupted. If it \
         is not running, make the database anew (dropdb, createdb) and run it again",
        data_dir.display()
    ))
}

impl Restoration {
    /// Fails where the data directory holds anything that a restoration could overwrite. It need not exist. What an
    /// interrupted restoration has left does not matter. On failure: what to tell the operator.
    pub fn check(data_dir: &Path) -> Result<(), String> {
        let failed = |fault| format!("CLOAKROOM_DATA_DIR={}: {fault}", data_dir.display());
        let holds = |name| exists(&data_dir.join(name)).map_err(|e| failed(format!("{name}: {e}")));
        // An interrupted restoration may have made the id, but neither of the others.
        let occupied = if holds(PARTIAL)? { &OCCUPIED[..2] } else { &OCCUPIED[..] };
        for name in occupied {
            if holds(name)? {
                return Err(failed(format!(
                    "it holds {name}, so it belongs to an installation: restore into a new directory"
                )));
            }
        }
        Ok(())
    }

    /// Begins one: creates the data directory where there is none, and marks it. What an interrupted restoration has
    /// left is removed. On failure, here and below: what to tell the operator.
    pub fn begin(data_dir: &Path) -> Result<Restoration, String> {
        let setting = format!("CLOAKROOM_DATA_DIR={}", data_dir.display());
        directory::prepare(data_dir).map_err(|fault| format!("{setting} {fault}"))?;
        let lock = lock(&data_dir.join(LOCK)).map_err(|fault| format!("{setting}: {fault}"))?;
        Restoration::check(data_dir)?;
        let contents = data_dir.join(PARTIAL);
        let restoration = Restoration { data_dir: data_dir.to_owned(), contents, lock };
        restoration.begin_empty().map_err(|e| restoration.describe(&e))?;
        Ok(restoration)
    }

    /// Makes the directory of the contents, empty. What was left is removed in an order such that an interruption
    /// leaves the mark, or nothing at all.
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
        let path = self.contents.join(id.to_string());
        let file = File::options().write(true).create_new(true).mode(0o600).open(path);
        file.map_err(|e| self.describe(&e))
    }

    /// Makes the contents survive a loss of power, and returns their number and their bytes, as they are on disk now.
    pub fn sync(&self) -> Result<(u64, u64), String> {
        let sync_and_count = || {
            // One call for the whole file system: one for each of many thousand files would wait for the disk as often.
            // It reports the failures since its file was opened, which is before the first content was written.
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
            let id = self.data_dir.join("installation-id");
            private_file::replace(&id, format!("{installation_id}\n").as_bytes())?;
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

/// Opens and locks a file. The error says what is wrong.
fn lock(path: &Path) -> Result<File, String> {
    let options = &mut File::options();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(path);
    let file = file.map_err(|e| format!("{LOCK}: {e}"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err("another `cloakroom restore` is writing to it".into()),
        Err(TryLockError::Error(e)) => Err(format!("{LOCK}: {e}")),
    }
}

/// Whether there is anything with this name.
fn exists(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        outcome => outcome.map(|_| true),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
