//! Contents without a record, which are removed at once or in some days, and deleted files, whose contents stay.

use uuid::Uuid;

use super::{Database, one_row, sql};
use crate::error::Error;

/// Gives up to `limit` deleted files up for good that were deleted more than `days` days ago. Returns how many.
pub fn expire(db: &Database, days: u32, limit: i64) -> Result<i64, Error> {
    let rows = db.write(sql!("removals/expire"), &[&limit, &days.cast_signed()])?;
    Ok(one_row(rows)?.get("removed"))
}

/// Gives up to `limit` deleted files up for good if all of them together have more than `quota` bytes. Returns how many.
pub fn make_room(db: &Database, quota: u64, limit: i64) -> Result<i64, Error> {
    let rows = db.write(sql!("removals/make_room"), &[&limit, &(quota as i64)])?;
    Ok(one_row(rows)?.get("removed"))
}

/// Returns up to `limit` contents that are to be removed: those of files that nobody may restore, and those that were
/// listed more than `days` days ago; none while a backup runs.
pub fn deleted(db: &Database, days: u32, limit: i64) -> Result<Vec<Uuid>, Error> {
    let rows = db.read(sql!("removals/contents"), &[&days.cast_signed(), &limit])?;
    Ok(rows.iter().map(|row| row.get("id")).collect())
}

/// Lists contents without a record that are not listed yet, so that they are removed in some days. Returns which.
pub fn list_for_removal(db: &Database, ids: &[Uuid]) -> Result<Vec<Uuid>, Error> {
    let rows = db.write(sql!("removals/list_contents"), &[&ids])?;
    Ok(rows.iter().map(|row| row.get("id")).collect())
}

/// Forgets contents that are gone. Returns how many there were.
pub fn forget_deleted(db: &Database, ids: &[Uuid]) -> Result<i64, Error> {
    Ok(db.write(sql!("removals/forget_contents"), &[&ids])?.len() as i64)
}
