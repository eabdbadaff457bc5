//! Log lines on standard error, one for each record, as text or JSON.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use log::kv::{Key, Value, VisitSource};
use log::{LevelFilter, Record};

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

/// Writes `timestamp LEVEL message key=value ...`. The message of access log records is left out, because their
/// key-value pairs say everything.
fn write_text(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let mut line = format!("{} {:5}", Timestamp::now().text(), record.level());
    if record.target() != "cloakroom::access" {
        line.push(' ');
        line.push_str(&escape_controls(&record.args().to_string()));
    }
    // Writing to a string never fails, so the visitor does not either.
    let _ = record.key_values().visit(&mut TextPairs(&mut line));
    line.push('\n');
    out.write_all(line.as_bytes())
}

/// Writes one JSON object, with the key-value pairs as fields beside the message.
fn write_json(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let mut object = serde_json::Map::new();
    object.insert("timestamp".into(), Timestamp::now().text().into());
    object.insert("level".into(), record.level().as_str().into());
    object.insert("target".into(), record.target().into());
    object.insert("message".into(), record.args().to_string().into());
    let _ = record.key_values().visit(&mut JsonPairs(&mut object)); // This visitor never fails.
    let mut line = serde_json::Value::Object(object).to_string();
    line.push('\n');
    out.write_all(line.as_bytes())
}

/// Escapes control characters, so that text from a client cannot start a new line and forge a record.
fn escape_controls(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        text.escape_debug().to_string().into()
    } else {
        text.into()
    }
}

/// Appends the key-value pairs of a record to a line of text. Texts with blanks are quoted, empty ones left out.
struct TextPairs<'a>(&'a mut String);

impl<'kvs> VisitSource<'kvs> for TextPairs<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), log::kv::Error> {
        match value.to_borrowed_str() {
            Some("") => {}
            Some(text) if text.contains([' ', '"']) => write!(self.0, " {key}={text:?}")?,
            Some(text) => write!(self.0, " {key}={}", escape_controls(text))?,
            // Other values are numbers, ids or addresses, whose text forms have no control characters.
            None => write!(self.0, " {key}={value}")?,
        }
        Ok(())
    }
}

/// Adds the key-value pairs of a record to a JSON object, numbers as numbers, without empty texts.
struct JsonPairs<'a>(&'a mut serde_json::Map<String, serde_json::Value>);

impl<'kvs> VisitSource<'kvs> for JsonPairs<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), log::kv::Error> {
        if value.to_borrowed_str() == Some("") {
            return Ok(());
        }
        let json = match (value.to_u64(), value.to_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => value.to_string().into(),
        };
        self.0.insert(key.to_string(), json);
        Ok(())
    }
}
