//! `cloakroom audit`: prints the audit log.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use super::database;
use crate::config::Config;
use crate::db::{audit::from_row, sql};
use crate::model::audit::{AuditEvent, AuditPosition};
use crate::model::timestamp::Timestamp;

/// How often new events are looked for.
const POLL_PERIOD: Duration = Duration::from_secs(1);
/// How far before the newest printed event later ones are looked for. An event has the time of the change, and is seen
/// when its transaction is committed, which may happen after a newer event was committed and printed.
const OVERLAP: Duration = Duration::from_secs(10);

/// Prints the events of the last `age`, the oldest first, one line each, and then those that come if `follow` is set.
/// It changes nothing, and applies no migrations either.
pub fn print_audit(config: &Config, age: Duration, follow: bool) -> Result<(), String> {
    let db = database::open(config)?;
    let begin = Timestamp(OffsetDateTime::now_utc() - age);
    let (mut last, mut newest) = (AuditPosition { at: begin, id: Uuid::nil() }, begin);
    // Printed events of the overlap, each with its time.
    let mut printed: HashMap<Uuid, Timestamp> = HashMap::new();
    loop {
        // Up to a thousand events that follow `last`, the oldest first.
        let rows = db.read(sql!("audit/since"), &[&last.at.0, &last.id])?;
        let events: Vec<AuditEvent> = rows.iter().map(from_row).collect();
        let new: Vec<_> = events.iter().filter(|event| !printed.contains_key(&event.id)).collect();
        if !print(&new)? {
            return Ok(());
        }
        printed.extend(new.iter().map(|event| (event.id, event.at)));
        if let Some(event) = events.last() {
            last = AuditPosition::of(event);
            newest = newest.max(event.at);
        } else if follow {
            thread::sleep(POLL_PERIOD);
            let from = begin.max(Timestamp(newest.0 - OVERLAP));
            printed.retain(|_, at| *at >= from);
            last = AuditPosition { at: from, id: Uuid::nil() };
        } else {
            return Ok(());
        }
    }
}

/// Prints a line for each event. Returns false if nobody reads them any more, as `head`, which has seen enough.
fn print(events: &[&AuditEvent]) -> Result<bool, String> {
    let mut out = io::stdout().lock();
    for event in events {
        match writeln!(out, "{}", line(event)) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
            outcome => outcome.map_err(|e| e.to_string())?,
        }
    }
    Ok(true)
}

/// Returns the event as a line of words. Fields without a value are left out.
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
