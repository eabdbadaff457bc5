//! The header of one part of a `multipart/form-data` body (RFC 7578, 4).

use httparse::{EMPTY_HEADER, Status};

use crate::error::{Error, FieldError};
use crate::model::problems;

/// Longest header of a part, in bytes.
pub const MAX_PART_HEADER: usize = 8 * 1024;
/// Most lines in the header of a part.
const MAX_PART_HEADER_LINES: usize = 32;

/// What is used of the header of a part.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PartHeader {
    /// The name of the form field.
    pub name: String,
    /// The name of the file as the client sent it, if the part is a file.
    pub filename: Option<String>,
    /// The declared media type as the client sent it.
    pub content_type: Option<String>,
}

/// What follows a delimiter.
pub enum AfterDelimiter {
    /// A part: its header, and the length of the header in bytes.
    Part(PartHeader, usize),
    /// The two hyphens that make it the closing delimiter.
    Last,
    /// Too few bytes to decide.
    Incomplete,
}

/// Parses the bytes after a delimiter. Fails if they are not the header of a part, or if the header is too long.
pub fn parse_after_delimiter(bytes: &[u8]) -> Result<AfterDelimiter, Error> {
    if bytes.starts_with(b"--") {
        return Ok(AfterDelimiter::Last);
    }
    // The line of the delimiter may be padded with blanks (RFC 2046, 5.1.1).
    let blanks = bytes.iter().take_while(|b| b" \t".contains(b)).count();
    let lines = match &bytes[blanks..] {
        [b'\r', b'\n', lines @ ..] => lines,
        [] | [b'\r'] | [b'-'] => return Ok(AfterDelimiter::Incomplete),
        _ => return Err(malformed()),
    };
    Ok(match parse_header(lines)? {
        Some((part, length)) => AfterDelimiter::Part(part, bytes.len() - lines.len() + length),
        None => AfterDelimiter::Incomplete,
    })
}

/// Parses the header of a part, up to and with the empty line that ends it, and returns its length as well. `None` if
/// that line has not arrived yet.
fn parse_header(lines: &[u8]) -> Result<Option<(PartHeader, usize)>, Error> {
    // Filenames may contain control characters. The parser accepts none of them but tabs, so they are replaced by tabs.
    let replace = |&byte: &u8| match byte {
        b'\r' | b'\n' => byte,
        control if control.is_ascii_control() => b'\t',
        other => other,
    };
    let header: Vec<u8> = lines.iter().take(MAX_PART_HEADER).map(replace).collect();
    let mut headers = [EMPTY_HEADER; MAX_PART_HEADER_LINES];
    let (length, headers) = match httparse::parse_headers(&header, &mut headers) {
        Ok(Status::Complete(parsed)) => parsed,
        Ok(Status::Partial) if header.len() < MAX_PART_HEADER => return Ok(None),
        _ => return Err(malformed()),
    };
    let value = |name: &str| {
        let mut all = headers.iter();
        all.find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    let mut part = PartHeader {
        content_type: value("Content-Type").map(|v| String::from_utf8_lossy(v).into_owned()),
        ..PartHeader::default()
    };
    let disposition = value("Content-Disposition").unwrap_or_default();
    if std::str::from_utf8(disposition).is_err() {
        return Err(FieldError::of_body(problems::not_utf8()));
    }
    let (_, disposition) = parse_parameters(disposition);
    for (name, value) in disposition {
        match name.as_str() {
            "name" => part.name = value,
            "filename" => part.filename = part.filename.or(Some(value)),
            // RFC 7578, 4.2 forbids this parameter, but some clients send it for names that are not ASCII.
            "filename*" => part.filename = decode_extended(&value).or(part.filename),
            _ => {}
        }
    }
    Ok(Some((part, length)))
}

/// Splits a header value such as `form-data; name="file"` into the text before the first semicolon and the parameters
/// after it. The text and the names of the parameters are returned in lower case. In a quoted value a backslash escapes
/// a quote or another backslash. Before other characters it stands for itself, because some browsers send Windows
/// paths.
pub fn parse_parameters(value: &[u8]) -> (String, Vec<(String, String)>) {
    let text = String::from_utf8_lossy(value);
    let (first, mut rest) = text.split_once(';').unwrap_or((&text, ""));
    let mut found = Vec::new();
    while let Some((name, after)) = rest.split_once('=') {
        // Words without a value, which may stand before this parameter, are skipped.
        let name = name.rsplit(';').next().unwrap_or_default().trim();
        let after = after.trim_start();
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                let (value, left) = after.split_once(';').unwrap_or((after, ""));
                (value.trim_end().to_owned(), left)
            }
        };
        found.push((name.to_ascii_lowercase(), value));
        rest = left;
    }
    (first.trim().to_ascii_lowercase(), found)
}

/// Splits the text after an opening quote into the unescaped value and what follows the closing quote. If that is
/// missing, the value goes on to the end.
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

/// Decodes a value of the form `UTF-8'language'percent-encoded` (RFC 8187, 3.2). Returns `None` for other charsets.
fn decode_extended(text: &str) -> Option<String> {
    let mut parts = text.splitn(3, '\'');
    let charset = parts.next()?;
    let encoded = parts.nth(1)?;
    let decoded = percent_encoding::percent_decode_str(encoded).decode_utf8();
    let value = decoded.ok()?.into_owned();
    charset.eq_ignore_ascii_case("utf-8").then_some(value)
}

/// The error of a body that is not complete and well-formed `multipart/form-data`.
pub fn malformed() -> Error {
    FieldError::of_body(problems::not_multipart())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filenames_are_read_as_clients_write_them() -> Result<(), Error> {
        for (disposition, filename, reason) in [
            (r#"form-data; name="file""#, None, "no filename"),
            (r#"form-data; name="file"; filename="""#, Some(""), "empty filename"),
            (
                r#"form-data; x; name="file" ; FileName = "a" ;"#,
                Some("a"),
                "a word without a value, blanks",
            ),
            (
                r#"form-data; name="file"; filename="a;b=c.txt""#,
                Some("a;b=c.txt"),
                "separators in quotes",
            ),
            (r#"form-data; filename="a.txt"; name="file""#, Some("a.txt"), "before the name"),
            (r#"form-data; name=file; filename=a.txt"#, Some("a.txt"), "without quotes"),
            (
                r#"form-data; name="file"; filename="say \"x\".txt""#,
                Some("say \"x\".txt"),
                "escaped quotes",
            ),
            (
                r#"form-data; name="file"; filename="C:\dir\a.txt""#,
                Some("C:\\dir\\a.txt"),
                "a Windows path",
            ),
            (
                r#"form-data; name="file"; filename="%22%41.txt""#,
                Some("%22%41.txt"),
                "percent signs are not decoded",
            ),
            ("form-data; name=\"file\"; filename=\"\u{fc}.txt\"", Some("\u{fc}.txt"), "UTF-8"),
            (
                r#"form-data; name="file"; filename="u.txt"; filename*=UTF-8''%C3%BC.txt"#,
                Some("\u{fc}.txt"),
                "extended",
            ),
            (
                r#"form-data; name="file"; filename*=latin1''%FC.txt; filename=u.txt"#,
                Some("u.txt"),
                "extended, in another charset",
            ),
            (r#"form-data; name="file"; filename="a.txt"#, Some("a.txt"), "no closing quote"),
        ] {
            let head = format!("\r\nX: 1\r\nContent-Disposition: {disposition}\r\n\r\n");
            let AfterDelimiter::Part(part, length) =
                parse_after_delimiter(format!("{head}content").as_bytes())?
            else {
                panic!("not a part: {reason}");
            };
            assert_eq!(
                (part.name.as_str(), part.filename.as_deref(), length),
                ("file", filename, head.len()),
                "{reason}"
            );
        }
        Ok(())
    }
}
