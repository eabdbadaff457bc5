//! What the first bytes of a file show of its type.

use memchr::memmem;

use super::media_type::types_by_extension;
use super::type_families::{ZIP, are_related, belongs};
use crate::config::is_media_type;

/// What no signature shows, or who sends it does not know.
pub const OCTET_STREAM: &str = "application/octet-stream";

/// The name by which OLE compound files are recognised.
const OLE_FILE: &str = "application/msword";

/// What the first bytes of a file show.
pub struct Signature {
    /// The type by one of its names.
    pub name: &'static str,
    /// Whether only files of this type begin so. Some signatures are so short that other files do, too.
    pub is_certain: bool,
}

impl Signature {
    pub fn of(first: &[u8]) -> Option<Signature> {
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
}

/// Whether the header of a Windows program is where the header of its part for DOS, which begins with `MZ`, says.
fn has_pe_header(first: &[u8]) -> bool {
    let header = number(first, 0x3c, 4).and_then(|offset| first.get(offset..));
    header.is_some_and(|header| header.starts_with(b"PE\0\0"))
}

/// Signatures beyond those that are recognised otherwise: the offset, the bytes and the type.
type Rows = [(usize, &'static [u8], &'static str)];

const FONTS: &Rows = &[
    (0, b"OTTO", "font/otf"),
    (0, b"\0\x01\0\0\0", "font/ttf"),
    (0, b"true\0", "font/ttf"),
    (0, b"ttcf\0", "font/collection"),
    (0, b"wOFF", "font/woff"),
    (0, b"wOF2", "font/woff2"),
];

/// Containers, and frames of MPEG, if nothing else is recognised.
const OTHERS: &Rows = &[
    (4, b"ftyp3g", "video/3gpp"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1a\x45\xdf\xa3", "video/x-matroska"),
    (0, b"\xff\xe3", "audio/mpeg"),
    (0, b"\xff\xfa", "audio/mpeg"),
];

/// Where the first sector of an OLE compound file is that of a document of Word or a table of Excel.
const SECTORS: &Rows = &[
    (512, b"\xec\xa5", "application/msword"),
    (512, b"\x09\x08\x08\0", "application/vnd.ms-excel"),
    (512, b"\x09\x08\x10\0", "application/vnd.ms-excel"),
];

fn row_of(first: &[u8], rows: &Rows) -> Option<&'static str> {
    let has = |(offset, bytes, _): &&(usize, &[u8], _)| {
        first.get(*offset..).is_some_and(|rest| rest.starts_with(bytes))
    };
    rows.iter().find(has).map(|(.., name)| *name)
}

/// The types that a file of this name may have by its first bytes, the most likely one first: those of the extension in
/// the family that is shown, the one that the entries of a container show, and what is recognised. A text is recognised
/// by certain signatures only.
pub fn shown_types<'a>(first: &'a [u8], is_text: bool, filename: &str) -> Vec<&'a str> {
    let recognised = Signature::of(first).filter(|one| one.is_certain || !is_text);
    let recognised = recognised.map(|one| one.name);
    let closer = match (is_text, recognised) {
        (true, _) => is_svg(first).then_some("image/svg+xml"),
        (false, None) => row_of(first, OTHERS).or_else(|| row_of(first, FONTS)),
        (false, Some(_)) => row_of(first, FONTS),
    };
    let Some(shown) = closer.or(recognised) else { return Vec::new() };
    let entries = match shown {
        OLE_FILE => ole_type(first),
        _ if belongs(shown, ZIP) => zip_type(first),
        _ => None,
    };
    let is_near = |name: &&str| are_related(entries.unwrap_or(shown), name);
    let mut names: Vec<_> = types_by_extension(filename).filter(is_near).collect();
    names.extend(entries);
    match shown {
        // Other programs write such files, too, so what shows to be one of them is none of Word. The extensions of
        // newer documents show nothing: with a password each of them is such a file.
        OLE_FILE if names.iter().all(|name| belongs(name, ZIP)) => {
            names.extend(["application/x-ole-storage", OLE_FILE]);
        }
        OLE_FILE => names.push("application/x-ole-storage"),
        _ if belongs(shown, ZIP) => names.push("application/zip"),
        _ => {}
    }
    names.extend(closer.into_iter().chain(recognised).filter(|name| *name != OLE_FILE));
    names
}

/// Whether the first element of a text, behind comments, instructions and the document type, is that of a picture.
fn is_svg(first: &[u8]) -> bool {
    let mut rest = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first);
    loop {
        rest = rest.trim_ascii_start();
        if rest.get(..14).is_some_and(|head| head.eq_ignore_ascii_case(b"<!DOCTYPE html")) {
            return false;
        }
        let end: &[u8] = match rest {
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            // Of a document type with declarations each of these ends so, and so does their bracket.
            [b'<', b'!' | b'?', ..] | [b']', ..] => b">",
            _ => return rest.starts_with(b"<svg"),
        };
        let Some(at) = memmem::find(rest, end) else { return false };
        rest = &rest[at + end.len()..];
    }
}

/// Whether it is so in packages of Office alone (ECMA-376, part 2), how the path of an entry in a ZIP archive begins,
/// and the type that this shows.
const ENTRIES: [(bool, &[u8], &str); 6] = [
    (true, b"word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (true, b"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (true, b"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    (false, b"AndroidManifest.xml", "application/vnd.android.package-archive"),
    (false, b"META-INF/MANIFEST.MF", "application/java-archive"),
    (false, b"doc.kml", "application/vnd.google-earth.kmz"),
];

/// The type that the first entries of a ZIP archive show: by the content of the one that says so, as in OpenDocument
/// and EPUB, or by their names.
fn zip_type(first: &[u8]) -> Option<&str> {
    let (mut rest, mut is_package) = (first, false);
    loop {
        // Where a size follows the content, it is zero here, and the next header is looked for.
        let header = rest.get(memmem::find(rest, b"PK\x03\x04")?..)?;
        let (size, length) = (number(header, 18, 4)?, number(header, 26, 2)?);
        let name = header.get(30..30 + length)?;
        let content = header.get(30 + length + number(header, 28, 2)?..)?;
        if name == b"mimetype" {
            let text = str::from_utf8(content.get(..size)?).ok()?;
            let is_exact = !text.contains(|c: char| c == '*' || c.is_ascii_uppercase());
            return (is_exact && is_media_type(text) && belongs(text, ZIP)).then_some(text);
        }
        let parts: [&[u8]; 3] = [b"[Content_Types].xml", b"_rels/", b"docProps/"];
        is_package |= parts.iter().any(|part| name.starts_with(part));
        let mut known = ENTRIES.iter().filter(|(of_package, ..)| is_package || !of_package);
        if let Some((.., found)) = known.find(|(_, path, _)| name.starts_with(path)) {
            return Some(found);
        }
        rest = content.get(size..)?;
    }
}

/// Streams of OLE compound files.
const STREAMS: [(&str, &str); 7] = [
    ("WordDocument", "application/msword"),
    ("Workbook", "application/vnd.ms-excel"),
    ("Book", "application/vnd.ms-excel"),
    ("PowerPoint Document", "application/vnd.ms-powerpoint"),
    ("__nameid_version1.0", "application/vnd.ms-outlook"),
    ("__properties_version1.0", "application/vnd.ms-outlook"),
    ("VisioDocument", "application/vnd.visio"),
];

/// The type that the directory of an OLE compound file shows, as far as it is there, by the first stream that is known,
/// because later ones may be those of objects in the document, or that the first sector shows. The entries are of 128
/// bytes and begin with the name in UTF-16; the length of this, with a NUL, is at 64 (MS-CFB, 2.6.1).
fn ole_type(first: &[u8]) -> Option<&'static str> {
    let in_directory = first.chunks_exact(128).find_map(|entry| {
        let name = entry.get(..number(entry, 64, 2)?.checked_sub(2)?)?;
        let is_name = |stream: &str| {
            stream.encode_utf16().flat_map(u16::to_le_bytes).eq(name.iter().copied())
        };
        STREAMS.iter().find(|(stream, _)| is_name(stream)).map(|(_, found)| *found)
    });
    in_directory.or_else(|| row_of(first, SECTORS))
}

/// The little-endian number of these bytes, if they are there.
fn number(bytes: &[u8], offset: usize, length: usize) -> Option<usize> {
    let digits = bytes.get(offset..offset + length)?;
    Some(digits.iter().rev().fold(0, |number, &digit| number << 8 | usize::from(digit)))
}
