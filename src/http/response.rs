//! The responses of handlers.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use log::Level;
use serde::Serialize;
use serde_json::json;

use crate::error::Error;

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
    /// A body of so many bytes, which are read while they are sent. The reader fails rather than end early.
    Stream(Box<dyn Read + Send>, u64),
    /// A body of parts.
    Parts {
        parts: Box<BodyParts>,
        /// The length in bytes, if it is known.
        length: Option<u64>,
        /// The most bytes of memory that are kept until it has been sent, but for one part.
        memory: usize,
    },
}

/// The parts of a body, which have no parts themselves, and of which none should have more than 256 KiB in memory. Each
/// is made once the one before has been sent. After a failure the transfer must end early, so that no client takes a
/// part for the whole; whoever makes the parts logs it, see [`broken_off`]. They are dropped when the response has
/// ended, or the connection has broken.
pub type BodyParts = dyn Iterator<Item = io::Result<ResponseBody>> + Send;

/// Logs why the parts of a body end early, and returns what whoever sends them is told.
pub fn broken_off(what: &str, error: &Error) -> io::Error {
    let level = if error.status() < 500 { Level::Warn } else { Level::Error };
    log::log!(level, "{what} broke off: {}", error.cause());
    io::Error::other("the body broke off")
}

/// The bytes of `file` that are still to be sent. The file's own offset is neither used nor changed.
#[derive(Debug)]
pub struct FileRange {
    /// An open file whose content does not change.
    pub file: File,
    /// Offset of the first byte, from the beginning of the file.
    pub offset: u64,
    /// The length of the range in bytes. A file that ends before that is an error of whoever sends it.
    pub length: u64,
}

impl ResponseBody {
    /// The length in bytes, if it is known.
    pub fn length(&self) -> Option<u64> {
        match self {
            ResponseBody::Bytes(bytes) => Some(bytes.len() as u64),
            ResponseBody::File(range) => Some(range.length),
            ResponseBody::Stream(_, length) => Some(*length),
            ResponseBody::Parts { length, .. } => *length,
        }
    }
}

impl FileRange {
    /// Moves the beginning of the range past `count` bytes, which have been sent.
    pub fn advance(&mut self, count: u64) {
        self.offset += count;
        self.length -= count;
    }
}

impl Read for FileRange {
    /// Reads from the beginning of the range and advances it.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.length).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(&mut buffer[..wanted], self.offset)?;
        self.advance(count as u64);
        Ok(count)
    }
}

impl Response {
    /// A response with a body in memory.
    pub fn new(
        status: u16,
        content_type: &'static str,
        body: impl Into<Cow<'static, [u8]>>,
    ) -> Response {
        // Most responses have fewer in the end. To grow, it would take the locks of the allocator, which threads share.
        let mut headers = Vec::with_capacity(12);
        headers.push(("Content-Type", content_type.into()));
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

/// 200 with a sentence for people, as `{"message": text}`.
pub fn message(message: &'static str) -> Result<Response, Error> {
    json(200, &json!({ "message": message }))
}

/// The response to a probe: 200 with `{"status": text}`.
pub fn probe(status: &'static str) -> Result<Response, Error> {
    json(200, &json!({ "status": status }))
}

/// The reason phrase in the status line (RFC 9110, 15), which clients ignore, and the word for programs in the body of
/// an error; both are empty for statuses that the service does not use.
pub fn names_of_status(status: u16) -> (&'static str, &'static str) {
    match status {
        200 => ("OK", ""),
        201 => ("Created", ""),
        204 => ("No Content", ""),
        206 => ("Partial Content", ""),
        303 => ("See Other", ""),
        304 => ("Not Modified", ""),
        400 => ("Bad Request", "BAD_REQUEST"),
        401 => ("Unauthorized", "UNAUTHORIZED"),
        403 => ("Forbidden", "FORBIDDEN"),
        404 => ("Not Found", "NOT_FOUND"),
        405 => ("Method Not Allowed", "METHOD_NOT_ALLOWED"),
        408 => ("Request Timeout", "REQUEST_TIMEOUT"),
        409 => ("Conflict", "CONFLICT"),
        410 => ("Gone", "GONE"),
        412 => ("Precondition Failed", "PRECONDITION_FAILED"),
        413 => ("Content Too Large", "PAYLOAD_TOO_LARGE"),
        415 => ("Unsupported Media Type", "UNSUPPORTED_MEDIA_TYPE"),
        416 => ("Range Not Satisfiable", "RANGE_NOT_SATISFIABLE"),
        417 => ("Expectation Failed", "EXPECTATION_FAILED"),
        422 => ("Unprocessable Content", "VALIDATION_ERROR"),
        429 => ("Too Many Requests", "RATE_LIMITED"),
        431 => ("Request Header Fields Too Large", "HEADERS_TOO_LARGE"),
        500 => ("Internal Server Error", "INTERNAL_ERROR"),
        503 => ("Service Unavailable", "SERVICE_UNAVAILABLE"),
        504 => ("Gateway Timeout", "TIMEOUT"),
        505 => ("HTTP Version Not Supported", "HTTP_VERSION_NOT_SUPPORTED"),
        507 => ("Insufficient Storage", "STORAGE_QUOTA_EXCEEDED"),
        _ => ("", ""),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_could_split_a_response_is_an_internal_error() {
        for value in ["a\rb", "a\nb", "a\r\nSet-Cookie: b", "a\0b"] {
            let response = Response::empty(204).with_header("X-Name", value);
            assert!(matches!(check_headers(response), Err(Error::Internal(_))), "{value:?}");
        }
        let response = Response::empty(204).with_header("X-Name", "a\tb \u{e9}");
        assert!(check_headers(response).is_ok());
    }
}
