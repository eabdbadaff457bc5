//! Recognises a former primary. If it comes back after a standby was promoted, it accepts writes too, but has none of
//! those that the promoted one has taken. A promotion begins another timeline, with a higher number than any before.

use std::collections::HashMap;
use std::sync::Mutex;

use postgres::error::SqlState;
use postgres::{Client, SimpleQueryMessage};

use super::sql;
use crate::semaphore::lock;

/// The highest timeline that a writable server was seen in, by the identifier that a primary and its standbys share.
/// Timelines are hexadecimal numbers of eight digits, so their texts compare like the numbers.
#[derive(Default)]
pub struct Timelines(Mutex<HashMap<String, String>>);

impl Timelines {
    /// Fails if the server that `client` is connected to accepts writes in a lower timeline than one that was seen. A
    /// server that does not tell its timeline is not refused, nor is a standby, which tells none.
    pub fn check(&self, client: &mut Client) -> Result<(), postgres::Error> {
        let Some((system, timeline)) = ask(client) else { return Ok(()) };
        {
            let mut seen = lock(&self.0);
            let highest = seen.entry(system).or_default();
            if timeline >= *highest {
                *highest = timeline;
                return Ok(());
            }
        }
        // The crate lets nobody else make one of its errors, as which everything here takes a failure to connect.
        client.batch_execute(sql!("database/refuse_former_primary"))
    }
}

/// Whether the error is the one that [`Timelines::check`] ends with: a server that is starting has the same SQLSTATE,
/// but not from the routine of `RAISE`.
pub fn is_former_primary(error: &postgres::Error) -> bool {
    error.as_db_error().is_some_and(|db| {
        db.code() == &SqlState::CANNOT_CONNECT_NOW && db.routine() == Some("exec_stmt_raise")
    })
}

/// The identifier and the timeline of a server that accepts writes.
fn ask(client: &mut Client) -> Option<(String, String)> {
    let messages = client.simple_query(sql!("database/timeline")).ok()?;
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((row.get("system")?.to_owned(), row.get("timeline")?.to_owned()))
        }
        _ => None,
    })
}
