//! Reads the table `audit_events`, which is the audit log.

use std::time::Instant;

use postgres::Row;
use postgres::types::Type;
use uuid::Uuid;

use crate::db::{Database, TypedParam, from_row, sql};
use crate::error::Error;
use crate::model::audit_event::AuditEvent;
use crate::model::position::TimePosition;
use crate::model::timestamp::Timestamp;

/// A filter for events, which must match all that is given.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub actor: Option<Uuid>,
    pub subject: Option<Uuid>,
    /// One of [`crate::model::audit_event::ACTIONS`].
    pub action: Option<&'static str>,
    /// One of [`crate::model::audit_event::OUTCOMES`].
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
    before: TimePosition,
    limit: i64,
    export_deadline: Option<Instant>,
) -> Result<Vec<AuditEvent>, Error> {
    let AuditFilter { actor, subject, action, outcome, from, to } = filter;
    // No event has the largest id, so this excludes none at the time `to`.
    let end = to.map_or(TimePosition::END, |at| TimePosition { at, id: Uuid::max() });
    let before = before.min(end);
    let sql = sql!("audit/page");
    let params: &[TypedParam] = &[
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
        Some(deadline) => {
            db.read_bulk(deadline, |it, timeout| it.query_unprepared(sql, params, timeout))?
        }
        None => db.read_unprepared(sql, params, None)?,
    };
    Ok(rows.iter().map(from_row).collect())
}

/// Reads an event.
pub fn from_row(row: &Row) -> AuditEvent {
    from_row!(row => AuditEvent {
        id, at, action, outcome, actor_id, subject_type, subject_id, address, request_id, details
    })
}
