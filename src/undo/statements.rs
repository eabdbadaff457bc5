//! Deleted files, which are in the table `deleted_files` until nobody can restore them any more.

use postgres::Row;
use serde::Serialize;
use uuid::Uuid;

use crate::db::{Database, sql};
use crate::error::Error;
use crate::files::statements::{FileQuery, from_row, matching_rows};
use crate::model::file::{File, FileQuotas};
use crate::model::page::PageRequest;
use crate::model::timestamp::Timestamp;

/// A deleted file that its owner may restore.
#[derive(Serialize)]
pub struct DeletedFile {
    #[serde(flatten)]
    pub file: File,
    pub deleted_at: Timestamp,
    pub restorable_until: Timestamp,
}

/// Which deleted files to restore.
pub enum Restorable {
    One(Uuid),
    /// Those that were deleted at this time or later.
    Since(Timestamp),
}

/// Restores deleted files of `user` that fit into the quotas, the latest deleted first, at most 10,000. Returns how
/// many it restored, and how many of those that were asked for remain deleted.
pub fn restore(
    db: &Database,
    user: Uuid,
    files: &Restorable,
    quotas: &FileQuotas,
) -> Result<(i64, i64), Error> {
    let (id, since) = match files {
        Restorable::One(id) => (Some(*id), None),
        Restorable::Since(time) => (None, Some(time.0)),
    };
    let rows = db.write(
        sql!("undo/restore"),
        &[
            &user,
            &id,
            &since,
            &(quotas.user_bytes as i64),
            &i64::from(quotas.user_files),
            &(quotas.service_bytes as i64),
            &db.address,
            &db.request_id,
        ],
    )?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    Ok((row.get("restored"), row.get("remaining")))
}

/// Returns the page of the deleted files of `user` that match, which can be restored for `days`, and how many match
/// in all.
pub fn list(
    db: &Database,
    user: Uuid,
    query: &FileQuery,
    page: PageRequest,
    days: u32,
) -> Result<(Vec<DeletedFile>, i64), Error> {
    let rows = matching_rows(db, sql!("undo/list"), user, query, page)?;
    let deleted = |row: &Row| {
        let file = from_row(row)?;
        let deleted_at: Timestamp = row.get("deleted_at");
        let restorable_until = Timestamp(deleted_at.0 + time::Duration::days(days.into()));
        Some(DeletedFile { file, deleted_at, restorable_until })
    };
    Ok((rows.iter().filter_map(deleted).collect(), rows.first().map_or(0, |row| row.get("total"))))
}
