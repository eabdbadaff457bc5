//! Totals over all accounts and files.

use super::{Database, one_row, sql};
use crate::error::Error;

/// Totals without deleted accounts. Months are calendar months, UTC.
pub struct ServiceTotals {
    pub users: i64,
    /// Accounts that may sign in.
    pub active_users: i64,
    /// Accounts created this month.
    pub new_users: i64,
    pub files: i64,
    /// Bytes of all files.
    pub bytes: i64,
    /// Files uploaded this month.
    pub new_files: i64,
}

/// Counts accounts and files. At a million users this takes about 200 ms.
pub fn totals(db: &Database) -> Result<ServiceTotals, Error> {
    let row = one_row(db.read(sql!("stats/show"), &[])?)?;
    Ok(ServiceTotals {
        users: row.get("users"),
        active_users: row.get("active_users"),
        new_users: row.get("new_users"),
        files: row.get("files"),
        bytes: row.get("bytes"),
        new_files: row.get("new_files"),
    })
}

/// Returns the bytes of all files, how many messages wait to be sent, how many were given up, and for how many seconds
/// the oldest that waits has waited. Cheap enough for every scrape of the metrics.
pub fn stored(db: &Database) -> Result<[i64; 4], Error> {
    let row = one_row(db.read(sql!("stats/stored"), &[])?)?;
    Ok(["bytes", "mail_waiting", "mail_failed", "mail_oldest_seconds"].map(|name| row.get(name)))
}
