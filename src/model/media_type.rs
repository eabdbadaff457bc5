//! Media types: the names of one type, and whether a list takes it.

use std::cmp::Ordering;

use crate::config::UploadTypes;

/// Type and subtype of a media type, without its parameters, in lower case.
pub fn without_parameters(text: &str) -> String {
    text.split(';').next().unwrap_or_default().trim_matches([' ', '\t']).to_ascii_lowercase()
}

/// Which names stand for one type, and which types an extension may stand for.
const TABLE: &str = include_str!("media_types.txt");

/// The rest of the line of the table that begins with this word: a search that halves the sorted table, where it is.
fn find(key: &str) -> Option<&'static str> {
    let mut rest = TABLE;
    while !rest.is_empty() {
        let start = rest.get(..rest.len() / 2)?.rfind('\n').map_or(0, |newline| newline + 1);
        let (before, here) = rest.split_at_checked(start)?;
        let (line, after) = here.split_once('\n')?;
        let (word, names) = line.split_once(' ')?;
        rest = match word.cmp(key) {
            Ordering::Equal => return Some(names),
            Ordering::Less => after,
            Ordering::Greater => before,
        };
    }
    None
}

/// All names of a type, in the order in which one is chosen: registered ones are first. It is lower case and without
/// parameters, as they are.
pub fn spellings(name: &str) -> Vec<&str> {
    let names = name.contains('/').then(|| find(name)).flatten();
    names.map_or_else(|| vec![name], |names| names.split(' ').collect())
}

/// The types that files may have whose names end in the extension of this one, if they are of a family whose members
/// are told apart by it.
pub fn types_by_extension(filename: &str) -> impl Iterator<Item = &'static str> {
    let extension = filename.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let names = extension.and_then(|extension| find(&format!(".{extension}")));
    names.unwrap_or_default().split_ascii_whitespace()
}

/// The name by which the list has a type: the name itself if it is there, else another one; where only a pattern has
/// it, the first name that the pattern takes. `None` if the list does not take the type.
pub fn listed(name: &str, types: &UploadTypes) -> Option<String> {
    let is_listed = |known: &str| types.iter().any(|listed| listed == known);
    if is_listed(name) {
        return Some(name.to_owned());
    }
    let names = spellings(name);
    let found = names.iter().find(|known| is_listed(known));
    let found = found.or_else(|| names.iter().find(|known| types.have_pattern_of(known)));
    found.map(|name| (*name).to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]
mod tests {
    use std::collections::BTreeSet;

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
            ("image/*", "application/pdf", None),
            ("audio/*", "application/ogg", Some("audio/ogg")),
            ("text/*", "application/xml", Some("text/xml")),
            ("any", "x/y", Some("x/y")),
            ("*/*", "audio/x-wav", Some("audio/wav")),
            ("image/heic", "image/heif", Some("image/heic")),
            ("image/*", "image/heic", Some("image/heic")),
            ("text/*", "application/x-javascript", Some("text/javascript")),
            ("application/*", "application/x-java-vm", Some("application/java")),
        ] {
            let types: UploadTypes = types.parse().unwrap();
            assert_eq!(listed(name, &types).as_deref(), expected, "{types}: {name}");
        }
    }

    #[test]
    fn each_line_of_the_table_is_found_and_each_name_of_a_type_has_one() {
        let lines: Vec<_> = TABLE.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.is_sorted(), "in the order in which it is searched");
        for (word, names) in lines.iter().map(|line| line.split_once(' ').unwrap()) {
            assert_eq!(find(word), Some(names));
            for name in names.split(' ').filter(|_| word.contains('/')) {
                let others: BTreeSet<_> = spellings(name).into_iter().collect();
                assert_eq!(others, names.split(' ').collect(), "{name}");
            }
        }
        for missing in ["", " ", "!", "~", "a", ".", "image", "image/", "image/jpeg ", "zz/z"] {
            assert_eq!(find(missing), None, "{missing}");
        }
        for single in ["x/y", "#", ".docx"] {
            assert_eq!(spellings(single), [single]);
        }
        assert!(types_by_extension("A.B.DOCX").eq(types_by_extension("a.docx")));
        assert!(
            ["docx", "a.", "a", "", "a.docx ", "a.\u{130}"].iter().all(|name| types_by_extension(
                name
            )
            .next()
            .is_none())
        );
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
