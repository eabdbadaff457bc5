//! Families of media types: those that one signature stands for, because it shows a container and seldom its content.

/// Different types that have one signature, and the name by which that is recognised.
pub const LOOK_ALIKE: &[&[&str]] = &[
    &["application/font-sfnt", "font/sfnt", "font/ttf", "font/otf", "font/collection"],
    &["application/font-woff", "font/woff", "font/woff2", "application/font-woff2"],
];

/// Families of types. Their signatures show the container and seldom what is in it, so a content that shows one of them
/// may be any other. A `*` stands for any beginning or end; a type may be in two families.
pub const FAMILIES: &[&[&str]] = &[
    ZIP,
    OLE,
    GZIP,
    RAR,
    PROGRAMS,
    &["video/x-matroska*", "video/matroska*", "audio/x-matroska", "audio/matroska", "*/webm"], // Matroska
    // ISO base media.
    &[
        "*/mp4",
        "*/3gpp",
        "*/3gpp2",
        "audio/x-m4b",
        "audio/mp4a-latm",
        "video/quicktime",
        "image/heic*",
        "image/heif*",
        "image/avif*",
        "image/x-canon-cr3",
    ],
    &["*/ogg", "*+ogg", "audio/vorbis", "audio/x-speex", "audio/speex", "video/x-theora"], // Ogg
    &["video/x-ms-wm*", "video/x-ms-asf*", "audio/x-ms-wma", "application/vnd.ms-asf"],    // ASF
    &["video/x-msvideo", "audio/wav", "image/webp"],                                       // RIFF
    // TIFF.
    &[
        "image/tiff*",
        "image/x-adobe-dng",
        "image/dng",
        "image/x-nikon-nef",
        "image/x-canon-cr2",
        "image/x-sony-arw",
        "image/x-pentax-pef",
        "image/x-dcraw",
    ],
    &["image/png", "image/apng", "image/vnd.mozilla.apng"], // PNG
    // PDF and PostScript: since 2000 a file of Illustrator is a PDF.
    &[
        "application/pdf",
        "application/postscript",
        "application/illustrator",
        "application/vnd.adobe.illustrator",
        "application/eps",
        "application/x-eps",
        "image/x-eps",
        "image/eps",
    ],
];

pub const ZIP: &[&str] = &[
    "*+zip", // RFC 6839, 3.6
    "application/java-archive",
    "application/oxps",
    "application/vnd.android.package-archive",
    "application/vnd.apple.*",
    "application/vnd.comicbook-rar", // Comics are renamed, not packed anew.
    "application/vnd.google-earth.kmz",
    "application/vnd.ms-excel.*",
    "application/vnd.ms-powerpoint.*",
    "application/vnd.ms-visio.*",
    "application/vnd.ms-word.*",
    "application/vnd.ms-xpsdocument",
    "application/vnd.oasis.opendocument.*",
    "application/vnd.openxmlformats-officedocument.*",
    "application/vnd.sun.xml.*",
    "application/x-cb*",
    "application/x-java-archive",
    "application/x-xpinstall",
    "application/zip",
    "image/openraster",
    "model/3mf",
];

/// The signature of all OLE compound files is recognised as `application/msword`. Word opens RTF and newer documents
/// under the name of its old ones, and a document with a password is an OLE file.
pub const OLE: &[&str] = &[
    "application/msword",
    "application/rtf",
    "application/vnd.ms-excel*",
    "application/vnd.ms-outlook",
    "application/vnd.ms-powerpoint*",
    "application/vnd.ms-project",
    "application/vnd.ms-word.*",
    "application/vnd.ms-works",
    "application/vnd.openxmlformats-officedocument.*",
    "application/vnd.visio",
    "application/x-msi",
    "application/x-mspublisher",
    "application/x-ole-storage",
];

pub const GZIP: &[&str] = &[
    "application/gzip",
    "application/tar*",
    "application/x-compressed*",
    "application/x-gtar*",
    "application/x-tar",
    "application/x-tgz",
    "application/x-ustar",
    "image/svg+xml-compressed",
];

pub const RAR: &[&str] =
    &["application/vnd.rar", "application/vnd.comicbook-rar", "application/x-cbr"];

/// Programs, and packages of programs.
pub const PROGRAMS: &[&str] = &[
    "application/exe",
    "application/java",
    "application/java-vm",
    "application/vnd.android.de*",
    "application/vnd.appimage",
    "application/vnd.debian.binary-package",
    "application/vnd.microsoft.portable-executable",
    "application/vnd.ms-cab-compressed",
    "application/wasm",
    "application/x-apple-diskimage",
    "application/x-coredump",
    "application/x-deb*",
    "application/x-dosexec",
    "application/x-elf",
    "application/x-exe*",
    "application/x-google-chrome-extension",
    "application/x-java-applet*",
    "application/x-mach-binary",
    "application/x-ms-dos-executable",
    "application/x-ms-installer",
    "application/x-msdos-program",
    "application/x-msdownload",
    "application/x-msi",
    "application/x-object",
    "application/x-pie-executable",
    "application/x-redhat-package-manager",
    "application/x-rpm",
    "application/x-sharedlib",
    "application/x-unix-archive",
    "application/x-winexe",
];
