//! The names of files: what clients may send, and what is made of it.

use std::borrow::Cow;

use super::problems::value_error;
use super::rules::{MAX_FILENAME, check_text, check_visible, is_bidi_control};
use super::text::nfc;
use crate::error::Problem;

/// A filename of at most 255 characters: the last component of the path that the client sent, trimmed and in NFC.
/// Refuses control characters, those of [`is_bidi_control`] included, an empty name, `.` and `..`.
pub fn filename(text: &str) -> Result<String, Problem> {
    check_text(&last_component(check_visible(text)?)?, 0..=MAX_FILENAME).map(str::to_owned)
}

/// Like [`filename`], but more lenient, because users often have not chosen the names of the files they upload: control
/// characters are removed, and a name that is too long is shortened before its extension.
pub fn uploaded_filename(text: &str) -> Result<String, Problem> {
    let name = last_component(text)?;
    // The last character left may be a blank, before which there may be nothing but a dot.
    last_component(&shortened(&name, MAX_FILENAME, |text| text.chars().count()))
}

/// The name, or what is left of it when so many characters before its extension are dropped that its `size` is at most
/// `max`. An extension that leaves no room for a name is none.
pub fn shortened(name: &str, max: usize, size: impl Fn(&str) -> usize) -> Cow<'_, str> {
    if size(name) <= max {
        return name.into();
    }
    let dot = name.rfind('.').filter(|dot| *dot > 0 && size(&name[*dot..]) < max);
    let (stem, extension) = name.split_at(dot.unwrap_or(name.len()));
    let left = max - size(extension);
    let ends: Vec<usize> = stem.char_indices().map(|(at, _)| at).collect();
    let fitting = ends.partition_point(|end| size(&stem[..*end]) <= left);
    format!("{}{extension}", &stem[..ends[fitting.saturating_sub(1)]]).into()
}

fn last_component(text: &str) -> Result<String, Problem> {
    let last = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|&c| !c.is_control() && !is_bidi_control(c)).collect();
    match name.trim() {
        "" | "." | ".." => Err(value_error("Must be a filename")),
        name => Ok(nfc(name).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filenames_are_one_component_and_keep_their_extension() {
        let long = "x".repeat(300);
        let cut = "x".repeat(255);
        for (given, expected) in [
            ("a.txt", Ok("a.txt")),
            ("../../etc/passwd", Ok("passwd")),
            ("C:\\dir\\a.txt", Ok("a.txt")),
            (" a\r\nb\0.txt ", Ok("ab.txt")),
            ("%41;\"\u{1f600}", Ok("%41;\"\u{1f600}")),
            ("\u{202e}a\u{2066}b\u{2069}\u{85}", Ok("ab")),
            (&format!("{long}.txt"), Ok(&*format!("{}.txt", &cut[4..]))),
            (&long, Ok(&cut)),
            (&format!("{} {long}", &cut[1..]), Ok(&cut[1..])),
            (&format!(".{}x", " ".repeat(300)), Err(())),
            (&format!("a.{long}"), Ok(&*format!("a.{}", &cut[2..]))),
            (&format!(".{long}"), Ok(&*format!(".{}", &cut[1..]))),
            ("", Err(())),
            (".", Err(())),
            ("a/..", Err(())),
            ("a/", Err(())),
            (" \t", Err(())),
        ] {
            let outcome = uploaded_filename(given);
            assert_eq!(outcome.as_deref().map_err(|_| ()), expected, "{given:?}");
        }
        for (name, bytes, ending) in
            [("日本語".repeat(80) + ".txt", 253, "日本.txt"), ("é".repeat(200), 254, "é")]
        {
            let cut = shortened(&name, 255, str::len);
            assert!(
                cut.len() == bytes && cut.ends_with(ending) && name.starts_with(&cut[..240]),
                "{cut}"
            );
        }
        assert_eq!(filename(&long).map_err(|p| p.kind), Err("string_too_long"));
        assert_eq!(filename(&cut).as_deref(), Ok(&*cut));
        assert_eq!(filename("a\tb").map_err(|p| p.kind), Err("value_error"));
        assert_eq!(filename("\u{202e}a").map_err(|p| p.kind), Err("value_error"));
    }
}
