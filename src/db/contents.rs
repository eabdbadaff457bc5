//! Contents without a record, which are removed in some days.

use uuid::Uuid;

use super::{Database, sql};
use crate::error::Error;

/// Returns up to `limit` contents that have been listed for removal for more than `days` days, such as since their
/// records were removed; none while a backup runs.
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
