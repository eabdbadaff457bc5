//! Exports of users as CSV, streamed. Who may export is decided in the chain, for all of them.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use time::OffsetDateTime;

use crate::api::context::RequestContext;
use crate::db::Database;
use crate::db::exports::{self, Position, Selection};
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::rules;

/// `GET /api/v1/users/export` and `GET /api/v1/users/exports/csv`: users whose e-mail address matches.
pub fn filtered(context: &mut RequestContext) -> Result<Response, Error> {
    let (email, _) = context.request.query(|query| {
        (query.optional("email", rules::search_part), query.choice("format", &[("csv", ())]))
    })?;
    export(context, Selection::by_email(email.as_deref()))
}

/// `GET /api/v1/users/export-full`: all users.
pub fn full(context: &mut RequestContext) -> Result<Response, Error> {
    export(context, Selection::by_email(None))
}

/// `GET /api/v1/users/export-alive`.
pub fn alive(_: &mut RequestContext) -> Result<Response, Error> {
    response::json(200, &json!({ "status": "users export alive" }))
}

/// `GET /api/v1/users/export-simple`.
pub fn simple(_: &mut RequestContext) -> Result<Response, Error> {
    response::json(200, &json!({ "users": "export simple status" }))
}

/// Counts and reads the first rows before the answer begins, so that what can fail is still an error
/// with a status, within the export's time.
fn export(context: &mut RequestContext, which: Selection) -> Result<Response, Error> {
    let (config, began) = (&context.app.config, Instant::now());
    let left = || {
        let left = config.export_timeout.saturating_sub(began.elapsed());
        left.max(Duration::from_millis(1))
    };
    let most = i64::from(config.export_max_rows);
    if exports::count(&context.app.db, &which, most + 1, left())? > most {
        return Err(Error::ExportTooLarge);
    }
    let mut position = Position::START;
    let mut bytes = exports::HEADER.to_vec();
    bytes.extend(exports::batch(&context.app.db, &which, &mut position, Some(left()))?);
    let rows = Export {
        db: context.app.db.clone(),
        which,
        position,
        batch: Cursor::new(bytes),
        is_over: false,
    };
    let filename = format!("users-{}.csv", OffsetDateTime::now_utc().date());
    Ok(response::attachment("text/csv; charset=utf-8", &filename, rows))
}

/// An export on its way: the next batch is read when the client has taken the last.
struct Export {
    db: Arc<Database>,
    which: Selection,
    position: Position,
    batch: Cursor<Vec<u8>>,
    is_over: bool,
}

impl Read for Export {
    /// Fails where the database does: the transfer breaks off, so that nobody takes a part for the whole.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let exhausted = self.batch.position() == self.batch.get_ref().len() as u64;
        if exhausted && !self.is_over {
            let next = exports::batch(&self.db, &self.which, &mut self.position, None);
            let next = next.map_err(|error| {
                log::error!("an export broke off: {error:?}");
                io::Error::other("the export broke off")
            })?;
            self.is_over = next.is_empty();
            self.batch = Cursor::new(next);
        }
        self.batch.read(buffer)
    }
}
