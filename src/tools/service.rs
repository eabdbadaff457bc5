//! Asks the running service how it is, as a client on this host: what it sees from inside the sandbox of its unit may
//! differ from what a command sees.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use time::OffsetDateTime;

use super::findings::{Findings, Level};
use super::quantity::age;
use super::unit::Unit;
use crate::config::Config;
use crate::model::timestamp::Timestamp;

/// The longest wait for an answer. The service itself waits up to 3 s for the database.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The longest answer that is read. The metrics take some hundred KiB.
const MAX_BYTES: usize = 4 << 20;

/// Reports whether the service answers, since when, and what it lacks. That nothing answers is as bad as `unanswered`
/// says; `unit` is what systemd knows of the service.
pub fn judge(findings: &mut Findings, config: &Config, unit: Option<&Unit>, unanswered: Level) {
    let address = unit.and_then(|unit| unit.socket).unwrap_or(config.listen);
    if address.port() == 0 {
        let text = "service: not asked, because CLOAKROOM_LISTEN leaves the port open";
        let level = if unanswered == Level::Fault { Level::Warning } else { Level::Ok };
        return findings.report(level, text, "");
    }
    let address = reachable(address);
    let url = format!("http://{address}");
    match get(address, "/readyz") {
        Ok((200, body)) if body.contains(r#""degraded""#) => judge_degraded(findings, &url, &body),
        Ok((200, _)) => findings.ok(format_args!("service: {} at {url}, ready", version(address))),
        Ok((503, _)) => findings.fault(
            format_args!("service: {} at {url}, without a database", version(address)),
            "It answers requests that need the database with 503, and goes on by itself once that is back.",
        ),
        Ok((status, _)) => findings.fault(
            format_args!("service: {url}/readyz is answered with {status}"),
            "That is another program, or a proxy: check CLOAKROOM_LISTEN.",
        ),
        Err(error) => {
            let state = unit.map_or(String::new(), |unit| format!("; {}", unit.description()));
            let has_failed = unit.is_some_and(Unit::has_failed);
            findings.report(
                if has_failed { Level::Fault } else { unanswered },
                format_args!("service: nothing answers at {url}: {error}{state}"),
                "`systemctl start cloakroom` starts it, and `journalctl -u cloakroom -p err` says what ended it.",
            );
        }
    }
}

fn judge_degraded(findings: &mut Findings, url: &str, body: &str) {
    let mut is_known = false;
    for (reason, text, advice) in [
        (
            "DATABASE_REFUSES_CHANGES",
            "the database takes no changes",
            "It is a standby, was made read-only, or has no disk space left: look at its log.",
        ),
        (
            "DATA_DIRECTORY_REFUSES_CONTENTS",
            "its data directory takes no files",
            "`journalctl -u cloakroom -p err` has the cause. If there is room, the unit may not write there: \
             `systemctl edit cloakroom` with ReadWritePaths= for the directory.",
        ),
        (
            "STORE_UNAVAILABLE",
            "its store does not serve contents",
            "`journalctl -u cloakroom -p err` has the cause.",
        ),
    ] {
        if body.contains(reason) {
            is_known = true;
            findings.fault(format_args!("service: {url} is up, but {text}"), advice);
        }
    }
    if !is_known {
        findings.fault(
            format_args!("service: {url} is up, but degraded"),
            "`curl` of its /readyz has the reasons, which this version does not know: it may be another one's.",
        );
    }
}

/// The version of the service and its start, as far as `CLOAKROOM_METRICS` lets this host read them.
fn version(address: SocketAddr) -> String {
    let metrics = get(address, "/metrics").map(|(_, body)| body).unwrap_or_default();
    let value = |name: &str| metrics.lines().find_map(|line| line.strip_prefix(name));
    let version = value("cloakroom_build_info{version=\"").and_then(|rest| rest.split_once('"'));
    let started = value("process_start_time_seconds ").and_then(|text| text.parse::<f64>().ok());
    let started = started.and_then(|at| OffsetDateTime::from_unix_timestamp(at as i64).ok());
    match version.zip(started) {
        Some(((version, _), started)) => {
            let running = Duration::try_from(OffsetDateTime::now_utc() - started);
            let running = age(running.unwrap_or_default());
            // To the second.
            let since = Timestamp(started).text().replace(".000000", "");
            format!("version {version} since {since} ({running})")
        }
        None => "up (CLOAKROOM_METRICS hides the version)".to_owned(),
    }
}

/// Where a client on this host reaches a server that listens on `address`, which may stand for all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The status and the body of an answer. HTTP/1.0, so that the body ends with the connection and has no chunks.
fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let deadline = Instant::now() + MAX_WAIT;
    let mut stream = TcpStream::connect_timeout(&address, MAX_WAIT)?;
    stream.set_write_timeout(Some(MAX_WAIT))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let (mut answer, mut part) = (Vec::new(), [0; 16 * 1024]);
    while answer.len() < MAX_BYTES {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => break,
            length => answer.extend_from_slice(&part[..length]),
        }
    }
    let text = String::from_utf8_lossy(&answer);
    let status = text.get(9..12).and_then(|status| status.parse().ok());
    let status = status.filter(|_| text.starts_with("HTTP/1."));
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    status.zip(body).ok_or_else(|| io::Error::other("the answer is not HTTP"))
}
