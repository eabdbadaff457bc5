//! Responses that carry a file: the whole file, a range of it, or nothing if the client has it already (RFC 9110, 13
//! and 14).

use std::ops::Range;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::conditions::Conditions;
use super::request::Request;
use super::response::{Response, ResponseBody, json};
use crate::config::is_token;
use crate::error::Error;
use crate::model::file::{File, version_tag};
use crate::model::filename::shortened;

/// A browser that is made to show a file runs no script of it and loads nothing that it names.
const CONTENT_SECURITY_POLICY: &str = "sandbox; default-src 'none'";

/// The longest name of a file that file systems take, in bytes of UTF-8. Programs that save a file under a longer one
/// fail.
const MAX_NAME_BYTES: usize = 255;

/// The characters that are percent-encoded in an extended parameter: all but `attr-char` (RFC 8187, 3.2.1).
const NOT_ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// What browsers may do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "only links have more than one"))]
pub enum FileUse {
    /// A download by a signed-in user: it is saved.
    Download,
    /// A download by a link: it is saved, and pages of any site may embed it.
    SavedByLink,
    /// The same, but the browser shows it.
    ShownByLink,
}

impl FileUse {
    /// The type in `Content-Disposition` (RFC 6266, 4.2), and the value of `Cross-Origin-Resource-Policy`: whose pages
    /// may embed the file (Fetch standard).
    fn policies(self) -> (&'static str, &'static str) {
        match self {
            FileUse::Download => ("attachment", "same-site"),
            FileUse::SavedByLink => ("attachment", "cross-origin"),
            FileUse::ShownByLink => ("inline", "cross-origin"),
        }
    }
}

/// What a response carries, as a whole or a range of it.
#[derive(Clone, Copy)]
pub struct Representation<'a> {
    /// The strong entity tag.
    pub tag: &'a str,
    /// When it was last changed, to the second.
    pub modified: Option<SystemTime>,
    /// In bytes.
    pub length: u64,
    pub content_type: &'a str,
    /// The name under which it is saved.
    pub name: &'a str,
    /// The SHA-256 in hexadecimal, if it is known.
    pub sha256: Option<&'a str>,
}

/// Responds with the content of `file`, see [`content_response`].
pub fn file_response(
    request: &Request,
    file: &File,
    file_use: FileUse,
    open: impl FnOnce(Range<u64>) -> Result<ResponseBody, Error>,
) -> Result<Response, Error> {
    let content = Representation {
        tag: &format!("\"{}\"", file.file_hash),
        // The content never changes after its upload.
        modified: Some(file.upload_date.to_the_second()),
        length: file.file_size as u64,
        content_type: &file.content_type,
        // A program that downloads a file knows the name that it was sent with; whoever has a link the present one.
        name: match file_use {
            FileUse::Download => &file.original_filename,
            FileUse::SavedByLink | FileUse::ShownByLink => &file.filename,
        },
        sha256: Some(&file.file_hash),
    };
    content_response(request, &content, file_use, open)
}

/// Responds with `content`: 200, 206 for a range, or 304 if the client has it already. `open` makes a body of the bytes
/// in a range of it. Fails with [`Error::RangeNotSatisfiable`], or if `open` does.
pub fn content_response(
    request: &Request,
    content: &Representation,
    file_use: FileUse,
    open: impl FnOnce(Range<u64>) -> Result<ResponseBody, Error>,
) -> Result<Response, Error> {
    let (disposition, embedders) = file_use.policies();
    let Representation { tag, modified, .. } = *content;
    let mut response = if Conditions::read(request).is_known(tag, modified)? {
        Response::empty(304)
    } else {
        // `Range` has a meaning for GET only (RFC 9110, 14.2).
        let part = if request.method() == "GET" && range_applies(request, tag, modified) {
            parse_range(request.header("Range").unwrap_or_default(), content.length)
        } else {
            None
        };
        range_response(content, part, open)?
    }
    .with_header("ETag", tag.to_owned());
    if let Some(modified) = modified {
        response.add_header("Last-Modified", httpdate::fmt_http_date(modified));
    }
    Ok(response
        .with_header("Accept-Ranges", "bytes")
        // Also in a 304, or the browser would save the cached content under its old name.
        .with_header("Content-Disposition", content_disposition(disposition, content.name))
        .with_header("Cache-Control", "private, no-cache")
        .with_header("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        .with_header("Cross-Origin-Resource-Policy", embedders))
}

/// Responds with a part of the content, or with all of it.
fn range_response(
    content: &Representation,
    part: Option<Range<u64>>,
    open: impl FnOnce(Range<u64>) -> Result<ResponseBody, Error>,
) -> Result<Response, Error> {
    let length = content.length;
    let (status, range) = match part {
        None => (200, 0..length),
        Some(part) if part.is_empty() => return Err(Error::RangeNotSatisfiable(length)),
        Some(part) => (206, part),
    };
    let mut response = Response { status, headers: Vec::new(), body: open(range.clone())? }
        .with_header("Content-Type", content.content_type.to_owned());
    if let Some(hash) = content.sha256 {
        response.add_header("Repr-Digest", repr_digest(hash));
    }
    if status == 206 {
        let (first, last) = (range.start, range.end - 1);
        response.add_header("Content-Range", format!("bytes {first}-{last}/{length}"));
    }
    Ok(response)
}

/// The digest of a whole content (RFC 9530, 3), given its SHA-256 in hexadecimal.
fn repr_digest(hash: &str) -> String {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = hash.as_bytes().chunks(2).filter_map(byte).collect();
    format!("sha-256=:{}:", STANDARD.encode(bytes))
}

/// Whether `Range` is to be honoured: `If-Range` is absent, or it names the current content (RFC 9110, 13.1.5).
fn range_applies(request: &Request, tag: &str, modified: Option<SystemTime>) -> bool {
    request.header("If-Range").is_none_or(|known| {
        known == tag || httpdate::parse_http_date(known).is_ok_and(|date| Some(date) == modified)
    })
}

/// Parses `Range` for a file of `length` bytes. The result is an empty range if only bytes after the end of the file
/// are asked for. `None` stands for the whole file, also if the header is not exactly one well-formed range of bytes: a
/// server may ignore several ranges and other units (RFC 9110, 14.2). Of an empty file it ignores all, because no range
/// of it can be satisfied, and a client that resumes a download must not fail for that.
fn parse_range(header: &str, length: u64) -> Option<Range<u64>> {
    let (unit, set) = header.split_once('=').filter(|_| length > 0)?;
    let (first, last) = set.trim_matches([' ', '\t']).split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // A number that does not fit into 64 bits lies after the end of any file.
    let number = |text: &str| is_number(text).then(|| text.parse().unwrap_or(u64::MAX));
    if !unit.trim_matches([' ', '\t']).eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (from, to) = match (first, last) {
        ("", suffix) => match number(suffix)? {
            0 => (length, length),
            n => (length.saturating_sub(n), length),
        },
        (first, "") => (number(first)?, length),
        (first, last) => {
            let (from, last) = (number(first)?, number(last)?);
            if last < from {
                return None;
            }
            (from, length.min(last.saturating_add(1)))
        }
    };
    Some(from..to)
}

/// The value of `Content-Disposition` for a file named `name` (RFC 6266). A token without `%` is written as it is. Any
/// other name is quoted, with `_` in place of everything but printable ASCII. If anything was replaced, or if the name
/// holds `%` or `=?`, from which browsers decode a name (RFC 6266, appendix D), the whole name follows as `filename*`
/// (RFC 8187). So no character of the name can end the parameter or the header. It is cut to what file systems take.
fn content_disposition(kind: &str, name: &str) -> String {
    let name = &*shortened(name, MAX_NAME_BYTES, str::len);
    if is_token(name) && !name.contains('%') {
        return format!("{kind}; filename={name}");
    }
    let is_printable = |c| matches!(c, ' '..='~');
    let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
    let quoted = escaped.replace(|c| !is_printable(c), "_");
    let plain = format!("{kind}; filename=\"{quoted}\"");
    if name.chars().all(|c| is_printable(c) && c != '%') && !name.contains("=?") {
        plain
    } else {
        format!("{plain}; filename*=UTF-8''{}", utf8_percent_encode(name, NOT_ATTR_CHAR))
    }
}

/// A response with the metadata of a file, and with what tells its version.
pub fn metadata_response(status: u16, file: &File) -> Result<Response, Error> {
    Ok(with_version(json(status, file)?, file))
}

/// Adds the headers that tell the version of a file.
pub fn with_version(response: Response, file: &File) -> Response {
    response
        .with_header("ETag", version_tag(file.version))
        .with_header("Last-Modified", httpdate::fmt_http_date(file.updated_at.to_the_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_ranges_are_understood_and_others_ignored() {
        for (header, length, expected) in [
            ("bytes=0-0", 10, Some(0..1)),
            ("bytes=2-5", 10, Some(2..6)),
            ("Bytes= 2-", 10, Some(2..10)),
            ("bytes=9-100", 10, Some(9..10)),
            ("bytes=0-99999999999999999999", 10, Some(0..10)),
            ("bytes=-3", 10, Some(7..10)),
            ("bytes=-30", 10, Some(0..10)),
            ("bytes=10-", 10, Some(0..0)),
            ("bytes=99999999999999999999-", 10, Some(0..0)),
            ("bytes=-0", 10, Some(0..0)),
            ("bytes=0-", 0, None),
            ("bytes=0-0", 0, None),
            ("bytes=7-", 0, None),
            ("bytes=-1", 0, None),
            ("bytes=-0", 0, None),
            ("bytes\u{a0}=0-0", 10, None),
            ("bytes=5-2", 10, None),
            ("bytes=0-1,3-4", 10, None),
            ("bytes=-", 10, None),
            ("bytes=a-b", 10, None),
            ("bytes=+1-2", 10, None),
            ("bytes", 10, None),
            ("lines=0-1", 10, None),
            ("", 10, None),
        ] {
            let found =
                parse_range(header, length).map(|part| if part.is_empty() { 0..0 } else { part });
            assert_eq!(found, expected, "{header} of {length}");
        }
    }

    #[test]
    fn no_filename_can_end_the_parameter_or_the_header() {
        for (name, expected) in [
            ("a.txt", "attachment; filename=a.txt"),
            ("%41.txt", "attachment; filename=\"%41.txt\"; filename*=UTF-8''%2541.txt"),
            ("=?x", "attachment; filename=\"=?x\"; filename*=UTF-8''%3D%3Fx"),
            ("a=b?", "attachment; filename=\"a=b?\""),
            ("a b.txt", "attachment; filename=\"a b.txt\""),
            ("a;b=c.txt", "attachment; filename=\"a;b=c.txt\""),
            ("a\"b\\.txt", "attachment; filename=\"a\\\"b\\\\.txt\""),
            ("a\r\nX: 1", "attachment; filename=\"a__X: 1\"; filename*=UTF-8''a%0D%0AX%3A%201"),
            (
                "\u{fc} '%.txt",
                "attachment; filename=\"_ '%.txt\"; filename*=UTF-8''%C3%BC%20%27%25.txt",
            ),
            ("\u{1f600}", "attachment; filename=\"_\"; filename*=UTF-8''%F0%9F%98%80"),
            ("\u{202e}gpj", "attachment; filename=\"_gpj\"; filename*=UTF-8''%E2%80%AEgpj"),
        ] {
            assert_eq!(content_disposition("attachment", name), expected);
        }
    }
}
