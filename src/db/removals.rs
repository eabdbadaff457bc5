//! Table `pending_removals`: deleted users whose files still have records. No response shows these files any more.
//! They are removed a thousand at a time, so that no upload waits long, even if a user had a million files.

use uuid::Uuid;

use super::{Database, one_row, sql};
use crate::error::Error;

/// Returns a deleted user whose files are to be removed, with the ids of up to a thousand of them, or with none if no
/// file is left. `None` where there is no such user, or while a backup runs, which needs the contents.
pub fn next(db: &Database) -> Result<Option<(Uuid, Vec<Uuid>)>, Error> {
    let rows = db.read(sql!("removals/next"), &[])?;
    let files = rows.iter().filter_map(|row| row.get("file_id")).collect();
    Ok(rows.first().map(|row| (row.get("user_id"), files)))
}

/// Removes the records of these files of a deleted user. Returns how many there were.
pub fn remove(db: &Database, user: Uuid, files: &[Uuid]) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("removals/remove"), &[&user, &files])?)?.get("removed"))
}

/// Takes the user off the list, if no record of a file is left.
pub fn finish(db: &Database, user: Uuid) -> Result<(), Error> {
    db.write(sql!("removals/finish"), &[&user]).map(drop)
}
