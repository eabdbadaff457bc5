//! What handlers answer with, and the bodies of errors (contract, 4).

use std::collections::BTreeMap;
use std::io::Read;

use serde::Serialize;
use serde_json::json;

use crate::config::ErrorFormat;
use crate::error::{Error, FieldError};
use crate::model::timestamp::Timestamp;

/// An answer: status, headers and a body that may be a stream.
pub type Response = rouille::Response;

/// A JSON body.
pub fn json<T: Serialize>(status: u16, body: &T) -> Result<Response, Error> {
    let bytes = serde_json::to_vec(body).map_err(|e| Error::Internal(format!("response: {e}")))?;
    Ok(Response::from_data("application/json", bytes).with_status_code(status))
}

/// A body of `length` bytes that is read as it is sent.
pub fn stream(status: u16, body: impl Read + Send + 'static, length: u64) -> Response {
    Response {
        status_code: status,
        headers: Vec::new(),
        data: rouille::ResponseBody::from_reader_and_size(body, length as usize),
        upgrade: None,
    }
}

/// 200 with a single text for people.
pub fn message(text: &str) -> Result<Response, Error> {
    json(200, &json!({ "message": text }))
}

/// 200 with a body of unknown length, named for a download. Nothing is read before the client takes it.
pub fn download(
    content_type: &'static str,
    filename: &str,
    body: impl std::io::Read + Send + 'static,
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

/// 204.
pub fn no_content() -> Response {
    Response::empty_204()
}

/// Whether every header can be sent as it is. A control character would end the value, or the head.
pub fn is_sendable(response: &Response) -> bool {
    let breaks = |c: char| c.is_control() && c != '\t';
    let headers = &response.headers;
    !headers.iter().any(|(name, value)| name.contains(breaks) || value.contains(breaks))
}

/// The answer to a failed request.
pub fn error(error: &Error, format: ErrorFormat, now: Timestamp) -> Response {
    let (status, code, message) = error.parts();
    let body = match format {
        ErrorFormat::Detail => detail(error, code, &message),
        ErrorFormat::Envelope => {
            let details = field_errors(error).map(list);
            json!({"error": {"code": code, "message": message, "details": details, "timestamp": now}})
        }
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

fn field_errors(error: &Error) -> Option<&[FieldError]> {
    match error {
        Error::Invalid(fields) => Some(fields),
        _ => None,
    }
}

fn detail(error: &Error, code: &str, message: &str) -> serde_json::Value {
    let Some(fields) = field_errors(error) else {
        return json!({ "detail": message, "error_code": code });
    };
    let mut by_field: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for fault in fields {
        by_field
            .entry(fault.field.unwrap_or(fault.place.name()))
            .or_default()
            .push(&fault.problem.message);
    }
    json!({ "detail": list(fields), "error_code": code, "field_errors": by_field })
}

fn list(fields: &[FieldError]) -> Vec<serde_json::Value> {
    fields
        .iter()
        .map(|fault| {
            let loc: Vec<&str> = std::iter::once(fault.place.name()).chain(fault.field).collect();
            json!({ "loc": loc, "msg": fault.problem.message, "type": fault.problem.kind })
        })
        .collect()
}
