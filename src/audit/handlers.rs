//! The audit log, as a list and as CSV.

use std::time::Instant;

use serde_json::json;

use super::statements::{self, AuditFilter};
use crate::error::Error;
use crate::exports::handlers::{export_response, wants_mark};
use crate::http::csv::CsvRows;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit_event::{ACTIONS, AuditEvent, OUTCOMES};
use crate::model::position::TimePosition;
use crate::model::rules;
use crate::request::context::RequestContext;
use crate::request::identity::SignedInAdmin;

/// Events of a page if the request does not say how many.
const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 100;
/// The most memory that an event of a page takes, in bytes: its row and its record, or that and its JSON.
const EVENT_BYTES: usize = 4096;
/// Events that are read for a batch of an export. All of them fit: an event has no text that its user chose, and none
/// is longer than 600 bytes.
const BATCH_EVENTS: i64 = 400;
/// The header row of an export: a name for each cell that [`write_event`] writes.
const HEADER: &str =
    "id,at,action,outcome,actor_id,subject_type,subject_id,address,request_id,details";

fn read_audit_filter(query: &mut Params) -> AuditFilter {
    let actor = query.filter("actor_id", rules::uuid);
    let subject = query.filter("subject_id", rules::uuid);
    let action =
        query.filter("action", |text| rules::choice(text, &ACTIONS.map(|word| (word, word))));
    let outcome =
        query.filter("outcome", |text| rules::choice(text, &OUTCOMES.map(|word| (word, word))));
    let from = query.filter("from", rules::timestamp);
    let to = query.filter("to", rules::timestamp);
    AuditFilter { actor, subject, action, outcome, from, to }
}

/// `GET /api/v1/admin/audit`: events that match, the newest first, and in `next` the value of `before` for the next
/// page, which is `null` on the last one.
pub fn list(context: &mut RequestContext, _: &SignedInAdmin) -> Result<Response, Error> {
    let (filter, limit, before) = context.request.query().read(|query| {
        let (filter, limit) =
            (read_audit_filter(query), query.integer("limit", DEFAULT_LIMIT, 1..=MAX_LIMIT));
        let before = query.optional("before", TimePosition::cursor);
        (filter, limit, before.unwrap_or(TimePosition::END))
    })?;
    // One more than asked for tells whether there are older ones.
    let db = context.database_with_room((limit as usize + 1) * EVENT_BYTES);
    let mut events = statements::page(&db, &filter, before, limit + 1, None)?;
    let has_more = events.len() as i64 > limit;
    events.truncate(limit as usize);
    let next = events.last().filter(|_| has_more).map(|last| last.position().to_string());
    response::json(200, &json!({ "events": events, "next": next }))
}

/// `GET /api/v1/admin/audit/export`: all events that match, the newest first, as CSV.
pub fn export(context: &mut RequestContext, admin: &SignedInAdmin) -> Result<Response, Error> {
    let query = context.request.query();
    let (filter, has_mark) = query.read(|query| (read_audit_filter(query), wants_mark(query)))?;
    let deadline = Instant::now() + context.app.config.export_timeout;
    let permits = context.export_permits(deadline)?;
    let db = context.app.db.clone();
    let mut next = Some(TimePosition::END);
    let read = move |deadline| {
        let Some(before) = next else { return Ok(None) };
        let events = statements::page(&db, &filter, before, BATCH_EVENTS, Some(deadline))?;
        let mut csv = CsvRows::new((before == TimePosition::END).then_some(HEADER));
        next = events
            .iter()
            .take_while(|it| write_event(&mut csv, it))
            .last()
            .map(AuditEvent::position);
        Ok(Some(csv.finish()))
    };
    export_response(context, Some(admin.user()), ("audit", has_mark), read, permits, deadline)
}

/// Writes a row, and returns whether it fits.
fn write_event(csv: &mut CsvRows, event: &AuditEvent) -> bool {
    let text = |value: Option<String>| value.unwrap_or_default();
    csv.cell(event.id.to_string());
    csv.cell(event.at.bytes());
    csv.text(Some(&event.action));
    csv.text(Some(&event.outcome));
    csv.cell(text(event.actor_id.map(|id| id.to_string())));
    csv.text(event.subject_type.as_deref());
    csv.cell(text(event.subject_id.map(|id| id.to_string())));
    csv.cell(text(event.address.map(|address| address.to_string())));
    csv.cell(text(event.request_id.map(|id| id.to_string())));
    csv.text(Some(&event.details.to_string()));
    csv.end()
}
