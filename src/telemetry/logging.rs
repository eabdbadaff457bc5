//! Log lines on standard error, one for each record, as text or JSON. Those about requests are in `access_log`.

use std::borrow::Cow;
use std::io::{self, Write};

use log::{LevelFilter, Record};
use serde_json::json;

use crate::config::LogFormat;
use crate::model::timestamp::Timestamp;

/// Starts logging. Records of this program are written if they are at least as severe as `level`. Those of libraries
/// must in addition be warnings or errors, because at lower levels some libraries log the parameters of SQL statements,
/// which hold personal data.
pub fn start(level: LevelFilter, format: LogFormat) {
    let mut builder = env_logger::Builder::new();
    builder.filter_level(level.min(LevelFilter::Warn)).filter_module("cloakroom", level);
    builder.format(move |out, record| match format {
        LogFormat::Text => write_text(out, record),
        LogFormat::Json => write_json(out, record),
    });
    builder.init();
    std::panic::set_hook(Box::new(|info| log::error!("panic: {info}")));
}

/// Writes `timestamp LEVEL message`.
fn write_text(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let message = record.args().to_string();
    let (now, message) = (Timestamp::now().text(), escape_controls(&message));
    out.write_all(format!("{now} {:5} {message}\n", record.level()).as_bytes())
}

/// Writes one JSON object.
fn write_json(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let object = json!({
        "timestamp": Timestamp::now(),
        "level": record.level().as_str(),
        "target": record.target(),
        "message": record.args().to_string(),
    });
    out.write_all(format!("{object}\n").as_bytes())
}

/// Escapes control characters, so that text from a client cannot start a new line and forge a record.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        text.escape_debug().to_string().into()
    } else {
        text.into()
    }
}
