//! The rules that single values must obey, and the messages for values that break them. A rule takes the text that a
//! client sent and returns the value it stands for, or a [`Problem`].

use std::borrow::Cow;
use std::ops::RangeInclusive;

use uuid::Uuid;

use super::audit::AuditPosition;
use super::timestamp::Timestamp;
use super::user::Role;
use crate::error::Problem;

// Lengths count characters, except where they say bytes.

const USERNAME_LENGTH: RangeInclusive<usize> = 3..=50;
const MAX_EMAIL: usize = 255;
const MAX_NAME: usize = 255;
const PASSWORD_LENGTH: RangeInclusive<usize> = 8..=1024;
const MAX_PERMISSIONS: usize = 100;
const PERMISSION_LENGTH: RangeInclusive<usize> = 1..=64;
const MAX_FILENAME: usize = 255;
/// Public, because uploads bound the memory for a description by it.
pub const MAX_DESCRIPTION: usize = 4096;
/// Names and addresses are not longer, so a longer part would match nothing.
const MAX_SEARCH: usize = 255;
/// In bytes. Usernames and addresses are indexed, and an entry of a B-tree index of PostgreSQL is at most 2,704 bytes.
const MAX_TEST_TEXT: usize = 1500;

/// A username: 3 to 50 ASCII letters, digits and underscores.
pub fn username(text: &str) -> Result<String, Problem> {
    let text = check_length(text, USERNAME_LENGTH)?;
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Ok(text.to_owned())
    } else {
        Err(value_error("Only letters, digits and underscore are allowed"))
    }
}

/// An e-mail address (RFC 5321) of at most 255 characters, kept as given.
pub fn email(text: &str) -> Result<String, Problem> {
    let text = check_length(text, 0..=MAX_EMAIL)?;
    // By default the parser also accepts `Name <address>` and `user@[192.0.2.1]`.
    let options = email_address::Options::default().without_display_text().without_domain_literal();
    match email_address::EmailAddress::parse_with_options(text, options.with_required_tld()) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(value_error("Invalid e-mail address")),
    }
}

/// A display name of at most 255 characters, trimmed.
pub fn name(text: &str) -> Result<String, Problem> {
    check_length(text.trim(), 0..=MAX_NAME).map(str::to_owned)
}

/// A new password: 8 to 1024 characters. It is never trimmed.
pub fn password(text: &str) -> Result<String, Problem> {
    if text.chars().count() < *PASSWORD_LENGTH.start() {
        return Err(problem("string_too_short", "Password must be at least 8 characters long"));
    }
    check_length(text, 0..=*PASSWORD_LENGTH.end()).map(str::to_owned)
}

/// A filename of at most 255 characters: the last component of the path that the client sent, trimmed, without the
/// characters of [`is_bidi_control`]. Refuses control characters, an empty name, `.` and `..`.
pub fn filename(text: &str) -> Result<String, Problem> {
    if text.contains(char::is_control) {
        return Err(value_error("Must not contain control characters"));
    }
    check_length(&last_component(text)?, 0..=MAX_FILENAME).map(str::to_owned)
}

/// Like [`filename`], but more lenient, because users often have not chosen the names of the files they upload: control
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
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The description of a file: at most 4096 characters.
pub fn description(text: &str) -> Result<String, Problem> {
    check_length(text, 0..=MAX_DESCRIPTION).map(str::to_owned)
}

/// A text to search for, of any length.
pub fn search(text: &str) -> Result<String, Problem> {
    check_length(text, 0..=usize::MAX).map(str::to_owned)
}

/// A role: `user` or `admin`.
pub fn role(text: &str) -> Result<Role, Problem> {
    choice(text, &Role::CHOICES)
}

/// The permissions of an account: at most 100 words of 1 to 64 characters.
pub fn permissions(words: &[&str]) -> Result<Vec<String>, Problem> {
    if words.len() > MAX_PERMISSIONS {
        return Err(value_error(format!("Must have at most {MAX_PERMISSIONS} items")));
    }
    let word = |text: &&str| check_length(text, PERMISSION_LENGTH).map(str::to_owned);
    words.iter().map(word).collect()
}

/// A part of a name or an address to search for: at most 255 characters. An empty part matches everything.
pub fn search_part(text: &str) -> Result<String, Problem> {
    check_length(text, 0..=MAX_SEARCH).map(str::to_owned)
}

/// A text of an account made for a test: anything that the database can store and index, at most 1,500 bytes.
pub fn test_text(text: &str) -> Result<String, Problem> {
    let text = check_length(text, 0..=usize::MAX)?;
    if text.len() > MAX_TEST_TEXT {
        let message = format!("Must be at most {MAX_TEST_TEXT} bytes long");
        return Err(problem("string_too_long", message));
    }
    Ok(text.to_owned())
}

/// The permissions of an account made for a test: any number of [`test_text`]s.
pub fn test_permissions(words: &[&str]) -> Result<Vec<String>, Problem> {
    words.iter().map(|word| test_text(word)).collect()
}

/// A point in time in RFC 3339, see [`Timestamp::parse`].
pub fn timestamp(text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text).ok_or_else(|| problem("datetime_parsing", "Invalid timestamp"))
}

/// A text that is only looked up or compared, such as a login name. It may be anything but empty.
pub fn non_empty(text: &str) -> Result<String, Problem> {
    check_length(text, 1..=usize::MAX).map(str::to_owned)
}

/// A token. Any text is accepted here, because a malformed token is an invalid token and not a bad field.
pub fn token(text: &str) -> Result<String, Problem> {
    Ok(text.to_owned())
}

/// Accepts a text whose number of characters is `allowed` and that has no NUL, which PostgreSQL cannot store.
fn check_length(text: &str, allowed: RangeInclusive<usize>) -> Result<&str, Problem> {
    let (min, max, count) = (*allowed.start(), *allowed.end(), text.chars().count());
    if text.contains('\0') {
        Err(value_error("Must not contain NUL characters"))
    } else if count < min {
        Err(problem("string_too_short", format!("Must be at least {min} characters long")))
    } else if count > max {
        Err(problem("string_too_long", format!("Must be at most {max} characters long")))
    } else {
        Ok(text)
    }
}

/// A required value is absent.
pub fn missing() -> Problem {
    problem("missing", "Field required")
}

/// A value that must be single came more than once.
pub fn sent_twice() -> Problem {
    value_error("Must be sent only once")
}

/// A text is not UTF-8.
pub fn not_utf8() -> Problem {
    value_error("Must be UTF-8")
}

/// The value may not be given together with these others.
pub fn not_beside(others: &str) -> Problem {
    value_error(format!("Must not be given beside {others}"))
}

/// The value is something other than a string.
pub fn not_a_string() -> Problem {
    problem("string_type", "Must be a string")
}

/// The value is something other than a list of strings.
pub fn not_a_list() -> Problem {
    value_error("Must be a list of strings")
}

/// The body is not UTF-8 or not JSON.
pub fn not_json() -> Problem {
    problem("json_invalid", "Invalid JSON")
}

/// The body is JSON, but not an object.
pub fn not_an_object() -> Problem {
    value_error("Must be an object")
}

/// The body is not `multipart/form-data`, or it ends before its closing delimiter.
pub fn not_multipart() -> Problem {
    value_error("Must be multipart/form-data, complete, with its boundary in Content-Type")
}

/// The value is something other than a boolean.
pub fn not_a_boolean() -> Problem {
    problem("bool_type", "Must be a boolean")
}

/// A UUID, as the ids in paths are.
pub fn uuid(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| problem("uuid_parsing", "Invalid UUID"))
}

/// A place in the audit log, as a page of it names the next one.
pub fn audit_position(text: &str) -> Result<AuditPosition, Problem> {
    AuditPosition::parse(text).ok_or_else(|| value_error("Invalid cursor"))
}

/// A whole number in decimal digits that lies in the range.
pub fn integer(text: &str, allowed: &RangeInclusive<i64>) -> Result<i64, Problem> {
    match text.parse() {
        Ok(n) if n < *allowed.start() => {
            Err(value_error(format!("Must be at least {}", allowed.start())))
        }
        Ok(n) if n > *allowed.end() => {
            Err(value_error(format!("Must be at most {}", allowed.end())))
        }
        Ok(n) => Ok(n),
        Err(_) => Err(problem("int_parsing", "Must be an integer")),
    }
}

/// A boolean as a query spells it: `true`, `1`, `false` or `0`, in upper or lower case.
pub fn boolean(text: &str) -> Result<bool, Problem> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(not_a_boolean()),
    }
}

/// A word of a closed list. Returns the value that is paired with it.
pub fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, Problem> {
    let found = choices.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        problem("enum", format!("Must be one of: {}", words.join(", ")))
    })
}

fn value_error(message: impl Into<Cow<'static, str>>) -> Problem {
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
