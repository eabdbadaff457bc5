//! The body of a request, received from the client as the handler reads it.

use std::io;
use std::time::{Duration, Instant};

use super::chunked::{ChunkedDecoder, ChunkedPart};
use super::client_stream::ClientStream;
use super::head::RequestHead;
use super::limits::{ClientLimits, MAX_DRAIN};

/// Reads the body of one request and no byte after it. It borrows the connection's stream until the request is
/// answered. Read errors are `TimedOut` if the client is too slow, `InvalidData` if the chunked coding is
/// malformed, `FileTooLarge` if a chunk is larger than what may still be read, and `UnexpectedEof` if the client
/// has closed the connection early.
pub struct BodyReader<'a> {
    stream: &'a mut ClientStream,
    unread: UnreadBody,
    /// The client waits for `100 Continue`, which is sent at the first read.
    continue_pending: bool,
    /// How long the client may still keep the server waiting.
    allowance: Allowance,
}

/// The time that a client may still keep the server waiting for its body. It begins with `body_grace`, grows with each
/// byte of content as `min_body_rate` says, and never exceeds `max_body_allowance`.
struct Allowance {
    left: Duration,
    limits: ClientLimits,
}

impl Allowance {
    fn new(limits: ClientLimits) -> Allowance {
        Allowance { left: limits.body_grace, limits }
    }

    /// Takes off the time of a wait.
    fn spend(&mut self, waited: Duration) {
        self.left = self.left.saturating_sub(waited);
    }

    /// Adds the time that so many bytes of content allow.
    fn earn(&mut self, bytes: usize) {
        let nanos = (bytes as u64).saturating_mul(1_000_000_000) / self.limits.min_body_rate;
        self.left = (self.left + Duration::from_nanos(nanos)).min(self.limits.max_body_allowance);
    }
}

/// The part of the body that the handler has not read.
enum UnreadBody {
    /// This many bytes.
    Length(u64),
    /// The chunks after the decoder's position.
    Chunked(ChunkedDecoder),
    /// Reading has failed, so it is unknown where the body ends and the next request begins.
    Unknown,
}

impl<'a> BodyReader<'a> {
    /// A reader of the body that follows `head`, which has been consumed from the stream.
    pub fn new(head: &RequestHead, stream: &'a mut ClientStream) -> BodyReader<'a> {
        let unread = match head.is_chunked {
            true => UnreadBody::Chunked(ChunkedDecoder::default()),
            false => UnreadBody::Length(head.content_length.unwrap_or(0)),
        };
        let continue_pending = head.expects_continue;
        let allowance = Allowance::new(stream.limits);
        BodyReader { stream, unread, continue_pending, allowance }
    }

    /// The stream, to write the response to.
    pub fn stream(&mut self) -> &mut ClientStream {
        self.stream
    }

    /// Whether the whole body was read.
    pub fn is_finished(&self) -> bool {
        matches!(self.unread, UnreadBody::Length(0) | UnreadBody::Chunked(ChunkedDecoder::End))
    }

    /// Whether the rest of the body is worth draining to keep the connection open. If `100 Continue` was never
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

    /// Reads some content into `out` and returns how many bytes, which is 0 at the end of the body. `max` is how many
    /// may still be read.
    pub fn read(&mut self, out: &mut [u8], max: u64) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        if std::mem::take(&mut self.continue_pending) && self.stream.buffered().is_empty() {
            self.stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let outcome = self.read_content(out, max);
        if outcome.is_err() {
            self.unread = UnreadBody::Unknown;
        } else if self.is_finished() {
            self.stream.connection.start_computing();
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
        self.allowance.earn(count);
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

    /// Runs `wait` with the deadline by which the client must have sent something, and counts the time it takes. The
    /// time between two waits is the handler's and does not count.
    fn timed<T>(
        &mut self,
        wait: impl FnOnce(&mut ClientStream, Instant) -> io::Result<T>,
    ) -> io::Result<T> {
        let start = Instant::now();
        let outcome = wait(self.stream, start + self.allowance.left);
        self.allowance.spend(start.elapsed());
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a client runs out of time that waits for `pause` before each of `count` times `bytes`.
    fn is_too_slow(pause: Duration, bytes: usize, count: usize) -> bool {
        let mut allowance = Allowance::new(ClientLimits::new(Duration::MAX, Duration::MAX));
        (0..count).any(|_| {
            allowance.spend(pause);
            let is_spent = allowance.left.is_zero();
            allowance.earn(bytes);
            is_spent
        })
    }

    #[test]
    fn a_body_may_take_ten_seconds_and_then_must_average_the_least_rate() {
        let second = Duration::from_secs(1);
        assert!(!is_too_slow(second, 1, 9));
        assert!(is_too_slow(second, 1, 11));
        assert!(!is_too_slow(second, 4096, 10_000));
        assert!(!is_too_slow(9 * second, 9 * 4096, 1000));
        assert!(is_too_slow(second, 4000, 1000));
    }

    #[test]
    fn no_number_of_bytes_allows_more_than_thirty_seconds_of_silence() {
        for bytes in [1 << 20, usize::MAX] {
            let mut allowance = Allowance::new(ClientLimits::new(Duration::MAX, Duration::MAX));
            (0..10).for_each(|_| allowance.earn(bytes));
            allowance.spend(Duration::from_secs(29));
            assert!(!allowance.left.is_zero());
            allowance.spend(Duration::from_secs(1));
            assert!(allowance.left.is_zero());
        }
    }
}
