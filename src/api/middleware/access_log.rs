//! The access log: one line for each request, without query values, tokens, keys, passwords and e-mail addresses.

use std::net::IpAddr;
use std::time::Duration;

use uuid::Uuid;

use crate::auth::personal_token;

/// Longest part of a path that is logged, in bytes.
const MAX_PATH: usize = 200;

/// What is logged about a request.
pub struct AccessLogEntry<'a> {
    /// The method as the client sent it.
    pub method: &'a str,
    /// The path as the client sent it, without the query.
    pub path: &'a str,
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

/// Writes the entry.
pub fn write(entry: &AccessLogEntry) {
    let path = entry.path.get(..MAX_PATH).unwrap_or(entry.path);
    let path = if is_private(path) { "(not logged)" } else { path };
    let millis = entry.duration.as_micros() as f64 / 1000.0;
    let user = entry.user.map_or_else(|| "-".to_owned(), |id| id.to_string());
    log::info!(
        target: "cloakroom::access",
        method = entry.method, path = path, status = entry.status, ms = millis, error = entry.error.unwrap_or(""),
        user = user.as_str(), client:% = entry.client, request_id:% = entry.id;
        "request"
    );
}

/// Whether a client seems to have put an e-mail address or a token in place of an id. Signed tokens begin with an
/// encoded brace, which is `ey`.
fn is_private(path: &str) -> bool {
    let is_token = |part: &str| personal_token::is_personal(part) || part.starts_with("ey");
    path.contains('@') || path.contains("%40") || path.split('/').any(is_token)
}
