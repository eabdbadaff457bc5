//! `cloakroom audit`: prints the audit log.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use time::OffsetDateTime;
use uuid::Uuid;

use super::database;
use crate::arguments::tools::AuditFormat;
use crate::audit::statements::from_row;
use crate::config::Config;
use crate::db::{Database, one_row, sql};
use crate::error::Error;
use crate::model::audit_event::AuditEvent;
use crate::model::position::TimePosition;
use crate::model::timestamp::Timestamp;
use crate::serve::print;

/// Shortest pause between two looks at the log.
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// How many times as long as a look took the pause after it is at least, so that a log that grows fast is not read all
/// the time.
const PAUSE_FACTOR: u32 = 9;
/// How late an event may be that nothing in the database announces: a refused action waits in the memory of the service
/// while that cannot write, and clocks differ.
const MAX_LATENESS: Duration = Duration::from_secs(600);

/// Prints the events of the last `age`, the oldest first, one line each, and then those that come if `follow` is set.
/// It changes nothing, and applies no migrations either.
pub fn print_audit(
    config: &Config,
    age: Duration,
    follow: bool,
    format: AuditFormat,
) -> Result<(), String> {
    let begin = Timestamp(OffsetDateTime::now_utc() - age);
    let (db, printed) = (database::open(config)?, HashMap::new());
    let mut log = AuditLog { db, format, from: begin, printed };
    if !follow {
        return log.print_new().map(drop).map_err(String::from);
    }
    let mut began = Instant::now();
    let mut is_read = log.look()?;
    let mut is_failing = false;
    while is_read && is_wanted(MIN_PAUSE.max(began.elapsed() * PAUSE_FACTOR)) {
        began = Instant::now();
        match log.look() {
            Err(error @ (Error::Unavailable | Error::TimedOut)) => {
                // If the connection was lost, the pool has said so.
                if !is_failing && !log.db.pool.was_lost_since(began) {
                    log::warn!(
                        "the audit log cannot be read, and is tried again: {}",
                        error.cause()
                    );
                }
                is_failing = true;
            }
            outcome => (is_read, is_failing) = (outcome?, false),
        }
    }
    Ok(())
}

/// The audit log, as far as it was printed.
struct AuditLog {
    db: Database,
    format: AuditFormat,
    /// All events before this time were printed, if they had to be. So each look begins here: an event has the time of
    /// the change, and is seen when its transaction is committed, which may be after newer events were.
    from: Timestamp,
    /// The printed events that are not before `from`, each with its time.
    printed: HashMap<Uuid, Timestamp>,
}

impl AuditLog {
    /// Prints what is new, and moves `from` on to the time before which nothing is still to come. That is asked first:
    /// what is committed between the two questions is printed now or found by the next look. Returns false if nobody
    /// reads the output any more.
    fn look(&mut self) -> Result<bool, Error> {
        let lateness = MAX_LATENESS.as_secs_f64();
        let row = one_row(self.db.read(sql!("tools/audit/settled_before"), &[&lateness])?)?;
        let is_read = self.print_new()?;
        // It never moves back, because what was printed before it is forgotten.
        self.from = self.from.max(Timestamp(row.get("settled_before")));
        self.printed.retain(|_, at| *at >= self.from);
        Ok(is_read)
    }

    /// Prints the events from `from` on that were not printed yet, the oldest first. Returns false if nobody reads them
    /// any more.
    fn print_new(&mut self) -> Result<bool, Error> {
        let mut last = TimePosition { at: self.from, id: Uuid::nil() };
        loop {
            // Up to a thousand events that follow `last`, the oldest first.
            let rows = self.db.read(sql!("tools/audit/since"), &[&last.at.0, &last.id])?;
            let Some(row) = rows.last() else { return Ok(true) };
            last = from_row(row).position();
            for row in &rows {
                let mut event = from_row(row);
                if self.printed.insert(event.id, event.at).is_some() {
                    continue;
                }
                let line = match self.format {
                    AuditFormat::Text => {
                        line(&event, [row.get("actor_name"), row.get("subject_name")])
                    }
                    AuditFormat::Json => {
                        if let Some(name) = row.get::<_, Option<String>>("filename") {
                            event.details["filename"] = name.into();
                        }
                        serde_json::to_string(&event).unwrap_or_default() + "\n"
                    }
                };
                // In one write, so that no line is ever cut short.
                if !print(&line).map_err(Error::Internal)? {
                    return Ok(false);
                }
            }
        }
    }
}

/// Waits for `pause`. Returns false as soon as nobody reads the output any more, such as `head`, which has seen enough.
fn is_wanted(pause: Duration) -> bool {
    let limit = Timespec::try_from(pause).ok();
    // Without flags to wait for, only errors and the end of a pipe or a terminal are reported.
    let output = io::stdout();
    let mut output = [PollFd::new(&output, PollFlags::empty())];
    let polled = poll(&mut output, limit.as_ref());
    polled.is_err() || output.iter().all(|fd| fd.revents().is_empty())
}

/// Returns the event as a line of words, with the usernames of actor and subject after their ids. Fields without a
/// value are left out.
fn line(event: &AuditEvent, [actor_name, subject_name]: [Option<String>; 2]) -> String {
    let mut line = format!("{} {} {}", event.at.text(), event.outcome, event.action);
    let subject = event.subject_type.as_ref().zip(event.subject_id);
    let parts = [
        ("actor", event.actor_id.map(|id| id.to_string())),
        ("actor_name", actor_name),
        ("subject", subject.map(|(kind, id)| format!("{kind}:{id}"))),
        ("subject_name", subject_name),
        ("address", event.address.map(|address| address.to_string())),
        ("request", event.request_id.map(|id| id.to_string())),
    ];
    for (name, value) in parts {
        // Writing to a String cannot fail.
        let _ = value.map(|value| write!(line, " {name}={value}"));
    }
    if event.details.as_object().is_some_and(|details| !details.is_empty()) {
        let _ = write!(line, " {}", event.details);
    }
    line + "\n"
}
