//! Removal of the files of deleted users, which no answer shows any more.

use super::{Background, Progress};
use crate::db;
use crate::error::Error;

/// Removes up to a thousand files of one deleted user, in one short transaction. The contents go first: whatever breaks
/// in between leaves records behind, and the next round finds them again.
pub fn remove_some(background: &Background) -> Result<Progress, Error> {
    let Some((user, files)) = db::removals::next(&background.db)? else {
        return Ok(Progress::Done);
    };
    if files.is_empty() {
        db::removals::finish(&background.db, user)?;
        return Ok(Progress::More);
    }
    background.storage.remove_all(&files);
    // Another process may have removed the same records meanwhile; it goes on then, and this one need not.
    let removed = db::removals::remove(&background.db, user, &files)?;
    Ok(if removed > 0 { Progress::More } else { Progress::Done })
}
