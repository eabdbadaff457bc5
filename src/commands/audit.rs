//! `cloakroom audit`: prints the audit log.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::config::Config;
use crate::db;
use crate::model::audit::{AuditEvent, AuditPosition};
use crate::model::timestamp::Timestamp;
use crate::telemetry::logging;

/// Prints the events of the last `age`, the oldest first, one line each. It changes nothing, and applies no migrations
/// either.
pub fn print_audit(config: &Config, age: Duration) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    let db = db::open(config)?;
    let mut out = io::stdout().lock();
    let begin = Timestamp(OffsetDateTime::now_utc() - age);
    let mut last = AuditPosition { at: begin, id: Uuid::nil() };
    loop {
        let events = db::audit::since(&db, last).map_err(|e| e.cause().into_owned())?;
        let Some(newest) = events.last() else {
            return Ok(());
        };
        last = AuditPosition::of(newest);
        for event in &events {
            match writeln!(out, "{}", line(event)) {
                // A reader such as `head` has seen enough.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                outcome => outcome.map_err(|e| e.to_string())?,
            }
        }
    }
}

/// The event as a line of words. What it has no value for is left out.
fn line(event: &AuditEvent) -> String {
    let mut line = format!("{} {} {}", event.at.text(), event.outcome, event.action);
    let subject = event.subject_type.as_ref().zip(event.subject_id);
    let parts = [
        ("actor", event.actor_id.map(|id| id.to_string())),
        ("subject", subject.map(|(kind, id)| format!("{kind}:{id}"))),
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
    line
}
