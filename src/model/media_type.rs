//! Media types: the names of one type, and the check of a file's first bytes against its declared type.

use crate::config::UploadTypes;

/// How many of a file's first bytes are examined to recognise its type.
pub const SIGNATURE_BYTES: usize = 8192;

/// Type and subtype of a declared media type, without its parameters, in lower case. It is `text/plain` if no type is
/// declared (RFC 7578, 4.4).
pub fn without_parameters(declared: Option<&str>) -> String {
    let bare = declared.map(|text| text.split(';').next().unwrap_or_default());
    bare.unwrap_or("text/plain").trim().to_ascii_lowercase()
}

/// Whether browsers may show a file of this type that anyone may have made: text, and pictures that are not XML, in
/// which scripts can stand, as in SVG.
pub fn is_shown_safely(name: &str) -> bool {
    name == "text/plain"
        || name
            .strip_prefix("image/")
            .is_some_and(|kind| !kind.starts_with("svg") && !kind.ends_with("+xml"))
}

/// Types that have several names. Each group is one type. Beside registered names it has older ones and those without a
/// registration, which browsers and operating systems still send, and those by which signatures are recognised.
const SPELLINGS: &[&[&str]] = &[
    &["application/gzip", "application/x-gzip"],
    &["application/pdf", "application/x-pdf"],
    &["application/rtf", "text/rtf"],
    &["application/vnd.rar", "application/x-rar", "application/x-rar-compressed"],
    &["application/x-bzip2", "application/x-bzip", "application/bzip2"],
    &["application/xml", "text/xml"],
    &["application/zip", "application/x-zip", "application/x-zip-compressed"],
    &["audio/aac", "audio/x-aac", "audio/aacp"],
    &["audio/aiff", "audio/x-aiff"],
    &["audio/flac", "audio/x-flac"],
    &["audio/midi", "audio/x-midi", "audio/mid"],
    &["audio/mp4", "audio/m4a", "audio/x-m4a"],
    &["audio/mpeg", "audio/mp3", "audio/x-mp3", "audio/x-mpeg"],
    &["audio/ogg", "audio/opus", "application/ogg"],
    &["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"],
    &["font/sfnt", "application/font-sfnt"],
    &["font/woff", "application/font-woff"],
    &["font/woff2", "application/font-woff2"],
    &["image/bmp", "image/x-bmp", "image/x-ms-bmp"],
    &["image/jpeg", "image/jpg", "image/pjpeg"],
    &["image/png", "image/x-png"],
    &["image/vnd.microsoft.icon", "image/x-icon"],
    &["video/mp4", "video/x-m4v"],
    &["video/x-msvideo", "video/avi", "video/msvideo"],
];

/// Different types that have one signature, and the name by which that is recognised.
const LOOK_ALIKE: &[&[&str]] = &[
    &["application/font-sfnt", "font/sfnt", "font/ttf", "font/otf"],
    &["application/font-woff", "font/woff", "font/woff2", "application/font-woff2"],
    &["image/heif", "image/heic"],
];

/// The beginnings of types that are ZIP archives, apart from those that end in `+zip` (RFC 6839, 3.6).
const PACKED_IN_ZIP: &[&str] = &[
    "application/java-archive",
    "application/oxps",
    "application/vnd.android.package-archive",
    "application/vnd.apple.",
    "application/vnd.google-earth.kmz",
    "application/vnd.ms-excel.",
    "application/vnd.ms-powerpoint.",
    "application/vnd.ms-visio.",
    "application/vnd.ms-word.",
    "application/vnd.ms-xpsdocument",
    "application/vnd.oasis.opendocument.",
    "application/vnd.openxmlformats-officedocument.",
    "application/vnd.sun.xml.",
    "application/x-java-archive",
    "application/x-xpinstall",
    "image/openraster",
];

/// The types that are OLE compound files. The first one is also what the signature of all of them is recognised as.
const PACKED_IN_OLE: &[&str] = &[
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-outlook",
    "application/vnd.ms-powerpoint",
    "application/vnd.ms-project",
    "application/vnd.ms-works",
    "application/vnd.visio",
    "application/x-msi",
    "application/x-mspublisher",
    "application/x-ole-storage",
];

/// All names of a type. It is lower case and without parameters, as they are.
pub fn spellings(name: &str) -> Vec<&str> {
    let group = SPELLINGS.iter().find(|group| group.contains(&name));
    group.map_or_else(|| vec![name], |group| group.to_vec())
}

/// The name by which the list has a type: the name itself if it is there, else another one. `None` if the type is
/// not in the list.
pub fn listed<'a>(name: &str, types: &'a UploadTypes) -> Option<&'a str> {
    let named = |known: &str| types.iter().find(|listed| *listed == known);
    named(name).or_else(|| spellings(name).into_iter().find_map(named))
}

/// The type whose signature the first bytes of a file are, if it is another type than the declared one. UTF-8 without
/// NUL that is declared as text is always believed, because some signatures are two letters long and occur in ordinary
/// text.
pub fn contradicting_type(declared: &str, first: &[u8]) -> Option<&'static str> {
    if declared.starts_with("text/") && is_utf8_text(first) {
        return None;
    }
    let found = infer::get(first)?.mime_type();
    (!may_look_like(declared, found)).then_some(found)
}

/// Whether files of the declared type may be recognised as `found`: as the same type, or as the container in which the
/// type is packed, because the first bytes often show nothing but that.
fn may_look_like(declared: &str, found: &str) -> bool {
    spellings(declared).contains(&found)
        || LOOK_ALIKE.iter().any(|group| group.contains(&declared) && group.contains(&found))
        || match found {
            "application/zip" => {
                declared.ends_with("+zip")
                    || PACKED_IN_ZIP.iter().any(|beginning| declared.starts_with(beginning))
            }
            "text/xml" => declared.ends_with("+xml"), // RFC 7303, 4.2; SVG is one of them.
            found => PACKED_IN_OLE.contains(&found) && PACKED_IN_OLE.contains(&declared),
        }
}

/// Whether the bytes are UTF-8 without NUL. If there are [`SIGNATURE_BYTES`] of them, the file probably goes on, so its
/// last character may be cut off.
fn is_utf8_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
        && match std::str::from_utf8(bytes) {
            Ok(_) => true,
            Err(error) => error.error_len().is_none() && bytes.len() == SIGNATURE_BYTES,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_of_another_type_contradicts_the_declared_one() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        let cut = [b"x".repeat(SIGNATURE_BYTES - 1), vec![0xc3]].concat();
        let program = Some("application/vnd.microsoft.portable-executable");
        for (declared, first, expected, reason) in [
            ("image/png", &png[..], None, "a picture of the declared type"),
            ("image/jpeg", png, Some("image/png"), "a picture of another type"),
            ("image/png", b"<!DOCTYPE html><p>", Some("text/html"), "an HTML page"),
            ("image/png", b"hello", None, "no known signature"),
            ("image/png", b"", None, "empty"),
            ("text/plain", b"BMW sales", None, "text, though BM is the signature of BMP"),
            ("text/plain", b"%PDF-1.4 as text", None, "text, though it begins like a PDF"),
            ("text/plain", png, Some("image/png"), "a picture"),
            ("text/plain", b"MZ\0\0", program, "a Windows program"),
            ("text/plain", b"caf\xe9", None, "not UTF-8, but without a known signature"),
            ("text/plain", &cut, None, "a character cut off after the examined bytes"),
        ] {
            assert_eq!(contradicting_type(declared, first), expected, "{declared}: {reason}");
        }
    }

    #[test]
    fn a_listed_type_is_found_by_any_of_its_names_and_by_no_other_types() {
        let types = UploadTypes::new(&["image/jpeg", "audio/x-wav", "audio/wav", "font/ttf"]);
        for (name, expected) in [
            ("image/jpeg", Some("image/jpeg")),
            ("image/jpg", Some("image/jpeg")),
            ("audio/wav", Some("audio/wav")),
            ("audio/wave", Some("audio/wav")),
            ("font/otf", None),
            ("image/png", None),
            ("", None),
        ] {
            assert_eq!(listed(name, &types), expected, "{name}");
        }
    }

    #[test]
    fn types_are_compared_without_parameters_and_case() {
        for (declared, expected) in [
            (None, "text/plain"),
            (Some("Text/Plain; charset=UTF-8"), "text/plain"),
            (Some(" IMAGE/PNG ;x"), "image/png"),
            (Some(""), ""),
        ] {
            assert_eq!(without_parameters(declared), expected);
        }
    }
}
