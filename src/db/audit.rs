//! Events of the audit log that belong to no change, and the removal of old events. Events of changes are written by
//! the statements that make the changes.

use postgres::types::Json;

use super::{Database, one_row, sql};
use crate::error::Error;
use crate::model::audit::Failure;

/// Days for which failures are kept at most, because strangers can cause many of them.
const MAX_FAILURE_DAYS: i32 = 30;

/// Records failures. It may be repeated if it is unknown whether it succeeded: an event is not recorded twice.
pub fn insert_failures(db: &Database, failures: &[Failure]) -> Result<(), Error> {
    db.write(sql!("audit/insert_failures"), &[&Json(failures)]).map(drop)
}

/// Writes events for changes that were too many for events of their own, once their hour is over: up to `limit`.
/// Returns how many it wrote.
pub fn insert_skipped(db: &Database, limit: i64) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("audit/insert_skipped"), &[&limit])?)?.get("events"))
}

/// Removes up to `limit` events that are older than `days`, or than 30 days for failures. Returns how many.
pub fn sweep(db: &Database, days: u32, limit: i64) -> Result<i64, Error> {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    let rows = db.write(sql!("audit/sweep"), &[&days, &days.min(MAX_FAILURE_DAYS), &limit])?;
    Ok(one_row(rows)?.get("removed"))
}
