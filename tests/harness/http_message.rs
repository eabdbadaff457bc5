//! Requests and answers as they are on the wire.

use std::io::{self, BufRead};

/// A request or an answer. Its body has the length that a header says, or none.
#[derive(Clone)]
pub struct HttpMessage {
    /// The first line and the headers, with the empty line after them.
    pub head: String,
    pub body: Vec<u8>,
}

impl HttpMessage {
    /// Reads one. `has_body` is false for the answer to `HEAD`.
    pub fn read(from: &mut impl BufRead, has_body: bool) -> io::Result<HttpMessage> {
        let mut message = HttpMessage { head: read_head(from)?, body: Vec::new() };
        if has_body {
            message.read_body(from)?;
        }
        Ok(message)
    }

    /// Reads the body of a message whose head was read.
    pub fn read_body(&mut self, from: &mut impl BufRead) -> io::Result<()> {
        self.body.resize(self.header("Content-Length").parse().unwrap_or(0), 0);
        from.read_exact(&mut self.body)
    }

    pub fn bytes(&self) -> Vec<u8> {
        [self.head.as_bytes(), &self.body].concat()
    }

    /// A word of the first line, counted from 0.
    pub fn word(&self, n: usize) -> &str {
        self.head.split(' ').nth(n).unwrap_or_default()
    }

    /// The value of a header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        let fields = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut values = fields.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        values.next().map_or("", |(_, value)| value.trim())
    }

    /// An answer with more headers, each a line.
    pub fn answer(status: u16, headers: &str, body: &[u8]) -> HttpMessage {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n");
        HttpMessage { head, body: body.to_owned() }
    }
}

/// Reads a head up to its empty line.
pub fn read_head(from: &mut impl BufRead) -> io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head)
}
