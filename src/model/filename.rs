//! The names of files: what clients may send, and what is made of it.

use serde_json::json;

use super::problems::value_error;
use super::rule::{Rule, check_length};
use crate::error::Problem;

/// In characters.
const MAX_FILENAME: usize = 255;

/// The pattern of texts without control characters.
const NO_CONTROL: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// A filename of at most 255 characters: the last component of the path that the client sent, trimmed, without the
/// characters of [`is_bidi_control`]. Refuses control characters, an empty name, `.` and `..`.
pub const FILENAME: Rule<String> = Rule {
    parse: filename,
    schema: || {
        json!({
            "type": "string", "minLength": 1, "maxLength": MAX_FILENAME, "pattern": NO_CONTROL,
            "examples": ["report.pdf"],
        })
    },
};

fn filename(text: &str) -> Result<String, Problem> {
    if text.contains(char::is_control) {
        return Err(value_error("Must not contain control characters"));
    }
    check_length(&last_component(text)?, 0..=MAX_FILENAME).map(str::to_owned)
}

/// Like [`FILENAME`], but more lenient, because users often have not chosen the names of the files they upload: control
/// characters are removed, and a name that is too long is shortened before its extension.
pub fn uploaded_filename(text: &str) -> Result<String, Problem> {
    let name = last_component(text)?;
    let over = name.chars().count().saturating_sub(MAX_FILENAME);
    if over == 0 {
        return Ok(name);
    }
    // If the text after the last dot is so long that it leaves no room for a name, it is not an extension.
    let dot = name.rfind('.').unwrap_or(name.len());
    let stem = name[..dot].chars().count();
    Ok(if stem > over {
        let stem: String = name[..dot].chars().take(stem - over).collect();
        stem + &name[dot..]
    } else {
        name.chars().take(MAX_FILENAME).collect()
    })
}

fn last_component(text: &str) -> Result<String, Problem> {
    let last = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|&c| !c.is_control() && !is_bidi_control(c)).collect();
    match name.trim() {
        "" | "." | ".." => Err(value_error("Must be a filename")),
        name => Ok(name.to_owned()),
    }
}

/// Whether the character changes the direction of the text after it (Unicode UAX #9, explicit formatting). With one of
/// them `gpj.exe` is shown as `exe.jpg`.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
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
        assert_eq!(filename(&long).map_err(|p| p.kind), Err("string_too_long"));
        assert_eq!(filename(&cut).as_deref(), Ok(&*cut));
        assert_eq!(filename("a\tb").map_err(|p| p.kind), Err("value_error"));
        assert_eq!(filename("\u{202e}a").as_deref(), Ok("a"));
    }
}
