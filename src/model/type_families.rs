//! Families of media types: those that one signature stands for, because it shows a container and seldom its content.

use super::media_type::spellings;

/// Types that have one signature, and no other relation: what shows one of them may be any, but they are not stricter
/// for it than types of no family. By RFC 7303, 4.2, the names of XML end in `+xml`.
const LOOK_ALIKE: [&str; 3] = [
    "font/sfnt font/ttf font/otf font/collection",
    "font/woff font/woff2",
    "application/xml *+xml",
];

/// Families of types. Their signatures show the container and seldom what is in it, so a content that shows one of them
/// may be any other. A type is in a family by any of its names, and may be in two. A `*` stands for any beginning or
/// end. The last ones are Matroska, ISO base media, Ogg, ASF, RIFF, TIFF, PNG, and PDF with PostScript: since 2000 a
/// file of Illustrator is a PDF.
const FAMILIES: [&str; 13] = [
    ZIP,
    OLE,
    GZIP,
    RAR,
    PROGRAMS,
    "video/x-matroska* video/matroska* audio/matroska */webm",
    "*/mp4 */3gpp */3gpp2 audio/x-m4b audio/mp4a-latm video/quicktime image/heic* image/heif* image/avif* \
     image/x-canon-cr3",
    "*/ogg *+ogg audio/x-speex audio/speex",
    "video/x-ms-wm* video/x-ms-asf* audio/x-ms-wma",
    "video/x-msvideo audio/wav image/webp",
    "image/tiff* image/x-adobe-dng image/dng image/x-nikon-nef image/x-canon-cr2 image/x-sony-arw \
     image/x-pentax-pef image/x-dcraw",
    "image/png image/apng image/vnd.mozilla.apng",
    "application/pdf application/postscript application/illustrator application/eps application/x-eps image/x-eps \
     image/eps",
];

/// The names of what is packed in ZIP end in `+zip` by RFC 6839, 3.6. Comics are renamed, not packed anew.
pub const ZIP: &str = "*+zip application/java-archive application/oxps application/vnd.android.package-archive \
    application/vnd.apple.* application/vnd.comicbook-rar application/vnd.google-earth.kmz application/vnd.ms-excel.* \
    application/vnd.ms-powerpoint.* application/vnd.ms-visio.* application/vnd.ms-word.* \
    application/vnd.ms-xpsdocument application/vnd.oasis.opendocument.* \
    application/vnd.openxmlformats-officedocument.* application/vnd.sun.xml.* application/x-cb* \
    application/x-xpinstall application/zip image/openraster model/3mf";

/// The signature of all OLE compound files is recognised as `application/msword`. Word opens RTF and newer documents
/// under the name of its old ones, and a document with a password is an OLE file.
pub const OLE: &str = "application/msword application/rtf application/vnd.ms-excel* application/vnd.ms-outlook \
    application/vnd.ms-powerpoint* application/vnd.ms-project application/vnd.ms-word.* application/vnd.ms-works \
    application/vnd.openxmlformats-officedocument.* application/vnd.visio application/x-msi \
    application/x-mspublisher application/x-ole-storage";

pub const GZIP: &str = "application/gzip application/tar* application/x-compressed* application/x-gtar* \
    application/x-tar application/x-tgz application/x-ustar image/svg+xml-compressed";

pub const RAR: &str = "application/vnd.rar application/vnd.comicbook-rar";

/// Programs, and packages of programs.
pub const PROGRAMS: &str = "application/java application/vnd.android.de* application/vnd.appimage \
    application/vnd.debian.binary-package application/vnd.microsoft.portable-executable \
    application/vnd.ms-cab-compressed application/wasm application/x-apple-diskimage application/x-coredump \
    application/x-elf application/x-executable* application/x-google-chrome-extension application/x-mach-binary \
    application/x-ms-installer application/x-msi application/x-object application/x-pie-executable application/x-rpm \
    application/x-sharedlib application/x-unix-archive";

/// Whether a type is in a family.
pub fn belongs(name: &str, family: &str) -> bool {
    let names = spellings(name);
    family.split_whitespace().any(|pattern| {
        match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => names.iter().any(|name| name.ends_with(end)),
            (None, Some(beginning)) => names.iter().any(|name| name.starts_with(beginning)),
            (None, None) => names.contains(&pattern),
        }
    })
}

/// Whether a type is in any family.
pub fn has_family(name: &str) -> bool {
    FAMILIES.iter().any(|family| belongs(name, family))
}

/// Whether what shows one of the types may be the other.
pub fn are_related(shown: &str, name: &str) -> bool {
    let mut groups = FAMILIES.iter().chain(&LOOK_ALIKE);
    spellings(name).contains(&shown)
        || groups.any(|group| belongs(shown, group) && belongs(name, group))
}
