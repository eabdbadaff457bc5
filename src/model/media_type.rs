//! Media types: the names of one type, and whether a list takes it.

use crate::config::UploadTypes;

/// Type and subtype of a media type, without its parameters, in lower case.
pub fn without_parameters(text: &str) -> String {
    text.split(';').next().unwrap_or_default().trim_matches([' ', '\t']).to_ascii_lowercase()
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
    &["image/vnd.dwg", "image/x-dwg"],
    &["image/vnd.microsoft.icon", "image/x-icon"],
    &["video/mp4", "video/x-m4v"],
    &["video/x-msvideo", "video/avi", "video/msvideo"],
];

/// All names of a type. It is lower case and without parameters, as they are.
pub fn spellings(name: &str) -> Vec<&str> {
    let group = SPELLINGS.iter().find(|group| group.contains(&name));
    group.map_or_else(|| vec![name], |group| group.to_vec())
}

/// The name by which the list has a type: the name itself if it is there, else another one; where only a pattern has
/// it, the first name that the pattern takes. `None` if the list does not take the type.
pub fn listed(name: &str, types: &UploadTypes) -> Option<String> {
    let names = spellings(name);
    let is_listed = |known: &&str| types.iter().any(|listed| listed == *known);
    let own = names.iter().find(|known| **known == name && is_listed(known));
    let found = own.or_else(|| names.iter().find(|known| is_listed(known)));
    found
        .or_else(|| names.iter().find(|known| types.have_pattern_of(known)))
        .map(|name| (*name).to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

    #[test]
    fn a_list_takes_a_type_by_any_of_its_names_and_by_patterns_of_its_kind() {
        for (types, name, expected) in [
            ("image/jpeg,audio/x-wav", "image/jpeg", Some("image/jpeg")),
            ("image/jpeg", "image/jpg", Some("image/jpeg")),
            ("image/jpg", "image/pjpeg", Some("image/jpg")),
            ("audio/x-wav,audio/wav", "audio/wav", Some("audio/wav")),
            ("audio/x-wav,audio/wav", "audio/wave", Some("audio/wav")),
            ("font/ttf", "font/otf", None),
            ("image/jpeg", "", None),
            ("image/*", "image/png", Some("image/png")),
            ("image/*", "image/x-png", Some("image/png")),
            ("image/*", "image/svg+xml", Some("image/svg+xml")),
            ("image/*,image/jpg", "image/jpeg", Some("image/jpg")),
            ("image/*", "imagery/png", None),
            ("image/*", "text/plain", None),
            ("audio/*", "application/ogg", Some("audio/ogg")),
            ("text/*", "application/xml", Some("text/xml")),
            ("any", "x/y", Some("x/y")),
            ("*/*", "audio/x-wav", Some("audio/wav")),
        ] {
            let types: UploadTypes = types.parse().unwrap();
            assert_eq!(listed(name, &types).as_deref(), expected, "{types}: {name}");
        }
    }

    #[test]
    fn types_are_compared_without_parameters_and_case() {
        for (declared, expected) in
            [("Text/Plain; charset=UTF-8", "text/plain"), (" IMAGE/PNG ;x", "image/png"), ("", "")]
        {
            assert_eq!(without_parameters(declared), expected);
        }
    }
}
