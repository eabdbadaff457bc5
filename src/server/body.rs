//! A request's body, read as the handler asks for it.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use super::chunked::{ChunkedDecoder, Step};
use super::client_stream::ClientStream;
use super::head::{Framing, Head};
use super::{BODY_GRACE, BODY_RATE, MAX_DRAIN};

/// How far a body was read.
pub struct Body {
    rest: Rest,
    /// `100 Continue` is still to be sent.
    owes_continue: bool,
    /// Bytes of content given.
    given: u64,
    /// Time spent waiting for the client: what the handler does in between is not its fault.
    waited: Duration,
}

enum Rest {
    Length(u64),
    Chunked(ChunkedDecoder),
    /// Reading failed, so where the next request begins is not known.
    Lost,
}

impl Body {
    /// The body after `head`.
    pub fn of(head: &Head) -> Body {
        Body {
            rest: match head.framing {
                Framing::Length(length) => Rest::Length(length),
                Framing::Chunked => Rest::Chunked(ChunkedDecoder::Size),
            },
            owes_continue: head.expects_continue,
            given: 0,
            waited: Duration::ZERO,
        }
    }

    /// Whether all of it was read.
    pub fn is_over(&self) -> bool {
        matches!(self.rest, Rest::Length(0) | Rest::Chunked(ChunkedDecoder::End))
    }

    /// Whether the connection may go on once the rest was drained. A client that was never told to
    /// continue may send its body, or not: nobody knows what comes next.
    pub fn is_drainable(&self) -> bool {
        match self.rest {
            _ if self.is_over() => true,
            Rest::Length(left) => left <= MAX_DRAIN && !self.owes_continue,
            Rest::Chunked(_) => !self.owes_continue,
            Rest::Lost => false,
        }
    }

    /// Reads what the handler left, at most [`MAX_DRAIN`]. True where nothing is left.
    pub fn drain(&mut self, stream: &mut ClientStream) -> bool {
        let mut reader = Reader { body: self, stream };
        let drained = io::copy(&mut (&mut reader).take(MAX_DRAIN), &mut io::sink());
        drained.is_ok() && matches!(reader.read(&mut [0]), Ok(0))
    }

    /// When the client has used up its time, were it to send nothing from now on.
    fn deadline(&self, now: Instant) -> Instant {
        let allowed =
            BODY_GRACE + Duration::from_millis(self.given.saturating_mul(1000) / BODY_RATE);
        now + allowed.saturating_sub(self.waited)
    }

    fn read(&mut self, stream: &mut ClientStream, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let most = match &mut self.rest {
                Rest::Lost => return Err(io::ErrorKind::UnexpectedEof.into()),
                Rest::Length(left) => *left,
                Rest::Chunked(chunks) => match chunks.step(stream.buffered()) {
                    Err(_) => return Err(io::ErrorKind::InvalidData.into()),
                    Ok(Step::End) => 0,
                    Ok(Step::Content(left)) => left,
                    Ok(Step::Skip(count)) => {
                        stream.consume(count);
                        continue;
                    }
                    Ok(Step::More) => {
                        self.timed(|deadline| stream.fill_for_body(deadline))?;
                        continue;
                    }
                },
            };
            if most == 0 {
                return Ok(0);
            }
            let room = usize::try_from(most).unwrap_or(usize::MAX).min(out.len());
            let count = self.timed(|deadline| stream.read(&mut out[..room], deadline))?;
            self.given += count as u64;
            match &mut self.rest {
                Rest::Length(left) => *left -= count as u64,
                Rest::Chunked(chunks) => chunks.took(count as u64),
                Rest::Lost => {}
            }
            return Ok(count);
        }
    }

    fn timed<T>(&mut self, wait: impl FnOnce(Instant) -> io::Result<T>) -> io::Result<T> {
        let began = Instant::now();
        let outcome = wait(self.deadline(began));
        self.waited += began.elapsed();
        outcome
    }
}

/// Gives handlers the body, and no byte after it.
pub struct Reader<'a> {
    /// How far it was read.
    pub body: &'a mut Body,
    /// Where it comes from.
    pub stream: &'a mut ClientStream,
}

impl Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let (body, stream) = (&mut *self.body, &mut *self.stream);
        if out.is_empty() {
            return Ok(0);
        }
        if body.owes_continue {
            body.owes_continue = false;
            if stream.buffered().is_empty() {
                stream.write(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
        }
        let outcome = body.read(stream, out);
        if outcome.is_err() {
            body.rest = Rest::Lost;
        }
        outcome
    }
}
