//! Log lines: one a record, text or JSON, to standard error.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use log::kv::{Key, Value, VisitSource};
use log::{LevelFilter, Record};
use time::OffsetDateTime;

use crate::config::LogFormat;
use crate::model::timestamp::Timestamp;

/// Starts logging: our own modules at `level`, libraries never below `warn`, because some of them
/// log parameters of statements.
pub fn start(level: LevelFilter, format: LogFormat) {
    let mut builder = env_logger::Builder::new();
    builder.filter_level(level.min(LevelFilter::Warn)).filter_module("cloakroom", level);
    builder.format(move |out, record| match format {
        LogFormat::Text => text(out, record),
        LogFormat::Json => json(out, record),
    });
    builder.init();
    std::panic::set_hook(Box::new(|info| log::error!("panic: {info}")));
}

fn now() -> String {
    Timestamp(OffsetDateTime::now_utc()).text()
}

fn text(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let mut line = format!("{} {:5}", now(), record.level());
    if record.target() != "cloakroom::access" {
        line.push(' ');
        line.push_str(&one_line(&record.args().to_string()));
    }
    // The visitor below never fails.
    let _ = record.key_values().visit(&mut TextPairs(&mut line));
    line.push('\n');
    out.write_all(line.as_bytes())
}

fn json(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let mut object = serde_json::Map::new();
    object.insert("timestamp".into(), now().into());
    object.insert("level".into(), record.level().as_str().into());
    object.insert("target".into(), record.target().into());
    object.insert("message".into(), record.args().to_string().into());
    let mut pairs = Pairs(Vec::new());
    let _ = record.key_values().visit(&mut pairs);
    object.extend(pairs.0);
    let mut line = serde_json::Value::Object(object).to_string();
    line.push('\n');
    out.write_all(line.as_bytes())
}

/// Control characters escaped: nobody forges a second line.
fn one_line(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        text.escape_debug().to_string().into()
    } else {
        text.into()
    }
}

/// Writes the key-value pairs of a record to the end of a line.
struct TextPairs<'a>(&'a mut String);

impl<'kvs> VisitSource<'kvs> for TextPairs<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), log::kv::Error> {
        match value.to_borrowed_str() {
            Some(text) => write!(self.0, " {key}={}", one_line(text))?,
            // Numbers, ids and addresses: no text of a client.
            None => write!(self.0, " {key}={value}")?,
        }
        Ok(())
    }
}

/// Collects the key-value pairs of a record.
struct Pairs(Vec<(String, serde_json::Value)>);

impl<'kvs> VisitSource<'kvs> for Pairs {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), log::kv::Error> {
        let json = match (value.to_u64(), value.to_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => value.to_string().into(),
        };
        self.0.push((key.to_string(), json));
        Ok(())
    }
}
