//! Exports of users as CSV. They are streamed: memory does not grow with the rows, and no database connection is held
//! while the client reads. Who may export is decided in the pipeline, in the same way for all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::api::context::RequestContext;
use crate::api::openapi::{Answer, Content, Operation, Tag, json};
use crate::db::exports::{self, COLUMNS, ExportFilter, ExportPosition, ExportedUser};
use crate::db::{Database, audit};
use crate::error::Error;
use crate::http::csv::{CSV, CsvRows};
use crate::http::input::Input;
use crate::http::params::Params;
use crate::http::read_ahead::ReadAhead;
use crate::http::response::{self, Response, StatusText};
use crate::model::rules;
use crate::model::timestamp::Timestamp;

/// Roughly the bytes of a row, for the capacity of buffers.
const ROW_BYTES: usize = 256;

pub const FILTERED: Operation = Operation {
    id: "export_users",
    tag: Tag::Exports,
    summary: "Export users as CSV",
    description: "A header row, then one row for each user, oldest first. A cell that a spreadsheet \
                  would take for a formula begins with `'`. The rows are streamed; every user that exists throughout \
                  appears exactly once.",
    inputs: &[&EXPORT_QUERY],
    answers: &[Answer {
        status: 200,
        description: "The users.",
        content: Content::Text(CSV),
        headers: &[("Content-Disposition", "`attachment; filename=users-<date>.csv`")],
    }],
    errors: |config| vec![Error::ExportTooLarge(config.export_max_rows)],
    ..Operation::EMPTY
};

pub const FILTERED_AT_CSV: Operation = Operation {
    id: "export_users_csv",
    description: "The same as `GET /api/v1/users/export`.",
    ..FILTERED
};

/// The filter by e-mail address.
static EXPORT_QUERY: Input<Option<String>> = Input::query(read_export_query);

fn read_export_query(query: &mut Params) -> Option<String> {
    query.about("A part of the e-mail address. Not case-sensitive. `*` and `%` match any text.");
    let email = query.optional("email", rules::SEARCH_PART);
    query.choice("format", &[("csv", ())]);
    email
}

/// `GET /api/v1/users/export` and `GET /api/v1/users/exports/csv`: users whose e-mail address matches.
pub fn filtered(context: &mut RequestContext) -> Result<Response, Error> {
    let email = context.read(&EXPORT_QUERY)?;
    export(context, ExportFilter::by_email(email.as_deref()))
}

pub const FULL: Operation = Operation {
    id: "export_all_users",
    summary: "Export all users as CSV",
    inputs: &[],
    ..FILTERED
};

/// `GET /api/v1/users/export-full`: all users.
pub fn full(context: &mut RequestContext) -> Result<Response, Error> {
    export(context, ExportFilter::by_email(None))
}

pub const ALIVE: Operation = Operation {
    id: "export_alive",
    tag: Tag::Exports,
    summary: "Check whether you may export",
    answers: &[json::<StatusText>(200, "You may export.")],
    ..Operation::EMPTY
};

/// `GET /api/v1/users/export-alive`: whether the exports can be reached.
pub fn alive(_: &mut RequestContext) -> Result<Response, Error> {
    response::status("users export alive")
}

pub const SIMPLE: Operation = Operation {
    id: "export_simple",
    tag: Tag::Exports,
    summary: "Check whether you may export, with another form of response",
    answers: &[json::<SimpleStatus>(200, "You may export.")],
    ..Operation::EMPTY
};

#[derive(Serialize, JsonSchema)]
struct SimpleStatus {
    users: &'static str,
}

/// `GET /api/v1/users/export-simple`: a second probe, with a text of its own.
pub fn simple(_: &mut RequestContext) -> Result<Response, Error> {
    response::json(200, &SimpleStatus { users: "export simple status" })
}

/// Counts the rows and reads the first batch, at the same time, before the response begins. Whatever fails until then
/// is still an error with a status, within `CLOAKROOM_EXPORT_TIMEOUT_SECONDS`. Later batches may take as long each.
fn export(context: &mut RequestContext, filter: ExportFilter) -> Result<Response, Error> {
    let (db, config) = (&context.app.db, &context.app.config);
    let mut batches = start_reading(db.clone(), filter.clone(), config.export_timeout)?;
    let max_rows = i64::from(config.export_max_rows);
    let deadline = Instant::now() + config.export_timeout;
    let rows = exports::count(db, &filter, max_rows + 1, deadline)?;
    if rows > max_rows {
        return Err(Error::ExportTooLarge(config.export_max_rows));
    }
    let first = batches.next()?.unwrap_or_default();
    // Before the first byte, because a client that breaks off has some rows too. A HEAD request gets none.
    if context.request.method() != "HEAD" {
        audit::insert_export(db, rows, filter.is_filtered(), &context.origin())?;
    }
    let filename = format!("users-{}.csv", OffsetDateTime::now_utc().date());
    Ok(response::attachment(CSV, &filename, first, move || batches.next()))
}

/// Starts to read the batches of an export as CSV, one ahead of the one that is sent. No connection is held while the
/// next one waits to be sent.
fn start_reading(
    db: Arc<Database>,
    filter: ExportFilter,
    timeout: Duration,
) -> Result<ReadAhead<Vec<u8>>, Error> {
    let mut position = Some(ExportPosition::START);
    ReadAhead::start(move || {
        let Some(after) = position else {
            return Ok(None);
        };
        let start = || start_rows(after == ExportPosition::START);
        let deadline = Instant::now() + timeout;
        let (csv, end) = exports::batch(&db, &filter, after, deadline, start, write_user)?;
        position = end;
        csv.finish().map(Some)
    })
}

/// No rows yet, but the header where they are the `first` of an export.
fn start_rows(first: bool) -> CsvRows {
    let mut csv = CsvRows::new(exports::BATCH_ROWS as usize * ROW_BYTES);
    if first {
        COLUMNS.iter().for_each(|name| csv.cell(name));
        csv.end();
    }
    csv
}

fn write_user(csv: &mut CsvRows, user: &ExportedUser) {
    csv.cell(user.id.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
    csv.text(user.username);
    csv.text(Some(user.email));
    csv.text(user.name);
    csv.text(Some(user.role));
    csv.cell(if user.is_active { "true" } else { "false" });
    csv.cell(user.created_at.bytes());
    csv.cell(user.updated_at.bytes());
    csv.cell(user.last_login.map(Timestamp::bytes).as_ref().map_or(&[][..], |text| text));
    csv.cell(user.total_uploads.to_string());
    csv.cell(user.total_storage_used.to_string());
    csv.end();
}
