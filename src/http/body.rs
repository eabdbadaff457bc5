//! The body of a request, which is read when its handler asks for it and never beyond a limit.

use std::io::{self, Read};

use crate::error::Error;

/// Where the bytes of a body come from.
pub trait BodySource {
    /// Reads some bytes into `buffer` and returns how many; 0 at the end of the body. Where the source knows that more
    /// than `max` bytes are still to come, it may fail with `FileTooLarge` instead of waiting for them.
    fn read_at_most(&mut self, buffer: &mut [u8], max: u64) -> io::Result<usize>;
}

/// A reader knows nothing of what is to come.
impl<R: Read> BodySource for R {
    fn read_at_most(&mut self, buffer: &mut [u8], _max: u64) -> io::Result<usize> {
        self.read(buffer)
    }
}

/// The body of one request. Until [`Body::set_limit`] is called not a byte of it may be read.
pub struct Body<'a> {
    source: Box<dyn BodySource + 'a>,
    announced: Option<u64>,
    received: u64,
    limit: u64,
}

impl<'a> Body<'a> {
    /// A body that `source` gives and whose end is the source's end. `announced` is its `Content-Length`,
    /// where it has one.
    pub fn new(source: impl BodySource + 'a, announced: Option<u64>) -> Body<'a> {
        Body { source: Box::new(source), announced, received: 0, limit: 0 }
    }

    /// Allows the first `limit` bytes to be read. A body announced longer fails here, before it is read:
    /// a client that waits for `100 Continue` then never sends it.
    pub fn set_limit(&mut self, limit: u64) -> Result<(), Error> {
        if self.announced.is_some_and(|length| length > limit) {
            return Err(Error::BodyTooLarge);
        }
        self.limit = limit;
        Ok(())
    }

    /// Reads some bytes into `buffer` and returns how many; 0 at the end of the body. Fails with
    /// [`Error::BodyTooLarge`] beyond the limit, and with [`Error::BodyCutShort`] where the client sent less
    /// than it announced: the stock server reports that as a plain end.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let length = loop {
            match self.source.read_at_most(buffer, self.limit - self.received) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome.map_err(unreadable)?,
            }
        };
        if length as u64 > self.limit - self.received {
            return Err(Error::BodyTooLarge);
        }
        self.received += length as u64;
        if length == 0 && self.announced.is_some_and(|announced| announced != self.received) {
            return Err(Error::BodyCutShort);
        }
        Ok(length)
    }

    /// The whole body, at most `limit` bytes, as UTF-8 text; `None` where it is no UTF-8.
    pub fn read_text(&mut self, limit: u64) -> Result<Option<String>, Error> {
        self.set_limit(limit)?;
        let (mut bytes, mut chunk) = (Vec::new(), [0; 8192]);
        loop {
            match self.read(&mut chunk)? {
                0 => return Ok(String::from_utf8(bytes).ok()),
                length => bytes.extend_from_slice(&chunk[..length]),
            }
        }
    }
}

fn unreadable(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Error::BodyTooSlow,
        io::ErrorKind::InvalidData => Error::BodyMalformed,
        io::ErrorKind::FileTooLarge => Error::BodyTooLarge,
        _ => Error::BodyCutShort,
    }
}
