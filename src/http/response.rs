//! The responses of handlers, and the responses to failed requests.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::status::error_code;
use crate::config::ErrorFormat;
use crate::error::{Error, FieldError, TokenProblem};
use crate::model::timestamp::Timestamp;

/// A status, headers and a body that may be a stream.
pub type Response = rouille::Response;

/// A response with `body` as JSON.
pub fn json<T: Serialize>(status: u16, body: &T) -> Result<Response, Error> {
    let bytes = serde_json::to_vec(body).map_err(|e| Error::Internal(format!("response: {e}")))?;
    Ok(Response::from_data("application/json", bytes).with_status_code(status))
}

/// The body of a response that only says what was done.
#[derive(Serialize, JsonSchema)]
pub struct Message {
    /// A message for people.
    message: &'static str,
}

/// 200 with a sentence for people, as `{"message": text}`.
pub fn message(message: &'static str) -> Result<Response, Error> {
    json(200, &Message { message })
}

/// The body of the response to a probe.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Status")]
pub struct StatusText {
    status: &'static str,
}

/// 200 with `{"status": text}`.
pub fn status(status: &'static str) -> Result<Response, Error> {
    json(200, &StatusText { status })
}

/// 204.
pub fn no_content() -> Response {
    Response::empty_204()
}

/// A response whose body of `length` bytes is read while it is sent.
pub fn stream(status: u16, body: impl Read + Send + 'static, length: u64) -> Response {
    Response {
        status_code: status,
        headers: Vec::new(),
        data: rouille::ResponseBody::from_reader_and_size(body, length as usize),
        upgrade: None,
    }
}

/// 200 with a body of unknown length that browsers save under `filename`, which must be a token (RFC 9110, 5.6.2). The
/// body is read while it is sent, as fast as the client takes it.
pub fn attachment(
    content_type: &'static str,
    filename: &str,
    body: impl Read + Send + 'static,
) -> Response {
    let disposition = format!("attachment; filename={filename}");
    Response {
        status_code: 200,
        headers: vec![
            ("Content-Type".into(), content_type.into()),
            ("Content-Disposition".into(), disposition.into()),
        ],
        data: rouille::ResponseBody::from_reader(body),
        upgrade: None,
    }
}

/// Fails if a header contains a control character other than a tab. Line ends in a value would let it add headers or
/// even a second response. The builtin server would send them, and the `rouille` server would silently drop the header.
pub fn check_headers(response: Response) -> Result<Response, Error> {
    let is_forbidden = |c: char| c.is_control() && c != '\t';
    if response
        .headers
        .iter()
        .any(|(name, value)| name.contains(is_forbidden) || value.contains(is_forbidden))
    {
        return Err(Error::Internal(format!("a control character in a header of {response:?}")));
    }
    Ok(response)
}

/// The response to a failed request, with a body in the configured format.
pub fn error(error: &Error, format: ErrorFormat, now: Timestamp) -> Response {
    let status = error.status();
    let body = error_body(error, format, now).to_string();
    let response = Response::from_data("application/json", body).with_status_code(status);
    match error {
        Error::MethodNotAllowed(allow) => response.with_unique_header("Allow", allow.clone()),
        Error::RateLimited { retry_after, .. } => response
            .with_unique_header("Retry-After", retry_after.to_string())
            .with_unique_header("X-RateLimit-Retry-After", retry_after.to_string()),
        Error::RangeNotSatisfiable(length) => {
            response.with_unique_header("Content-Range", format!("bytes */{length}"))
        }
        Error::Unavailable | Error::OutcomeUnknown => {
            response.with_unique_header("Retry-After", "5")
        }
        _ if status == 401 => response.with_unique_header("WWW-Authenticate", challenge(error)),
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

/// The body of an error. Its hint is absent if there is none.
pub fn error_body(error: &Error, format: ErrorFormat, now: Timestamp) -> Value {
    let (code, message, hint) = (error_code(error.status()), error.message(), error.hint());
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
            return json!({"error": {"code": code, "message": message, "details": details, "timestamp": now}});
        }
        (ErrorFormat::Detail, None) => json!({ "detail": message, "error_code": code }),
        (ErrorFormat::Detail, Some(errors)) => json!({
            "detail": error_list(errors),
            "error_code": code,
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
mod tests {
    use super::*;

    #[test]
    fn a_header_that_could_split_a_response_is_an_internal_error() {
        for value in ["a\rb", "a\nb", "a\r\nSet-Cookie: b", "a\0b"] {
            let response = no_content().with_additional_header("X-Name", value);
            assert!(matches!(check_headers(response), Err(Error::Internal(_))), "{value:?}");
        }
        let response = no_content().with_additional_header("X-Name", "a\tb \u{e9}");
        assert!(check_headers(response).is_ok());
    }
}
