//! A `rouille::Response` as bytes.

use std::io::{self, Read, Write};

use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::client_stream::ClientStream;
use super::head::Head;

/// How much of a body is sent with the head, and at once after that, bytes.
const PIECE: usize = 64 * 1024;
/// What a connection keeps of its buffer between answers, bytes.
const KEPT: usize = 4 * 1024;
/// `Date` (RFC 9110, 5.6.7).
const DATE: &[BorrowedFormatItem] = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);
/// Headers that are the listener's to write.
const OWN: [&str; 7] = [
    "Connection",
    "Content-Length",
    "Date",
    "Keep-Alive",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
];

/// What of the request an answer depends on.
pub struct ResponseOptions {
    /// The answer has no body, only its length.
    pub is_head: bool,
    /// HTTP/1.0.
    pub is_old: bool,
    /// The connection stays open.
    pub keeps_open: bool,
}

impl ResponseOptions {
    /// The manner of a request.
    pub fn of(head: &Head, keeps_open: bool) -> ResponseOptions {
        ResponseOptions {
            is_head: head.request.method() == "HEAD",
            is_old: head.is_old,
            keeps_open,
        }
    }
}

/// Writes answers; keeps its buffer.
#[derive(Default)]
pub struct ResponseWriter {
    out: Vec<u8>,
    date: Date,
}

/// The header's text, made once a second.
#[derive(Default)]
struct Date {
    second: i64,
    text: String,
}

impl ResponseWriter {
    /// Writes a whole answer; a small one in one piece. True where the connection can go on.
    pub fn send(
        &mut self,
        stream: &mut ClientStream,
        response: rouille::Response,
        manner: &ResponseOptions,
    ) -> io::Result<bool> {
        let status = response.status_code;
        let (body, size) = response.data.into_reader_and_size();
        // Without a length and without chunks, the end of the connection ends the body.
        let chunked = size.is_none() && !manner.is_old;
        let keeps_open = manner.keeps_open && (size.is_some() || chunked || manner.is_head);
        self.out.clear();
        self.begin(status, &response.headers)?;
        let bodiless = status == 204 || status == 304;
        match size {
            _ if bodiless => {}
            Some(size) => write!(self.out, "Content-Length: {size}\r\n")?,
            None if chunked => self.out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            None => {}
        }
        if !keeps_open {
            self.out.extend_from_slice(b"Connection: close\r\n");
        } else if manner.is_old {
            self.out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        self.out.extend_from_slice(b"\r\n");
        if bodiless || manner.is_head {
            stream.write(&self.out)?;
        } else if chunked {
            self.send_chunks(stream, body)?;
        } else {
            self.send_plain(stream, body, size)?;
        }
        self.out.shrink_to(KEPT);
        Ok(keeps_open)
    }

    fn begin(
        &mut self,
        status: u16,
        headers: &[(std::borrow::Cow<'static, str>, std::borrow::Cow<'static, str>)],
    ) -> io::Result<()> {
        write!(self.out, "HTTP/1.1 {status} {}\r\nDate: {}\r\n", reason(status), self.date.now())?;
        for (name, value) in headers {
            if !OWN.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                write!(self.out, "{name}: {value}\r\n")?;
            }
        }
        Ok(())
    }

    /// A body of known size, or, for HTTP/1.0, one that ends with the connection.
    fn send_plain(
        &mut self,
        stream: &mut ClientStream,
        body: impl Read,
        size: Option<usize>,
    ) -> io::Result<()> {
        let mut left = size.map_or(u64::MAX, |size| size as u64);
        let mut body = body.take(left);
        loop {
            let room = PIECE.saturating_sub(self.out.len()) as u64;
            let read = (&mut body).take(room).read_to_end(&mut self.out);
            let count = read.map_err(broken_off)? as u64;
            left -= count;
            let ended = left == 0 || count < room;
            if ended && size.is_some() && left > 0 {
                return Err(broken_off(io::ErrorKind::UnexpectedEof.into()));
            }
            stream.write(&self.out)?;
            if ended {
                return Ok(());
            }
            self.out.clear();
        }
    }

    /// A body of unknown size: it leaves as it comes, a piece in memory at a time.
    fn send_chunks(&mut self, stream: &mut ClientStream, mut body: impl Read) -> io::Result<()> {
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let read = (&mut body).take(PIECE as u64).read_to_end(&mut piece);
            let count = read.map_err(broken_off)?;
            if count > 0 {
                write!(self.out, "{count:x}\r\n")?;
                self.out.extend_from_slice(&piece);
                self.out.extend_from_slice(b"\r\n");
            }
            if count < PIECE {
                self.out.extend_from_slice(b"0\r\n\r\n");
            }
            stream.write(&self.out)?;
            self.out.clear();
            if count < PIECE {
                return Ok(());
            }
        }
    }
}

/// The client learns it by the end of the connection: the head has left.
fn broken_off(error: io::Error) -> io::Error {
    log::error!("the body of an answer broke off: {error}");
    error
}

impl Date {
    fn now(&mut self) -> &str {
        let now = OffsetDateTime::now_utc();
        if now.unix_timestamp() != self.second {
            self.second = now.unix_timestamp();
            // Every date of this format can be written.
            self.text = now.format(DATE).unwrap_or_default();
        }
        &self.text
    }
}

/// The words after a status (RFC 9110, 15); clients read the number.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "",
    }
}
