//! The type of a file whose sender knows none, as Go, Dart, curl and Python's `requests` do: no type, or
//! `application/octet-stream`. And names of one type, by whatever table a sender has them.

use super::declared_types::{iso, matroska, zip};
use crate::harness::*;

const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
const ODG: &str = "application/vnd.oasis.opendocument.graphics";

/// The beginning of an archive with these entries.
fn archive(entries: &[&str]) -> Vec<u8> {
    entries.iter().flat_map(|entry| zip(entry)).collect()
}

/// An archive whose first entry says what it is, as that of OpenDocument and EPUB does.
fn named_archive(media_type: &str) -> Vec<u8> {
    let head = [b"PK\x03\x04\x14\0\0\0\0\0".as_slice(), &[0; 8]].concat();
    let length = (media_type.len() as u32).to_le_bytes();
    [&head, &length[..], &length[..], &[8, 0, 0, 0], b"mimetype", media_type.as_bytes()].concat()
}

/// The beginning of an OLE compound file whose directory has these streams.
fn ole(streams: &[&str]) -> Vec<u8> {
    let entry = |name: &&str| {
        let mut bytes: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let length = bytes.len() as u8 + 2;
        bytes.resize(128, 0);
        bytes[64] = length;
        bytes
    };
    let head = [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(), &[0; 1016]].concat();
    [head, ["Root Entry"].iter().chain(streams).flat_map(entry).collect()].concat()
}

/// The beginning of one whose directory is far behind, and whose first sector begins so.
fn ole_with_sector(beginning: &[u8]) -> Vec<u8> {
    let mut bytes = ole(&[]);
    bytes[512..512 + beginning.len()].copy_from_slice(beginning);
    [bytes, vec![0; 9000]].concat()
}

fn asf() -> Vec<u8> {
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c".to_vec()
}

/// The name of a file, its beginning, and the type that it gets, or none if it is refused.
type Case<'a> = (&'a str, Vec<u8>, Option<&'a str>);

/// Uploads each file without a type and as `application/octet-stream` where the list is this one.
fn check(list: &str, cases: &[Case]) {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", list)], ["ann"]);
    for (name, content, expected) in cases {
        let disposition =
            format!("Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"");
        let untyped = Form::default().part(&disposition, content);
        let forms = [
            ("no type", untyped),
            ("unknown", file_form(name, "Application/Octet-Stream; x=y", content)),
        ];
        for (declared, form) in forms {
            let answer = api.upload_form(&ann, form);
            let answer = answer
                .case(format_args!("{list:.60}: {name} of {} bytes, {declared}", content.len()));
            match expected {
                Some(stored) => _ = answer.expect(201).has(json!({ "content_type": stored })),
                None => _ = answer.refused(415, "File type not allowed"),
            }
        }
    }
}

#[test]
fn the_extension_decides_within_the_family_that_the_content_shows() {
    let list = format!(
        "text/plain,application/zip,{DOCX},{XLSX},{PPTX},application/java-archive,application/msword,\
         application/vnd.ms-excel,application/vnd.ms-powerpoint,application/vnd.ms-outlook,image/heic,\
         image/svg+xml,application/gpx+xml,audio/mp4,video/mp4,video/quicktime,video/3gpp,audio/x-ms-wma,\
         video/x-ms-wmv,font/ttf,font/otf,font/woff2,font/collection,video/ogg,audio/ogg,video/x-matroska,\
         video/webm,image/x-adobe-dng,image/tiff,image/png,application/vnd.comicbook-rar,audio/mpeg"
    );
    let package = archive(&["[Content_Types].xml", "_rels/.rels", "docProps/core.xml"]);
    let text = |text: &str| text.as_bytes().to_vec();
    const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>";
    #[rustfmt::skip] // A file a line, as in a table.
    let cases = [
        ("a.docx", package.clone(), Some(DOCX)),
        ("A.XLSX", package.clone(), Some(XLSX)),
        ("a.b.pptx", package.clone(), Some(PPTX)),
        ("a.docm", package.clone(), Some("application/zip")), // whose type is not in the list
        ("a.jar", zip("a.txt"), Some("application/java-archive")),
        ("a.pdf", zip("a.txt"), Some("application/zip")), // of another family
        ("docx", zip("a.txt"), Some("application/zip")),
        ("a.xls", ole(&[]), Some("application/vnd.ms-excel")),
        ("a.xlt", ole(&[]), Some("application/vnd.ms-excel")),
        ("a.ppt", ole(&[]), Some("application/vnd.ms-powerpoint")),
        ("a.msg", ole(&[]), Some("application/vnd.ms-outlook")),
        ("a.dot", ole(&[]), Some("application/msword")),
        ("a.docx", ole(&["EncryptionInfo"]), Some(DOCX)), // with a password
        ("a.docm", ole(&["EncryptionInfo"]), Some("application/msword")),
        ("a.vsd", ole(&[]), None),
        ("a.doc", text("{\\rtf1\\ansi"), Some("application/msword")),
        ("a.heic", iso("heic"), Some("image/heic")),
        ("a.heif", iso("mif1"), Some("image/heic")),
        ("a.m4a", iso("isom"), Some("audio/mp4")),
        ("a.m4a", iso("mp42"), Some("audio/mp4")),
        ("a.mp4", iso("iso8"), Some("video/mp4")),
        ("a.mov", iso("qt  "), Some("video/quicktime")),
        ("a.3gp", iso("3gp4"), Some("video/3gpp")),
        ("a.wma", asf(), Some("audio/x-ms-wma")),
        ("a.wmv", asf(), Some("video/x-ms-wmv")),
        ("a.ttf", b"\0\x01\0\0\0\x0c".to_vec(), Some("font/ttf")),
        ("a.otf", b"OTTO\0\x0c".to_vec(), Some("font/otf")),
        ("a.ttc", b"ttcf\0\x01\0\0".to_vec(), Some("font/collection")),
        ("a.woff2", b"wOF2OTTO\0".to_vec(), Some("font/woff2")),
        ("a.ogv", b"OggS\0\x02".to_vec(), Some("video/ogg")),
        ("a.mkv", b"\x1a\x45\xdf\xa3\x80".to_vec(), Some("video/x-matroska")),
        ("a.webm", matroska("webm"), Some("video/webm")),
        ("a.dng", b"II*\0\x08\0\0\0\x2a\0\xff".to_vec(), Some("image/x-adobe-dng")),
        ("a.nef", b"II*\0\x08\0\0\0\x2a\0\xff".to_vec(), Some("image/tiff")),
        ("a.cbr", b"Rar!\x1a\x07\0".to_vec(), Some("application/vnd.comicbook-rar")),
        ("a.svg", text(SVG), Some("image/svg+xml")),
        ("a.svg", text("<?xml version=\"1.0\"?><a/>"), Some("image/svg+xml")),
        ("a.svg", text("no picture"), Some("text/plain")),
        ("a.gpx", text("<?xml version=\"1.0\"?><gpx/>"), Some("application/gpx+xml")),
        ("a.docx", text("no document"), Some("text/plain")),
        ("a.png", iso("isom"), Some("video/mp4")),
        ("a.mp3", b"\xff\xe3\x18\xc4\xff".to_vec(), Some("audio/mpeg")),
    ];
    check(&list, &cases);
}

#[test]
fn without_a_telling_name_the_entries_of_a_container_and_the_first_element_do() {
    let list = format!(
        "{DOCX},{XLSX},{PPTX},{ODG},application/java-archive,application/vnd.android.package-archive,application/zip,\
         application/msword,application/vnd.ms-excel,application/vnd.ms-powerpoint,application/vnd.ms-outlook,\
         image/svg+xml,text/html,text/plain,font/woff2,font/woff"
    );
    let package = |last| {
        archive(&[
            "[Content_Types].xml",
            "_rels/.rels",
            "docProps/core.xml",
            "docProps/app.xml",
            last,
        ])
    };
    let text = |text: &str| text.as_bytes().to_vec();
    let excel = "application/vnd.ms-excel";
    #[rustfmt::skip] // A file a line, as in a table.
    let cases = [
        ("blob", package("word/document.xml"), Some(DOCX)),
        ("blob", package("xl/workbook.xml"), Some(XLSX)),
        ("blob", package("ppt/presentation.xml"), Some(PPTX)),
        ("blob", archive(&["readme.md", "word/list.txt"]), Some("application/zip")), // a folder of that name
        ("blob", archive(&["META-INF/MANIFEST.MF"]), Some("application/java-archive")),
        ("blob", archive(&["AndroidManifest.xml"]), Some("application/vnd.android.package-archive")),
        ("blob", named_archive(ODG), Some(ODG)),
        ("blob", named_archive("text/html"), Some("application/zip")), // no type of an archive
        ("blob", named_archive("application/vnd.oasis.opendocument.*"), Some("application/zip")),
        ("blob", b"PK\x03\x04\xff\xff\xff\xff".repeat(20), Some("application/zip")),
        ("blob", ole(&["Workbook"]), Some(excel)),
        ("blob", ole(&["Book"]), Some(excel)),
        ("blob", ole(&["WordDocument", "Workbook"]), Some("application/msword")), // with a table in it
        ("blob", ole(&["PowerPoint Document"]), Some("application/vnd.ms-powerpoint")),
        ("blob", ole(&["__properties_version1.0"]), Some("application/vnd.ms-outlook")),
        ("blob", ole_with_sector(b"\x09\x08\x10\0\0\x06\x05\0"), Some(excel)),
        ("blob", ole_with_sector(b"\xec\xa5\xc1\0"), Some("application/msword")),
        ("blob", ole(&["VisioDocument"]), None),
        ("blob", ole(&["Workbooks"]), Some("application/msword")), // nothing that is known
        ("blob", text("<svg>"), Some("image/svg+xml")),
        ("blob", text("\u{feff}\n<!-- a > b --><svg "), Some("image/svg+xml")),
        ("blob", text("<?xml version=\"1.0\"?>\n<!DOCTYPE svg [ <!ENTITY a \"b\"> ]>\n<svg>"), Some("image/svg+xml")),
        ("blob", text("<!DOCTYPE html><svg>"), Some("text/html")),
        ("blob", text("<!-- never ends"), Some("text/html")),
        ("blob", text("see <svg>"), Some("text/plain")),
        ("blob", b"wOF2\0\x01\0\0".to_vec(), Some("font/woff2")),
    ];
    check(&list, &cases);
}

#[test]
fn what_the_list_takes_as_no_closer_type_is_stored_by_the_container_text_or_unknown() {
    let package = archive(&["[Content_Types].xml", "_rels/.rels", "docProps/a.xml", "word/a.xml"]);
    let utf16 = |mark: &[u8]| [mark, b"a\0;\0"].concat();
    check("application/zip", &[("a.docx", package.clone(), Some("application/zip"))]);
    check(
        "text/plain",
        &[
            ("a.csv", utf16(b"\xff\xfe"), Some("text/plain")),
            ("a.txt", utf16(b"\xfe\xff"), Some("text/plain")),
            ("a.txt", b"\xfe\xfe\0".to_vec(), None),
            ("a.docx", package.clone(), None),
        ],
    );
    check(
        "application/msword",
        &[("a", ole(&[]), Some("application/msword")), ("a.msg", ole(&[]), None)],
    );
    for list in ["any", "*/*"] {
        let cases = [
            ("a.webp", b"RIFF\x24\0\0\0WEBPVP8 \xff".to_vec(), Some("image/webp")),
            ("a.docx", package.clone(), Some(DOCX)),
            ("a.msg", ole(&[]), Some("application/vnd.ms-outlook")),
            ("a", ole(&[]), Some("application/x-ole-storage")),
            ("a.heic", iso("heic"), Some("image/heic")),
            ("a.csv", b"a,b".to_vec(), Some("text/plain")),
            ("a", vec![0xff, 0], Some("application/octet-stream")),
        ];
        check(list, &cases);
    }
    for list in ["application/octet-stream", "application/*"] {
        let left = Some("application/octet-stream");
        let cases = [
            ("a.txt", b"text".to_vec(), left),
            ("a.png", PNG.to_vec(), left),
            ("a", vec![0xff, 0], left),
        ];
        check(list, &cases);
    }
    check("application/*", &[("a.pdf", b"%PDF-1.7\n\xff".to_vec(), Some("application/pdf"))]);
}

#[test]
fn names_of_one_type_are_one_to_lists_and_filters() {
    #[rustfmt::skip] // A type of the list and other names a line, as in a table.
    let names = [
        "video/matroska video/x-matroska", "video/vnd.avi video/x-msvideo video/avi video/msvideo",
        "text/javascript application/javascript application/x-javascript text/ecmascript",
        "application/yaml application/x-yaml text/yaml text/x-yaml", "text/vcard text/x-vcard text/directory",
        "text/markdown text/x-markdown", "application/vnd.sqlite3 application/x-sqlite3",
        "font/ttf application/x-font-ttf", "application/x-sh application/x-shellscript text/x-sh",
        "application/java-archive application/x-java-archive application/x-jar",
        "image/vnd.adobe.photoshop image/x-photoshop image/psd application/photoshop",
        "text/csv text/x-csv application/csv text/comma-separated-values",
        "application/vnd.microsoft.portable-executable application/x-msdownload application/x-dosexec",
        "application/x-tar application/x-gtar", "image/tiff image/tif", "application/rtf text/rtf",
        "application/sql text/x-sql application/x-sql", "image/heif image/heic image/heif-sequence",
        "audio/mpeg audio/mp3 audio/x-mp3 audio/x-mpg", "application/x-bzip application/x-bzip2",
    ];
    let rows = names.map(|names| names.split_once(' ').expect("another name"));
    let list = rows.map(|(listed, _)| listed).join(",");
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", &list)], ["ann"]);
    for (listed, others) in rows {
        let others: Vec<_> = others.split(' ').collect();
        for name in &others {
            let answer = api.upload_form(&ann, file_form("a", name, b"text"));
            answer.case(name).expect(201).has(json!({ "content_type": listed }));
        }
        for name in others.iter().chain([&listed]) {
            let found =
                api.get(&format!("/uploads?content_type={name}"), &ann).case(name).expect(200);
            found.has(json!({ "total": others.len() }));
        }
    }
    for other in
        ["text/plain%20text/csv", "text/csv%0Atext/vcard", "text/csv%20", "%23", ".docx", "a"]
    {
        let found =
            api.get(&format!("/uploads?content_type={other}"), &ann).case(other).expect(200);
        found.has(json!({ "total": 0 }));
    }
}

#[test]
fn text_by_any_name_is_plain_text_where_the_list_has_no_closer_type() {
    const EXCEL: &str = "application/vnd.ms-excel";
    for (list, name, declared, content, expected) in [
        ("text/plain", "a.md", "text/markdown", "# a", Some("text/plain")),
        ("text/plain", "a.json", "application/json", "{}", Some("text/plain")),
        ("text/plain", "a.html", "text/html", "<p>", None),
        ("text/plain", "a.md", "text/markdown", "a\0", None),
        ("text/plain", "a.csv", EXCEL, "a,b", Some("text/plain")),
        ("text/plain", "a.xls", EXCEL, "a,b", None),
        ("text/csv", "A.CSV", EXCEL, "a,b", Some("text/csv")),
        ("text/csv", "a.csv", "application/msexcel", "", Some("text/csv")),
        ("text/csv", "a.csv", EXCEL, "a\0", None),
        ("text/csv", "a.xls", EXCEL, "a,b", None),
        ("application/vnd.ms-excel", "a.csv", EXCEL, "a,b", Some(EXCEL)),
        ("application/vnd.ms-excel,text/csv", "a.csv", EXCEL, "a,b", Some("text/csv")),
        ("any", "a.csv", EXCEL, "a,b", Some("text/csv")),
    ] {
        let (api, [ann]) = Server::with_users(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", list)], ["ann"]);
        let answer = api.upload_form(&ann, file_form(name, declared, content.as_bytes()));
        let answer = answer.case(format_args!("{list}: {name} as {declared}"));
        match expected {
            Some(stored) => _ = answer.expect(201).has(json!({ "content_type": stored })),
            None => _ = answer.refused(415, "File type not allowed"),
        }
    }
}
