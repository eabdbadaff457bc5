//! The responses of handlers, and the responses to failed requests.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::file_range::FileRange;
use super::status::error_code;
use crate::config::ErrorFormat;
use crate::error::{Error, FieldError, TokenProblem};
use crate::model::timestamp::Timestamp;

/// A response as both servers can send it. It is not `rouille`'s, because that hides what its body is, and a file can
/// be sent without reading it.
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names and values, in the order in which they are sent. The servers add those that depend on the connection,
    /// such as `Content-Length` and `Date`.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// What follows the headers.
    pub body: ResponseBody,
}

/// The body of a response.
pub enum ResponseBody {
    /// A body in memory, or none.
    Bytes(Cow<'static, [u8]>),
    /// A part of a file, which is read while it is sent.
    File(FileRange),
    /// A body of unknown length.
    Batches(BatchedBody),
}

/// A body of which each batch is made once the one before has been sent. No batch should be longer than a few
/// megabytes.
pub struct BatchedBody(Box<dyn FnMut() -> Result<Option<Vec<u8>>, Error> + Send>);

impl BatchedBody {
    /// Makes the next batch; `None` is the end. A failure is logged, and the transfer must end without its last chunk
    /// then, so that no client takes a part for the whole.
    pub fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        (self.0)().map_err(|error| {
            log::error!("an export broke off: {}", error.cause());
            io::Error::other("the export broke off")
        })
    }
}

impl Response {
    /// A response with a body in memory.
    pub fn new(
        status: u16,
        content_type: &'static str,
        body: impl Into<Cow<'static, [u8]>>,
    ) -> Response {
        let headers = vec![("Content-Type", content_type.into())];
        Response { status, headers, body: ResponseBody::Bytes(body.into()) }
    }

    /// A response with an empty body, or with none if `status` is one that has none, such as 204.
    pub fn empty(status: u16) -> Response {
        let body = ResponseBody::Bytes(Cow::Borrowed(b""));
        Response { status, headers: Vec::new(), body }
    }

    /// The response with one more header.
    pub fn with_header(
        mut self,
        name: &'static str,
        value: impl Into<Cow<'static, str>>,
    ) -> Response {
        self.add_header(name, value);
        self
    }

    /// Adds a header after the others.
    pub fn add_header(&mut self, name: &'static str, value: impl Into<Cow<'static, str>>) {
        self.headers.push((name, value.into()));
    }
}

/// Capacity of the buffer of a JSON body, in bytes. Most bodies fit. For a block of 1 KiB or more, glibc first merges
/// the small ones that are free; and 64 connections leave half a mebibyte less behind than with 16 KiB.
const JSON_CAPACITY: usize = 1000;

/// A response with `body` as JSON.
pub fn json<T: Serialize>(status: u16, body: &T) -> Result<Response, Error> {
    let mut bytes = Vec::with_capacity(JSON_CAPACITY);
    serde_json::to_writer(&mut bytes, body)
        .map_err(|e| Error::Internal(format!("response: {e}")))?;
    Ok(Response::new(status, "application/json", bytes))
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
    Response::empty(204)
}

/// 200 with a body of unknown length that browsers save under `filename`, which must be a token (RFC 9110, 5.6.2). The
/// body begins with `first`, and `next` makes one batch after the other, as fast as the client takes them, until
/// `None`.
pub fn attachment(
    content_type: &'static str,
    filename: &str,
    first: Vec<u8>,
    mut next: impl FnMut() -> Result<Option<Vec<u8>>, Error> + Send + 'static,
) -> Response {
    let mut first = Some(first);
    let batches = move || first.take().map_or_else(&mut next, |first| Ok(Some(first)));
    let body = ResponseBody::Batches(BatchedBody(Box::new(batches)));
    Response { status: 200, headers: Vec::new(), body }
        .with_header("Content-Type", content_type)
        .with_header("Content-Disposition", format!("attachment; filename={filename}"))
}

/// Fails if the value of a header contains a control character other than a tab. Line ends in a value would let it add
/// headers or even a second response. The builtin server would send them, and the `rouille` server would silently drop
/// the header.
pub fn check_headers(response: Response) -> Result<Response, Error> {
    let is_forbidden = |c: char| c.is_control() && c != '\t';
    match response.headers.iter().find(|(_, value)| value.contains(is_forbidden)) {
        Some((name, _)) => {
            Err(Error::Internal(format!("a control character in the header {name}")))
        }
        None => Ok(response),
    }
}

/// The response to a failed request, with a body in the configured format.
pub fn error(error: &Error, format: ErrorFormat, now: Timestamp) -> Response {
    let status = error.status();
    let body = error_body(error, format, now).to_string();
    let response = Response::new(status, "application/json", body.into_bytes());
    match error {
        Error::MethodNotAllowed(allow) => response.with_header("Allow", allow.clone()),
        Error::RateLimited { retry_after, .. } => response
            .with_header("Retry-After", retry_after.to_string())
            .with_header("X-RateLimit-Retry-After", retry_after.to_string()),
        Error::RangeNotSatisfiable(length) => {
            response.with_header("Content-Range", format!("bytes */{length}"))
        }
        Error::Unavailable | Error::OutcomeUnknown => response.with_header("Retry-After", "5"),
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
            let response = no_content().with_header("X-Name", value);
            assert!(matches!(check_headers(response), Err(Error::Internal(_))), "{value:?}");
        }
        let response = no_content().with_header("X-Name", "a\tb \u{e9}");
        assert!(check_headers(response).is_ok());
    }
}
