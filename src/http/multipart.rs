//! A parser of `multipart/form-data` bodies (RFC 7578, RFC 2046). It parses a body while it arrives, so memory does not
//! grow with the size of the body.
//!
//! It takes the place of the `multipart` crate, whose version 0.18 cuts a quoted filename at a `;`, loses parts whose
//! `filename` stands before their `name` or that have more than four headers, and takes a body without its closing
//! delimiter for a complete one.

use memchr::memmem::Finder;

use super::body::Body;
use super::part_header::{PartHeader, header_length, malformed, parse_header, parse_parameters};
use crate::error::{Error, FieldError};
use crate::model::problems;

/// Size of the read buffer, in bytes. It is most of what the connection of an upload takes.
const BUFFER_BYTES: usize = 32 * 1024;
/// Bytes that the form of an upload may have in addition to the file: boundaries, headers of parts, other fields.
pub const MAX_FORM_OVERHEAD: u64 = 64 * 1024;
/// Longest boundary, in bytes (RFC 2046, 5.1.1).
const MAX_BOUNDARY: usize = 70;
/// Most parts of a body. The forms of this service have two.
const MAX_PARTS: usize = 16;

/// A body that consists of parts. They come one after the other: going on to the next part skips what was not read.
pub struct Multipart<'b, 'a> {
    body: &'b mut Body<'a>,
    /// Finds the delimiter between parts: a line end, two hyphens and the boundary.
    delimiter: Finder<'static>,
    buffer: Vec<u8>,
    /// `buffer[start..end]` holds the bytes that have arrived and were not returned yet.
    start: usize,
    end: usize,
    /// How many of these bytes were searched for the end of the current part, or of its header. None is searched twice,
    /// so a body costs the same however slowly it arrives.
    searched: usize,
    /// How many parts there have been.
    parts: usize,
}

impl<'b, 'a> Multipart<'b, 'a> {
    /// Prepares to parse `body`, whose boundary stands in `content_type`.
    pub fn new(body: &'b mut Body<'a>, content_type: &str) -> Result<Multipart<'b, 'a>, Error> {
        let (media_type, parameters) = parse_parameters(content_type.as_bytes());
        let boundary = parameters
            .into_iter()
            .find(|(name, _)| name == "boundary")
            .map(|(_, value)| value)
            .filter(|b| {
                (1..=MAX_BOUNDARY).contains(&b.len()) && media_type == "multipart/form-data"
            })
            .ok_or_else(malformed)?;
        let mut buffer = vec![0; BUFFER_BYTES];
        // A delimiter begins with a line end, but the first one may stand at the very beginning of the body. With a
        // line end in front of the body it looks like the others.
        buffer[..2].copy_from_slice(b"\r\n");
        let delimiter = Finder::new(&format!("\r\n--{boundary}")).into_owned();
        Ok(Multipart { body, delimiter, buffer, start: 0, end: 2, searched: 0, parts: 0 })
    }

    /// Skips the rest of the current part and returns the header of the next one. Returns `None` after the last part,
    /// once the closing delimiter was found and the body was read to its end. Fails if there are more than
    /// [`MAX_PARTS`].
    pub fn next(&mut self) -> Result<Option<PartHeader>, Error> {
        while self.chunk()?.is_some() {}
        self.consume(self.delimiter.needle().len());
        self.searched = 0;
        while !self.buffered().starts_with(b"--") {
            let buffered = &self.buffer[self.start..self.end];
            let Some(length) = header_length(buffered, &mut self.searched)? else {
                self.fill()?;
                continue;
            };
            self.parts += 1;
            if self.parts > MAX_PARTS {
                return Err(FieldError::of_body(problems::too_many_parts(MAX_PARTS)));
            }
            let header = parse_header(&buffered[..length])?;
            self.consume(length);
            return Ok(Some(header));
        }
        // The text after the closing delimiter is ignored (RFC 2046, 5.1.1). It is read nevertheless, because a body
        // that breaks off there is incomplete.
        while self.body.read(&mut self.buffer)? > 0 {}
        Ok(None)
    }

    /// The next `max` bytes of the current part, without consuming them. There are fewer only if the part ends.
    /// `max` is at most half of [`BUFFER_BYTES`].
    pub fn peek(&mut self, max: usize) -> Result<&[u8], Error> {
        loop {
            let (length, is_end) = self.content_in_buffer();
            if is_end || length >= max {
                return Ok(&self.buffer[self.start..self.start + length.min(max)]);
            }
            self.fill()?;
        }
    }

    /// The next bytes of the current part, as many as are buffered. Returns `None` at its end.
    pub fn chunk(&mut self) -> Result<Option<&[u8]>, Error> {
        loop {
            let (length, is_end) = self.content_in_buffer();
            if length > 0 {
                let from = self.start;
                self.consume(length);
                return Ok(Some(&self.buffer[from..from + length]));
            }
            if is_end {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// The rest of the current part as text, of which at most the characters that fit into the first `max` bytes are
    /// kept. Returns `None` if it is not UTF-8.
    pub fn text(&mut self, max: usize) -> Result<Option<String>, Error> {
        let mut text = Vec::new();
        while let Some(chunk) = self.chunk()? {
            let wanted = chunk.len().min(max - text.len());
            text.extend_from_slice(&chunk[..wanted]);
        }
        let is_cut = text.len() == max;
        if is_cut
            && let Err(error) = std::str::from_utf8(&text)
            && error.error_len().is_none()
        {
            text.truncate(error.valid_up_to());
        }
        Ok(String::from_utf8(text).ok())
    }

    /// How many bytes of the body were returned or skipped so far.
    pub fn position(&self) -> u64 {
        self.body.received().saturating_sub(self.buffered().len() as u64)
    }

    /// How many bytes of the body have arrived so far.
    pub fn received(&self) -> u64 {
        self.body.received()
    }

    fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Drops the first `count` buffered bytes.
    fn consume(&mut self, count: usize) {
        self.start += count;
        self.searched = self.searched.saturating_sub(count);
    }

    /// How many of the buffered bytes belong to the current part for certain, and whether the part ends after them.
    fn content_in_buffer(&mut self) -> (usize, bool) {
        // The last bytes may be the beginning of a delimiter, the rest of which has not arrived yet.
        let undecided = self.delimiter.needle().len() - 1;
        let from = self.searched.saturating_sub(undecided);
        let buffered = &self.buffer[self.start..self.end];
        let found = self.delimiter.find(&buffered[from..]);
        let length = found.map_or(buffered.len().saturating_sub(undecided), |at| from + at);
        self.searched = length + undecided;
        (length, found.is_some())
    }

    /// Reads more of the body into the buffer. There is always room, because at most a part's header or the bytes that
    /// were peeked at are still in it. Fails if the body ends, because its closing delimiter is missing then.
    fn fill(&mut self) -> Result<(), Error> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        match self.body.read(&mut self.buffer[self.end..])? {
            0 => Err(malformed()),
            length => {
                self.end += length;
                Ok(())
            }
        }
    }
}

mod tests;
