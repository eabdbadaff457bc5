//! The parts of a request that the access log may show: no query values, tokens, keys, passwords or e-mail addresses.

use percent_encoding::percent_decode_str;

use crate::auth::PERSONAL_TOKEN_PREFIX;

/// Longest part of a path that is logged, in bytes.
const MAX_PATH: usize = 200;
/// Longest part of a method that is logged, in bytes. All registered methods are shorter.
const MAX_METHOD: usize = 20;
/// The fewest characters of base64url, upper and lower case among them, that are taken for a token wherever they stand
/// in a path. Ids have 36.
const TOKEN_LENGTH: usize = 40;

/// Stands in place of a path that is not logged.
const NOT_LOGGED: &str = "(not-logged)";
/// Where links are, and what stands in the log in place of their tokens.
const LINKS: &str = "/api/v1/links/";
const LINK_NOT_LOGGED: &str = "/api/v1/links/(not-logged)";

/// The method, cut to [`MAX_METHOD`].
pub fn loggable_method(method: &str) -> &str {
    &method[..method.floor_char_boundary(MAX_METHOD)]
}

/// The path, cut to [`MAX_PATH`]. What seems to hold an e-mail address or a token is replaced, and so is a link to a
/// file, whether or not an endpoint has its path: a mistyped link is still a secret. `has_ids` says that an endpoint
/// has the path, and that its parameters are ids: then what stands after `links/` is the id of a link.
pub fn loggable_path(path: &str, has_ids: bool) -> &str {
    let decoded = percent_decode_str(path.strip_suffix('/').unwrap_or(path)).decode_utf8_lossy();
    let names_link = !has_ids && decoded.to_ascii_lowercase().contains("links/");
    if names_link && decoded.starts_with(LINKS) {
        LINK_NOT_LOGGED
    } else if names_link || is_private(&decoded) {
        NOT_LOGGED
    } else {
        // Only now, because a part of a token does not look like one.
        &path[..path.floor_char_boundary(MAX_PATH)]
    }
}

/// Whether a client seems to have put an e-mail address or a token into the path. Signed tokens begin with an encoded
/// brace, which is `ey`.
fn is_private(path: &str) -> bool {
    let is_token = |part: &str| part.starts_with(PERSONAL_TOKEN_PREFIX) || part.starts_with("ey");
    let is_digit = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_random = |part: &str| {
        part.len() >= TOKEN_LENGTH
            && part.contains(|c: char| c.is_ascii_uppercase())
            && part.contains(|c: char| c.is_ascii_lowercase())
    };
    path.contains('@')
        || path.split('/').any(is_token)
        || path.split(|c| !is_digit(c)).any(is_random)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    #[test]
    fn no_part_of_a_link_is_logged_however_it_is_written() {
        let token = "q8Jf0dYw-2LkTz7_RbXc5vNmHs3GpEa9UiVo1x4KtBy";
        let id = "11d8d66a-4d13-4a2e-8da9-fdfeee782a50";
        for (path, expected) in [
            (format!("/api/v1/links/{token}"), LINK_NOT_LOGGED),
            (format!("/api/v1/links/{token}/"), LINK_NOT_LOGGED),
            (format!("/api/v1/links/{token}/more"), LINK_NOT_LOGGED),
            (format!("/api/v1/links/{token}/files"), LINK_NOT_LOGGED),
            (format!("/api/v1/links/{}", &token[..7]), LINK_NOT_LOGGED),
            (format!("/api/v1/%6Cinks/{token}"), LINK_NOT_LOGGED),
            (format!("/api/v1/links%2F{}", &token[..7]), LINK_NOT_LOGGED),
            (format!("/api/v1/links/{id}/{}", &token[..7]), LINK_NOT_LOGGED),
            (format!("/API/V1/LINKS/{}", &token[..7]), NOT_LOGGED),
            (format!("//api/v1/links/{}", &token[..7]), NOT_LOGGED),
            (format!("/links/{}", &token[..7]), NOT_LOGGED),
            (format!("/api/v1/links%252F{token}"), NOT_LOGGED),
            (format!("/api/v1/link/{token}"), NOT_LOGGED),
            (format!("/{token}"), NOT_LOGGED),
            (format!("/{}/{token}", "x".repeat(MAX_PATH - 30)), NOT_LOGGED),
        ] {
            assert_eq!(loggable_path(&path, false), expected, "{path}");
        }
        for path in [
            format!("/api/v1/uploads/{id}/links/{id}"),
            format!("/api/v1/uploads/{id}/links/{id}/"),
        ] {
            assert_eq!(loggable_path(&path, true), path);
            assert_eq!(loggable_path(&path, false), NOT_LOGGED);
        }
        for path in [
            format!("/api/v1/uploads/{id}/links"),
            "/api/v1/links/".to_owned(),
            "/api/v1/auth/request-password-reset".to_owned(),
            format!("/{}", "a-long-path-of-words/".repeat(9)),
            format!("/{}", "x".repeat(150)),
        ] {
            assert_eq!(loggable_path(&path, false), path);
        }
    }

    #[test]
    fn fuzz_paths_of_links() {
        fuzz::check("links", |input| {
            let Some((random, text)) = input.split_first_chunk::<32>() else { return };
            let token = URL_SAFE_NO_PAD.encode(random);
            let text = String::from_utf8_lossy(text);
            let (before, after) = text.split_once('\0').unwrap_or((&text, ""));
            let path = format!("{before}{token}{after}");
            let logged = loggable_path(&path, false);
            // Two digits may belong to a percent sign before them.
            let is_mixed = token[2..].contains(|c: char| c.is_ascii_lowercase())
                && token[2..].contains(|c: char| c.is_ascii_uppercase());
            if path.starts_with(LINKS) || is_mixed {
                let mut parts = token.as_bytes().windows(7).map(String::from_utf8_lossy);
                assert!(!parts.any(|part| logged.contains(&*part)), "{logged}");
            }
        });
    }
}
