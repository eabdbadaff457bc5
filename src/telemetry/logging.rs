//! Log lines on standard error, one for each record, as text or JSON. Those about requests are in `access_log`.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};
use std::time::Instant;

use log::{Level, LevelFilter};
use serde::Serialize;

use super::flood::Flood;
use super::journal::PriorityPrefix;
use crate::config::LogFormat;
use crate::model::timestamp::Timestamp;

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
    let (flood, prefix) = (Flood::default(), PriorityPrefix::of_standard_error());
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
        out.write_all(prefix.of(record.level()).as_bytes())?;
        out.write_all(line.format(format, escape_controls(&message)).as_bytes())
    });
    builder.init();
    std::panic::set_hook(Box::new(|info| log::error!("panic: {info}")));
}

/// Writes the lines that say why the process ends.
pub fn write_fatal(lines: impl IntoIterator<Item = String>) {
    write_lines(Level::Error, lines);
}

/// Writes lines that are no records of the log, whose format is known only after the settings have been read.
pub fn write_lines(level: Level, lines: impl IntoIterator<Item = String>) {
    let priority = PriorityPrefix::of_standard_error().of(level);
    for line in lines {
        // Without a place to write to there is nobody to tell.
        let _ = writeln!(io::stderr(), "{priority}{line}");
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
