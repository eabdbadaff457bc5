//! Totals over all accounts and files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use postgres::Row;
use postgres::types::Type;
use serde::Serialize;

use super::{Database, from_row, one_row, sql};
use crate::error::Error;
use crate::model::file::FileStatistics;
use crate::model::user::UserStatistics;

/// Counts accounts and files, without deleted accounts and theirs.
pub fn totals(db: &Database) -> Result<(UserStatistics, FileStatistics), Error> {
    let row = one_row(db.read(sql!("stats/show"), &[])?)?;
    let users = UserStatistics {
        total: row.get("users"),
        active: row.get("active_users"),
        new_this_month: row.get("new_users"),
    };
    let files = FileStatistics {
        total: row.get("files"),
        total_size: row.get("bytes"),
        uploads_this_month: row.get("new_files"),
        deleted_size: row.get("deleted_bytes"),
    };
    Ok((users, files))
}

/// What came on one day.
#[derive(Serialize)]
pub struct DailyStatistics {
    /// As in `2026-01-31`, in UTC.
    date: String,
    /// Accounts that were made and have not been deleted.
    users: i64,
    /// Files that were uploaded and have not been deleted, and their size.
    files: i64,
    bytes: i64,
    sign_ins: i64,
    /// Refused sign-ins, and what was refused because of the role.
    refusals: i64,
}

/// Counts what came on each of the last `days` days, today included, the oldest first.
pub fn daily(db: &Database, days: i64) -> Result<Vec<DailyStatistics>, Error> {
    let rows = db.read_unprepared(sql!("stats/daily"), &[(&days, Type::INT8)], None)?;
    let day = |row: &Row| from_row!(row => DailyStatistics { date, users, files, bytes, sign_ins, refusals });
    Ok(rows.iter().map(day).collect())
}

/// Adds up to `limit` rows of each table of kept totals together, if they have become many. Returns how many rows fewer
/// there are.
pub fn fold_totals(db: &Database, limit: i64) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("stats/fold"), &[&limit])?)?.get("fewer"))
}

/// The figures that the metrics take from the database.
pub struct StoredTotals {
    /// Bytes of all files.
    pub bytes: i64,
    /// Bytes of deleted files that can be restored.
    pub deleted: i64,
    /// Messages that wait to be sent.
    pub mail_waiting: i64,
    /// Messages that were given up in the last 30 days.
    pub mail_failed: i64,
    /// Age of the oldest message that waits.
    pub mail_oldest_seconds: i64,
}

/// Longest wait for the database while metrics are read. Prometheus waits 10 s for a scrape by default, and must get
/// the other values also while the database hangs: two of these waits, if the query is repeated, are within that.
const MAX_METRICS_WAIT: Duration = Duration::from_secs(3);

/// Reads the totals. Cheap enough for every scrape of the metrics.
pub fn stored(db: &Database) -> Result<StoredTotals, Error> {
    let row = one_row(db.read_within(MAX_METRICS_WAIT, sql!("stats/stored"), &[])?)?;
    Ok(
        from_row!(row => StoredTotals { bytes, deleted, mail_waiting, mail_failed, mail_oldest_seconds }),
    )
}

/// The bytes of all files as far as this process knows: the database's last answer, and the uploads to this process
/// since. So most uploads need not ask whether the quota of the service has room. `sql/files/insert.sql` decides.
pub struct StoredBytes(AtomicU64);

impl StoredBytes {
    /// Knows nothing yet, as if every quota were used up.
    pub fn new() -> StoredBytes {
        StoredBytes(AtomicU64::new(u64::MAX))
    }

    /// Returns what `quota`, the bytes that all files may have, has left. The database is asked only if that seems
    /// to be less than `wanted`, because files may have been deleted.
    pub fn left(&self, db: &Database, quota: u64, wanted: u64) -> Result<u64, Error> {
        let mut bytes = self.0.load(Ordering::Relaxed);
        if quota.saturating_sub(bytes) < wanted {
            let row = one_row(db.read(sql!("stats/bytes"), &[])?)?;
            bytes = u64::try_from(row.get::<_, i64>("bytes")).unwrap_or(0);
            self.0.store(bytes, Ordering::Relaxed);
        }
        Ok(quota.saturating_sub(bytes))
    }

    /// Counts a file that was recorded.
    pub fn add(&self, bytes: u64) {
        let add = |before: u64| Some(before.saturating_add(bytes));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// Forgets the number, because the database found another one: other processes store files too.
    pub fn forget(&self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }
}
