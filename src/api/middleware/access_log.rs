//! The parts of a request that the access log may show: no query values, tokens, keys, passwords or e-mail addresses.

use crate::auth::personal_token;

/// Longest part of a path that is logged, in bytes.
const MAX_PATH: usize = 200;
/// Longest part of a method that is logged, in bytes. All registered methods are shorter.
const MAX_METHOD: usize = 20;

/// The method, cut to [`MAX_METHOD`].
pub fn loggable_method(method: &str) -> &str {
    &method[..method.floor_char_boundary(MAX_METHOD)]
}

/// The path, cut to [`MAX_PATH`]. One that seems to hold an e-mail address or a token is replaced.
pub fn loggable_path(path: &str) -> &str {
    let path = &path[..path.floor_char_boundary(MAX_PATH)];
    if is_private(path) { "(not-logged)" } else { path }
}

/// Whether a client seems to have put an e-mail address or a token in place of an id. Signed tokens begin with an
/// encoded brace, which is `ey`.
fn is_private(path: &str) -> bool {
    let is_token = |part: &str| personal_token::is_personal(part) || part.starts_with("ey");
    path.contains('@') || path.contains("%40") || path.split('/').any(is_token)
}
