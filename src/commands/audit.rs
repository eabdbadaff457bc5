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

/// Longest time that `--since` may go back. No event is older than the service.
const MAX_AGE_DAYS: u64 = 36_500;

/// Parses a number with the unit `m`, `h` or `d`: minutes, hours or days.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let seconds_of = |unit| match unit {
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        _ => None,
    };
    let unit = text.chars().next_back().and_then(seconds_of);
    let number = text.get(..text.len().saturating_sub(1)).and_then(|digits| digits.parse().ok());
    let seconds = unit.zip(number).and_then(|(unit, number): (u64, u64)| number.checked_mul(unit));
    seconds
        .filter(|seconds| *seconds <= MAX_AGE_DAYS * 86_400)
        .map(Duration::from_secs)
        .ok_or_else(|| "a time such as 30m, 1h or 7d is expected".into())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_of_minutes_hours_or_days() {
        for (text, seconds) in [("30m", 1800), ("1h", 3600), ("7d", 604_800), ("0m", 0)] {
            assert_eq!(parse_age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["", "h", "1", "1s", "-1h", "1.5h", "1 h", "36501d", "99999999999999999999d", "1\u{e9}"]
        {
            assert!(parse_age(text).is_err(), "{text}");
        }
    }
}
