//! The parts that all CSV exports share. Exports are streamed: memory does not grow with the rows, and no database
//! connection is held while the client reads.

use std::time::{Duration, Instant};

use time::OffsetDateTime;

use crate::api::context::RequestContext;
use crate::api::turns::ExportTurn;
use crate::error::Error;
use crate::http::csv::CSV;
use crate::http::response::{self, BodyBatches, Response};

/// The next rows of an export as CSV; `None` is the end.
type NextRows = Result<Option<Vec<u8>>, Error>;

/// An export that is on its way to a client.
struct Export<F> {
    read_next: F,
    /// The first batch, until it is sent.
    first: Option<Vec<u8>>,
    /// Longest time in which a batch is read.
    timeout: Duration,
    /// Ends when the export does.
    _turn: ExportTurn,
}

impl<F: FnMut(Instant) -> NextRows + Send> BodyBatches for Export<F> {
    fn next_batch(&mut self) -> Result<Option<Vec<u8>>, Error> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => (self.read_next)(Instant::now() + self.timeout),
        }
    }
}

/// The response with the rows of an export in a file named after `subject` and the date. `read_next` reads a batch of
/// them, and fails with [`Error::TimedOut`] if that takes longer than the deadline that it is given. The first batch is
/// read by `deadline`, before the response begins, so that a failure still has a status. Each later one may take as
/// long as `CLOAKROOM_EXPORT_TIMEOUT_SECONDS` says.
pub fn export_response(
    context: &RequestContext,
    subject: &str,
    mut read_next: impl FnMut(Instant) -> NextRows + Send + 'static,
    turn: ExportTurn,
    deadline: Instant,
) -> Result<Response, Error> {
    let first = read_next(deadline)?;
    let filename = format!("{subject}-{}.csv", OffsetDateTime::now_utc().date());
    let timeout = context.app.config.export_timeout;
    Ok(response::attachment(CSV, &filename, Export { read_next, first, timeout, _turn: turn }))
}
