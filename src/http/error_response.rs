//! The responses to failed requests.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::response::{Response, names_of_status};
use crate::config::ErrorFormat;
use crate::error::{Error, FieldError, TokenProblem};
use crate::model::timestamp::Timestamp;

/// What browsers show for a link that has ended. The policy allows nothing but its style, of which it has the hash.
const ENDED_LINK: &str = include_str!("ended_link.html");
const ENDED_LINK_POLICY: &str = "sandbox; default-src 'none'; frame-ancestors 'none'; \
    style-src 'sha256-DrKXWYqPkYTnc2CBQvozT2xE+A1Hn27hZiRkLkIlKEw='";

/// The response to a failed request, with a body in the configured format. A person who opens a link gets a page.
pub fn error_response(error: &Error, format: ErrorFormat, now: Timestamp) -> Response {
    if matches!(error, Error::LinkEnded { takes_html: true }) {
        return Response::new(error.status(), "text/html; charset=utf-8", ENDED_LINK.as_bytes())
            .with_header("Content-Security-Policy", ENDED_LINK_POLICY)
            .with_header("Vary", "Accept");
    }
    with_headers(error, &error_body(error, format, now))
}

/// The response to a failed request for tokens by form. In the `detail` format the body also has the members that
/// clients of OAuth 2.0 show (RFC 6749, 5.2).
pub fn grant_error_response(error: &Error, format: ErrorFormat, now: Timestamp) -> Response {
    let mut body = error_body(error, format, now);
    let word = match error {
        Error::Invalid(_) | Error::RefreshTokenRequired => "invalid_request",
        Error::BadCredentials { .. } | Error::InactiveAccount => "invalid_grant",
        Error::SecondFactorRequired { .. } | Error::InvalidCode { .. } => "invalid_grant",
        Error::InvalidToken(_) | Error::UserNotUsable => "invalid_grant",
        _ => "",
    };
    if format == ErrorFormat::Detail && !word.is_empty() {
        body["error"] = word.into();
        body["error_description"] = error.message().into();
    }
    with_headers(error, &body)
}

/// A response with this body and the headers of the error.
fn with_headers(error: &Error, body: &Value) -> Response {
    let status = error.status();
    let response = Response::new(status, "application/json", body.to_string().into_bytes());
    match error {
        Error::MethodNotAllowed(allow) => response.with_header("Allow", allow.clone()),
        Error::RateLimited { retry_after, .. } => response
            .with_header("Retry-After", retry_after.to_string())
            .with_header("X-RateLimit-Retry-After", retry_after.to_string()),
        Error::LinkEnded { .. } => response.with_header("Vary", "Accept"),
        #[cfg(feature = "extras")]
        Error::Partial(it) => it.headers().fold(response, |all, (n, v)| all.with_header(n, v)),
        // In a response it says which codings requests may have (RFC 7694).
        Error::EncodingNotSupported => response.with_header("Accept-Encoding", "identity"),
        Error::RangeNotSatisfiable(length) => {
            response.with_header("Content-Range", format!("bytes */{length}"))
        }
        Error::Unavailable
        | Error::StoreUnavailable
        | Error::ProviderUnavailable
        | Error::OutcomeUnknown => response.with_header("Retry-After", "5"),
        _ if status == 401 => response.with_header("WWW-Authenticate", challenge(error)),
        _ => response,
    }
}

/// The value of `WWW-Authenticate`. If the request has a token, it says why the token is not accepted (RFC 6750, 3).
fn challenge(error: &Error) -> Cow<'static, str> {
    match error.token_problem().map(TokenProblem::description) {
        None => "Bearer".into(),
        Some(problem) => {
            format!("Bearer error=\"invalid_token\", error_description=\"{problem}\"").into()
        }
    }
}

/// The code in the body of an error: the word for its status, but for those that tell a client to ask its user for a
/// code of the second factor.
pub fn code(error: &Error) -> &'static str {
    match error {
        Error::SecondFactorRequired { .. } => "SECOND_FACTOR_REQUIRED",
        Error::InvalidCode { .. } => "SECOND_FACTOR_INVALID",
        _ => names_of_status(error.status()).1,
    }
}

/// The body of an error. Its hint is absent if there is none.
fn error_body(error: &Error, format: ErrorFormat, now: Timestamp) -> Value {
    let code = code(error);
    let reason = error.reason();
    let message = error.message();
    let hint = error.hint();
    let errors = match error {
        Error::Invalid(errors) => Some(errors.as_slice()),
        _ => None,
    };
    let mut body = match (format, errors) {
        (ErrorFormat::Envelope, _) => {
            // The hint is one more element of the list. So `details` has the same type with field errors and without.
            let mut details = errors.map(error_list).unwrap_or_default();
            details.extend(hint.map(|hint| json!({ "hint": hint })));
            let details = (!details.is_empty()).then_some(details);
            return json!({ "error": {
                "code": code, "reason": reason, "message": message, "details": details, "timestamp": now,
            } });
        }
        (ErrorFormat::Detail, None) => {
            json!({ "detail": message, "error_code": code, "reason": reason })
        }
        (ErrorFormat::Detail, Some(errors)) => json!({
            "detail": error_list(errors),
            "error_code": code,
            "reason": reason,
            "field_errors": messages_by_field(errors),
        }),
    };
    if let Some(hint) = hint {
        body["hint"] = hint.into();
    }
    body
}

/// One object for each field error, in the form of FastAPI, which many clients know.
fn error_list(errors: &[FieldError]) -> Vec<Value> {
    let entry = |error: &FieldError| {
        let loc: Vec<&str> = std::iter::once(error.location.name()).chain(error.field).collect();
        json!({ "loc": loc, "msg": error.problem.message, "type": error.problem.kind })
    };
    errors.iter().map(entry).collect()
}

/// The messages for each field. A problem with the whole body stands under the name of its location, `body`.
fn messages_by_field(errors: &[FieldError]) -> BTreeMap<&str, Vec<&str>> {
    let mut by_field: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for error in errors {
        let field = error.field.unwrap_or(error.location.name());
        by_field.entry(field).or_default().push(&error.problem.message);
    }
    by_field
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_of_the_page_about_ended_links_has_the_hash_of_its_style() {
        let (_, style) = ENDED_LINK.split_once("<style>").expect("a style");
        let (style, _) = style.split_once("</style>").expect("its end");
        let hash = STANDARD.encode(Sha256::digest(style));
        assert!(ENDED_LINK_POLICY.ends_with(&format!("style-src 'sha256-{hash}'")), "{hash}");
    }
}
