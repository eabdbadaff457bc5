//! The responses of handlers, and the bodies of errors.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Serialize;
use serde_json::{Value, json};

use super::status;
use crate::config::ErrorFormat;
use crate::error::{Error, FieldError};
use crate::model::timestamp::Timestamp;

/// A status, headers and a body that may be a stream.
pub type Response = rouille::Response;

/// A response with `body` as JSON.
pub fn json<T: Serialize>(status: u16, body: &T) -> Result<Response, Error> {
    let bytes = serde_json::to_vec(body).map_err(|e| Error::Internal(format!("response: {e}")))?;
    Ok(Response::from_data("application/json", bytes).with_status_code(status))
}

/// 200 with one sentence for people.
pub fn message(text: &str) -> Result<Response, Error> {
    json(200, &json!({ "message": text }))
}

/// 204.
pub fn no_content() -> Response {
    Response::empty_204()
}

/// A body of `length` bytes that is read while it is sent.
pub fn stream(status: u16, body: impl Read + Send + 'static, length: u64) -> Response {
    Response {
        status_code: status,
        headers: Vec::new(),
        data: rouille::ResponseBody::from_reader_and_size(body, length as usize),
        upgrade: None,
    }
}

/// 200 with a body of unknown length that clients save under `filename`, which must be a token (RFC 9110,
/// 5.6.2). `body` is read while it is sent, as fast as the client takes it.
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

/// Fails where a header holds a control character, which would end the value, or even the head, early: the
/// builtin server would send it as it is, the stock server would silently leave the header out.
pub fn check_headers(response: Response) -> Result<Response, Error> {
    let breaks = |c: char| c.is_control() && c != '\t';
    if response.headers.iter().any(|(name, value)| name.contains(breaks) || value.contains(breaks))
    {
        return Err(Error::Internal(format!("a control character in a header of {response:?}")));
    }
    Ok(response)
}

/// The response to a failed request, in the configured format.
pub fn error(error: &Error, format: ErrorFormat, now: Timestamp) -> Response {
    let (status, message) = (error.status(), error.message());
    let code = status::error_code(status);
    let faults = match error {
        Error::Invalid(faults) => Some(faults.as_slice()),
        _ => None,
    };
    let body = match (format, faults) {
        (ErrorFormat::Envelope, _) => {
            let details = faults.map(fault_list);
            json!({"error": {"code": code, "message": message, "details": details, "timestamp": now}})
        }
        (ErrorFormat::Detail, None) => json!({ "detail": message, "error_code": code }),
        (ErrorFormat::Detail, Some(faults)) => json!({
            "detail": fault_list(faults),
            "error_code": code,
            "field_errors": faults_by_field(faults),
        }),
    };
    let response =
        Response::from_data("application/json", body.to_string()).with_status_code(status);
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
        _ if status == 401 => response.with_unique_header("WWW-Authenticate", "Bearer"),
        _ => response,
    }
}

/// One object for each fault, in the form that FastAPI's clients know.
fn fault_list(faults: &[FieldError]) -> Vec<Value> {
    let entry = |fault: &FieldError| {
        let loc: Vec<&str> = std::iter::once(fault.place.name()).chain(fault.field).collect();
        json!({ "loc": loc, "msg": fault.problem.message, "type": fault.problem.kind })
    };
    faults.iter().map(entry).collect()
}

/// The texts for each field; a fault of the whole body stands under the place's name.
fn faults_by_field(faults: &[FieldError]) -> BTreeMap<&str, Vec<&str>> {
    let mut by_field: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for fault in faults {
        let field = fault.field.unwrap_or(fault.place.name());
        by_field.entry(field).or_default().push(&fault.problem.message);
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
