//! What browsers and programs declare as the type of a file: by the registrations of IANA, the tables of Chromium and
//! Firefox, shared-mime-info on Linux, the registry of Windows with Office, and the types of macOS, iOS and Android.

use std::collections::{BTreeMap, BTreeSet};

use crate::harness::*;

/// The beginning of a ZIP archive whose first entry has this name.
pub fn zip(entry: &str) -> Vec<u8> {
    let name = [entry.len() as u8, 0, 0, 0];
    [b"PK\x03\x04\x14\0\0\0\x08\0".as_slice(), &[0; 16], &name, entry.as_bytes(), &[0; 300]]
        .concat()
}

/// The beginning of an archive with four entries, which is how Office documents are recognised.
fn office(directory: &str) -> Vec<u8> {
    let (first, second) = (format!("{directory}/a.xml"), format!("{directory}/b.xml"));
    let entries = ["[Content_Types].xml", "_rels/.rels", &first, &second];
    entries.map(zip).concat()
}

/// The beginning of an ISO media file of this brand.
pub fn iso(brand: &str) -> Vec<u8> {
    [
        b"\0\0\0\x18ftyp".as_slice(),
        brand.as_bytes(),
        b"\0\0\0\0",
        brand.as_bytes(),
        b"isom",
        &[0; 40],
    ]
    .concat()
}

/// The beginning of a Matroska file with this type of document.
pub fn matroska(kind: &str) -> Vec<u8> {
    let head = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82";
    [head.as_slice(), &[0x80 | kind.len() as u8], kind.as_bytes(), &[0; 400]].concat()
}

/// The beginning of a tar archive.
fn tar() -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    bytes[..5].copy_from_slice(b"a.txt");
    bytes[257..263].copy_from_slice(b"ustar\0");
    bytes
}

/// The beginning of a Windows program.
fn program() -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[..2].copy_from_slice(b"MZ");
    bytes[0x3c] = 0x80;
    bytes[0x80..0x84].copy_from_slice(b"PE\0\0");
    bytes
}

/// Endings of filenames, the beginning of such a file, and the types by which it is declared.
fn files() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    const TEXT: &[u8] = b"Caf\xc3\xa9; 1,2\r\n";
    const XML: &[u8] = b"<?xml version=\"1.0\"?><a/>";
    const HTML: &[u8] = b"<!DOCTYPE html><html></html>";
    const SCRIPT: &[u8] = b"#!/usr/bin/env something\n";
    const OLE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\x03";
    const BZIP: &[u8] = b"BZh91AY&SY\xff";
    const XZ: &[u8] = b"\xfd7zXZ\0\0\x04";
    const PDF: &[u8] = b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n";
    const TIFF: &[u8] = b"II*\0\x08\0\0\0\xff";
    const ASF: &[u8] = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c";
    const OGG: &[u8] =
        b"OggS\0\x02\0\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\x01\x1e\x01vorbis";
    const OPUS: &[u8] =
        b"OggS\0\x02\0\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\x01\x13OpusHead";
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const ELF: &[u8] = &[
        0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 62, 0, 1, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 56, 0,
    ];
    const MACRO: &str = "macroenabled.12";
    let bytes = <[u8]>::to_vec;
    #[rustfmt::skip] // A kind of file a line, as in a table.
    let mut files = vec![
        ("jpg jpeg jfif", bytes(b"\xff\xd8\xff\xe0\0\x10JFIF"), "image/jpeg image/jpg image/pjpeg"),
        ("png", bytes(PNG), "image/png image/x-png"),
        ("apng", bytes(PNG), "image/apng image/vnd.mozilla.apng image/png"),
        ("gif", bytes(b"GIF89a\x01\0\x01\0\x80"), "image/gif"),
        ("webp", bytes(b"RIFF\x24\0\0\0WEBPVP8 "), "image/webp"),
        ("bmp", bytes(b"BM\xf6\0\0\0"), "image/bmp image/x-ms-bmp image/x-bmp"),
        ("ico", bytes(b"\0\0\x01\0\x01\0"), "image/vnd.microsoft.icon image/x-icon"),
        ("tif tiff", bytes(TIFF), "image/tiff"),
        ("dng", bytes(TIFF), "image/x-adobe-dng image/dng image/tiff"),
        ("nef", bytes(TIFF), "image/x-nikon-nef image/tiff"),
        ("arw", bytes(TIFF), "image/x-sony-arw"),
        ("heic", iso("heic"), "image/heic image/heif image/heic-sequence"),
        ("avif", iso("avif"), "image/avif"),
        ("svg", bytes(XML), "image/svg+xml"),
        ("psd", bytes(b"8BPS\0\x01\0\0"), "image/vnd.adobe.photoshop application/x-photoshop"),
        ("pdf", bytes(PDF), "application/pdf application/x-pdf"),
        ("ai", bytes(PDF), "application/postscript application/illustrator application/pdf"),
        ("eps ps", bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n"), "application/postscript image/x-eps application/eps"),
        ("mp3", bytes(b"ID3\x04\0\0\0\0\0\x23"), "audio/mpeg audio/mp3 audio/x-mp3 audio/x-mpeg"),
        ("m4a", iso("M4A "), "audio/mp4 audio/x-m4a audio/m4a audio/mp4a-latm video/mp4"),
        ("wav", bytes(b"RIFF\x24\0\0\0WAVEfmt "), "audio/wav audio/x-wav audio/wave audio/vnd.wave"),
        ("aiff", bytes(b"FORM\0\0\0\0AIFF"), "audio/aiff audio/x-aiff"),
        ("flac", bytes(b"fLaC\0\0\0\x22"), "audio/flac audio/x-flac"),
        ("ogg oga", bytes(OGG), "audio/ogg application/ogg video/ogg audio/x-vorbis+ogg"),
        ("opus", bytes(OPUS), "audio/ogg audio/opus"),
        ("ogv", bytes(OGG), "video/ogg"),
        ("mid midi", bytes(b"MThd\0\0\0\x06"), "audio/midi audio/x-midi audio/mid"),
        ("aac", bytes(b"\xff\xf1\x50\x80"), "audio/aac audio/x-aac audio/vnd.dlna.adts"),
        ("wma", bytes(ASF), "audio/x-ms-wma video/x-ms-asf application/vnd.ms-asf"),
        ("wmv asf", bytes(ASF), "video/x-ms-wmv video/x-ms-asf"),
        ("webm", matroska("webm"), "video/webm audio/webm"),
        ("mkv mka", matroska("matroska"), "video/x-matroska audio/x-matroska video/matroska"),
        ("mp4 m4v", iso("mp42"), "video/mp4 video/x-m4v audio/mp4 application/mp4"),
        ("mov", iso("qt  "), "video/quicktime"),
        ("3gp", iso("3gp4"), "video/3gpp audio/3gpp video/3gpp2"),
        ("avi", bytes(b"RIFF\x24\0\0\0AVI LIST"), "video/x-msvideo video/avi video/msvideo"),
        ("mpg mpeg", bytes(b"\0\0\x01\xba\x44"), "video/mpeg"),
        ("flv", bytes(b"FLV\x01\x05"), "video/x-flv"),
        ("ttf", bytes(b"\0\x01\0\0\0\x0c"), "font/ttf font/sfnt application/x-font-ttf"),
        ("otf", bytes(b"OTTO\0\x0c"), "font/otf application/vnd.ms-opentype application/x-font-otf"),
        ("woff", bytes(b"wOFF\0\x01\0\0"), "font/woff application/font-woff application/x-font-woff"),
        ("woff2", bytes(b"wOF2\0\x01\0\0"), "font/woff2 application/font-woff2"),
        ("rtf", bytes(b"{\\rtf1\\ansi"), "application/rtf text/rtf application/msword"),
        ("doc dot", bytes(OLE), "application/msword"),
        ("doc", office("word"), "application/msword"),
        ("xls", bytes(OLE), "application/vnd.ms-excel"),
        ("ppt", bytes(OLE), "application/vnd.ms-powerpoint"),
        ("msg", bytes(OLE), "application/vnd.ms-outlook"),
        ("docx", bytes(OLE), "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("docx", office("word"),
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document application/zip \
             application/x-zip-compressed"),
        ("dotx", office("word"), "application/vnd.openxmlformats-officedocument.wordprocessingml.template"),
        ("xlsx", office("xl"), "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("xltx", office("xl"), "application/vnd.openxmlformats-officedocument.spreadsheetml.template"),
        ("pptx", office("ppt"), "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
        ("ppsx", office("ppt"), "application/vnd.openxmlformats-officedocument.presentationml.slideshow"),
        ("odt", zip("mimetypeapplication/vnd.oasis.opendocument.text"),
            "application/vnd.oasis.opendocument.text application/vnd.oasis.opendocument.text-template"),
        ("ods", zip("mimetypeapplication/vnd.oasis.opendocument.spreadsheet"),
            "application/vnd.oasis.opendocument.spreadsheet application/vnd.oasis.opendocument.spreadsheet-template"),
        ("odp", zip("mimetype"), "application/vnd.oasis.opendocument.presentation"),
        ("epub", zip("mimetypeapplication/epub+zip"), "application/epub+zip"),
        ("mobi", [&[0; 60][..], b"BOOKMOBI", &[0; 20]].concat(), "application/x-mobipocket-ebook"),
        ("zip", zip("a.txt"), "application/zip application/x-zip-compressed application/x-zip"),
        ("cbz", zip("1.jpg"), "application/vnd.comicbook+zip application/x-cbz"),
        ("cbr", bytes(b"Rar!\x1a\x07\x01\0"), "application/vnd.comicbook-rar application/x-cbr"),
        ("rar", bytes(b"Rar!\x1a\x07\x01\0"), "application/vnd.rar application/x-rar-compressed application/x-rar"),
        ("7z", bytes(b"7z\xbc\xaf\x27\x1c\0\x04"), "application/x-7z-compressed"),
        ("tar", tar(), "application/x-tar"),
        ("gz", bytes(GZIP), "application/gzip application/x-gzip"),
        ("tgz tar.gz", bytes(GZIP),
            "application/x-compressed-tar application/x-gtar application/x-tgz application/x-compressed \
             application/gzip"),
        ("svgz", bytes(GZIP), "image/svg+xml-compressed"),
        ("bz2 tar.bz2", bytes(BZIP), "application/x-bzip2 application/x-bzip application/x-bzip-compressed-tar"),
        ("xz tar.xz", bytes(XZ), "application/x-xz application/x-xz-compressed-tar"),
        ("zst", bytes(b"\x28\xb5\x2f\xfd\x24"), "application/zstd"),
        ("jar", zip("META-INF/MANIFEST.MF"), "application/java-archive application/x-java-archive"),
        ("apk", zip("AndroidManifest.xml"), "application/vnd.android.package-archive"),
        ("kmz", zip("doc.kml"), "application/vnd.google-earth.kmz"),
        ("pages numbers", zip("Index/Document.iwa"), "application/vnd.apple.pages application/vnd.apple.numbers"),
        ("exe", program(),
            "application/x-msdownload application/x-msdos-program application/vnd.microsoft.portable-executable \
             application/x-ms-dos-executable application/x-dosexec application/exe"),
        ("bin so", bytes(ELF),
            "application/x-executable application/x-sharedlib application/x-elf application/x-pie-executable"),
        ("msi", bytes(OLE), "application/x-msi application/x-ole-storage"),
        ("deb", bytes(b"!<arch>\ndebian-binary   1410122664"),
            "application/vnd.debian.binary-package application/x-debian-package application/x-deb"),
        ("rpm", [&b"\xed\xab\xee\xdb\x03\0"[..], &[0; 100]].concat(),
            "application/x-rpm application/x-redhat-package-manager"),
        ("wasm", bytes(b"\0asm\x01\0\0\0"), "application/wasm"),
        ("sqlite db", bytes(b"SQLite format 3\0"), "application/vnd.sqlite3 application/x-sqlite3"),
        ("pem crt", bytes(b"-----BEGIN CERTIFICATE-----\n"), "application/x-x509-ca-cert application/x-pem-file"),
        ("iso", vec![0; 600], "application/x-iso9660-image application/x-cd-image"),
        ("txt log ini conf", bytes(TEXT), "text/plain text/x-log"),
        ("csv tsv", bytes(TEXT), "text/csv application/vnd.ms-excel application/csv text/tab-separated-values"),
        ("csv of Excel", bytes(b"BMW;M\xfcller\r\n"), "text/csv text/plain application/vnd.ms-excel"),
        ("md", bytes(TEXT), "text/markdown text/x-markdown"),
        ("json", bytes(b"{\"a\": 1}"), "application/json text/json"),
        ("ipynb geojson", bytes(b"{\"a\": 1}"), "application/x-ipynb+json application/geo+json"),
        ("xml", bytes(XML), "application/xml text/xml"),
        ("xhtml", bytes(HTML), "application/xhtml+xml"),
        ("gpx kml", bytes(XML), "application/gpx+xml application/vnd.google-earth.kml+xml"),
        ("html htm", bytes(HTML), "text/html"),
        ("css", bytes(b"a { }"), "text/css"),
        ("js mjs", bytes(SCRIPT), "text/javascript application/javascript application/x-javascript"),
        ("ts", bytes(TEXT), "video/mp2t application/typescript text/x-typescript"),
        ("sh", bytes(SCRIPT), "application/x-sh text/x-sh application/x-shellscript text/x-shellscript"),
        ("py", bytes(SCRIPT), "text/x-python application/x-python-code text/x-python-script"),
        ("pl", bytes(SCRIPT), "application/x-perl text/x-perl"),
        ("php", bytes(b"<?php\n"), "application/x-httpd-php application/x-php text/php"),
        ("sql", bytes(b"<!-- x -->\nSELECT 1;"), "application/sql application/x-sql text/x-sql"),
        ("yaml yml", bytes(TEXT), "application/yaml application/x-yaml text/yaml"),
        ("toml", bytes(TEXT), "application/toml"),
        ("ics", bytes(b"BEGIN:VCALENDAR\r\n"), "text/calendar"),
        ("vcf", bytes(b"BEGIN:VCARD\r\n"), "text/vcard text/x-vcard"),
        ("eml", bytes(b"From: a@example.com\r\n"), "message/rfc822"),
        ("tex", bytes(b"\\documentclass{article}"), "text/x-tex application/x-tex"),
        ("srt vtt", bytes(b"WEBVTT\n"), "text/vtt application/x-subrip"),
        ("torrent", bytes(b"d8:announce"), "application/x-bittorrent"),
        ("dwg", bytes(b"AC1027\0\0\0\0"), "image/vnd.dwg application/acad image/x-dwg"),
        ("swf", bytes(b"FWS\x05"), "application/x-shockwave-flash"),
    ];
    for (ending, directory, kind) in [
        ("docm", "word", "application/vnd.ms-word.document."),
        ("dotm", "word", "application/vnd.ms-word.template."),
        ("xlsm", "xl", "application/vnd.ms-excel.sheet."),
        ("xlsb", "xl", "application/vnd.ms-excel.sheet.binary."),
        ("pptm", "ppt", "application/vnd.ms-powerpoint.presentation."),
    ] {
        files.push((
            ending,
            office(directory),
            Box::leak(format!("{kind}{MACRO}").into_boxed_str()),
        ));
    }
    files
}

#[test]
fn whatever_a_system_declares_for_a_kind_of_file_is_taken_as_that_where_the_list_has_it() {
    let files = files();
    let names: Vec<_> = files.iter().flat_map(|(_, _, names)| names.split_whitespace()).collect();
    let all: BTreeSet<_> = names.iter().copied().collect();
    let list = all.into_iter().collect::<Vec<_>>().join(",");
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", &list)], ["ann"]);
    for (endings, content, names) in &files {
        for name in names.split_whitespace() {
            let declared = format!("{name}; x=y");
            let answer = api.upload_form(&ann, file_form("a", &declared, content));
            let answer = answer.case(format_args!("{endings}: {name}")).expect(201);
            answer.has(json!({ "content_type": name }));
        }
    }
}

#[test]
fn recordings_of_browsers_are_taken_with_their_codecs() {
    let list = "audio/webm,video/webm,audio/mp4,video/mp4,video/x-matroska,audio/ogg";
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", list)], ["ann"]);
    for (declared, content, stored) in [
        ("audio/webm;codecs=opus", matroska("webm"), "audio/webm"),
        ("video/webm; codecs=\"vp8, opus\"", matroska("webm"), "video/webm"),
        ("video/x-matroska;codecs=avc1", matroska("matroska"), "video/x-matroska"),
        ("audio/mp4;codecs=mp4a.40.2", iso("mp42"), "audio/mp4"),
        ("video/mp4;codecs=avc1", iso("iso5"), "video/mp4"),
        ("audio/ogg; codecs=opus", b"OggS\0\x02\0\0\0\0\0\0\0\0\xff".to_vec(), "audio/ogg"),
    ] {
        let answer = api.upload_form(&ann, file_form("a", declared, &content));
        answer.case(declared).expect(201).has(json!({ "content_type": stored }));
    }
}

#[test]
fn lists_with_patterns_and_any_take_what_they_say() {
    let upload = |list: &str, cases: &[(&str, &[u8], Option<&str>)]| {
        let settings = [("CLOAKROOM_ALLOWED_UPLOAD_TYPES", list)];
        let (api, [ann]) = Server::with_users(&settings, ["ann"]);
        for (declared, content, stored) in cases {
            let answer = api.upload_form(&ann, file_form("a", declared, content));
            let answer = answer.case(format_args!("{list}: {declared}"));
            match stored {
                Some(name) => _ = answer.expect(201).has(json!({ "content_type": name })),
                None => _ = answer.refused(415, "File type not allowed"),
            }
        }
        api.get("/uploads?content_type=image/x-png", &ann).expect(200).has(json!({ "total": 1 }));
    };
    let program = program();
    for list in ["any", "*/*", " ANY "] {
        upload(
            list,
            &[
                ("image/png", b"a picture by its name", Some("image/png")),
                (
                    "application/x-msdownload",
                    &program,
                    Some("application/vnd.microsoft.portable-executable"),
                ),
                ("application/octet-stream", b"\0", Some("application/octet-stream")),
                ("application/octet-stream", b"GIF89a\xff", Some("image/gif")),
                ("", b"\xff\0", Some("application/octet-stream")),
            ],
        );
    }
    upload(
        "image/*,text/plain",
        &[
            ("image/x-png", b"", Some("image/png")),
            ("image/svg+xml", b"<svg/>", Some("image/svg+xml")),
            ("image/gif", &program, None),
            ("application/octet-stream", &program, None),
            ("audio/mpeg", b"", None),
        ],
    );
}

/// Whatever recognises contents by their first bytes may meet fewer of them.
#[test]
fn a_file_that_is_cut_off_anywhere_is_taken_or_refused() {
    let files = files();
    let first = |names: &'static str| names.split_whitespace().next().expect("a name");
    let list: BTreeSet<_> = files.iter().map(|(_, _, names)| first(names)).collect();
    let list = list.into_iter().collect::<Vec<_>>().join(",");
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", &list)], ["ann"]);
    let contents: BTreeMap<_, _> =
        files.iter().map(|(_, content, names)| (content, first(names))).collect();
    let cut: Vec<_> = contents
        .into_iter()
        .flat_map(|(content, name)| {
            let lengths = (0..content.len()).filter(|length| *length <= 12 || length % 37 == 0);
            lengths.map(move |length| (name, &content[..length]))
        })
        .collect();
    assert!(cut.len() > 500, "{}", cut.len());
    parallel(8, |thread| {
        for (name, content) in cut.iter().skip(thread).step_by(8) {
            let answer = api.upload_form(&ann, file_form("a", name, content));
            let is_answered = [201, 415].contains(&answer.status);
            assert!(is_answered, "{name}, {} bytes: {answer:?}", content.len());
        }
    });
    assert!(!api.log().contains("panic"), "{}", api.log());
}
