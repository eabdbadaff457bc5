//! One log line for each request. It holds no query values, tokens, keys, passwords or e-mail addresses.

use std::net::IpAddr;
use std::time::Duration;

use uuid::Uuid;

/// Longest path that is logged, bytes.
const MAX_PATH: usize = 200;

/// What the line tells.
pub struct Line<'a> {
    /// The value of `X-Request-ID`.
    pub id: Uuid,
    /// The method as sent.
    pub method: &'a str,
    /// The path as sent, without the query.
    pub path: &'a str,
    pub status: u16,
    /// From the head to the response, before that is sent.
    pub duration: Duration,
    /// The signed-in user.
    pub user: Option<Uuid>,
    pub client: IpAddr,
}

pub fn write(line: &Line) {
    let path = line.path.get(..MAX_PATH).unwrap_or(line.path);
    // A client may have put an e-mail address where an id belongs.
    let path = if path.contains('@') || path.contains("%40") { "(not logged)" } else { path };
    let millis = line.duration.as_micros() as f64 / 1000.0;
    let user = line.user.map_or_else(|| "-".to_owned(), |id| id.to_string());
    log::info!(
        target: "cloakroom::access",
        request_id:% = line.id, method = line.method, path = path, status = line.status, ms = millis,
        user = user.as_str(), client:% = line.client;
        "request"
    );
}
