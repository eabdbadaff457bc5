//! Writes a response to a connection, framed for the request it answers (RFC 9112, section 6).

use std::io::ErrorKind::{
    BrokenPipe, ConnectionAborted, ConnectionReset, InvalidInput, TimedOut, Unsupported,
};
use std::io::{self, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use super::client_stream::ClientStream;
use super::limits::{BODY_CHUNK, FILE_CHUNK, MAX_IDLE_WRITE_BUFFER};
use crate::http::response::{BodyParts, FileRange, Response, ResponseBody, names_of_status};

/// The facts about a request and its connection that decide the framing of the response.
pub struct ResponseOptions {
    /// The request was `HEAD`: the response announces a body and does not send it.
    pub omit_body: bool,
    /// The request was HTTP/1.0, which has no chunked coding and closes connections by default.
    pub is_http_1_0: bool,
    /// The connection stays open after the response, if its framing allows that.
    pub keep_alive: bool,
}

/// Writes the responses of one connection; it reuses its buffer.
#[derive(Default)]
pub struct ResponseWriter {
    /// Bytes that are not sent yet.
    out: Vec<u8>,
}

impl ResponseWriter {
    /// Writes a whole response; the head and a short body leave in one write. Returns whether the connection can serve
    /// another request.
    pub fn send(
        &mut self,
        stream: &mut ClientStream,
        response: Response,
        options: &ResponseOptions,
    ) -> io::Result<bool> {
        stream.start_response();
        self.out.clear();
        self.start_head(&response)?;
        let never_has_body = matches!(response.status, 204 | 304);
        let length = response.body.length();
        // A body that has neither a length nor chunks ends where the connection is closed.
        let chunked = length.is_none() && !options.is_http_1_0;
        let keep_alive = options.keep_alive && (length.is_some() || chunked || options.omit_body);
        match length {
            _ if never_has_body => {}
            Some(length) => write!(self.out, "Content-Length: {length}\r\n")?,
            None if chunked => self.out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            None => {}
        }
        if !keep_alive {
            self.out.extend_from_slice(b"Connection: close\r\n");
        } else if options.is_http_1_0 {
            self.out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        self.out.extend_from_slice(b"\r\n");
        match response.body {
            _ if never_has_body || options.omit_body => stream.write(&self.out)?,
            ResponseBody::Parts { parts, .. } => self.send_parts(stream, parts, chunked)?,
            whole => self.send_part(stream, whole)?,
        }
        self.out.shrink_to(MAX_IDLE_WRITE_BUFFER);
        Ok(keep_alive)
    }

    /// Buffers the status line, `Date` and the handler's headers.
    fn start_head(&mut self, response: &Response) -> io::Result<()> {
        let status = response.status;
        let (reason, _) = names_of_status(status);
        // A clock before 1970 counts as 1970, which `httpdate` can format.
        let date = httpdate::fmt_http_date(SystemTime::now().max(UNIX_EPOCH));
        write!(self.out, "HTTP/1.1 {status} {reason}\r\nDate: {date}\r\n")?;
        for (name, value) in &response.headers {
            for part in [name, ": ", value, "\r\n"] {
                self.out.extend_from_slice(part.as_bytes());
            }
        }
        Ok(())
    }

    /// Sends a body, or a part of one, that has no parts.
    fn send_part(&mut self, stream: &mut ClientStream, part: ResponseBody) -> io::Result<()> {
        match part {
            ResponseBody::Bytes(bytes) => self.send_bytes(stream, &bytes),
            ResponseBody::File(range) => self.send_file(stream, range),
            ResponseBody::Stream(reader, length) => self.send_stream(stream, reader, length),
            ResponseBody::Parts { .. } => Err(io::Error::other("a part of a body has parts")),
        }
    }

    /// How many bytes of a body may be buffered beside those that are.
    fn free(&self) -> usize {
        BODY_CHUNK.saturating_sub(self.out.len())
    }

    /// Sends a body in memory. The bytes that do not fit into the first write are sent without a copy.
    fn send_bytes(&mut self, stream: &mut ClientStream, bytes: &[u8]) -> io::Result<()> {
        let (first, rest) = bytes.split_at(bytes.len().min(self.free()));
        self.out.extend_from_slice(first);
        stream.write(&self.out)?;
        self.out.clear();
        rest.chunks(BODY_CHUNK).try_for_each(|chunk| stream.write(chunk))
    }

    /// Sends a part of a file. The kernel sends all that does not fit into the first write, unless the system cannot
    /// do so; then it is read and written.
    fn send_file(&mut self, stream: &mut ClientStream, mut range: FileRange) -> io::Result<()> {
        loop {
            let left = range.length;
            self.send_next(stream, &mut range, left)?;
            while range.length > 0 {
                let count = range.length.min(FILE_CHUNK) as usize;
                match stream.write_file(&mut range, count) {
                    Ok(()) => {}
                    Err(e) if matches!(e.kind(), Unsupported | InvalidInput) => break,
                    Err(e) if is_client_gone(&e) => return Err(e),
                    Err(e) => return Err(log_truncation(e)),
                }
            }
            if range.length == 0 {
                return Ok(());
            }
        }
    }

    /// Sends `left` bytes that are read while they are sent.
    fn send_stream(
        &mut self,
        stream: &mut ClientStream,
        mut reader: Box<dyn Read + Send>,
        mut left: u64,
    ) -> io::Result<()> {
        loop {
            left -= self.send_next(stream, &mut reader, left)?;
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Reads as many of `left` bytes as may be buffered, sends them with those that are, and returns how many it read.
    fn send_next(
        &mut self,
        stream: &mut ClientStream,
        reader: &mut impl Read,
        left: u64,
    ) -> io::Result<u64> {
        let (head, count) = (self.out.len(), left.min(self.free() as u64));
        self.out.resize(head + count as usize, 0);
        reader.read_exact(&mut self.out[head..]).map_err(log_truncation)?;
        stream.write(&self.out)?;
        self.out.clear();
        Ok(count)
    }

    /// Sends a body of parts: each as a chunk, or without chunks up to the end of the body or of the connection.
    /// Without chunks short parts leave together with the next one.
    fn send_parts(
        &mut self,
        stream: &mut ClientStream,
        parts: Box<BodyParts>,
        chunked: bool,
    ) -> io::Result<()> {
        for part in parts {
            let part = part?;
            match (part.length(), &part) {
                // A chunk of no bytes would be the last one.
                (Some(0), _) => {}
                (Some(length), _) if chunked => {
                    write!(self.out, "{length:x}\r\n")?;
                    self.send_part(stream, part)?;
                    self.out.extend_from_slice(b"\r\n");
                }
                (_, ResponseBody::Bytes(bytes)) if bytes.len() < self.free() => {
                    self.out.extend_from_slice(bytes);
                }
                _ => self.send_part(stream, part)?,
            }
        }
        if chunked {
            self.out.extend_from_slice(b"0\r\n\r\n");
        }
        stream.write(&self.out)
    }
}

/// Whether an error came from the socket. Sending a file also fails if the file cannot be read.
fn is_client_gone(error: &io::Error) -> bool {
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | TimedOut)
}

/// Logs that a body could not be read to its end. The status line has left by then, so the connection is closed, and
/// the client notices that bytes are missing.
fn log_truncation(error: io::Error) -> io::Error {
    log::error!("the body of an answer broke off: {error}");
    error
}
