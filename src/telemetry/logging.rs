//! Log lines on standard error, one for each record, as text or JSON. Those about requests are in `access_log`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use log::{Level, LevelFilter};
use rustix::fs::fstat;
use serde::Serialize;

use crate::config::{self, LogFormat};
use crate::model::timestamp::Timestamp;
use crate::semaphore::lock;

/// How long lines are left out after one with the same cause.
const PERIOD: Duration = Duration::from_secs(10);
/// Most causes that are remembered. Lines with others are written.
const MAX_CAUSES: usize = 200;

/// A line of the log. Its JSON form is an object with these members.
#[derive(Serialize)]
pub struct LogLine<'a, F> {
    pub timestamp: Timestamp,
    pub level: &'static str,
    /// The module that the line comes from.
    pub target: &'a str,
    pub message: &'a str,
    /// Further members.
    #[serde(flatten)]
    pub fields: F,
}

impl<F: Serialize> LogLine<'_, F> {
    /// The line in this format, with its end. Its text form is `timestamp LEVEL text`.
    pub fn format(&self, format: LogFormat, text: impl Display) -> String {
        match format {
            LogFormat::Text => format!("{} {:5} {text}\n", self.timestamp.text(), self.level),
            // Only values without a JSON form would make it fail, such as maps with other keys than texts.
            LogFormat::Json => serde_json::to_string(self).unwrap_or_default() + "\n",
        }
    }
}

/// Starts logging. Records of this program are written if they are at least as severe as `level`. Those of libraries
/// must in addition be warnings or errors, because at lower levels some libraries log the parameters of SQL statements,
/// which hold personal data. Of warnings and errors with the same cause there is one in ten seconds.
pub fn start(level: LevelFilter, format: LogFormat) {
    let mut builder = env_logger::Builder::new();
    builder.filter_level(level.min(LevelFilter::Warn)).filter_module("cloakroom", level);
    let (flood, is_journal) = (Flood::default(), is_journal());
    builder.format(move |out, record| {
        let mut message = record.args().to_string();
        if record.level() <= Level::Warn {
            match flood.admit(&message, Instant::now()) {
                None => return Ok(()),
                Some(0) => {}
                Some(left_out) => message += &format!(" (and {left_out} more since the last line)"),
            }
        }
        let line = LogLine {
            timestamp: Timestamp::now(),
            level: record.level().as_str(),
            target: record.target(),
            message: &message,
            fields: (),
        };
        out.write_all(prefix(record.level(), is_journal).as_bytes())?;
        out.write_all(line.format(format, escape_controls(&message)).as_bytes())
    });
    builder.init();
    std::panic::set_hook(Box::new(|info| log::error!("panic: {info}")));
}

/// Writes lines that are no records of the log, whose format is known only after the settings have been read.
pub fn write_lines(level: Level, lines: impl IntoIterator<Item = String>) {
    let prefix = prefix(level, is_journal());
    for line in lines {
        // Without a place to write to there is nobody to tell.
        let _ = writeln!(io::stderr(), "{prefix}{line}");
    }
}

/// Escapes control characters, so that text from a client cannot start a new line and forge a record.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        text.escape_debug().to_string().into()
    } else {
        text.into()
    }
}

/// Whether standard error leads to systemd's journal, where a line may begin with its priority (sd-daemon(3)), by which
/// `journalctl -p err` finds it. It does if the variable of systemd names the same file, by its device and inode
/// (systemd.exec(5)): a process inherits the variable also where its output was redirected.
fn is_journal() -> bool {
    let file = fstat(io::stderr()).map(|file| format!("{}:{}", file.st_dev, file.st_ino));
    let journal = config::journal_stream();
    journal.is_some() && journal == file.ok()
}

/// What a line of this level begins with: in the journal its priority, which is one of syslog(3), and nothing
/// elsewhere, such as on a terminal. Lines without one are of the priority `info`.
fn prefix(level: Level, is_journal: bool) -> &'static str {
    match level {
        _ if !is_journal => "",
        Level::Error => "<3>",
        Level::Warn => "<4>",
        Level::Info => "<6>",
        Level::Debug | Level::Trace => "<7>",
    }
}

/// The causes of the lines that were written lately. They keep a flood of lines with the same cause out of the log: a
/// full disk, or a database that refuses every change, is met by each request.
#[derive(Default)]
pub struct Flood(Mutex<HashMap<String, Cause>>);

struct Cause {
    written_at: Instant,
    left_out: u64,
}

impl Flood {
    /// Whether to write a line now: `Some` has the number of lines with its cause that were left out before it. Texts
    /// that differ only in digits have the same cause, because PostgreSQL names files and blocks. Lines about requests
    /// and accounts have ids in them, so none of these is left out.
    pub fn admit(&self, text: &str, now: Instant) -> Option<u64> {
        let mut causes = lock(&self.0);
        let key: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        if let Some(cause) = causes.get_mut(&key) {
            if now.saturating_duration_since(cause.written_at) < PERIOD {
                cause.left_out += 1;
                return None;
            }
            cause.written_at = now;
            return Some(std::mem::take(&mut cause.left_out));
        }
        if causes.len() >= MAX_CAUSES {
            causes.retain(|_, cause| now.saturating_duration_since(cause.written_at) < PERIOD);
        }
        if causes.len() < MAX_CAUSES {
            causes.insert(key, Cause { written_at: now, left_out: 0 });
        }
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_written_once_in_ten_seconds_and_then_with_the_number_of_lines_left_out() {
        let (flood, start) = (Flood::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(flood.admit("no space for base/16384/1259", at(0)), Some(0));
        assert_eq!(flood.admit("no space for base/16384/2619", at(1)), None);
        assert_eq!(flood.admit("another cause", at(1)), Some(0));
        assert_eq!(flood.admit("no space for base/16384/1259", at(9)), None);
        assert_eq!(flood.admit("no space for base/16384/1259", at(10)), Some(2));
        assert_eq!(flood.admit("no space for base/16384/1259", at(20)), Some(0));
    }

    #[test]
    fn the_causes_that_are_remembered_are_bounded_and_no_line_is_lost_for_it() {
        let (flood, start) = (Flood::default(), Instant::now());
        for n in 0..2 * MAX_CAUSES {
            assert_eq!(flood.admit(&"x".repeat(n), start), Some(0));
        }
        assert_eq!(lock(&flood.0).len(), MAX_CAUSES);
        assert_eq!(flood.admit("new", start + PERIOD), Some(0));
        assert_eq!(lock(&flood.0).len(), 1);
    }
}
