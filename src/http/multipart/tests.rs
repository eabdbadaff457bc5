//! Unit tests of the module above.

#![cfg(test)]

use std::io::Read;

use super::super::part_header::MAX_PART_HEADER;
use super::*;

/// Returns its bytes a few at a time, as a slow connection does.
struct SlowReader<'a> {
    left: &'a [u8],
    step: usize,
}

impl Read for SlowReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let step = self.step.min(buffer.len());
        self.left.by_ref().take(step as u64).read(buffer)
    }
}

const CONTENT_TYPE: &str = "Multipart/Form-Data; charset=utf-8; Boundary=\"b\"";

/// Parses a body that arrives `step` bytes at a time.
fn read(content_type: &str, body: &[u8], step: usize) -> Result<Vec<(PartHeader, Vec<u8>)>, Error> {
    let mut reader = SlowReader { left: body, step };
    let mut body = Body::new(|buffer, _| reader.read(buffer), None);
    body.set_limit(u64::MAX)?;
    let mut multipart = Multipart::new(&mut body, content_type)?;
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

fn field(name: &str) -> PartHeader {
    PartHeader { name: name.into(), ..PartHeader::default() }
}

#[test]
fn parts_are_the_same_however_the_body_arrives() -> Result<(), Error> {
    let big = vec![b'\r'; 3 * BUFFER_BYTES];
    let body = [
        b"preamble\r\n--b \t\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n--a\r\n--"
            .as_slice(),
        b"\r\n--b\r\ncontent-disposition:form-data;name=y\r\n\r\n",
        b"\r\n--b\r\nContent-Disposition: form-data; name=z\r\n\r\n",
        &big,
        b"\r\n--b--\r\nepilogue",
    ]
    .concat();
    for step in [1, 2, 3, 5, 7, 100, BUFFER_BYTES, usize::MAX] {
        let parts = read(CONTENT_TYPE, &body, step)?;
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
fn malformed_and_incomplete_bodies_are_refused() {
    let many = format!("--b\r\n{}\r\n\r\n--b--", "a: b\r\n".repeat(33));
    let long = format!("--b\r\na: {}\r\n\r\n\r\n--b--", "x".repeat(MAX_PART_HEADER));
    let crowded = "--b\r\na: b\r\n\r\n\r\n".repeat(MAX_PARTS + 1) + "--b--";
    for (body, reason) in [
        ("", "empty"),
        ("--b", "ends within the first delimiter"),
        ("--b\r\n", "ends before the part's header"),
        ("--b\r\na: b\r\n\r\ntext", "no closing delimiter"),
        ("--b\r\na: b\r\n\r\ntext\r\n--b\r\n", "another part is announced"),
        ("--b\r\na: b\r\n\r\ntext\r\n--b-", "half a closing delimiter"),
        ("--c\r\na: b\r\n\r\ntext\r\n--c--\r\n", "another boundary"),
        ("--bb\r\na: b\r\n\r\ntext\r\n--bb--\r\n", "a longer boundary"),
        ("--b\r\nno header\r\n\r\ntext\r\n--b--", "not a header line"),
        (&many, "more header lines than are read"),
        (&long, "a longer header than is read"),
        (&crowded, "more parts than are read"),
    ] {
        for step in [1, usize::MAX] {
            let outcome = read(CONTENT_TYPE, body.as_bytes(), step);
            assert!(matches!(outcome, Err(Error::Invalid(_))), "{reason}");
        }
    }
}

#[test]
fn the_content_type_must_name_a_boundary() {
    for content_type in [
        "",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=b",
        "text/plain; boundary=b",
        &format!("multipart/form-data; boundary={}", "b".repeat(71)),
    ] {
        let mut body = Body::new(|_, _| Ok(0), None);
        assert!(Multipart::new(&mut body, content_type).is_err(), "{content_type}");
    }
}

/// Divides at the first `mark`.
fn divide<'a>(bytes: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(bytes, mark)?;
    Some((&bytes[..at], &bytes[at + mark.len()..]))
}

/// The parameters of a header value, read one character after the other.
fn parameters(value: &str) -> Vec<(String, String)> {
    let mut rest = value.chars().skip_while(|c| *c != ';').skip(1).peekable();
    let (mut found, mut name) = (Vec::new(), String::new());
    while let Some(c) = rest.next() {
        match c {
            ';' => name.clear(),
            '=' => {
                while rest.next_if(|c| c.is_whitespace()).is_some() {}
                let mut value = String::new();
                if rest.next_if_eq(&'"').is_some() {
                    while let Some(c) = rest.next().filter(|c| *c != '"') {
                        let escaped = rest.next_if(|next| c == '\\' && "\\\"".contains(*next));
                        value.push(escaped.unwrap_or(c));
                    }
                } else {
                    value.extend(std::iter::from_fn(|| rest.next_if(|c| *c != ';')));
                    value.truncate(value.trim_end().len());
                }
                found.push((std::mem::take(&mut name).trim().to_ascii_lowercase(), value));
            }
            c => name.push(c),
        }
    }
    found
}

/// The header of a part, of at most 32 lines, and what follows it.
fn read_header(bytes: &[u8]) -> Option<(PartHeader, &[u8])> {
    let (padding, mut rest) = divide(bytes, b"\r\n")?;
    let mut fields = Vec::new();
    loop {
        let (line, after) = divide(rest, b"\n")?;
        rest = after;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        let (name, value) = divide(line, b":")?;
        let is_token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
        if name.is_empty() || !name.iter().all(is_token) || value.contains(&b'\r') {
            return None;
        }
        let visible = |b: &u8| if b.is_ascii_control() { b'\t' } else { *b };
        let value: Vec<u8> = value.iter().map(visible).collect();
        fields.push((name.to_ascii_lowercase(), value.trim_ascii().to_vec()));
    }
    let field = |name: &[u8]| Some(fields.iter().find(|(n, _)| n == name)?.1.clone());
    let disposition = String::from_utf8(field(b"content-disposition").unwrap_or_default());
    let parameters = parameters(&disposition.ok()?);
    let all = |name: &'static str| {
        parameters.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.clone())
    };
    let extended = |value: String| {
        let (charset, text) = value.split_once('\'')?;
        let (_, text) = text.split_once('\'').filter(|_| charset.eq_ignore_ascii_case("utf-8"))?;
        Some(percent_encoding::percent_decode_str(text).decode_utf8().ok()?.into_owned())
    };
    let plain = all("filename").next().map(|name| {
        name.replace("%0A", "\n").replace("%0D", "\r").replace("%22", "\"") // as forms write them
    });
    let header = PartHeader {
        name: all("name").next_back().unwrap_or_default(),
        filename: all("filename*").filter_map(extended).next_back().or(plain),
        content_type: field(b"content-type").map(|v| String::from_utf8_lossy(&v).into_owned()),
    };
    let is_padding = padding.iter().all(|b| b" \t".contains(b));
    (is_padding && fields.len() <= 32).then_some((header, rest))
}

/// The parts of a body, as its delimiters divide it.
fn split(content_type: &str, body: &[u8]) -> Option<Vec<(PartHeader, Vec<u8>)>> {
    let (media_type, _) = content_type.split_once(';')?;
    let mut parameters = parameters(content_type).into_iter();
    let (_, boundary) = parameters.find(|(name, _)| name == "boundary")?;
    let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
    let body = [b"\r\n", body].concat();
    let (_, mut rest) = divide(&body, &delimiter)?;
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        let (header, content) = read_header(rest)?;
        let (content, after) = divide(content, &delimiter)?;
        parts.push((header, content.to_vec()));
        rest = after;
    }
    let is_form = media_type.trim().eq_ignore_ascii_case("multipart/form-data");
    (is_form && (1..=MAX_BOUNDARY).contains(&boundary.len()) && parts.len() <= MAX_PARTS)
        .then_some(parts)
}

#[test]
fn fuzz_multipart_bodies() {
    fuzz::check("multipart", |input| {
        let Some((&[step, at, low, high], rest)) = input.split_first_chunk() else {
            return;
        };
        // No UTF-8 has this byte.
        let (content_type, body) = divide(rest, b"\xff").unwrap_or((CONTENT_TYPE.as_bytes(), rest));
        let content_type = String::from_utf8_lossy(content_type);
        // Some bodies are longer than the buffer, in the middle of something.
        let (before, after) = body.split_at(body.len().min(at.into()));
        let filler = vec![b'\r'; usize::from(u16::from_le_bytes([low, high])) * 2];
        let body = [before, &filler, after].concat();
        let parts = split(&content_type, &body);
        let step = (1 + usize::from(step)) * (1 + filler.len() / 256);
        for step in [step, usize::MAX] {
            assert_eq!(read(&content_type, &body, step).ok(), parts, "{step}");
        }
    });
}
