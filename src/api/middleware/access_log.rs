//! One line a request (contract, 3): no query values, tokens, keys, passwords or e-mail addresses.

use std::net::IpAddr;
use std::time::Duration;

use uuid::Uuid;

/// Longest path that is logged, bytes.
const MAX_PATH: usize = 200;

/// What the line says.
pub struct Line<'a> {
    /// `X-Request-ID`.
    pub id: Uuid,
    /// The method, as sent.
    pub method: &'a str,
    /// The path, as sent, without the query.
    pub path: &'a str,
    /// Status of the answer.
    pub status: u16,
    /// From head to answer.
    pub took: Duration,
    /// The signed-in user.
    pub user: Option<Uuid>,
    /// The client's address.
    pub client: IpAddr,
}

/// Writes the line.
pub fn write(line: &Line) {
    let path = line.path.get(..MAX_PATH).unwrap_or(line.path);
    // Someone may put an address where an id belongs.
    let path = if path.contains('@') || path.contains("%40") { "(not logged)" } else { path };
    let millis = line.took.as_micros() as f64 / 1000.0;
    let user = line.user.map_or_else(|| "-".to_owned(), |id| id.to_string());
    log::info!(
        target: "cloakroom::access",
        request_id:% = line.id, method = line.method, path = path, status = line.status, ms = millis,
        user = user.as_str(), client:% = line.client;
        "request"
    );
}
