//! Numbers over all accounts and files.

use super::{Database, sql};
use crate::error::Error;

/// Deleted accounts do not count; months are calendar months, UTC.
pub struct Totals {
    /// Accounts.
    pub users: i64,
    /// Accounts that are switched on.
    pub active_users: i64,
    /// Accounts made this month.
    pub new_users: i64,
    /// Files.
    pub files: i64,
    /// Bytes of all files.
    pub bytes: i64,
    /// Files that were uploaded this month.
    pub new_files: i64,
}

/// Counts.
pub fn totals(db: &Database) -> Result<Totals, Error> {
    let rows = db.read(sql!("stats/show"), &[])?;
    let row = rows.first().ok_or_else(|| Error::Internal("statistics gave no row".into()))?;
    Ok(Totals {
        users: row.get(0),
        active_users: row.get(1),
        new_users: row.get(2),
        files: row.get(3),
        bytes: row.get(4),
        new_files: row.get(5),
    })
}

/// Bytes of all files, and how many password reset messages wait.
pub fn stored(db: &Database) -> Result<(i64, i64), Error> {
    let rows = db.read(sql!("stats/stored"), &[])?;
    let row = rows.first();
    row.map(|row| (row.get(0), row.get(1)))
        .ok_or_else(|| Error::Internal("stored gave no row".into()))
}
