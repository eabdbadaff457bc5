//! Table `pending_removals`: deleted users whose files still have records. No answer shows these files any more. They
//! are removed a thousand at a time, so that a user with a million files keeps no upload waiting.

use uuid::Uuid;

use super::{Database, one_row, sql};
use crate::error::Error;

/// Returns a deleted user whose files are to be removed, with the ids of up to a thousand of them; no ids where none
/// are left. `None` where no user waits.
pub fn next(db: &Database) -> Result<Option<(Uuid, Vec<Uuid>)>, Error> {
    let rows = db.read(sql!("removals/next"), &[])?;
    let files = rows.iter().filter_map(|row| row.get("file_id")).collect();
    Ok(rows.first().map(|row| (row.get("user_id"), files)))
}

/// Removes the records of these files of a deleted user. Returns how many there were.
pub fn remove(db: &Database, user: Uuid, files: &[Uuid]) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("removals/remove"), &[&user, &files])?)?.get("removed"))
}

/// Notes that no record of the user's files is left.
pub fn finish(db: &Database, user: Uuid) -> Result<(), Error> {
    db.write(sql!("removals/finish"), &[&user]).map(drop)
}
