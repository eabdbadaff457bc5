//! Under which media type an uploaded content is stored: the type that its sender declares, that its first bytes show,
//! or none, in which case it is refused.

use super::media_type::{listed, spellings, without_parameters};
use super::type_families::{FAMILIES, GZIP, LOOK_ALIKE, OLE, PROGRAMS, RAR, ZIP};
use super::utf8::Utf8Check;
use crate::config::{UploadTypes, is_media_type};
use crate::error::Error;

/// How many of a file's first bytes are examined to recognise its type.
pub const SIGNATURE_BYTES: usize = 8192;

/// The type under which a file is stored whose part declares `declared` and whose content begins with `first`, up to
/// [`SIGNATURE_BYTES`]. Browsers and programs name types by the end of a filename, if at all, and by many names. So a
/// file is refused only if its declared type is not in the list, or if its content certainly shows another type that is
/// not; a type that is declared wrongly, but is in the list, is corrected. Fails with [`Error::TypeNotAllowed`] or
/// [`Error::TypeContradicted`].
pub fn stored_type(
    declared: Option<&str>,
    first: &[u8],
    types: &UploadTypes,
) -> Result<String, Error> {
    let (shown, is_text) = (Signature::of(first), is_utf8_text(first));
    let not_allowed = |name: Option<&str>| {
        let accepted = types.iter().collect::<Vec<_>>().join(", ");
        Error::TypeNotAllowed { found: name.map(str::to_owned), accepted }
    };
    let Some(declared) = declared.and_then(|text| declared_type(text, types)) else {
        let found = shown.filter(|one| one.is_certain || !is_text).map(|one| one.name);
        let fallback = || match is_text {
            true => listed("text/plain", types),
            false => types.take_any().then(|| OCTET_STREAM.to_owned()),
        };
        let stored = found.and_then(|name| listed(name, types)).or_else(fallback);
        return stored.ok_or_else(|| not_allowed(found.or(is_text.then_some("text/plain"))));
    };
    let stored = listed(&declared, types).ok_or_else(|| not_allowed(Some(&declared)))?;
    let is_trusted =
        types.take_any() || declared == OCTET_STREAM || (declared.starts_with("text/") && is_text);
    match shown.filter(|one| !is_trusted && one.contradicts(&declared, is_text)) {
        None => Ok(stored),
        Some(Signature { name: recognised, .. }) => {
            listed(recognised, types).ok_or(Error::TypeContradicted { declared, recognised })
        }
    }
}

/// The type that a part declares, or `None` if what it says is no type of a file: not two tokens (RFC 9110, 8.3.1), a
/// pattern, longer than the column of the database, or what programs send who do not know the type.
fn declared_type(text: &str, types: &UploadTypes) -> Option<String> {
    let name = without_parameters(text);
    let is_unknown =
        name == "multipart/form-data" || (name == OCTET_STREAM && listed(&name, types).is_none());
    (is_media_type(&name) && !name.contains('*') && !is_unknown).then_some(name)
}

/// What the first bytes of a file show.
struct Signature {
    /// The type by one of its names.
    name: &'static str,
    /// Whether only files of this type begin so. Some signatures are so short that other files do, too.
    is_certain: bool,
}

impl Signature {
    fn of(first: &[u8]) -> Option<Signature> {
        let name = infer::get(first)?.mime_type();
        let is_certain = match name {
            // `BM`, `BC`, `BZh`, `ID3`, frames of MPEG, `#!`.
            "image/bmp"
            | "application/x-llvm"
            | "application/x-bzip2"
            | "audio/mpeg"
            | "audio/aac"
            | "text/x-shellscript" => false,
            "application/vnd.microsoft.portable-executable" => has_pe_header(first),
            // `<p>` and `<div>` stand at the beginning of other texts, too; `<!--` and `<!DOCTYPE` have no letter here.
            "text/html" => {
                let tag = first.trim_ascii_start().iter().skip(1);
                !(1..4).contains(&tag.take_while(|byte| byte.is_ascii_alphabetic()).count())
            }
            _ => true,
        };
        (name != OCTET_STREAM).then_some(Signature { name, is_certain })
    }

    /// Whether a file with this signature is certainly not of the declared type. Text proves little: only what is
    /// certainly no text is contradicted by it. Types of programs are many, and those without a family are contradicted
    /// by programs alone.
    fn contradicts(&self, declared: &str, is_text: bool) -> bool {
        let shown = self.name;
        let names = spellings(declared);
        let is_declared_in = |family: &[&str]| names.iter().any(|name| belongs(name, family));
        let is_same = names.contains(&shown)
            || (shown == "text/xml" && declared.ends_with("+xml")) // RFC 7303, 4.2; SVG is one of them.
            || LOOK_ALIKE.iter().any(|group| group.contains(&declared) && group.contains(&shown))
            || FAMILIES.iter().any(|family| is_declared_in(family) && belongs_by_any_name(shown, family));
        let kind = declared.split('/').next().unwrap_or_default();
        let is_contradicted = if is_text && shown.starts_with("text/") {
            matches!(kind, "image" | "audio" | "video" | "font")
                && !declared.starts_with("image/svg")
                || names.contains(&"application/pdf")
                || [ZIP, OLE, GZIP, RAR].into_iter().any(is_declared_in)
        } else if kind == "application" && !FAMILIES.iter().any(|family| is_declared_in(family)) {
            belongs_by_any_name(shown, PROGRAMS)
        } else {
            true
        };
        self.is_certain && !is_same && is_contradicted
    }
}

/// Whether the pattern of a family is this name, or its beginning or end.
fn belongs(name: &str, family: &[&str]) -> bool {
    family.iter().any(|pattern| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), _) => name.ends_with(end),
        (None, Some(beginning)) => name.starts_with(beginning),
        (None, None) => *pattern == name,
    })
}

fn belongs_by_any_name(name: &str, family: &[&str]) -> bool {
    spellings(name).into_iter().any(|name| belongs(name, family))
}

/// Whether the header of a Windows program is where the header of its part for DOS, which begins with `MZ`, says.
fn has_pe_header(first: &[u8]) -> bool {
    let offset =
        first.get(0x3c..0x40).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let header = offset.and_then(|offset| first.get(offset as usize..));
    header.is_some_and(|header| header.starts_with(b"PE\0\0"))
}

/// Whether the bytes are UTF-8 without NUL. If there are [`SIGNATURE_BYTES`] of them, the file probably goes on, so its
/// last character may be cut off.
fn is_utf8_text(bytes: &[u8]) -> bool {
    let mut text = Utf8Check::default();
    text.add(bytes);
    text.is_utf8(bytes.len() == SIGNATURE_BYTES)
}

/// What no signature shows, or who sends it does not know.
const OCTET_STREAM: &str = "application/octet-stream";

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
            let stored = stored_type(*declared, first, &types).ok();
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
    fn any_and_a_listed_octet_stream_are_not_looked_at() {
        let program = program(0x80);
        for first in [PNG, HTML, GZIP_BYTES, &program, b"caf\xe9"] {
            assert_stored(
                "any",
                &[
                    (Some("image/jpeg"), first, Some("image/jpeg"), "as declared"),
                    (Some("image/pjpeg"), first, Some("image/jpeg"), "by its first name"),
                    (Some(OCTET_STREAM), first, Some(OCTET_STREAM), "as declared"),
                    (Some("x/y"), first, Some("x/y"), "as declared"),
                ],
            );
            for types in [OCTET_STREAM, "application/*"] {
                assert_stored(
                    types,
                    &[(Some(OCTET_STREAM), first, Some(OCTET_STREAM), "as declared")],
                );
            }
        }
    }
}
