//! Totals over all accounts and files.

use std::time::Duration;

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

/// What the metrics report from the database.
pub struct StoredTotals {
    /// Bytes of all files.
    pub bytes: i64,
    /// Messages that wait to be sent.
    pub mail_waiting: i64,
    /// Messages that were given up in the last 30 days.
    pub mail_failed: i64,
    /// Age of the oldest message that waits.
    pub mail_oldest_seconds: i64,
}

/// Longest wait for the database while metrics are read. Prometheus waits 10 s for a scrape by default, and must get the
/// other values also while the database hangs: two of these waits, where the query is repeated, are within that.
const MAX_METRICS_WAIT: Duration = Duration::from_secs(3);

/// Reads the totals. Cheap enough for every scrape of the metrics.
pub fn stored(db: &Database) -> Result<StoredTotals, Error> {
    let row = one_row(db.read_within(MAX_METRICS_WAIT, sql!("stats/stored"), &[])?)?;
    Ok(StoredTotals {
        bytes: row.get("bytes"),
        mail_waiting: row.get("mail_waiting"),
        mail_failed: row.get("mail_failed"),
        mail_oldest_seconds: row.get("mail_oldest_seconds"),
    })
}
