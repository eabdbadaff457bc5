//! The header of one part of a `multipart/form-data` body (RFC 7578, 4).

use httparse::{EMPTY_HEADER, Status};
use memchr::memchr;

use crate::error::{Error, FieldError};
use crate::model::problems;

/// Longest header of a part in bytes, with the rest of the delimiter's line before it.
pub const MAX_PART_HEADER: usize = 8 * 1024;
/// Most lines in the header of a part.
const MAX_PART_HEADER_LINES: usize = 32;

/// The fields of a part's header that this service uses.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PartHeader {
    /// The name of the form field.
    pub name: String,
    /// The name of the file as the client sent it, if the part is a file.
    pub filename: Option<String>,
    /// The declared media type as the client sent it.
    pub content_type: Option<String>,
}

/// The length of what follows a delimiter, up to and with the empty line that ends the header of a part. `None` if that
/// line has not arrived yet. `searched` is how many of the bytes earlier calls have searched: each is searched once,
/// however slowly they arrive. Fails if the header is too long.
pub fn header_length(bytes: &[u8], searched: &mut usize) -> Result<Option<usize>, Error> {
    let bytes = &bytes[..bytes.len().min(MAX_PART_HEADER)];
    while let Some(found) = memchr(b'\n', &bytes[*searched..]) {
        let before = &bytes[..*searched + found];
        *searched = before.len() + 1;
        if before.strip_suffix(b"\r").unwrap_or(before).ends_with(b"\n") {
            return Ok(Some(*searched));
        }
    }
    *searched = bytes.len();
    if bytes.len() < MAX_PART_HEADER { Ok(None) } else { Err(malformed()) }
}

/// Parses what follows a delimiter, up to and with the empty line that ends the header of a part. Fails if it is not
/// such a header.
pub fn parse_header(bytes: &[u8]) -> Result<PartHeader, Error> {
    // The line of the delimiter may be padded with blanks (RFC 2046, 5.1.1).
    let blanks = bytes.iter().take_while(|b| b" \t".contains(b)).count();
    let lines = bytes[blanks..].strip_prefix(b"\r\n").ok_or_else(malformed)?;
    // Filenames may contain control characters. The parser accepts none of them but tabs, so they are replaced by tabs.
    let replace = |&byte: &u8| match byte {
        b'\r' | b'\n' => byte,
        control if control.is_ascii_control() => b'\t',
        other => other,
    };
    let header: Vec<u8> = lines.iter().map(replace).collect();
    let mut headers = [EMPTY_HEADER; MAX_PART_HEADER_LINES];
    let headers = match httparse::parse_headers(&header, &mut headers) {
        Ok(Status::Complete((length, headers))) if length == header.len() => headers,
        _ => return Err(malformed()),
    };
    let value = |name: &str| {
        let mut all = headers.iter();
        all.find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    // Stored as it came, an encoded part would be another file than the sender's.
    let is_plain = |coding: &[u8]| {
        let codings = [&b"7bit"[..], b"8bit", b"binary"];
        codings.iter().any(|plain| plain.eq_ignore_ascii_case(coding.trim_ascii()))
    };
    if !value("Content-Transfer-Encoding").is_none_or(is_plain) {
        return Err(FieldError::of_body(problems::ENCODED_PART));
    }
    let mut part = PartHeader {
        content_type: value("Content-Type").map(|v| String::from_utf8_lossy(v).into_owned()),
        ..PartHeader::default()
    };
    let disposition = value("Content-Disposition").unwrap_or_default();
    if std::str::from_utf8(disposition).is_err() {
        return Err(FieldError::of_body(problems::NOT_UTF8));
    }
    let (_, disposition) = parse_parameters(disposition);
    for (name, value) in disposition {
        match name.as_str() {
            "name" => part.name = value,
            "filename" => part.filename = part.filename.or(Some(decode_form_escapes(&value))),
            // RFC 7578, 4.2 forbids this parameter, but some clients send it for names that are not ASCII.
            "filename*" => part.filename = decode_extended(&value).or(part.filename),
            _ => {}
        }
    }
    Ok(part)
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

/// Decodes what the forms of browsers write in place of a quote and of the ends of lines (HTML standard, "multipart
/// form data"), and nothing else: they write `%` as it is, so any other sequence is part of the name.
fn decode_form_escapes(filename: &str) -> String {
    filename.replace("%22", "\"").replace("%0A", "\n").replace("%0D", "\r")
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
    FieldError::of_body(problems::NOT_MULTIPART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_part_is_refused() {
        for (coding, is_plain) in [
            ("7bit", true),
            ("8BIT", true),
            (" Binary ", true),
            ("base64", false),
            ("quoted-printable", false),
            ("", false),
            ("x-unknown", false),
        ] {
            let disposition = "Content-Disposition: form-data; name=\"file\"";
            let head = format!("\r\n{disposition}\r\nContent-Transfer-Encoding:{coding}\r\n\r\n");
            assert_eq!(parse_header(head.as_bytes()).is_ok(), is_plain, "{coding:?}");
        }
    }

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
                r#"form-data; name="file"; filename="5%22%0D%0A%0a%2522%41%2F%.txt""#,
                Some("5\"\r\n%0a%2522%41%2F%.txt"),
                "what forms write for a quote and ends of lines is decoded, once",
            ),
            (
                r#"form-data; name="file"; filename="%2%22; %0%0A""#,
                Some("%2\"; %0\n"),
                "what is left of a sequence makes no new one",
            ),
            (
                r#"form-data; name="file"; filename*=UTF-8''5%2522.txt"#,
                Some("5%22.txt"),
                "extended names are decoded by their own rule alone",
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
            let length = header_length(format!("{head}content").as_bytes(), &mut 0)?;
            assert_eq!(length, Some(head.len()), "{reason}");
            let part = parse_header(head.as_bytes())?;
            assert_eq!(
                (part.name.as_str(), part.filename.as_deref()),
                ("file", filename),
                "{reason}"
            );
        }
        Ok(())
    }
}
