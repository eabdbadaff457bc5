//! What all CSV exports share. Exports are streamed: memory does not grow with the rows, and no database connection is
//! held while the client reads.

use std::io;
use std::iter;
use std::time::Instant;

use time::OffsetDateTime;

use crate::api::context::RequestContext;
use crate::api::turns::ExportTurn;
use crate::error::Error;
use crate::http::csv::CSV;
use crate::http::response::{self, Response};

/// The response with the rows of an export in a file named after `subject` and the date. `read` reads a batch of them
/// as CSV, `None` after the last one, and fails with [`Error::TimedOut`] if that takes longer than the deadline that it
/// is given. The first batch is read by `deadline`, before the response begins, so that a failure still has a status.
/// Each later one may take as long as `CLOAKROOM_EXPORT_TIMEOUT_SECONDS` says. The turn ends with the export.
pub fn export_response(
    context: &RequestContext,
    subject: &str,
    mut read: impl FnMut(Instant) -> Result<Option<Vec<u8>>, Error> + Send + 'static,
    turn: ExportTurn,
    deadline: Instant,
) -> Result<Response, Error> {
    let first = read(deadline)?;
    let timeout = context.app.config.export_timeout;
    let rest = iter::from_fn(move || {
        let _held_until_the_end = &turn;
        let failed = |error: Error| {
            log::error!("an export broke off: {}", error.cause());
            io::Error::other("the export broke off")
        };
        read(Instant::now() + timeout).map_err(failed).transpose()
    });
    let filename = format!("{subject}-{}.csv", OffsetDateTime::now_utc().date());
    Ok(response::attachment(CSV, &filename, first.map(Ok).into_iter().chain(rest)))
}
