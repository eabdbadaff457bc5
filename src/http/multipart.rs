//! `multipart/form-data` (RFC 7578, RFC 2046), read as it comes: memory does not grow with the body.

use httparse::{EMPTY_HEADER, Status};
use memchr::memmem::Finder;

use super::request::Source;
use crate::error::{Error, FieldError, Place};
use crate::model::fields as rules;

/// Bytes that are held at once.
const BUFFER: usize = 64 * 1024;
/// Longest head of a part, bytes.
const PART_HEAD_MOST: usize = 8 * 1024;
/// Most headers of a part.
const PART_HEADERS_MOST: usize = 32;
/// Longest boundary (RFC 2046, 5.1.1).
const BOUNDARY_MOST: usize = 70;

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

/// What the head of a part says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Field.
    pub name: String,
    /// Name of a file, as sent.
    pub filename: Option<String>,
    /// Declared type, as sent.
    pub content_type: Option<String>,
}

impl<'a> Multipart<'a> {
    /// The parts of a body with that `Content-Type`.
    pub fn new(source: Source<'a>, content_type: &str) -> Result<Multipart<'a>, Error> {
        let (kind, parameters) = parameters(content_type.as_bytes());
        let boundary = parameters
            .into_iter()
            .find(|(name, _)| name == "boundary")
            .map(|(_, value)| value)
            .filter(|b| (1..=BOUNDARY_MOST).contains(&b.len()) && kind == "multipart/form-data")
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

    /// Some more of the part's content; `None` at its end.
    pub fn chunk(&mut self) -> Result<Option<&[u8]>, Error> {
        loop {
            let held = &self.buffer[self.start..self.end];
            // The end of what is held may be the start of a delimiter.
            let found = self.delimiter.find(held);
            let length = found
                .unwrap_or_else(|| (held.len() + 1).saturating_sub(self.delimiter.needle().len()));
            if length > 0 {
                let from = self.start;
                self.start += length;
                return Ok(Some(&self.buffer[from..from + length]));
            }
            if found.is_some() {
                return Ok(None);
            }
            self.fill()?;
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

    /// Reads more. There is always room: no more than a delimiter or a part's head is left.
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

enum Head {
    /// A head and its length.
    Part(Part, usize),
    /// The delimiter was the last one.
    Last,
    /// More is needed to tell.
    Unfinished,
}

/// Reads what follows a delimiter.
fn read_head(bytes: &[u8]) -> Result<Head, Error> {
    if bytes.starts_with(b"--") {
        return Ok(Head::Last);
    }
    // Blanks may fill the delimiter's line (RFC 2046, 5.1.1).
    let blanks = bytes.iter().take_while(|b| b" \t".contains(b)).count();
    let lines = match &bytes[blanks..] {
        [b'\r', b'\n', lines @ ..] => lines,
        [] | [b'\r'] | [b'-'] => return Ok(Head::Unfinished),
        _ => return Err(malformed()),
    };
    let mut headers = [EMPTY_HEADER; PART_HEADERS_MOST];
    let (length, headers) = match httparse::parse_headers(lines, &mut headers) {
        Ok(Status::Complete(parsed)) if parsed.0 <= PART_HEAD_MOST => parsed,
        Ok(Status::Partial) if lines.len() <= PART_HEAD_MOST => return Ok(Head::Unfinished),
        _ => return Err(malformed()),
    };
    let value = |name: &str| {
        let mut all = headers.iter();
        all.find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
    };
    let mut part = Part {
        content_type: value("Content-Type").map(|v| String::from_utf8_lossy(v).into_owned()),
        ..Part::default()
    };
    let (_, disposition) = parameters(value("Content-Disposition").unwrap_or_default());
    for (name, value) in disposition {
        match name.as_str() {
            "name" => part.name = value,
            "filename" => part.filename = part.filename.or(Some(value)),
            // Not for forms (RFC 7578, 4.2), yet some clients send it for names that are not ASCII.
            "filename*" => part.filename = extended(&value).or(part.filename),
            _ => {}
        }
    }
    Ok(Head::Part(part, bytes.len() - lines.len() + length))
}

/// The text before the first semicolon, in lower case, and the parameters after it with their names in
/// lower case. In a quoted value a backslash escapes a quote or a backslash; others stand for
/// themselves, because some browsers send paths.
fn parameters(value: &[u8]) -> (String, Vec<(String, String)>) {
    let text = String::from_utf8_lossy(value);
    let (first, mut rest) = text.split_once(';').unwrap_or((&text, ""));
    let mut found = Vec::new();
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', '\t', ';']).to_ascii_lowercase();
        let after = after.trim_start();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                let (value, left) = after.split_once(';').unwrap_or((after, ""));
                (value.trim_end().to_owned(), left)
            }
        };
        found.push((name, value));
        rest = left;
    }
    (first.trim().to_ascii_lowercase(), found)
}

/// A quoted value up to its closing quote, and what follows that.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut left = text.char_indices().peekable();
    while let Some((at, c)) = left.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => {
                let escaped = left.next_if(|(_, next)| ['"', '\\'].contains(next));
                value.push(escaped.map_or('\\', |(_, next)| next));
            }
            c => value.push(c),
        }
    }
    (value, "")
}

/// A value with its charset and language before it (RFC 8187, 3.2).
fn extended(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '\'');
    let charset = parts.next()?;
    let encoded = parts.nth(1)?;
    let decoded = percent_encoding::percent_decode_str(encoded).decode_utf8();
    let value = decoded.ok()?.into_owned();
    charset.eq_ignore_ascii_case("utf-8").then_some(value)
}

fn malformed() -> Error {
    Error::Invalid(vec![FieldError {
        place: Place::Body,
        field: None,
        problem: rules::not_multipart(),
    }])
}

#[cfg(test)]
mod tests {
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
            let mut content = Vec::new();
            while let Some(chunk) = multipart.chunk()? {
                content.extend_from_slice(chunk);
            }
            parts.push((part, content));
        }
        Ok(parts)
    }

    fn field(name: &str) -> Part {
        Part {
            name: name.into(),
            ..Part::default()
        }
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
        let long = format!("--b\r\na: {}\r\n\r\n\r\n--b--", "x".repeat(PART_HEAD_MOST));
        for (body, reason) in [
            ("", "empty"),
            ("--b", "ends in the delimiter"),
            ("--b\r\n", "ends before the head"),
            ("--b\r\na: b\r\n\r\ntext", "no last delimiter"),
            (
                "--b\r\na: b\r\n\r\ntext\r\n--b\r\n",
                "no last delimiter either",
            ),
            ("--b\r\na: b\r\n\r\ntext\r\n--b-", "half a last delimiter"),
            ("--c\r\na: b\r\n\r\ntext\r\n--c--\r\n", "another boundary"),
            (
                "--bb\r\na: b\r\n\r\ntext\r\n--bb--\r\n",
                "a longer boundary",
            ),
            ("--b\r\nno header\r\n\r\ntext\r\n--b--", "not a header"),
            (&many, "more headers than are read"),
            (&long, "a longer head than is read"),
        ] {
            for step in [1, usize::MAX] {
                assert!(
                    matches!(read(body.as_bytes(), step), Err(Error::Invalid(_))),
                    "{reason}"
                );
            }
        }
    }

    #[test]
    fn filenames_are_read_as_clients_write_them() -> Result<(), Error> {
        for (disposition, filename, reason) in [
            (r#"form-data; name="file""#, None, "none"),
            (r#"form-data; name="file"; filename="""#, Some(""), "empty"),
            (
                r#"form-data; name="file"; filename="a;b=c.txt""#,
                Some("a;b=c.txt"),
                "separators",
            ),
            (
                r#"form-data; filename="a.txt"; name="file""#,
                Some("a.txt"),
                "before the name",
            ),
            (
                r#"form-data; name=file; filename=a.txt"#,
                Some("a.txt"),
                "no quotes",
            ),
            (
                r#"form-data; name="file"; filename="say \"x\".txt""#,
                Some("say \"x\".txt"),
                "escaped quotes",
            ),
            (
                r#"form-data; name="file"; filename="C:\dir\a.txt""#,
                Some("C:\\dir\\a.txt"),
                "a path of Windows",
            ),
            (
                r#"form-data; name="file"; filename="%22%41.txt""#,
                Some("%22%41.txt"),
                "not decoded",
            ),
            (
                "form-data; name=\"file\"; filename=\"\u{fc}.txt\"",
                Some("\u{fc}.txt"),
                "UTF-8",
            ),
            (
                r#"form-data; name="file"; filename="u.txt"; filename*=UTF-8''%C3%BC.txt"#,
                Some("\u{fc}.txt"),
                "extended",
            ),
            (
                r#"form-data; name="file"; filename*=latin1''%FC.txt; filename=u.txt"#,
                Some("u.txt"),
                "extended, of another charset",
            ),
            (
                r#"form-data; name="file"; filename="a.txt"#,
                Some("a.txt"),
                "no closing quote",
            ),
        ] {
            let body = format!(
                "--b\r\nX: 1\r\nX: 2\r\nX: 3\r\nX: 4\r\nX: 5\r\nContent-Disposition: {disposition}\r\n\r\n\r\n--b--"
            );
            let parts = read(body.as_bytes(), usize::MAX)?;
            let names: Vec<_> = parts
                .iter()
                .map(|(p, _)| (p.name.as_str(), p.filename.as_deref()))
                .collect();
            assert_eq!(names, [("file", filename)], "{reason}");
        }
        Ok(())
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
            assert!(
                Multipart::new(source, content_type).is_err(),
                "{content_type}"
            );
        }
    }
}
