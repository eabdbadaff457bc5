//! Table `audit_events`: the audit log. Events of changes are written by the statements that make the changes, in other
//! modules. This one writes those that belong to no change, and reads and expires all of them.

use std::time::Instant;

use postgres::Row;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{Json, Type};
use uuid::Uuid;

use crate::db::{Database, TypedParams, from_row, one_row, sql};
use crate::error::Error;
use crate::model::audit::{AuditEvent, AuditPosition, Failure};
use crate::model::timestamp::Timestamp;

/// Days for which failures are kept at most, because strangers can cause many of them.
const MAX_FAILURE_DAYS: i32 = 30;

/// Records that users were exported. Must precede the first byte of the export: if it fails, nothing was exported.
pub fn insert_export(db: &Database, rows: i64, is_filtered: bool) -> Result<(), Error> {
    let sql = sql!("audit/insert_export");
    db.write(sql, &[&db.actor, &db.address, &db.request_id, &rows, &is_filtered]).map(drop)
}

/// Records failures. It may be repeated if it is unknown whether it succeeded: an event is not recorded twice.
pub fn insert_failures(db: &Database, failures: &[Failure]) -> Result<(), Error> {
    db.write(sql!("audit/insert_failures"), &[&Json(failures)]).map(drop)
}

/// A filter for events, which must match all that is given.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub actor: Option<Uuid>,
    pub subject: Option<Uuid>,
    /// One of [`crate::model::audit::ACTIONS`].
    pub action: Option<&'static str>,
    /// One of [`crate::model::audit::OUTCOMES`].
    pub outcome: Option<&'static str>,
    /// At this time or later.
    pub from: Option<Timestamp>,
    /// At this time or earlier.
    pub to: Option<Timestamp>,
}

/// Returns the newest events that match and precede `before`, the newest first, at most `limit`. A batch of an export
/// has a deadline, and fails with [`Error::TimedOut`] if it is not read by then.
pub fn page(
    db: &Database,
    filter: &AuditFilter,
    before: AuditPosition,
    limit: i64,
    export_deadline: Option<Instant>,
) -> Result<Vec<AuditEvent>, Error> {
    let AuditFilter { actor, subject, action, outcome, from, to } = filter;
    // No event has the largest id, so this excludes none at the time `to`.
    let end = to.map_or(AuditPosition::END, |at| AuditPosition { at, id: Uuid::max() });
    let before = before.min(end);
    let sql = sql!("audit/page");
    let params: TypedParams = &[
        (actor, Type::UUID),
        (subject, Type::UUID),
        (action, Type::TEXT),
        (outcome, Type::TEXT),
        (&from.map(|at| at.0), Type::TIMESTAMPTZ),
        (&before.at.0, Type::TIMESTAMPTZ),
        (&before.id, Type::UUID),
        (&limit, Type::INT8),
    ];
    let rows = match export_deadline {
        Some(deadline) => db.read_bulk(sql, params, deadline, |rows| rows.collect())?,
        None => db.read_unprepared(sql, params, None)?,
    };
    Ok(rows.iter().map(from_row).collect())
}

/// Writes events for changes that were too many for events of their own, once their hour is over: up to `limit`.
/// Returns how many it wrote.
pub fn insert_skipped(db: &Database, limit: i64) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("audit/insert_skipped"), &[&limit])?)?.get("events"))
}

/// Removes up to `limit` events that are older than `days`, or than 30 days for failures, and as many rows of
/// `own_changes` that limit nothing any more. Returns how many rows it removed.
pub fn sweep(db: &Database, days: u32, limit: i64) -> Result<i64, Error> {
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    let rows = db.write(sql!("audit/sweep"), &[&days, &days.min(MAX_FAILURE_DAYS), &limit])?;
    Ok(one_row(rows)?.get("removed"))
}

/// Reads an event.
pub fn from_row(row: &Row) -> AuditEvent {
    from_row!(row => AuditEvent {
        id, at, action, outcome, actor_id, subject_type, subject_id, address, request_id, details
    })
}
