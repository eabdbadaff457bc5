//! The access log: one line on standard error for each request. Its lines do not go through `log`, because that would
//! pass each part through a trait object before it is written, for every request.

use std::io::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;
use uuid::Uuid;

use super::logging::escape_controls;
use crate::config::LogFormat;
use crate::model::timestamp::Timestamp;

/// The module under whose name the lines are switched on and off by the level of the log.
const TARGET: &str = "cloakroom::access";

/// A line has this many bytes or less, unless its path is long.
const USUAL_LENGTH: usize = 320;

/// What is logged about a request.
pub struct AccessLogEntry<'a> {
    /// The method as the client sent it. `None`, like the path, if the head was refused before it was parsed.
    pub method: Option<&'a str>,
    /// The path as the client sent it, without the query.
    pub path: Option<&'a str>,
    pub status: u16,
    /// From the end of the head until the response is ready to be sent.
    pub duration: Duration,
    /// What the client was told was wrong.
    pub error: Option<&'a str>,
    /// The account that the request comes from or tries to sign in to.
    pub user: Option<Uuid>,
    pub client: IpAddr,
    /// The value of `X-Request-ID`.
    pub id: Uuid,
}

/// Writes the entry, unless the level of the log is above `info`.
pub fn write(entry: &AccessLogEntry, format: LogFormat) {
    if !log::log_enabled!(target: TARGET, log::Level::Info) {
        return;
    }
    let mut line = Vec::with_capacity(USUAL_LENGTH);
    let written = match format {
        LogFormat::Text => write_text(&mut line, entry, Timestamp::now()),
        LogFormat::Json => write_json(&mut line, entry, Timestamp::now()),
    };
    // Without a place to write to there is nobody to tell. One write keeps the lines of several threads apart.
    let _ = written.and_then(|()| io::stderr().lock().write_all(&line));
}

/// Writes `timestamp LEVEL method path status duration "error" user=... client=... request_id=...`. The error is left
/// out if there is none, and other parts that are not known are a hyphen.
fn write_text(out: &mut Vec<u8>, entry: &AccessLogEntry, now: Timestamp) -> io::Result<()> {
    out.extend(now.bytes());
    let method = escape_controls(entry.method.unwrap_or("-"));
    let path = escape_controls(entry.path.unwrap_or("-"));
    let tenths = (entry.duration.as_micros() + 50) / 100;
    write!(out, " INFO  {method} {path} {} {}.{} ms", entry.status, tenths / 10, tenths % 10)?;
    if let Some(error) = entry.error {
        write!(out, " {error:?}")?;
    }
    match entry.user {
        Some(user) => write!(out, " user={user}")?,
        None => out.extend(b" user=-"),
    }
    writeln!(out, " client={} request_id={}", entry.client, entry.id)
}

/// The fields of a line as JSON, in this order. The first four are those of all other log lines.
#[derive(Serialize)]
struct JsonLine<'a> {
    timestamp: Timestamp,
    level: &'static str,
    target: &'static str,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    status: u16,
    /// In thousandths.
    ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    user: JsonUser,
    client: IpAddr,
    request_id: Uuid,
}

/// The field `user`.
#[derive(Serialize)]
#[serde(untagged)]
enum JsonUser {
    Known(Uuid),
    Unknown(&'static str),
}

/// Writes one JSON object with the parts of the text form as fields.
fn write_json(out: &mut Vec<u8>, entry: &AccessLogEntry, now: Timestamp) -> io::Result<()> {
    let line = JsonLine {
        timestamp: now,
        level: "INFO",
        target: TARGET,
        message: "request",
        method: entry.method,
        path: entry.path,
        status: entry.status,
        ms: entry.duration.as_micros() as f64 / 1000.0,
        error: entry.error,
        user: entry.user.map_or(JsonUser::Unknown("-"), JsonUser::Known),
        client: entry.client,
        request_id: entry.id,
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.push(b'\n');
    Ok(())
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
        let mut line = Vec::new();
        assert!(write_text(&mut line, entry, NOW).is_ok());
        String::from_utf8_lossy(&line).into_owned()
    }

    fn json(entry: &AccessLogEntry) -> String {
        let mut line = Vec::new();
        assert!(write_json(&mut line, entry, NOW).is_ok());
        String::from_utf8_lossy(&line).into_owned()
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
