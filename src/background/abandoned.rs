//! Removes uploads whose time is over, and bytes in this data directory that no upload has.

use std::time::Duration;

use super::Background;
use crate::error::Error;
use crate::partial::statements;

/// How long nothing was written to a file that is compared with the uploads. The row of each is older than its file.
const MIN_AGE: Duration = Duration::from_secs(60);

/// Removes up to `limit` uploads whose time is over, with their bytes. Returns how many.
pub fn expire(work: &Background, limit: i64) -> Result<i64, Error> {
    let ended = statements::expire(&work.db, limit)?;
    for (upload, file) in &ended {
        work.storage.remove_partial(*upload);
        // One that was complete but for its record.
        if let Some(Err(error)) = file.map(|file| work.storage.remove(file)) {
            log::warn!("{}", error.cause());
        }
    }
    Ok(ended.len() as i64)
}

/// Removes the bytes of uploads that are none any more, as after the end of a link or of an account.
pub fn sweep(work: &Background) -> Result<i64, Error> {
    for ids in work.storage.old_partials(MIN_AGE)?.chunks(1000) {
        for upload in statements::ended(&work.db, ids)? {
            work.storage.remove_partial(upload);
        }
    }
    Ok(0)
}
