//! The body of a request. It is read only when a handler asks for it, and never beyond the handler's limit.

use std::io;
use std::sync::Arc;

use crate::body_memory::{Room, SMALL_BODY};
use crate::error::Error;

/// The byte order mark in UTF-8, which some programs put before text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads some bytes of a body into the buffer and returns how many, which is 0 at the end of the body. The number is
/// how many bytes may still come: a source that knows of more may fail with `FileTooLarge` instead of waiting for them.
type BodySource<'a> = dyn FnMut(&mut [u8], u64) -> io::Result<usize> + 'a;

/// The body of one request. Nothing of it can be read before [`Body::set_limit`] is called.
pub struct Body<'a> {
    source: Box<BodySource<'a>>,
    /// The value of `Content-Length`.
    announced: Option<u64>,
    /// Bytes read so far.
    received: u64,
    limit: u64,
    /// The room for the memory of this body and of its response. `None` if nothing is counted.
    pub room: Option<Arc<Room>>,
}

impl<'a> Body<'a> {
    /// Makes a body of everything that `source` gives. `announced` is the value of `Content-Length`, if there is one.
    pub fn new(
        source: impl FnMut(&mut [u8], u64) -> io::Result<usize> + 'a,
        announced: Option<u64>,
    ) -> Body<'a> {
        Body { source: Box::new(source), announced, received: 0, limit: 0, room: None }
    }

    /// Takes room for so many bytes, all in all, or gives it back if they are few. Fails with [`Error::Unavailable`].
    pub fn resize_room(&self, bytes: usize) -> Result<(), Error> {
        let Some(room) = &self.room else { return Ok(()) };
        if bytes > SMALL_BODY {
            return room.resize(bytes);
        }
        room.free();
        Ok(())
    }

    /// Allows the first `limit` bytes to be read. Fails with [`Error::BodyTooLarge`] if the announced length is
    /// greater, so that a client that waits for `100 Continue` does not send such a body at all.
    pub fn set_limit(&mut self, limit: u64) -> Result<(), Error> {
        if self.announced.is_some_and(|length| length > limit) {
            return Err(Error::BodyTooLarge(limit));
        }
        self.limit = limit;
        Ok(())
    }

    /// Reads some bytes into `buffer` and returns how many, which is 0 at the end of the body. Fails with
    /// [`Error::BodyTooLarge`] beyond the limit, but first returns all bytes within it, which show what is too large.
    /// Fails with [`Error::BodyCutShort`] if the client sent less than it announced, which is compared here because the
    /// `rouille` server reports that as an ordinary end.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = self.limit - self.received;
        // Only at the limit is a byte more asked for, which must not be there.
        let length = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX).max(1));
        let buffer = &mut buffer[..length];
        let length = loop {
            match (self.source)(buffer, left) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome.map_err(|error| self.read_error(error))?,
            }
        };
        if length as u64 > left {
            return Err(Error::BodyTooLarge(self.limit));
        }
        self.received += length as u64;
        if length == 0 && self.announced.is_some_and(|announced| announced != self.received) {
            return Err(Error::BodyCutShort);
        }
        Ok(length)
    }

    /// How many bytes were read so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Reads the whole body, at most `limit` bytes, and drops a byte order mark at its beginning. It takes the memory
    /// of what has come, not of what is announced.
    pub fn read_all(&mut self, limit: u64) -> Result<Vec<u8>, Error> {
        self.set_limit(limit)?;
        let (mut bytes, mut chunk) = (Vec::<u8>::new(), [0; 8192]);
        loop {
            match self.read(&mut chunk)? {
                0 if bytes.starts_with(BYTE_ORDER_MARK) => return Ok(bytes.split_off(3)),
                0 => return Ok(bytes),
                length => {
                    let needed = bytes.len() + length;
                    if needed > bytes.capacity() {
                        // Most bodies come at once.
                        let capacity = match needed {
                            _ if bytes.is_empty() => needed,
                            ..=SMALL_BODY => SMALL_BODY,
                            _ => (2 * needed).min(limit as usize),
                        };
                        self.resize_room(capacity)?;
                        bytes.reserve_exact(capacity - bytes.len());
                    }
                    bytes.extend_from_slice(&chunk[..length]);
                }
            }
        }
    }

    /// The meaning of the errors by which the builtin server reports a slow client, bad chunked framing, or that it
    /// waits no longer because the process stops.
    fn read_error(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Error::BodyTooSlow,
            io::ErrorKind::InvalidData => Error::BodyMalformed,
            io::ErrorKind::FileTooLarge => Error::BodyTooLarge(self.limit),
            io::ErrorKind::ConnectionAborted => Error::Unavailable,
            _ => Error::BodyCutShort,
        }
    }
}
