//! The access log, without query values, tokens, keys, passwords and e-mail addresses.

use crate::auth::personal_token;
use crate::config::LogFormat;
use crate::telemetry::access_log::{self, AccessLogEntry};

/// Longest part of a path that is logged, in bytes.
const MAX_PATH: usize = 200;
/// Longest part of a method that is logged, in bytes. All registered methods are shorter.
const MAX_METHOD: usize = 20;

/// Writes the entry, whose method and path are as the client sent them, unless they are not to be logged.
pub fn write(entry: &AccessLogEntry, format: LogFormat) {
    let method = entry.method.map(|method| beginning(method, MAX_METHOD));
    let path = entry.path.map(|path| match beginning(path, MAX_PATH) {
        path if is_private(path) => "(not-logged)",
        path => path,
    });
    access_log::write(&AccessLogEntry { method, path, ..*entry }, format);
}

/// The longest beginning of a text that has at most `max` bytes.
fn beginning(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Whether a client seems to have put an e-mail address or a token in place of an id. Signed tokens begin with an
/// encoded brace, which is `ey`.
fn is_private(path: &str) -> bool {
    let is_token = |part: &str| personal_token::is_personal(part) || part.starts_with("ey");
    path.contains('@') || path.contains("%40") || path.split('/').any(is_token)
}
