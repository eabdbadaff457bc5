//! One connection's bytes: a buffer of fixed size, and a deadline on every wait.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connections::Connection;
use super::{LINGER, LINGER_CHUNK, LINGER_CHUNKS, MAX_HEAD, MAX_STALL, STOP_GRACE};
use crate::error::Error;

/// Longest wait of one write, so that a stall is noticed in time.
const WRITE_WAIT: Duration = Duration::from_secs(5);

/// Why there is no next head.
pub enum NoHead {
    /// The client is gone, idled too long, or the process stops: nothing to say.
    Closed,
    /// To be answered, then closed.
    Refused(Error),
}

/// The connection as its own thread sees it.
pub struct ClientStream {
    connection: Arc<Connection>,
    buffer: Box<[u8]>,
    /// What was read and not used is `buffer[start..end]`.
    start: usize,
    end: usize,
    /// The read timeout the socket has now.
    armed: Duration,
}

impl ClientStream {
    /// Prepares the socket.
    pub fn new(connection: Arc<Connection>) -> io::Result<ClientStream> {
        connection.socket.set_nodelay(true)?;
        connection.socket.set_write_timeout(Some(WRITE_WAIT))?;
        Ok(ClientStream {
            connection,
            buffer: vec![0; MAX_HEAD].into(),
            start: 0,
            end: 0,
            armed: Duration::MAX,
        })
    }

    /// What was read and not used.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The first `count` buffered bytes are used.
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        if self.start >= self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Waits for the next head and gives its length. `idle`: until its first byte; `limit`: from then
    /// to its end, however it drips.
    pub fn head(&mut self, idle: Duration, limit: Duration) -> Result<usize, NoHead> {
        let (mut scanned, mut waits) = (0, false);
        let mut deadline = Instant::now() + if self.start == self.end { idle } else { limit };
        let outcome = loop {
            while scanned == 0 && self.buffered().starts_with(b"\r\n") {
                self.consume(2); // some clients end a body so (RFC 9112, 2.2)
            }
            match end_of_head(self.buffered(), &mut scanned) {
                Ok(Some(length)) => break Ok(length),
                Ok(None) if self.buffered().len() == MAX_HEAD => {
                    break Err(NoHead::Refused(Error::HeadersTooLarge));
                }
                Ok(None) => {}
                Err(error) => break Err(NoHead::Refused(error)),
            }
            if !waits {
                self.connection.begins_to_wait(true);
                waits = true;
                // After the line above: either this sees the stop, or the stop sees this.
                if self.connection.is_stopping() {
                    deadline = deadline.min(Instant::now() + STOP_GRACE);
                }
            }
            let began = self.start != self.end;
            match self.fill(deadline) {
                Ok(()) if !began => deadline = Instant::now() + limit,
                Ok(()) => {}
                Err(e) if began && e.kind() == io::ErrorKind::TimedOut => {
                    break Err(NoHead::Refused(Error::HeadTooSlow));
                }
                Err(_) => break Err(NoHead::Closed),
            }
        };
        if waits && self.connection.has_waited().is_err() {
            return Err(NoHead::Closed);
        }
        outcome
    }

    /// Whether the process stops.
    pub fn is_stopping(&self) -> bool {
        self.connection.is_stopping()
    }

    /// Whether a whole head was read already.
    pub fn holds_head(&self) -> bool {
        matches!(end_of_head(self.buffered(), &mut 0), Ok(Some(_)))
    }

    /// Reads more of a body into the buffer.
    pub fn fill_for_body(&mut self, deadline: Instant) -> io::Result<()> {
        self.connection.begins_to_wait(false);
        let outcome = self.fill(deadline);
        self.connection.has_waited()?;
        outcome
    }

    /// Reads a part of a body into `out`, past the buffer where that is empty.
    pub fn read(&mut self, out: &mut [u8], deadline: Instant) -> io::Result<usize> {
        if self.start == self.end {
            self.connection.begins_to_wait(false);
            let outcome = receive(&self.connection, &mut self.armed, out, deadline);
            self.connection.has_waited()?;
            return outcome;
        }
        let count = out.len().min(self.end - self.start);
        out[..count].copy_from_slice(&self.buffered()[..count]);
        self.consume(count);
        Ok(count)
    }

    fn fill(&mut self, deadline: Instant) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = &mut self.buffer[self.end..];
        self.end += receive(&self.connection, &mut self.armed, room, deadline)?;
        Ok(())
    }

    /// Writes all of `bytes`. Fails once the client has taken none of them for [`MAX_STALL`].
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let mut progress = Instant::now();
        self.connection.begins_to_wait(false);
        while !bytes.is_empty() {
            match (&self.connection.socket).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = &bytes[count..];
                    progress = Instant::now();
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if progress.elapsed() >= MAX_STALL {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(e) => return Err(e),
            }
        }
        self.connection.has_waited()
    }

    /// Closes so that the client sees the answer: bytes that arrive after a plain close would destroy
    /// what it has not read yet.
    pub fn linger(mut self) {
        let deadline = Instant::now() + LINGER;
        let _ = self.connection.socket.shutdown(std::net::Shutdown::Write);
        (self.start, self.end) = (0, 0);
        let (mut chunk, mut dropped) = (vec![0; LINGER_CHUNK], 0);
        while dropped < LINGER_CHUNKS * LINGER_CHUNK {
            match self.read(&mut chunk, deadline) {
                Ok(count) => dropped += count,
                Err(_) => break,
            }
        }
    }
}

/// One read that ends at the deadline. The end of the stream is an error.
fn receive(
    connection: &Connection,
    armed: &mut Duration,
    out: &mut [u8],
    deadline: Instant,
) -> io::Result<usize> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // Re-armed only where it is too long, or much too short: that saves a system call a read.
        if *armed > left || *armed < left * 3 / 4 {
            connection.socket.set_read_timeout(Some(left))?;
            *armed = left;
        }
        match (&connection.socket).read(out) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Length of the head that `bytes` begins with, if it is whole: up to its empty line. `scanned` bytes
/// were looked at before. A line feed without its carriage return is refused: others might see an end
/// of line there, or none.
fn end_of_head(bytes: &[u8], scanned: &mut usize) -> Result<Option<usize>, Error> {
    while let Some(found) = bytes[*scanned..].iter().position(|byte| *byte == b'\n') {
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
