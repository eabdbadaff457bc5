//! Rules of single fields (contract, 7) and the one table of texts that answers their breach
//! (contract, 4). A rule takes the text of a field and gives the value or the problem.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use uuid::Uuid;

use super::timestamp::Timestamp;
use super::user::Role;
use crate::error::Problem;

/// Longest description, characters.
pub const MAX_DESCRIPTION: usize = 4096;
/// Longest filename, characters.
const MAX_FILENAME: usize = 255;
/// Longest part to look for, characters: no text that is searched is longer.
const MAX_PART: usize = 255;
/// Longest e-mail address, characters.
const MAX_EMAIL: usize = 255;
/// Longest display name, characters.
const MAX_NAME: usize = 255;
/// Password length, characters.
const PASSWORD: (usize, usize) = (8, 1024);
/// Most permissions of an account, and the length of one, characters.
const PERMISSIONS: (usize, usize) = (100, 64);
/// Longest text of an account made for a test, bytes: a row of an index holds no more.
const MAX_TEST_TEXT: usize = 1500;
/// Username length, characters.
const USERNAME: (usize, usize) = (3, 50);

/// 3 to 50 ASCII letters, digits and underscores.
pub fn username(text: &str) -> Result<String, Problem> {
    let text = length(text, USERNAME.0, USERNAME.1)?;
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Ok(text.to_owned())
    } else {
        Err(wrong("Only letters, digits and underscore are allowed"))
    }
}

/// A valid address (RFC 5321), kept as given.
pub fn email(text: &str) -> Result<String, Problem> {
    let text = length(text, 0, MAX_EMAIL)?;
    // The parser also takes `Name <address>`; only the address itself is meant here.
    let options = email_address::Options::default().without_display_text().without_domain_literal();
    match email_address::EmailAddress::parse_with_options(text, options.with_required_tld()) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(wrong("Invalid e-mail address")),
    }
}

/// A display name: trimmed, at most 255 characters.
pub fn name(text: &str) -> Result<String, Problem> {
    length(text.trim(), 0, MAX_NAME).map(str::to_owned)
}

/// A new password: 8 to 1024 characters, never trimmed.
pub fn password(text: &str) -> Result<String, Problem> {
    if text.chars().count() < PASSWORD.0 {
        return Err(problem("string_too_short", "Password must be at least 8 characters long"));
    }
    length(text, 0, PASSWORD.1).map(str::to_owned)
}

/// A name for a file, out of whatever a client calls it: the last component of a path, without control
/// characters, trimmed; not empty, `.` or `..`; at most 255 characters.
pub fn filename(text: &str) -> Result<String, Problem> {
    length(&bare_filename(text)?, 0, MAX_FILENAME).map(str::to_owned)
}

/// Like [`filename`], but cut before its extension where it is too long.
pub fn uploaded_filename(text: &str) -> Result<String, Problem> {
    let name = bare_filename(text)?;
    let over = name.chars().count().saturating_sub(MAX_FILENAME);
    if over == 0 {
        return Ok(name);
    }
    // An extension that leaves no room for a name is none.
    let dot = name.rfind('.').unwrap_or(name.len());
    let stem = name[..dot].chars().count();
    Ok(if stem > over {
        let stem: String = name[..dot].chars().take(stem - over).collect();
        stem + &name[dot..]
    } else {
        name.chars().take(MAX_FILENAME).collect()
    })
}

fn bare_filename(text: &str) -> Result<String, Problem> {
    let last = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = last.chars().filter(|c| !c.is_control()).collect();
    match name.trim() {
        "" | "." | ".." => Err(wrong("Must be a filename")),
        name => Ok(name.to_owned()),
    }
}

/// Free text, at most 4096 characters.
pub fn description(text: &str) -> Result<String, Problem> {
    length(text, 0, MAX_DESCRIPTION).map(str::to_owned)
}

/// Any text to search for.
pub fn search(text: &str) -> Result<String, Problem> {
    length(text, 0, usize::MAX).map(str::to_owned)
}

/// `user` or `admin`.
pub fn role(text: &str) -> Result<Role, Problem> {
    choice(text, &Role::CHOICES)
}

/// At most 100 words of 1 to 64 characters.
pub fn permissions(words: &[&str]) -> Result<Vec<String>, Problem> {
    if words.len() > PERMISSIONS.0 {
        return Err(wrong(format!("Must have at most {} items", PERMISSIONS.0)));
    }
    let word = |text: &&str| length(text, 1, PERMISSIONS.1).map(str::to_owned);
    words.iter().map(word).collect()
}

/// A part to look for; an empty one is in everything.
pub fn part(text: &str) -> Result<String, Problem> {
    length(text, 0, MAX_PART).map(str::to_owned)
}

/// A field of an account made for a test: any text the database can keep.
pub fn test_text(text: &str) -> Result<String, Problem> {
    let text = length(text, 0, usize::MAX)?;
    if text.len() > MAX_TEST_TEXT {
        let message = format!("Must be at most {MAX_TEST_TEXT} bytes long");
        return Err(problem("string_too_long", message));
    }
    Ok(text.to_owned())
}

/// Permissions of an account made for a test.
pub fn test_permissions(words: &[&str]) -> Result<Vec<String>, Problem> {
    words.iter().map(|word| test_text(word)).collect()
}

/// A point in time (RFC 3339).
pub fn timestamp(text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text).ok_or_else(|| problem("datetime_parsing", "Invalid timestamp"))
}

/// Something to look up or compare: any text that is not empty.
pub fn given(text: &str) -> Result<String, Problem> {
    length(text, 1, usize::MAX).map(str::to_owned)
}

/// A token: any text, because whatever is no token is answered as an invalid one.
pub fn token(text: &str) -> Result<String, Problem> {
    Ok(text.to_owned())
}

/// Characters, not bytes; no NUL, which PostgreSQL cannot store.
fn length(text: &str, least: usize, most: usize) -> Result<&str, Problem> {
    let count = text.chars().count();
    if text.contains('\0') {
        Err(wrong("Must not contain NUL characters"))
    } else if count < least {
        Err(problem("string_too_short", format!("Must be at least {least} characters long")))
    } else if count > most {
        Err(problem("string_too_long", format!("Must be at most {most} characters long")))
    } else {
        Ok(text)
    }
}

/// The field is absent.
pub fn missing() -> Problem {
    problem("missing", "Field required")
}

/// The value is no string.
pub fn not_a_string() -> Problem {
    problem("string_type", "Must be a string")
}

/// The value is no list of strings.
pub fn not_a_list() -> Problem {
    wrong("Must be a list of strings")
}

/// The body is no JSON.
pub fn not_json() -> Problem {
    problem("json_invalid", "Invalid JSON")
}

/// The body is JSON, but no object.
pub fn not_an_object() -> Problem {
    wrong("Must be an object")
}

/// The body is no form in parts, or ends before its last delimiter.
pub fn not_multipart() -> Problem {
    wrong("Must be multipart/form-data, complete, with its boundary in Content-Type")
}

/// The value is no boolean.
pub fn not_a_boolean() -> Problem {
    problem("bool_type", "Must be a boolean")
}

/// An id of a path.
pub fn uuid(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| problem("uuid_parsing", "Invalid UUID"))
}

/// A whole number of the range, in decimal digits.
pub fn integer(text: &str, allowed: &RangeInclusive<i64>) -> Result<i64, Problem> {
    match text.parse() {
        Ok(n) if n < *allowed.start() => {
            Err(wrong(format!("Must be at least {}", allowed.start())))
        }
        Ok(n) if n > *allowed.end() => Err(wrong(format!("Must be at most {}", allowed.end()))),
        Ok(n) => Ok(n),
        Err(_) => Err(problem("int_parsing", "Must be an integer")),
    }
}

/// `true` or `false`, also as `1` and `0`, in any case.
pub fn boolean(text: &str) -> Result<bool, Problem> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(not_a_boolean()),
    }
}

/// A word of a closed list, each with its value.
pub fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, Problem> {
    let found = choices.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        problem("enum", format!("Must be one of: {}", words.join(", ")))
    })
}

fn wrong(message: impl Into<Cow<'static, str>>) -> Problem {
    problem("value_error", message)
}

fn problem(kind: &'static str, message: impl Into<Cow<'static, str>>) -> Problem {
    Problem { kind, message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usernames_are_3_to_50_word_characters() {
        for good in ["abc", "A_9", &"x".repeat(50)] {
            assert_eq!(username(good).as_deref(), Ok(good));
        }
        for (bad, kind) in [
            ("", "string_too_short"),
            ("ab", "string_too_short"),
            (&*"x".repeat(51), "string_too_long"),
            ("a b c", "value_error"),
            ("jos\u{e9}", "value_error"),
            ("abc\0", "value_error"),
            ("a@example.com", "value_error"),
        ] {
            assert_eq!(username(bad).map_err(|p| p.kind), Err(kind), "{bad:?}");
        }
    }

    #[test]
    fn e_mail_addresses_are_one_bare_address() {
        for good in ["a@example.com", "A.b+c@sub.Example.com", "o'hara@example.com"] {
            assert_eq!(email(good).as_deref(), Ok(good));
        }
        let long = format!("{}@example.com", "x".repeat(250));
        for bad in [
            "",
            "a",
            "a@",
            "@example.com",
            "a b@example.com",
            "Ann <a@example.com>",
            "a@example.com\0",
            "a@exa mple.com",
            "a@example",
            &long,
        ] {
            assert!(email(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn passwords_are_counted_in_characters_and_never_trimmed() {
        assert_eq!(
            password("  \u{e9}\u{e9}\u{e9}\u{e9}  ").as_deref(),
            Ok("  \u{e9}\u{e9}\u{e9}\u{e9}  ")
        );
        assert_eq!(
            password("\u{e9}".repeat(7).as_str()).map_err(|p| p.kind),
            Err("string_too_short")
        );
        assert_eq!(password(&"x".repeat(1024)).map(|p| p.len()), Ok(1024));
        assert_eq!(password(&"x".repeat(1025)).map_err(|p| p.kind), Err("string_too_long"));
    }

    #[test]
    fn filenames_are_one_component_and_keep_their_extension() {
        let long = "x".repeat(300);
        let cut = "x".repeat(255);
        for (given, expected) in [
            ("a.txt", Ok("a.txt")),
            ("../../etc/passwd", Ok("passwd")),
            ("C:\\dir\\a.txt", Ok("a.txt")),
            (" a\r\nb\0.txt ", Ok("ab.txt")),
            ("%41;\"\u{202e}\u{1f600}", Ok("%41;\"\u{202e}\u{1f600}")),
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
    }
}
