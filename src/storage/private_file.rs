//! Small files of the data directory that must be whole or absent, also after a crash, and readable only for this user.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::draft::sync_directory;

/// Writes a file unless there is one with this name already. Returns whether it did. If several processes do so at the
/// same moment, one of them succeeds.
pub fn create(path: &Path, content: &[u8]) -> io::Result<bool> {
    let temporary = write_aside(path, content)?;
    // Linking fails where the name exists, which renaming does not.
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    match linked {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        other => other.and_then(|()| sync_parent(path)).map(|()| true),
    }
}

/// Writes a file, in place of one with this name if there is one.
pub(super) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    fs::rename(write_aside(path, content)?, path)?;
    sync_parent(path)
}

/// Writes a synced file under another name beside `path`, and returns its path.
fn write_aside(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let temporary = path.with_extension(Uuid::new_v4().to_string());
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    Ok(temporary)
}

fn sync_parent(path: &Path) -> io::Result<()> {
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}
