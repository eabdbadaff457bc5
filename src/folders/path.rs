//! The rules of folders, as clients write them.

use crate::error::Problem;
use crate::model::problems::value_error;
use crate::model::rules::{MAX_FILENAME, MAX_FOLDER, check_visible};
use crate::model::text::nfc;

/// Most folders within each other.
const MAX_DEPTH: usize = 16;

/// Parses a folder, `/a/b`, in which the first slash may be absent and another may end it, into the form of the column
/// `files.folder`. Its names are put into NFC. An empty text is the root, `/`.
pub fn folder(text: &str) -> Result<String, Problem> {
    if matches!(text, "" | "/") {
        return Ok(String::new());
    }
    let text = nfc(text.strip_prefix('/').unwrap_or(text));
    let text = text.strip_suffix('/').unwrap_or(&text);
    if text.len() >= MAX_FOLDER {
        return Err(value_error(format!("Must have at most {MAX_FOLDER} bytes")));
    }
    if text.split('/').count() > MAX_DEPTH {
        return Err(value_error(format!("Must be at most {MAX_DEPTH} folders deep")));
    }
    text.split('/').map(|name| check_name(name).map(|()| format!("{name}\x01"))).collect()
}

/// The name is no way to another folder anywhere, looks like what it is, and can be typed again.
fn check_name(name: &str) -> Result<(), Problem> {
    let problem = match check_visible(name)? {
        "" => "Must not have an empty name",
        "." | ".." => "Must not have a name . or ..",
        _ if name.contains('\\') => "Must not contain a backslash",
        _ if name.trim() != name => "Must not have blanks around a name",
        _ if name.chars().count() > MAX_FILENAME => "Must have names of at most 255 characters",
        _ => return Ok(()),
    };
    Err(value_error(problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::file::folder_path;

    #[test]
    fn a_folder_has_one_form() {
        let (name, long) = ("x".repeat(255), "x".repeat(256));
        let (deep, too_deep) = (vec!["a"; 16].join("/"), vec!["a"; 17].join("/"));
        let bytes = |last: usize| {
            format!("{}{}", format!("/{name}").repeat(3), "/x".to_owned() + &"y".repeat(last))
        };
        for (given, expected) in [
            ("", Some("/")),
            ("/", Some("/")),
            ("a", Some("/a")),
            ("/a", Some("/a")),
            ("a/", Some("/a")),
            ("/a b/a-b/.hidden/", Some("/a b/a-b/.hidden")),
            ("/A\u{308}", Some("/\u{c4}")),
            ("/\u{212b}", Some("/\u{c5}")),
            (&name, Some(&*format!("/{name}"))),
            (&*bytes(230), Some(&*bytes(230))),
            (&*deep, Some(&*format!("/{deep}"))),
            ("//", None),
            ("//a", None),
            ("/a//b", None),
            ("a//", None),
            (".", None),
            ("/a/../b", None),
            ("a\\b", None),
            (" a", None),
            ("a/b ", None),
            ("a/\u{3000}b", None),
            ("a\u{1}", None),
            ("a\0", None),
            ("a\nb", None),
            ("a\u{202e}b", None),
            (&long, None),
            (&*bytes(231), None),
            (&*too_deep, None),
        ] {
            let path = folder(given).ok().map(|folder| folder_path(&folder));
            assert_eq!(path.as_deref(), expected, "{given:?}");
        }
        assert_eq!(bytes(230).len(), MAX_FOLDER);
    }
}
