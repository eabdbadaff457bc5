//! The file `last-backup` in the data directory, which `cloakroom backup` writes: which whole backup was the last one.
//! The service does not know where backups are kept.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::model::timestamp::Timestamp;

/// The name of the file. It holds the moment whose state the backup has, a blank, and the path of the backup.
pub const NAME: &str = "last-backup";

/// More than a time and a path ever take.
const MAX_BYTES: u64 = 8192;

/// Returns the moment and the path of the last backup. `None` if there was none, or the file holds anything else.
pub fn read(data_dir: &Path) -> Option<(Timestamp, PathBuf)> {
    let mut text = String::new();
    File::open(data_dir.join(NAME)).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let (at, path) = text.trim_end().split_once(' ')?;
    Some((Timestamp::parse(at)?, path.into()))
}
