//! The bytes of one connection: a read buffer of bounded size, and a deadline on every wait for the client.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use memchr::memchr;
use socket2::SockRef;

use super::connections::{Awaited, Connection};
use super::limits::{
    ClientLimits, FIRST_READ_BUFFER, MAX_EMPTY_LINES, MAX_HEAD, MAX_UNSENT, SHUTDOWN_GRACE,
    STOP_PERIOD,
};
use crate::body_memory::Client;
use crate::error::Error;
use crate::http::response::FileRange;

/// The reason why no request head could be read.
pub enum HeadError {
    /// The client is gone or was idle for too long, or the process stops. Nothing can or need be answered.
    Closed,
    /// The bytes are no valid head. The error is answered, then the connection is closed.
    Refused(Error),
}

/// The progress of the search for a request head.
#[derive(Default)]
struct HeadSearch {
    /// How many of the buffered bytes were searched.
    scanned: usize,
    /// How many empty lines came before the head.
    empty_lines: usize,
}

/// A connection as the thread that serves it reads and writes it.
pub struct ClientStream {
    pub connection: Arc<Connection>,
    /// How long the client may keep the server waiting.
    pub limits: ClientLimits,
    /// `buffer[start..end]` was received and not yet consumed. Both are 0 if that is empty. Its length is
    /// [`FIRST_READ_BUFFER`], and [`MAX_HEAD`] after a longer head or a chunked body.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The read timeout that is set on the socket.
    read_timeout: Duration,
    /// Bytes of the current response that the client has accepted.
    written: u64,
    /// Time spent waiting for the client to accept them.
    write_waited: Duration,
}

impl ClientStream {
    /// Sets the socket's options and allocates the read buffer.
    pub fn new(connection: Arc<Connection>, limits: ClientLimits) -> io::Result<ClientStream> {
        connection.socket.set_nodelay(true)?;
        connection.socket.set_write_timeout(Some(limits.max_write_stall / 30))?;
        #[cfg(target_os = "linux")]
        SockRef::from(&connection.socket).set_tcp_notsent_lowat(MAX_UNSENT)?;
        Ok(ClientStream {
            connection,
            limits,
            buffer: vec![0; FIRST_READ_BUFFER],
            start: 0,
            end: 0,
            read_timeout: Duration::MAX,
            written: 0,
            write_waited: Duration::ZERO,
        })
    }

    /// The bytes that were received and not yet consumed.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Drops the first `count` buffered bytes, which the parser has used.
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start >= self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Drops the head of a request, and the memory of the buffer if that was a long head and nothing follows it yet.
    pub fn consume_head(&mut self, count: usize) {
        self.connection.start_computing();
        self.consume(count);
        if self.end == 0 {
            self.buffer.truncate(FIRST_READ_BUFFER);
            self.buffer.shrink_to_fit();
        }
    }

    /// Returns the next request head if it has been received completely.
    pub fn complete_head(&self) -> Option<&[u8]> {
        let length = find_head_end(self.buffered(), &mut 0).ok()??;
        Some(&self.buffered()[..length])
    }

    /// Whether the next request line has begun to arrive. Empty lines before it do not count.
    fn has_begun_head(&self) -> bool {
        !matches!(self.buffered(), b"" | b"\r")
    }

    /// Waits until a complete request head is buffered and returns its length. `idle_timeout` bounds the wait for its
    /// first byte, `head_timeout` the time from there to its end, however slowly the bytes drip in.
    pub fn read_head(&mut self) -> Result<usize, HeadError> {
        let mut search = HeadSearch::default();
        if let Some(length) = self.find_head(&mut search)? {
            return Ok(length); // a pipelined request: the client does not keep us waiting
        }
        let ClientLimits { head_timeout, idle_timeout, .. } = self.limits;
        let timeout = if self.has_begun_head() { head_timeout } else { idle_timeout };
        let deadline = Instant::now() + timeout;
        self.connection.start_waiting(Awaited::Head);
        let outcome = self.wait_for_head(search, deadline);
        self.connection.stop_waiting().map_err(|_| HeadError::Closed)?;
        outcome
    }

    fn wait_for_head(
        &mut self,
        mut search: HeadSearch,
        mut deadline: Instant,
    ) -> Result<usize, HeadError> {
        // This check comes after `start_waiting`, and the shutdown sets the flag before it looks for waiting
        // connections. So at least one of the two notices the other.
        if self.connection.is_shutting_down() {
            deadline = deadline.min(Instant::now() + SHUTDOWN_GRACE);
        }
        loop {
            let had_begun = self.has_begun_head();
            match self.fill(deadline, Duration::MAX) {
                Ok(()) => {}
                Err(e) if had_begun && e.kind() == io::ErrorKind::TimedOut => {
                    return Err(HeadError::Refused(Error::HeadTooSlow));
                }
                Err(_) => return Err(HeadError::Closed),
            }
            if let Some(length) = self.find_head(&mut search)? {
                return Ok(length);
            }
            if !had_begun && self.has_begun_head() {
                deadline = Instant::now() + self.limits.head_timeout;
            }
        }
    }

    /// The length of the buffered head, or `None` if it is incomplete. Drops empty lines before it; more than
    /// [`MAX_EMPTY_LINES`] are refused.
    fn find_head(&mut self, search: &mut HeadSearch) -> Result<Option<usize>, HeadError> {
        while search.scanned == 0 && self.buffered().starts_with(b"\r\n") {
            if search.empty_lines == MAX_EMPTY_LINES {
                return Err(HeadError::Refused(Error::BadRequest));
            }
            self.consume(2);
            search.empty_lines += 1;
        }
        if !self.has_begun_head() {
            return Ok(None);
        }
        match find_head_end(self.buffered(), &mut search.scanned) {
            Ok(None) if self.buffered().len() == MAX_HEAD => {
                Err(HeadError::Refused(Error::HeadersTooLarge))
            }
            found => found.map_err(HeadError::Refused),
        }
    }

    /// Receives more of a body into the buffer, which gets its full size first: otherwise many small chunks would take
    /// many reads. Fails with `TimedOut` at the deadline.
    pub fn fill_for_body(&mut self, deadline: Instant) -> io::Result<()> {
        self.buffer.resize(MAX_HEAD, 0);
        self.connection.start_waiting(Awaited::Body);
        let outcome = self.fill(deadline, STOP_PERIOD);
        self.connection.stop_waiting()?;
        outcome
    }

    /// Reads a part of a body into `out`: what is buffered, or else directly from the socket without a copy. Fails
    /// with `TimedOut` at the deadline and with `UnexpectedEof` if the client has closed the connection.
    pub fn read(&mut self, out: &mut [u8], deadline: Instant) -> io::Result<usize> {
        if self.start == self.end {
            self.connection.start_waiting(Awaited::Body);
            let timeout = &mut self.read_timeout;
            let outcome = receive(&self.connection, timeout, out, deadline, STOP_PERIOD);
            self.connection.stop_waiting()?;
            return outcome;
        }
        let count = out.len().min(self.end - self.start);
        out[..count].copy_from_slice(&self.buffered()[..count]);
        self.consume(count);
        Ok(count)
    }

    fn fill(&mut self, deadline: Instant, max_wait: Duration) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(MAX_HEAD, 0);
        }
        let free = &mut self.buffer[self.end..];
        self.end += receive(&self.connection, &mut self.read_timeout, free, deadline, max_wait)?;
        Ok(())
    }

    /// Resets the count of bytes and of waiting time for the next response.
    pub fn start_response(&mut self) {
        self.connection.start_computing();
        (self.written, self.write_waited) = (0, Duration::ZERO);
    }

    /// Writes all of `bytes`. Fails with `TimedOut` once the client has accepted none of them for `max_write_stall`, or
    /// accepts the response at less than `min_response_rate`.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.send(Awaited::Receipt, bytes.len(), |mut socket, _| {
            let count = socket.write(bytes)?;
            bytes = &bytes[count..];
            Ok(count)
        })
    }

    /// Sends the next `count` bytes of `range` and advances it; the kernel copies them from the file to the socket.
    /// Fails like [`ClientStream::write`], with `UnexpectedEof` if the file ends before them, and with `Unsupported`
    /// or `InvalidInput` if the system cannot send this file, before any of it has left.
    pub fn write_file(&mut self, range: &mut FileRange, count: usize) -> io::Result<()> {
        self.send(Awaited::FileReceipt, count, |socket, left| {
            let count = send_file(socket, range, left)?;
            range.advance(count as u64);
            if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(count) }
        })
    }

    /// Calls `write` until it has sent `left` bytes in all. It is given the socket and how many bytes are left, and
    /// returns how many of them it has sent. The socket's write timeout bounds each of its waits.
    fn send(
        &mut self,
        awaited: Awaited,
        mut left: usize,
        mut write: impl FnMut(&TcpStream, usize) -> io::Result<usize>,
    ) -> io::Result<()> {
        let mut last_progress = Instant::now();
        self.connection.start_waiting(awaited);
        while left > 0 {
            let start = Instant::now();
            match write(&self.connection.socket, left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    left -= count;
                    self.written += count as u64;
                    last_progress = Instant::now();
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
            self.write_waited += start.elapsed();
            let limits = &self.limits;
            let earned = self.written.saturating_mul(1000) / limits.min_response_rate;
            if (left > 0 && self.connection.waiting_since().is_none())
                || last_progress.elapsed() >= limits.max_write_stall
                || self.write_waited >= limits.response_grace + Duration::from_millis(earned)
            {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        self.connection.stop_waiting()
    }

    /// Lets the connection end with a TCP reset when it is closed. So an incomplete response is never taken for a whole
    /// one, also without chunks or a length, and what is in the socket's buffer is not sent any more.
    pub fn reset(self) {
        let _ = SockRef::from(&self.connection.socket).set_linger(Some(Duration::ZERO));
    }

    /// Closes the connection so that the client can still read the response (RFC 9112, section 9.6): announces the
    /// end, then reads and drops what the client is still sending. After a plain close, such bytes are answered with
    /// a TCP reset, which discards what the client has not yet read. Ends after a time, or so many bytes.
    pub fn lingering_close(mut self, (max_time, max_bytes): (Duration, usize)) {
        let deadline = Instant::now() + max_time;
        let _ = self.connection.socket.shutdown(Shutdown::Write);
        let mut dropped = 0;
        while dropped < max_bytes {
            (self.start, self.end) = (0, 0);
            if self.fill_for_body(deadline).is_err() {
                break;
            }
            dropped += self.end;
        }
    }
}

/// Sends up to `max` bytes of `range` and returns how many; 0 means that the file ends here.
#[cfg(target_os = "linux")]
fn send_file(socket: &TcpStream, range: &FileRange, max: usize) -> io::Result<usize> {
    let mut offset = range.offset;
    Ok(rustix::fs::sendfile(socket, &range.file, Some(&mut offset), max)?)
}

/// Other systems have no `sendfile`, or another one.
#[cfg(not(target_os = "linux"))]
fn send_file(_: &TcpStream, _: &FileRange, _: usize) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Reads from the socket once. Fails with `TimedOut` at the deadline and with `UnexpectedEof` at the end of the stream.
/// Looks each `max_wait` whether it is to wait no longer. `read_timeout` is the timeout that is set on the socket.
fn receive(
    connection: &Connection,
    read_timeout: &mut Duration,
    out: &mut [u8],
    deadline: Instant,
    max_wait: Duration,
) -> io::Result<usize> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).min(max_wait);
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A timeout that is a little too short only repeats the loop. Keeping it saves a system call for most reads.
        if *read_timeout > left || *read_timeout < left * 3 / 4 {
            connection.socket.set_read_timeout(Some(left))?;
            *read_timeout = left;
        }
        match (&connection.socket).read(out) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                connection.waiting_since().ok_or(io::ErrorKind::ConnectionAborted)?;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// The length of the head at the start of `bytes`, up to and with its empty line, or `None` if it is incomplete.
/// `scanned` is how many bytes earlier calls have searched. A line feed without a carriage return is an error: other
/// intermediaries differ in whether they take it for a line end, which is how requests are smuggled past them.
pub fn find_head_end(bytes: &[u8], scanned: &mut usize) -> Result<Option<usize>, Error> {
    while let Some(found) = memchr(b'\n', &bytes[*scanned..]) {
        let at = *scanned + found;
        *scanned = at + 1;
        if at == 0 || bytes[at - 1] != b'\r' {
            return Err(Error::BadRequest);
        }
        if at >= 3 && bytes[at - 2] == b'\n' {
            return Ok(Some(at + 1));
        }
    }
    *scanned = bytes.len();
    Ok(None)
}
