//! Under which media type an uploaded content is stored: the type that its sender declares, that its first bytes show,
//! or none, in which case it is refused.

use super::media_type::{listed, spellings, without_parameters};
use super::signature::{OCTET_STREAM, Signature, shown_types};
use super::type_families::{GZIP, OLE, PROGRAMS, RAR, ZIP, are_related, belongs, has_family};
use super::utf8::Utf8Check;
use crate::config::{UploadTypes, is_media_type};
use crate::error::Error;

/// How many of a file's first bytes are examined to recognise its type.
pub const SIGNATURE_BYTES: usize = 8192;

/// The type under which a file of this name is stored whose part declares `declared` and whose content begins with
/// `first`, up to [`SIGNATURE_BYTES`]. Browsers and programs name types by the end of a filename, if at all, and by
/// many names. So a file is refused only if the list takes neither its declared type nor, for text, `text/plain`, or if
/// its content certainly shows another type that is not listed; a type that is declared wrongly, but is in the list, is
/// corrected. Of one that declares nothing, the type is found. Fails with [`Error::TypeNotAllowed`] or
/// [`Error::TypeContradicted`].
pub fn stored_type(
    declared: Option<&str>,
    filename: &str,
    first: &[u8],
    types: &UploadTypes,
) -> Result<String, Error> {
    let is_text = is_utf8_text(first);
    let shown = shown_types(first, is_text, filename);
    let accepted = || shown.iter().find_map(|name| listed(name, types));
    let plain = |is_plain: bool| is_plain.then(|| listed("text/plain", types)).flatten();
    let not_allowed = |name: Option<&str>| {
        let accepted = types.iter().collect::<Vec<_>>().join(", ");
        Error::TypeNotAllowed { found: name.map(str::to_owned), accepted }
    };
    let Some(declared) = declared.and_then(declared_type) else {
        let is_utf16 = first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff");
        let stored = accepted().or_else(|| plain(is_text || is_utf16));
        let found = shown.first().copied().or(is_text.then_some("text/plain"));
        return stored.or_else(|| listed(OCTET_STREAM, types)).ok_or_else(|| not_allowed(found));
    };
    if is_text
        && is_csv(&declared, filename)
        && let Some(stored) = listed("text/csv", types).or_else(|| plain(true))
    {
        return Ok(stored);
    }
    let stored = listed(&declared, types).or_else(|| plain(is_text && is_kind_of_text(&declared)));
    let stored = stored.ok_or_else(|| not_allowed(Some(&declared)))?;
    let is_trusted = types.take_any() || (declared.starts_with("text/") && is_text);
    match Signature::of(first).filter(|one| !is_trusted && contradicts(one, &declared, is_text)) {
        None => Ok(stored),
        Some(one) => accepted().ok_or(Error::TypeContradicted { declared, recognised: one.name }),
    }
}

/// The type that a part declares, or `None` if what it says is no type of a file: not two tokens (RFC 9110, 8.3.1), a
/// pattern, longer than the column of the database, or what programs send who do not know the type.
fn declared_type(text: &str) -> Option<String> {
    let name = without_parameters(text);
    let is_unknown = ["multipart/form-data", OCTET_STREAM].contains(&&*name) || name.contains('*');
    (is_media_type(&name) && !is_unknown).then_some(name)
}

/// Whether a text of this type and name is a table of values in lines, which Windows with Office calls one of Excel.
fn is_csv(name: &str, filename: &str) -> bool {
    let is_of_excel = spellings(name).contains(&"application/vnd.ms-excel");
    is_of_excel && filename.to_ascii_lowercase().ends_with(".csv")
}

/// Whether a type is a kind of text, which is plain text to who does not know it (RFC 2046, 4.1.4). HTML is none here:
/// what it says is what browsers make of it.
fn is_kind_of_text(name: &str) -> bool {
    const OTHERS: &str = "application/json application/yaml application/xml text/javascript application/sql \
                          application/x-sh";
    (name.starts_with("text/") && name != "text/html") || belongs(name, OTHERS)
}

/// Whether a file with this signature is certainly not of the declared type. Text proves little: only what is
/// certainly no text is contradicted by it. Types of programs are many, and those without a family are contradicted
/// by programs alone.
fn contradicts(signature: &Signature, declared: &str, is_text: bool) -> bool {
    let shown = signature.name;
    let kind = declared.split('/').next().unwrap_or_default();
    let is_contradicted = if is_text && shown.starts_with("text/") {
        matches!(kind, "image" | "audio" | "video" | "font") && !declared.starts_with("image/svg")
            || spellings(declared).contains(&"application/pdf")
            || [ZIP, OLE, GZIP, RAR].into_iter().any(|family| belongs(declared, family))
    } else {
        kind != "application" || has_family(declared) || belongs(shown, PROGRAMS)
    };
    signature.is_certain && !are_related(shown, declared) && is_contradicted
}

/// Whether the bytes are UTF-8 without NUL. If there are [`SIGNATURE_BYTES`] of them, the file probably goes on, so its
/// last character may be cut off.
fn is_utf8_text(bytes: &[u8]) -> bool {
    let mut text = Utf8Check::default();
    text.add(bytes);
    text.is_utf8(bytes.len() == SIGNATURE_BYTES)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const GZIP_BYTES: &[u8] = b"\x1f\x8b\x08\0";
    const HTML: &[u8] = b"<!DOCTYPE html><p>";

    /// A Windows program of 8 KiB whose header is at this offset.
    fn program(offset: u32) -> Vec<u8> {
        let mut bytes = vec![0; SIGNATURE_BYTES];
        bytes[..2].copy_from_slice(b"MZ");
        bytes[0x3c..0x40].copy_from_slice(&offset.to_le_bytes());
        bytes[0x80..0x84].copy_from_slice(b"PE\0\0");
        bytes
    }

    type Case<'a> = (Option<&'a str>, &'a [u8], Option<&'a str>, &'a str);

    /// Checks the stored types, or `None` for a refusal, of files with these declared types and contents.
    fn assert_stored(types: &str, cases: &[Case]) {
        let types: UploadTypes = types.parse().unwrap();
        for (declared, first, expected, reason) in cases {
            let stored = stored_type(*declared, "a", first, &types).ok();
            assert_eq!(stored.as_deref(), *expected, "{types}, {declared:?}: {reason}");
        }
    }

    #[test]
    fn what_declares_no_type_gets_the_one_that_it_shows_or_is_text() {
        const DEFAULT: &str = "image/jpeg,image/png,application/pdf,text/plain";
        let cut = [b"x".repeat(SIGNATURE_BYTES - 1), vec![0xc3]].concat();
        let long = "x".repeat(60) + "/" + &"y".repeat(60);
        for declared in [
            None,
            Some(""),
            Some("application/octet-stream"),
            Some("Application/Octet-Stream; x=y"),
            Some("multipart/form-data"),
            Some("png"),
            Some("image/"),
            Some("image/*"),
            Some("*/*"),
            Some("a b/c"),
            Some("image/p\u{e9}"),
            Some(&long),
        ] {
            assert_stored(
                DEFAULT,
                &[
                    (declared, PNG, Some("image/png"), "a picture"),
                    (declared, b"%PDF-1.7 \xe2\xe3", Some("application/pdf"), "a document"),
                    (declared, b"hello", Some("text/plain"), "text"),
                    (declared, b"", Some("text/plain"), "an empty text"),
                    (
                        declared,
                        &cut,
                        Some("text/plain"),
                        "a character cut off after the examined bytes",
                    ),
                    (declared, b"BMW sales", Some("text/plain"), "text with a short signature"),
                    (declared, HTML, Some("text/plain"), "a page, whose type is not in the list"),
                    (declared, b"caf\xe9", None, "neither text nor known"),
                    (declared, b"a\0b", None, "NUL is no text"),
                    (declared, b"GIF89a\x80", None, "a picture that is not in the list"),
                ],
            );
        }
        let undeclared = |first, expected, reason| (None, first, expected, reason);
        assert_stored(
            "image/bmp",
            &[
                undeclared(
                    &b"BM\xf6\0"[..],
                    Some("image/bmp"),
                    "any signature is enough for what is no text",
                ),
                undeclared(b"BMW sales", None, "text, which is not in the list"),
            ],
        );
        assert_stored(
            "any",
            &[
                undeclared(b"caf\xe9", Some(OCTET_STREAM), "unknown"),
                undeclared(HTML, Some("text/html"), "shown"),
                undeclared(b"hello", Some("text/plain"), "text"),
            ],
        );
    }

    #[test]
    fn what_is_certainly_another_type_is_stored_as_that_or_refused() {
        let contradicted = "image/jpeg,image/png,image/gif,text/plain,application/pdf,application/zip,\
                            application/x-sh,application/postscript,image/svg+xml,audio/mpeg,\
                            font/ttf,application/x-foo";
        let (at_0x80, elsewhere) = (program(0x80), program(0x90));
        let declared =
            |name: &'static str, first, expected, reason| (Some(name), first, expected, reason);
        let corrected = Some("image/png");
        assert_stored(
            contradicted,
            &[
                declared("image/jpeg", PNG, corrected, "a picture of another type"),
                declared("text/plain", PNG, corrected, "no text"),
                declared("application/pdf", PNG, corrected, "no document"),
                declared("application/zip", PNG, corrected, "no archive"),
                declared("image/svg+xml", PNG, corrected, "no XML"),
                declared(
                    "application/x-foo",
                    PNG,
                    Some("application/x-foo"),
                    "a type of no family may look like any",
                ),
                declared("application/x-foo", &at_0x80, None, "but not like a program"),
                declared("text/plain", &at_0x80, None, "a program"),
                declared("application/zip", &at_0x80, None, "a program"),
                declared("image/gif", &at_0x80, None, "a program"),
                declared("image/png", GZIP_BYTES, None, "an archive, which is not in the list"),
                declared("image/png", HTML, None, "a page"),
                declared("audio/mpeg", HTML, None, "a page"),
                declared("font/ttf", HTML, None, "a page"),
                declared("application/pdf", HTML, None, "a page"),
                declared("application/zip", b"<?xml version='1.0'?>", None, "text"),
                declared(
                    "application/postscript",
                    HTML,
                    Some("application/postscript"),
                    "text proves little",
                ),
                declared(
                    "image/svg+xml",
                    b"<!-- x --><svg/>",
                    Some("image/svg+xml"),
                    "SVG is text",
                ),
                declared(
                    "application/x-sh",
                    b"#!/bin/sh\n",
                    Some("application/x-sh"),
                    "a short signature",
                ),
            ],
        );
        // Signatures that other files have, too.
        for first in [
            &b"BMW;M\xfcller"[..],
            b"BC\xfc",
            b"BZh\xfc",
            b"ID3 \xfc",
            b"\xff\xfb\x90\x64",
            b"#! \xfc",
            b"MZ \xfc",
            b"<p>\xfc",
            b"<div>\xfc",
            b"<h1>\xfc",
            &elsewhere,
            b"",
            b"\0\x01\x02",
        ] {
            for name in ["text/plain", "image/png", "application/zip", "application/x-foo"] {
                assert_stored(
                    contradicted,
                    &[declared(name, first, Some(name), "nothing is certain")],
                );
            }
        }
    }

    #[test]
    fn any_is_not_looked_at_and_octet_stream_is_what_is_left() {
        let program = program(0x80);
        for (first, shown) in [
            (PNG, "image/png"),
            (HTML, "text/html"),
            (GZIP_BYTES, "application/gzip"),
            (&program, "application/vnd.microsoft.portable-executable"),
            (b"caf\xe9", OCTET_STREAM),
        ] {
            assert_stored(
                "any",
                &[
                    (Some("image/jpeg"), first, Some("image/jpeg"), "as declared"),
                    (Some("image/pjpeg"), first, Some("image/jpeg"), "by its registered name"),
                    (Some(OCTET_STREAM), first, Some(shown), "as shown"),
                    (Some("x/y"), first, Some("x/y"), "as declared"),
                ],
            );
            for declared in [None, Some(OCTET_STREAM)] {
                let left = [(declared, first, Some(OCTET_STREAM), "nothing else is listed")];
                assert_stored(OCTET_STREAM, &left);
            }
        }
    }

    #[test]
    fn kinds_of_text_that_are_not_listed_are_plain_text() {
        for (declared, first, expected) in [
            ("text/markdown", &b"# a"[..], Some("text/plain")),
            ("text/x-anything", b"<?xml version='1.0'?>", Some("text/plain")),
            ("text/rtf", b"{\\rtf1", Some("text/plain")),
            ("application/json", b"{}", Some("text/plain")),
            ("application/x-yaml", b"a: 1", Some("text/plain")),
            ("application/xml", b"<a/>", Some("text/plain")),
            ("application/javascript", b"", Some("text/plain")),
            ("application/x-sql", b"select 1", Some("text/plain")),
            ("application/x-shellscript", b"#!/bin/sh", Some("text/plain")),
            ("text/html", HTML, None),
            ("application/xhtml+xml", HTML, None),
            ("application/rtf", b"{\\rtf1", None),
            ("image/svg+xml", b"<svg/>", None),
            ("application/x-foo", b"text", None),
            ("text/markdown", b"caf\xe9", None),
            ("application/json", b"a\0", None),
        ] {
            assert_stored("text/plain", &[(Some(declared), first, expected, "a kind of text")]);
            assert_stored("image/png", &[(Some(declared), first, None, "not even text is listed")]);
        }
    }
}
