//! Exports as CSV, and those of users: the pipeline decides who may have these. Exports are streamed: memory does not
//! grow with the rows, and no database connection is held while the client reads.

use std::iter;
use std::time::Instant;

use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::statements::{self, COLUMNS, ExportPosition, ExportedUser};
use crate::accounts::handlers::read_filter;
use crate::accounts::statements::UserFilter;
use crate::error::Error;
use crate::http::body::BYTE_ORDER_MARK;
use crate::http::csv::{CSV, CsvRows};
use crate::http::params::Params;
use crate::http::response::{self, Response, ResponseBody, broken_off};
use crate::model::rules;
use crate::model::timestamp::Timestamp;
use crate::request::context::RequestContext;
use crate::request::identity::{self, Exporter};
use crate::request::permits::ExportPermits;

/// Most rows of the first batch. Of each later one so many are read as would have fitted into the batch before.
const FIRST_ROWS: usize = 1000;

fn read_export_query(query: &mut Params) -> (Option<UserFilter>, bool) {
    let filter = read_filter(query, "*%");
    query.optional("format", |text| rules::choice(&text.to_ascii_lowercase(), &[("csv", ())]));
    (Some(filter).filter(|filter| *filter != UserFilter::default()), wants_mark(query))
}

/// Whether the file is to begin with a byte order mark, by which Excel sees that it is UTF-8.
pub fn wants_mark(query: &mut Params) -> bool {
    query.filter("bom", rules::boolean).unwrap_or(false)
}

/// `GET /api/v1/users/export` and `GET /api/v1/users/exports/csv`: users who match the filters that lists have. In
/// `email`, `*` and `%` stand for any run of characters.
pub fn filtered(context: &mut RequestContext, user: Exporter) -> Result<Response, Error> {
    let (filter, has_mark) = context.request.query().read(read_export_query)?;
    export(context, user, filter, has_mark)
}

/// `GET /api/v1/users/export-full`: all users.
pub fn full(context: &mut RequestContext, user: Exporter) -> Result<Response, Error> {
    let has_mark = context.request.query().read(wants_mark)?;
    export(context, user, None, has_mark)
}

/// `GET /api/v1/users/export-alive`: whether the exports can be reached.
pub fn alive(_: &mut RequestContext, _: Exporter) -> Result<Response, Error> {
    response::probe("users export alive")
}

/// `GET /api/v1/users/export-simple`: a second probe, with a text of its own.
pub fn simple(_: &mut RequestContext, _: Exporter) -> Result<Response, Error> {
    response::json(200, &json!({ "users": "export simple status" }))
}

/// Waits for permits, reads the first batch and counts the rows before the response begins. Whatever fails until then
/// is still an error with a status, within `CLOAKROOM_EXPORT_TIMEOUT_SECONDS`.
fn export(
    context: &mut RequestContext,
    user: Exporter,
    filter: Option<UserFilter>,
    has_mark: bool,
) -> Result<Response, Error> {
    let (db, config) = (context.app.db.clone(), &context.app.config);
    let deadline = Instant::now() + config.export_timeout;
    let permits = context.export_permits(deadline)?;
    let max_rows = i64::from(config.export_max_rows);
    let (is_filtered, counted) = (filter.is_some(), filter.clone());
    let (mut next, mut limit) = (Some(ExportPosition::START), FIRST_ROWS);
    let read = move |deadline| {
        let Some(after) = next else { return Ok(None) };
        let header = (after == ExportPosition::START).then(|| COLUMNS.join(","));
        let start = || CsvRows::new(header.as_deref());
        let (filter, rows) = (filter.as_ref(), limit as i64);
        let (csv, end) = statements::batch(&db, filter, after, rows, deadline, start, write_user)?;
        (next, limit) = (end, csv.capacity());
        Ok(Some(csv.finish()))
    };
    let response = export_response(context, user, ("users", has_mark), read, permits, deadline)?;
    let count = statements::count(&context.app.db, counted.as_ref(), max_rows + 1, deadline)?;
    if count > max_rows {
        return Err(Error::ExportTooLarge(config.export_max_rows));
    }
    // Before the first byte, because a client that breaks off has some rows too. A HEAD request gets none.
    if context.request.method() != "HEAD" {
        statements::insert_export(&context.db, count, is_filtered)?;
    }
    Ok(response)
}

/// Writes a row, and returns whether it fits.
fn write_user(csv: &mut CsvRows, user: &ExportedUser) -> bool {
    csv.cell(user.id.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
    csv.text(Some(user.email));
    csv.text(user.name);
    csv.cell(user.created_at.bytes());
    csv.cell(user.updated_at.bytes());
    csv.cell(if user.is_active { "true" } else { "false" });
    csv.cell(user.role);
    csv.text(user.username);
    csv.cell(user.last_login.map(Timestamp::bytes).as_ref().map_or(&[][..], |text| text));
    csv.cell(user.total_uploads.to_string());
    csv.cell(user.total_storage_used.to_string());
    csv.end()
}

/// The response with the rows of an export, after a byte order mark if it has one, in a file named after the subject
/// and the date. `read` reads a batch of them as CSV, `None` after the last one, and fails with [`Error::TimedOut`] if
/// that takes longer than the deadline that it is given. The first batch is read by `deadline`, before the response
/// begins, so that a failure still has a status. Each later one may take as long as `CLOAKROOM_EXPORT_TIMEOUT_SECONDS`
/// says. The permits are dropped at the end of the export.
///
/// Before each batch the sender is looked up again, because the wait for the permits may have been long, and a client
/// that reads slowly is to get nothing new after its session or its rights have ended.
pub fn export_response(
    context: &RequestContext,
    user: Exporter,
    (subject, has_mark): (&str, bool),
    mut read: impl FnMut(Instant) -> Result<Option<Vec<u8>>, Error> + Send + 'static,
    permits: ExportPermits,
    deadline: Instant,
) -> Result<Response, Error> {
    let check_sender = identity::sender_check(context, user);
    check_sender()?;
    let first = read(deadline)?;
    let timeout = context.app.config.export_timeout;
    let rest = iter::from_fn(move || {
        let _held_until_the_end = &permits;
        let failed = |error: Error| broken_off("an export", &error);
        let batch = check_sender().and_then(|()| read(Instant::now() + timeout));
        batch.map_err(failed).transpose()
    });
    let filename = format!("{subject}-{}.csv", OffsetDateTime::now_utc().date());
    let mark = has_mark.then(|| BYTE_ORDER_MARK.to_vec());
    let batches = mark.into_iter().chain(first).map(Ok).chain(rest);
    let parts = batches.map(|batch| batch.map(|bytes| ResponseBody::Bytes(bytes.into())));
    let body = ResponseBody::Parts { parts: Box::new(parts), length: None, memory: 0 };
    Ok(Response { status: 200, headers: Vec::new(), body }
        .with_header("Content-Type", CSV)
        .with_header("Content-Disposition", format!("attachment; filename={filename}")))
}
