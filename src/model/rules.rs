//! The rules that single values from clients must obey. Each parses the text that a client sent into a value, or
//! returns the [`Problem`] to report.

use std::ops::RangeInclusive;

use uuid::Uuid;

use super::problems::{
    NOT_A_BOOLEAN, NOT_A_SHA256, NOT_AN_INTEGER, problem, too_many_items, value_error,
};
use super::text::{ascii_domain, nfc};
use super::timestamp::Timestamp;
use super::user::Role;
use crate::error::Problem;

// Lengths are in characters unless a comment says bytes. Names, descriptions, searches, filters and passwords are put
// into NFC before anything is counted, because a keyboard decides by how many characters an accented letter comes.

const USERNAME_LENGTH: RangeInclusive<usize> = 3..=50;
const MAX_EMAIL: usize = 255;
const MAX_NAME: usize = 255;
const PASSWORD_LENGTH: RangeInclusive<usize> = 8..=1024;
const MAX_PERMISSIONS: usize = 100;
const MAX_IDS: usize = 100;
const PERMISSION_LENGTH: RangeInclusive<usize> = 1..=64;
pub const MAX_USER_AGENT: usize = 200;
const MAX_CODE: usize = 64;
/// Public, because uploads bound the memory for a description by it.
pub const MAX_DESCRIPTION: usize = 4096;
pub const MAX_FILENAME: usize = 255;
/// In bytes, with a slash for each name.
pub const MAX_FOLDER: usize = 1000;
/// Names and e-mail addresses are not longer, so a longer text is found in none of them.
const MAX_SEARCH: usize = 255;
/// In bytes. Usernames and addresses are indexed, and an entry of a B-tree index of PostgreSQL is at most 2,704 bytes.
const MAX_TEST_TEXT: usize = 1500;

/// The most live sessions of a user. A sign-in that would exceed it ends another session.
pub const MAX_SESSIONS: i64 = 1000;

/// The most memory in bytes that a file of a list takes: its row in the answer of the database and the record that is
/// made of it, or the record and its JSON. So texts count twice, with four bytes for a character.
pub const FILE_MEMORY: usize = 2 * 4 * (MAX_DESCRIPTION + 2 * MAX_FILENAME) + 2 * MAX_FOLDER + 2048;
/// The same for an account with its permissions, names and addresses.
pub const USER_MEMORY: usize =
    2 * 4 * (MAX_PERMISSIONS * *PERMISSION_LENGTH.end() + 4 * MAX_NAME) + 6144;

/// A username: 3 to 50 ASCII letters, digits and underscores. Like all names and addresses it is trimmed, because
/// keyboards of phones and pasted texts add blanks.
pub fn username(text: &str) -> Result<String, Problem> {
    let text = check_text(text.trim(), USERNAME_LENGTH)?;
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Ok(text.to_owned())
    } else {
        Err(value_error("Only letters, digits and underscore are allowed"))
    }
}

/// An e-mail address (RFC 5321) of at most 255 characters, trimmed and else kept as given, or in NFC if it is an
/// address only so: names have no combining marks in the grammar.
pub fn email(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    let composed = nfc(text);
    check_text(&composed, 0..=MAX_EMAIL)?;
    let valid = [text, &composed].into_iter().find(|text| is_email(text));
    valid.map(str::to_owned).ok_or(value_error("Invalid e-mail address"))
}

fn is_email(text: &str) -> bool {
    // By default the parser also accepts `Name <address>` and `user@[192.0.2.1]`, and always ` <address>`.
    let options = email_address::Options::default().without_display_text().without_domain_literal();
    email_address::EmailAddress::parse_with_options(text, options.with_required_tld())
        .is_ok_and(|address| address.email() == text)
        && check_visible(text).is_ok()
        && text.rsplit('@').next().and_then(ascii_domain).is_some()
}

/// A display name of at most 255 characters, trimmed, without control characters.
pub fn name(text: &str) -> Result<String, Problem> {
    trimmed(text, 0..=MAX_NAME)
}

/// A text of that length in characters, trimmed, without control characters.
pub fn trimmed(text: &str, length: RangeInclusive<usize>) -> Result<String, Problem> {
    check_text(&nfc(text.trim()), length).and_then(check_visible).map(str::to_owned)
}

/// The description of a file: at most 4096 characters, without control characters but for tabs and line breaks. One of
/// blanks only is empty, and no other is trimmed.
pub fn description(text: &str) -> Result<String, Problem> {
    let text = nfc(text);
    check_text(&text, 0..=MAX_DESCRIPTION)?;
    text.split(['\t', '\n', '\r']).try_for_each(|part| check_visible(part).map(drop))?;
    Ok(if text.trim().is_empty() { String::new() } else { text.into_owned() })
}

/// Cleans the value of a `User-Agent` header before it is stored and shown to users: removes control characters and
/// those of [`is_bidi_control`], trims it, and cuts it to 200 characters. Returns `None` if nothing is left.
pub fn user_agent(text: &str) -> Option<String> {
    let visible = |c: &char| !c.is_control() && !is_bidi_control(*c);
    let text: String = text.chars().filter(visible).collect();
    let cut: String = text.trim().chars().take(MAX_USER_AGENT).collect();
    (!cut.is_empty()).then_some(cut)
}

/// A code of a second factor, or a recovery code, at most 64 characters with spaces and hyphens. Whether it is
/// well-formed is not told apart from whether it is right.
pub fn code(text: &str) -> Result<String, Problem> {
    check_text(text, 1..=MAX_CODE).map(str::to_owned)
}

/// A SHA-256 in hexadecimal digits, also as responses write it, after `sha256:`. In lower case.
pub fn sha256(text: &str) -> Result<String, Problem> {
    let digits = text.trim().to_ascii_lowercase();
    let digits = digits.strip_prefix("sha256:").unwrap_or(&digits);
    let is_sha256 = digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if is_sha256 { Ok(digits.to_owned()) } else { Err(NOT_A_SHA256) }
}

/// A new password: 8 to 1024 characters. It is never trimmed.
pub fn password(text: &str) -> Result<String, Problem> {
    let text = nfc(text);
    if text.chars().count() < *PASSWORD_LENGTH.start() {
        return Err(problem("string_too_short", "Password must be at least 8 characters long"));
    }
    check_text(&text, 0..=*PASSWORD_LENGTH.end()).map(str::to_owned)
}

/// The permissions of an account: at most 100 words of 1 to 64 characters.
pub fn permissions(texts: &[&str]) -> Result<Vec<String>, Problem> {
    if texts.len() > MAX_PERMISSIONS {
        return Err(too_many_items(MAX_PERMISSIONS));
    }
    texts.iter().map(|text| check_text(text, PERMISSION_LENGTH).map(str::to_owned)).collect()
}

/// A text to search for, of any length.
pub fn search(text: &str) -> Result<String, Problem> {
    check_text(&nfc(text), 0..=usize::MAX).map(str::to_owned)
}

/// A part of a name or an address to search for: at most 255 characters.
pub fn search_part(text: &str) -> Result<String, Problem> {
    check_text(&nfc(text), 0..=MAX_SEARCH).map(str::to_owned)
}

/// A username or an e-mail address to look up, trimmed. It may be anything but empty.
pub fn login_name(text: &str) -> Result<String, Problem> {
    non_empty(&nfc(text.trim()))
}

/// A text that is only compared, such as a current password. It may be anything but empty.
pub fn non_empty(text: &str) -> Result<String, Problem> {
    check_text(text, 1..=usize::MAX).map(str::to_owned)
}

/// A signed token. Any text is accepted, because a malformed token is refused like any other invalid token, and not as
/// a bad field.
pub fn token(text: &str) -> Result<String, Problem> {
    Ok(text.to_owned())
}

/// A role: `user` or `admin`.
pub fn role(text: &str) -> Result<Role, Problem> {
    choice(text, &Role::CHOICES)
}

/// A point in time in RFC 3339, see [`Timestamp::parse`].
pub fn timestamp(text: &str) -> Result<Timestamp, Problem> {
    Timestamp::parse(text).ok_or_else(|| problem("datetime_parsing", "Invalid timestamp"))
}

/// The permissions of an account made for a test: any number of [`test_text`]s.
pub fn test_permissions(texts: &[&str]) -> Result<Vec<String>, Problem> {
    texts.iter().map(|text| test_text(text)).collect()
}

/// A text of an account made for a test: anything that the database can store and index, at most 1,500 bytes.
pub fn test_text(text: &str) -> Result<String, Problem> {
    let text = search(text)?;
    if text.len() > MAX_TEST_TEXT {
        let message = format!("Must be at most {MAX_TEST_TEXT} bytes long");
        return Err(problem("string_too_long", message));
    }
    Ok(text)
}

/// A UUID, as the ids in paths are.
pub fn uuid(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| problem("uuid_parsing", "Invalid UUID"))
}

/// The ids of a filter, separated by commas: at most as many as a page has items.
pub fn ids(text: &str) -> Result<Vec<Uuid>, Problem> {
    let ids = text.split(',').map(uuid).collect::<Result<Vec<_>, _>>()?;
    if ids.len() > MAX_IDS {
        return Err(too_many_items(MAX_IDS));
    }
    Ok(ids)
}

/// Any whole number of 64 bits, for values that are refused with an error of their own if they are out of range.
pub fn any_integer(text: &str) -> Result<i64, Problem> {
    integer(text, &(i64::MIN..=i64::MAX))
}

/// A whole number in decimal digits that lies in the range. Zeros may follow a point, and blanks stand around it.
pub fn integer(text: &str, allowed: &RangeInclusive<i64>) -> Result<i64, Problem> {
    let text = text.trim();
    let is_whole =
        |(_, zeros): &(&str, &str)| !zeros.is_empty() && zeros.bytes().all(|b| b == b'0');
    let whole = text.split_once('.').filter(is_whole).map_or(text, |(whole, _)| whole);
    in_range(whole.parse().map_err(|_| NOT_AN_INTEGER)?, allowed)
}

/// A whole number that lies in the range.
pub fn in_range(number: i64, allowed: &RangeInclusive<i64>) -> Result<i64, Problem> {
    if number < *allowed.start() {
        Err(value_error(format!("Must be at least {}", allowed.start())))
    } else if number > *allowed.end() {
        Err(value_error(format!("Must be at most {}", allowed.end())))
    } else {
        Ok(number)
    }
}

/// A boolean as queries and forms spell it, in upper or lower case.
pub fn boolean(text: &str) -> Result<bool, Problem> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" => Ok(true),
        "false" | "f" | "no" | "n" | "off" | "0" => Ok(false),
        _ => Err(NOT_A_BOOLEAN),
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

/// Accepts a text without control characters, those of [`is_bidi_control`] included.
pub fn check_visible(text: &str) -> Result<&str, Problem> {
    if text.contains(|c: char| c.is_control() || is_bidi_control(c)) {
        Err(value_error("Must not contain control characters"))
    } else {
        Ok(text)
    }
}

/// Whether the character changes the direction of the text after it (Unicode UAX #9, explicit formatting). With one of
/// them `gpj.exe` is shown as `exe.jpg`.
pub fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Accepts a text whose number of characters is `allowed` and that has no NUL, which PostgreSQL cannot store.
pub fn check_text(text: &str, allowed: RangeInclusive<usize>) -> Result<&str, Problem> {
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
            "<a@example.com>",
            " <a@example.com>",
            "a@example.com\0",
            "a@exa mple.com",
            "a@example",
            "a\u{202e}b@example.com",
            "\"a\tb\"@example.com",
            "a@ex\u{200d}\u{628}ample.com",
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
    fn user_agents_are_cleaned_and_cut() {
        let (long, cut) = ("\u{e9}".repeat(300), "\u{e9}".repeat(200));
        for (given, expected) in [
            ("curl/8.5.0", Some("curl/8.5.0")),
            (" a\tb\0c\r\nd\u{7f}\u{85}\u{202e} ", Some("abcd")),
            (&long, Some(&*cut)),
            ("", None),
            (" \0\t\u{2066}", None),
        ] {
            assert_eq!(user_agent(given).as_deref(), expected, "{given:?}");
        }
    }
}
