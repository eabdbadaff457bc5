//! `multipart/form-data` (RFC 7578, RFC 2046), read as it comes: memory does not grow with the body.

use memchr::memmem::Finder;

use super::part_header::{Head, Part, malformed, parameters, read_head};
use super::request::Source;
use crate::error::Error;

/// Bytes that are held at once.
const BUFFER: usize = 64 * 1024;
/// Longest boundary (RFC 2046, 5.1.1).
const MAX_BOUNDARY: usize = 70;

/// A body in parts. Each part is read to its end before the next.
pub struct Multipart<'a> {
    source: Source<'a>,
    /// Line end, two hyphens, boundary.
    delimiter: Finder<'static>,
    buffer: Vec<u8>,
    /// What of the buffer is read but not yet given.
    start: usize,
    end: usize,
}

impl<'a> Multipart<'a> {
    /// The parts of a body with that `Content-Type`.
    pub fn new(source: Source<'a>, content_type: &str) -> Result<Multipart<'a>, Error> {
        let (kind, parameters) = parameters(content_type.as_bytes());
        let boundary = parameters
            .into_iter()
            .find(|(name, _)| name == "boundary")
            .map(|(_, value)| value)
            .filter(|b| (1..=MAX_BOUNDARY).contains(&b.len()) && kind == "multipart/form-data")
            .ok_or_else(malformed)?;
        let mut buffer = vec![0; BUFFER];
        // The first delimiter may stand at the very start, with no line to end.
        buffer[..2].copy_from_slice(b"\r\n");
        Ok(Multipart {
            source,
            delimiter: Finder::new(&format!("\r\n--{boundary}")).into_owned(),
            buffer,
            start: 0,
            end: 2,
        })
    }

    /// The next part, past what is left of this one. `None`: the last delimiter was there, and the
    /// body has been read to its end.
    pub fn next(&mut self) -> Result<Option<Part>, Error> {
        while self.chunk()?.is_some() {}
        self.start += self.delimiter.needle().len();
        loop {
            match read_head(&self.buffer[self.start..self.end])? {
                Head::Part(part, length) => {
                    self.start += length;
                    return Ok(Some(part));
                }
                Head::Last => break,
                Head::Unfinished => self.fill()?,
            }
        }
        // What follows the last delimiter means nothing, but a body that breaks off was not sent whole.
        while (self.source)(&mut self.buffer)? > 0 {}
        Ok(None)
    }

    /// The first bytes of what is left of the part's content, at most `most` and at most half of
    /// what is held at once; fewer only where there are no more.
    pub fn peek(&mut self, most: usize) -> Result<&[u8], Error> {
        loop {
            let (length, is_end) = self.ahead();
            if is_end || length >= most {
                return Ok(&self.buffer[self.start..self.start + length.min(most)]);
            }
            self.fill()?;
        }
    }

    /// Some more of the part's content; `None` at its end.
    pub fn chunk(&mut self) -> Result<Option<&[u8]>, Error> {
        loop {
            let (length, is_end) = self.ahead();
            if length > 0 {
                let from = self.start;
                self.start += length;
                return Ok(Some(&self.buffer[from..from + length]));
            }
            if is_end {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// How much of what is held is content, and whether the part ends after it.
    fn ahead(&self) -> (usize, bool) {
        let held = &self.buffer[self.start..self.end];
        match self.delimiter.find(held) {
            Some(length) => (length, true),
            // The end of what is held may be the start of a delimiter.
            None => {
                let tail = self.delimiter.needle().len() - 1;
                (held.len().saturating_sub(tail), false)
            }
        }
    }

    /// The part's content as text, cut where it is longer than `most` bytes.
    pub fn text(&mut self, most: usize) -> Result<String, Error> {
        let mut text = Vec::new();
        while let Some(chunk) = self.chunk()? {
            let wanted = chunk.len().min(most - text.len());
            text.extend_from_slice(&chunk[..wanted]);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads more. There is always room: no more than a part's head or what is peeked at is left.
    fn fill(&mut self) -> Result<(), Error> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        match (self.source)(&mut self.buffer[self.end..])? {
            0 => Err(malformed()),
            length => {
                self.end += length;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::part_header::MAX_PART_HEAD;
    use super::*;

    /// The parts of a body that arrives `step` bytes at a time.
    fn read(body: &[u8], step: usize) -> Result<Vec<(Part, Vec<u8>)>, Error> {
        let mut left = body;
        let source: Source = Box::new(move |into| {
            let length = step.min(into.len()).min(left.len());
            into[..length].copy_from_slice(&left[..length]);
            left = &left[length..];
            Ok(length)
        });
        let mut multipart =
            Multipart::new(source, "Multipart/Form-Data; charset=utf-8; Boundary=\"b\"")?;
        let mut parts = Vec::new();
        while let Some(part) = multipart.next()? {
            let first = multipart.peek(5)?.to_vec();
            let mut content = Vec::new();
            while let Some(chunk) = multipart.chunk()? {
                content.extend_from_slice(chunk);
            }
            assert_eq!(first, content[..content.len().min(5)]);
            parts.push((part, content));
        }
        Ok(parts)
    }

    fn field(name: &str) -> Part {
        Part { name: name.into(), ..Part::default() }
    }

    #[test]
    fn parts_are_the_same_however_the_body_arrives() -> Result<(), Error> {
        let big = vec![b'\r'; 3 * BUFFER];
        let body = [
            b"preamble\r\n--b \t\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n--a\r\n--".as_slice(),
            b"\r\n--b\r\ncontent-disposition:form-data;name=y\r\n\r\n\r\n--b\r\nContent-Disposition: form-data; name=z\r\n\r\n",
            &big,
            b"\r\n--b--\r\nepilogue",
        ]
        .concat();
        for step in [1, 2, 3, 5, 7, 100, BUFFER, usize::MAX] {
            let parts = read(&body, step)?;
            let expected = [
                (field("x"), b"\r\n--a\r\n--".to_vec()),
                (field("y"), Vec::new()),
                (field("z"), big.clone()),
            ];
            assert!(parts == expected, "{step}");
        }
        Ok(())
    }

    #[test]
    fn bodies_that_are_no_multipart_are_refused() {
        let many = format!("--b\r\n{}\r\n\r\n--b--", "a: b\r\n".repeat(33));
        let long = format!("--b\r\na: {}\r\n\r\n\r\n--b--", "x".repeat(MAX_PART_HEAD));
        for (body, reason) in [
            ("", "empty"),
            ("--b", "ends in the delimiter"),
            ("--b\r\n", "ends before the head"),
            ("--b\r\na: b\r\n\r\ntext", "no last delimiter"),
            ("--b\r\na: b\r\n\r\ntext\r\n--b\r\n", "no last delimiter either"),
            ("--b\r\na: b\r\n\r\ntext\r\n--b-", "half a last delimiter"),
            ("--c\r\na: b\r\n\r\ntext\r\n--c--\r\n", "another boundary"),
            ("--bb\r\na: b\r\n\r\ntext\r\n--bb--\r\n", "a longer boundary"),
            ("--b\r\nno header\r\n\r\ntext\r\n--b--", "not a header"),
            (&many, "more headers than are read"),
            (&long, "a longer head than is read"),
        ] {
            for step in [1, usize::MAX] {
                assert!(matches!(read(body.as_bytes(), step), Err(Error::Invalid(_))), "{reason}");
            }
        }
    }

    #[test]
    fn a_body_needs_a_boundary() {
        for content_type in [
            "",
            "multipart/form-data",
            "multipart/form-data; boundary=",
            "multipart/mixed; boundary=b",
            "text/plain; boundary=b",
            &format!("multipart/form-data; boundary={}", "b".repeat(71)),
        ] {
            let source: Source = Box::new(|_| Ok(0));
            assert!(Multipart::new(source, content_type).is_err(), "{content_type}");
        }
    }
}
