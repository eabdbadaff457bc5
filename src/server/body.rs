//! The body of a request, received from the client as the handler reads it.

use std::io;
use std::time::{Duration, Instant};

use super::chunked::{ChunkedDecoder, ChunkedPart};
use super::client_stream::ClientStream;
use super::head::{BodyFraming, RequestHead};
use super::limits::{BODY_GRACE, MAX_DRAIN, MIN_BODY_RATE};
use crate::http::body::BodySource;

/// Reads the body of one request and no byte after it. It borrows the connection's stream until the request is
/// answered. Read errors are `TimedOut` where the client is too slow, `InvalidData` where the chunked coding is
/// malformed, `FileTooLarge` where a chunk is larger than what may still be read, and `UnexpectedEof` where the client
/// has closed the connection early.
pub struct BodyReader<'a> {
    stream: &'a mut ClientStream,
    unread: UnreadBody,
    /// The client waits for `100 Continue`, which is sent at the first read.
    continue_pending: bool,
    /// Bytes of content that the handler has received.
    received: u64,
    /// Time spent waiting for the client. The time between reads is the handler's and does not count.
    waited: Duration,
}

/// What the handler has not read.
enum UnreadBody {
    /// This many bytes.
    Length(u64),
    /// What the decoder has yet to find.
    Chunked(ChunkedDecoder),
    /// Reading has failed, so it is unknown where the body ends and the next request begins.
    Unknown,
}

impl<'a> BodyReader<'a> {
    /// A reader of the body that follows `head`, which has been consumed from the stream.
    pub fn new(head: &RequestHead, stream: &'a mut ClientStream) -> BodyReader<'a> {
        let unread = match head.framing {
            BodyFraming::Length(length) => UnreadBody::Length(length),
            BodyFraming::Chunked => UnreadBody::Chunked(ChunkedDecoder::default()),
        };
        let continue_pending = head.expects_continue;
        BodyReader { stream, unread, continue_pending, received: 0, waited: Duration::ZERO }
    }

    /// The stream, to write the response to.
    pub fn stream(&mut self) -> &mut ClientStream {
        self.stream
    }

    /// Whether the whole body was read.
    pub fn is_finished(&self) -> bool {
        matches!(self.unread, UnreadBody::Length(0) | UnreadBody::Chunked(ChunkedDecoder::End))
    }

    /// Whether the rest of the body is worth draining to keep the connection open. Where `100 Continue` was never
    /// sent, it is not: the client may send the body or leave it out, so the next bytes can be read in two ways.
    pub fn is_drainable(&self) -> bool {
        match self.unread {
            _ if self.is_finished() => true,
            UnreadBody::Length(left) => left <= MAX_DRAIN && !self.continue_pending,
            UnreadBody::Chunked(_) => !self.continue_pending,
            UnreadBody::Unknown => false,
        }
    }

    /// Reads and drops the rest of the body, at most [`MAX_DRAIN`] bytes. Returns whether that was all of it.
    pub fn drain(&mut self) -> bool {
        let mut left = MAX_DRAIN;
        while !self.is_finished() {
            match self.read(&mut [0; 4096], left) {
                Ok(count) => left -= count as u64,
                Err(_) => return false,
            }
        }
        true
    }

    /// Reads some content into `out`, as [`BodySource::read_at_most`] says.
    fn read(&mut self, out: &mut [u8], max: u64) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if std::mem::take(&mut self.continue_pending) && self.stream.buffered().is_empty() {
            self.stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let outcome = self.read_content(out, max);
        if outcome.is_err() {
            self.unread = UnreadBody::Unknown;
        }
        outcome
    }

    fn read_content(&mut self, out: &mut [u8], max: u64) -> io::Result<usize> {
        let available = self.next_content()?;
        if available == 0 {
            return Ok(0);
        }
        if available > max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let wanted = usize::try_from(available).unwrap_or(usize::MAX).min(out.len());
        let read = |stream: &mut ClientStream, deadline| stream.read(&mut out[..wanted], deadline);
        let count = self.timed(read)?;
        self.received += count as u64;
        match &mut self.unread {
            UnreadBody::Length(left) => *left -= count as u64,
            UnreadBody::Chunked(decoder) => decoder.consume_content(count as u64),
            UnreadBody::Unknown => {}
        }
        Ok(count)
    }

    /// Consumes chunk framing and returns how many bytes of content follow it; 0 at the end of the body.
    fn next_content(&mut self) -> io::Result<u64> {
        loop {
            let decoder = match &mut self.unread {
                UnreadBody::Length(left) => return Ok(*left),
                UnreadBody::Unknown => return Err(io::ErrorKind::UnexpectedEof.into()),
                UnreadBody::Chunked(decoder) => decoder,
            };
            match decoder.next_part(self.stream.buffered()) {
                Ok(ChunkedPart::Content(left)) => return Ok(left),
                Ok(ChunkedPart::End) => return Ok(0),
                Ok(ChunkedPart::Framing(count)) => self.stream.consume(count),
                Ok(ChunkedPart::Incomplete) => self.timed(ClientStream::fill_for_body)?,
                Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Runs `wait` with the deadline by which the client must have sent something, and counts the time it takes.
    fn timed<T>(
        &mut self,
        wait: impl FnOnce(&mut ClientStream, Instant) -> io::Result<T>,
    ) -> io::Result<T> {
        let start = Instant::now();
        let earned = Duration::from_millis(self.received.saturating_mul(1000) / MIN_BODY_RATE);
        let deadline = start + (BODY_GRACE + earned).saturating_sub(self.waited);
        let outcome = wait(self.stream, deadline);
        self.waited += start.elapsed();
        outcome
    }
}

impl BodySource for &mut BodyReader<'_> {
    fn read_at_most(&mut self, buffer: &mut [u8], max: u64) -> io::Result<usize> {
        self.read(buffer, max)
    }
}
