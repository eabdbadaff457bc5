//! Removal of the files of deleted users, which no response shows any more.

use super::{Background, Progress};
use crate::db;
use crate::error::Error;

/// Removes up to a thousand files of one deleted user, their records in one short transaction. The contents are removed
/// first: after a failure in between, the records are still there, and the next run finds them again.
pub fn remove_some(background: &Background) -> Result<Progress, Error> {
    let Some((user, files)) = db::removals::next(&background.db)? else {
        return Ok(Progress::Done);
    };
    if files.is_empty() {
        db::removals::finish(&background.db, user)?;
        return Ok(Progress::More);
    }
    background.storage.remove_all(&files);
    // If there was none, another process has removed these records meanwhile. It removes the rest as well.
    db::removals::remove(&background.db, user, &files).map(Progress::after_batch)
}
