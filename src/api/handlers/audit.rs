//! The audit log, for administrators.

use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;

use crate::api::context::{Admin, RequestContext};
use crate::api::openapi::{Answer, Content, Operation, Tag, json};
use crate::db::audit::{self, AuditFilter};
use crate::error::Error;
use crate::http::csv::{CSV, CsvRows};
use crate::http::input::Input;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::{ACTIONS, AuditEvent, AuditPosition, OUTCOMES};
use crate::model::rules;

/// Events of a page if the request does not say how many.
const DEFAULT_LIMIT: i64 = 50;
const MAX_LIMIT: i64 = 100;
/// Events of a batch of an export.
const BATCH_EVENTS: i64 = 2000;
/// Roughly the bytes of a row of an export, for the capacity of buffers.
const ROW_BYTES: usize = 256;
/// The header row of an export: a name for each cell that [`write_event`] writes.
const HEADER: [&str; 10] = [
    "id",
    "at",
    "action",
    "outcome",
    "actor_id",
    "subject_type",
    "subject_id",
    "address",
    "request_id",
    "details",
];

pub const LIST: Operation = Operation {
    id: "list_audit_events",
    tag: Tag::Administration,
    summary: "List events of the audit log",
    description: "Who did what to whom, from where, and how it ended. Newest first. Pages stay right while events are \
                  added.",
    inputs: &[&LIST_QUERY],
    answers: &[json::<EventList>(200, "A page of the events that match all filters.")],
    ..Operation::EMPTY
};

/// The query of a list of events.
struct EventListQuery {
    filter: AuditFilter,
    limit: i64,
    before: AuditPosition,
}

static LIST_QUERY: Input<EventListQuery> = Input::query(read_list_query);

fn read_list_query(query: &mut Params) -> EventListQuery {
    let filter = read_filter(query);
    query.about("The most events of a page. Default 50.");
    let limit = query.integer("limit", DEFAULT_LIMIT, 1..=MAX_LIMIT);
    query.about("The `next` of the page before this one.");
    let before = query.optional("before", rules::AUDIT_POSITION).unwrap_or(AuditPosition::END);
    EventListQuery { filter, limit, before }
}

fn read_filter(query: &mut Params) -> AuditFilter {
    query.about("The account that acted.");
    let actor = query.optional("actor_id", rules::UUID);
    query.about("The account, file, session or token that was acted on.");
    let subject = query.optional("subject_id", rules::UUID);
    let action = query.choice("action", &ACTIONS.map(|word| (word, word)));
    let outcome = query.choice("outcome", &OUTCOMES.map(|word| (word, word)));
    query.about("At this time or later.");
    let from = query.optional("from", rules::TIMESTAMP);
    query.about("At this time or earlier.");
    let to = query.optional("to", rules::TIMESTAMP);
    AuditFilter { actor, subject, action, outcome, from, to }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AuditEventList")]
struct EventList {
    events: Vec<AuditEvent>,
    /// What to send as `before` for the next page. Null on the last one.
    next: Option<String>,
}

/// `GET /api/v1/admin/audit`: events that match, the newest first, and the cursor with which older ones are asked for.
pub fn list(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let EventListQuery { filter, limit, before } = context.read(&LIST_QUERY)?;
    // One more than asked for tells whether there are older ones.
    let mut events = audit::page(&context.app.db, &filter, before, limit + 1)?;
    let has_more = events.len() as i64 > limit;
    events.truncate(limit as usize);
    let next = events.last().filter(|_| has_more).map(|last| AuditPosition::of(last).to_string());
    response::json(200, &EventList { events, next })
}

pub const EXPORT: Operation = Operation {
    id: "export_audit_events",
    tag: Tag::Administration,
    summary: "Export the audit log as CSV",
    description: "One row for each event that matches all filters, newest first, after a header row. A cell that a \
                  spreadsheet would take for a formula begins with `'`. The rows are streamed.",
    inputs: &[&EXPORT_QUERY],
    answers: &[Answer {
        status: 200,
        description: "The events.",
        content: Content::Text(CSV),
        headers: &[("Content-Disposition", "`attachment; filename=audit-<date>.csv`")],
    }],
    ..Operation::EMPTY
};

static EXPORT_QUERY: Input<AuditFilter> = Input::query(read_filter);

/// `GET /api/v1/admin/audit/export`: all events that match, the newest first, as CSV. Like exports of users, it is read
/// in batches while the client takes it.
pub fn export(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let filter = context.read(&EXPORT_QUERY)?;
    let (db, timeout) = (context.app.db.clone(), context.app.config.export_timeout);
    let mut csv = CsvRows::new(ROW_BYTES);
    HEADER.iter().for_each(|name| csv.cell(name));
    csv.end();
    let mut position = Some(AuditPosition::END);
    let mut next = move |mut csv: CsvRows| {
        let Some(before) = position else {
            return Ok(None);
        };
        let deadline = Instant::now() + timeout;
        let events = audit::export_batch(&db, &filter, before, BATCH_EVENTS, deadline)?;
        position = events.last().map(AuditPosition::of);
        events.iter().for_each(|event| write_event(&mut csv, event));
        csv.finish().map(Some)
    };
    // The first batch is read before the response begins, so that a failure still has a status.
    let first = next(csv)?.unwrap_or_default();
    let next = move || next(CsvRows::new(BATCH_EVENTS as usize * ROW_BYTES));
    let filename = format!("audit-{}.csv", OffsetDateTime::now_utc().date());
    Ok(response::attachment(CSV, &filename, first, next))
}

fn write_event(csv: &mut CsvRows, event: &AuditEvent) {
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
    csv.end();
}
