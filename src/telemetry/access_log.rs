//! The access log: one line on standard error for each request. Its lines do not go through `log`, because that would
//! pass each part through a trait object before it is written, for every request.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use log::Level;
use rustix::io::retry_on_intr;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use super::logging::{LogLine, escape_controls};
use crate::config::LogFormat;
use crate::model::timestamp::Timestamp;

/// The module under whose name the lines are switched on and off by the level of the log.
const TARGET: &str = "cloakroom::access";

/// The access log's data about a request. The fields are the members of its JSON form, in this order.
#[derive(Serialize)]
pub struct AccessLogEntry<'a> {
    /// The method as the client sent it. `None`, like the path, if the head was refused before it was parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'a str>,
    /// The path as the client sent it, without the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'a str>,
    pub status: u16,
    /// From the end of the head until the response is ready to be sent.
    #[serde(rename = "ms", serialize_with = "serialize_milliseconds")]
    pub duration: Duration,
    /// The message of the error response, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    /// The account that the request comes from or tries to sign in to.
    #[serde(serialize_with = "serialize_user")]
    pub user: Option<Uuid>,
    pub client: IpAddr,
    /// The value of `X-Request-ID`.
    #[serde(rename = "request_id")]
    pub id: Uuid,
}

/// The text form: `method path status duration "error" user=... client=... request_id=...`. The error is left out if
/// there is none, and other parts that are not known are a hyphen.
impl fmt::Display for AccessLogEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = escape_controls(self.method.unwrap_or("-"));
        let path = escape_controls(self.path.unwrap_or("-"));
        let tenths = (self.duration.as_micros() + 50) / 100;
        write!(f, "{method} {path} {} {}.{} ms", self.status, tenths / 10, tenths % 10)?;
        if let Some(error) = self.error {
            write!(f, " {error:?}")?;
        }
        match self.user {
            Some(user) => write!(f, " user={user}")?,
            None => f.write_str(" user=-")?,
        }
        write!(f, " client={} request_id={}", self.client, self.id)
    }
}

fn serialize_milliseconds<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(duration.as_micros() as f64 / 1000.0)
}

fn serialize_user<S: Serializer>(user: &Option<Uuid>, to: S) -> Result<S::Ok, S::Error> {
    match user {
        Some(user) => user.serialize(to),
        None => to.serialize_str("-"),
    }
}

/// Writes the entry, if lines of this level, `info` or `debug`, are logged. It needs no priority for the journal, where
/// that of a line without one is `info`.
pub fn write(entry: &AccessLogEntry, level: Level, format: LogFormat) {
    if log::log_enabled!(target: TARGET, level) {
        let line = line(entry, level, format, Timestamp::now());
        // Without a place to write to there is nobody to tell. One write keeps the lines of several threads apart,
        // because none is longer than 4096 bytes (PIPE_BUF in pipe(7)). So none waits for the lock of `io::stderr`.
        let _ = retry_on_intr(|| rustix::io::write(io::stderr(), line.as_bytes()));
    }
}

fn line(entry: &AccessLogEntry, level: Level, format: LogFormat, timestamp: Timestamp) -> String {
    LogLine { timestamp, level: level.as_str(), target: TARGET, message: "request", fields: entry }
        .format(format, entry)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: Timestamp = Timestamp(datetime!(2026-01-02 03:04:05.000006 UTC));
    const START: &str = "2026-01-02T03:04:05.000006Z INFO  ";
    const END: &str = "client=::1 request_id=00000000-0000-0000-0000-000000000007\n";

    fn entry() -> AccessLogEntry<'static> {
        AccessLogEntry {
            method: Some("GET"),
            path: Some("/a"),
            status: 200,
            duration: Duration::from_micros(1251),
            error: None,
            user: None,
            client: IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1_u16]),
            id: Uuid::from_u128(7),
        }
    }

    fn text(entry: &AccessLogEntry) -> String {
        line(entry, Level::Info, LogFormat::Text, NOW)
    }

    fn json(entry: &AccessLogEntry) -> String {
        line(entry, Level::Info, LogFormat::Json, NOW)
    }

    #[test]
    fn a_line_of_text_begins_with_the_request_and_its_outcome() {
        assert_eq!(text(&entry()), format!("{START}GET /a 200 1.3 ms user=- {END}"));
        let user = Some(Uuid::from_u128(1));
        let refused = AccessLogEntry { status: 404, error: Some("Not Found"), user, ..entry() };
        let middle = "GET /a 404 1.3 ms \"Not Found\" user=00000000-0000-0000-0000-000000000001";
        assert_eq!(text(&refused), format!("{START}{middle} {END}"));
    }

    #[test]
    fn a_request_that_was_not_parsed_has_hyphens_or_lacks_the_fields() {
        let entry = AccessLogEntry { method: None, path: None, ..entry() };
        assert_eq!(text(&entry), format!("{START}- - 200 1.3 ms user=- {END}"));
        assert!(!json(&entry).contains("method") && !json(&entry).contains("path"));
    }

    #[test]
    fn no_part_of_a_request_begins_another_line() {
        let entry = AccessLogEntry { path: Some("/a\r\nb\u{85}"), ..entry() };
        assert!(text(&entry).contains(r"/a\r\nb\u{85} 200"), "{}", text(&entry));
        assert!(json(&entry).contains(r#""/a\r\nb"#), "{}", json(&entry));
    }

    #[test]
    fn a_line_of_json_has_the_same_fields() {
        let line = concat!(
            r#"{"timestamp":"2026-01-02T03:04:05.000006Z","level":"INFO","target":"cloakroom::access","#,
            r#""message":"request","method":"GET","path":"/a","status":404,"ms":1.251,"error":"Not Found","#,
            r#""user":"-","client":"::1","request_id":"00000000-0000-0000-0000-000000000007"}"#,
            "\n"
        );
        assert_eq!(
            json(&AccessLogEntry { status: 404, error: Some("Not Found"), ..entry() }),
            line
        );
    }
}
