//! Connections on which a test sends what no HTTP library would.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::http_message::{HttpMessage, read_head};
use super::{Credentials, Server};

/// One connection. Reads and writes fail after 40 seconds without progress.
pub struct RawConnection {
    stream: BufReader<TcpStream>,
}

/// A response as it came.
#[derive(Debug)]
pub struct RawAnswer {
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    pub body: Vec<u8>,
}

impl RawConnection {
    pub fn open(address: &str) -> RawConnection {
        RawConnection::try_open(address).expect("a connection")
    }

    pub fn try_open(address: &str) -> io::Result<RawConnection> {
        RawConnection::over(TcpStream::connect(address)?)
    }

    /// Takes over a connection on which something was sent already.
    pub fn over(stream: TcpStream) -> io::Result<RawConnection> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(40)))?;
        stream.set_write_timeout(Some(Duration::from_secs(40)))?;
        Ok(RawConnection { stream: BufReader::new(stream) })
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut RawConnection {
        self.try_send(bytes).expect("the connection takes bytes");
        self
    }

    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    /// Reads the next response, which must have a `Content-Length` or no body. Not for `HEAD`.
    pub fn answer(&mut self) -> RawAnswer {
        self.try_answer().expect("an answer")
    }

    pub fn try_answer(&mut self) -> io::Result<RawAnswer> {
        let message = HttpMessage::read(&mut self.stream, true)?;
        let status = message.word(1).parse().expect("a status");
        Ok(RawAnswer { status, head: message.head, body: message.body })
    }

    /// Reads a head up to its empty line.
    pub fn head(&mut self) -> io::Result<String> {
        read_head(&mut self.stream)
    }

    /// Reads until the server closes or resets the connection.
    pub fn rest(&mut self) -> Vec<u8> {
        self.rest_and_end().0
    }

    /// Reads until the server closes the connection, or resets it; then the second value is true.
    pub fn rest_and_end(&mut self) -> (Vec<u8>, bool) {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => (rest, false),
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => (rest, true),
            Err(e) => panic!("the connection stays open: {e}"),
        }
    }

    /// Expects the server to close the connection without sending more.
    #[track_caller]
    pub fn closed(&mut self) {
        let rest = self.rest();
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }

    /// Expects the connection to serve another request.
    #[track_caller]
    pub fn serves(&mut self) {
        self.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(self.answer().status, 200);
    }

    pub fn socket(&self) -> &TcpStream {
        self.stream.get_ref()
    }
}

impl Server {
    /// Sends a request without a body, given by its first line and perhaps headers, on a connection of its own.
    pub fn begin(&self, lines: &str, sender: impl Credentials) -> RawConnection {
        let token = sender.access_token().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let mut connection = RawConnection::open(&self.address);
        let head = format!("{lines}\r\nHost: x\r\nConnection: close\r\n");
        connection.send(head + &token.unwrap_or_default() + "\r\n");
        connection
    }

    /// The same, and reads the head of its response, which must be a 200.
    #[track_caller]
    pub fn begin_reading(&self, lines: &str, sender: impl Credentials) -> RawConnection {
        let mut connection = self.begin(lines, sender);
        let head = connection.head().expect("a head");
        assert!(head.starts_with("HTTP/1.1 200"), "{lines}: {head}");
        connection
    }
}

impl RawAnswer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The value of `X-Request-ID`.
    #[track_caller]
    pub fn request_id(&self) -> String {
        let value = self.head.lines().find_map(|line| line.strip_prefix("X-Request-ID: "));
        value.unwrap_or_else(|| panic!("no X-Request-ID: {}", self.head)).to_owned()
    }

    pub fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line == header)
    }
}

/// Sends `bytes` on a new connection and reads the first response.
pub fn ask(address: &str, bytes: impl AsRef<[u8]>) -> (RawConnection, RawAnswer) {
    let mut raw = RawConnection::open(address);
    raw.send(bytes);
    let answer = raw.answer();
    (raw, answer)
}
