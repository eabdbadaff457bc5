//! The rules that single values from clients must obey. Each parses the text that a client sent into a value, or
//! returns the [`Problem`] to report.

use std::ops::RangeInclusive;

use serde_json::json;
use uuid::Uuid;

use super::audit::AuditPosition;
use super::filename::is_bidi_control;
use super::page::PageRequest;
use super::problems::{not_a_boolean, not_an_integer, problem, value_error};
use super::rule::{ListRule, Rule, check_length};
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
const TOKEN_NAME_LENGTH: RangeInclusive<usize> = 1..=100;
/// How long a personal access token may be valid, in days.
pub const TOKEN_DAYS: RangeInclusive<i64> = 1..=365;
const MAX_USER_AGENT: usize = 200;
/// Public, because uploads bound the memory for a description by it.
pub const MAX_DESCRIPTION: usize = 4096;
/// Names and e-mail addresses are not longer, so a longer text is found in none of them.
const MAX_SEARCH: usize = 255;
/// In bytes. Usernames and addresses are indexed, and an entry of a B-tree index of PostgreSQL is at most 2,704 bytes.
const MAX_TEST_TEXT: usize = 1500;

/// The pattern of texts without NUL, which PostgreSQL cannot store.
const NO_NUL: &str = r"^[^\u0000]*$";

/// A username: 3 to 50 ASCII letters, digits and underscores.
pub const USERNAME: Rule<String> = Rule {
    parse: username,
    schema: || {
        let (min, max) = USERNAME_LENGTH.into_inner();
        json!({
            "type": "string", "minLength": min, "maxLength": max, "pattern": "^[A-Za-z0-9_]+$", "examples": ["ann"],
        })
    },
};

/// An e-mail address (RFC 5321) of at most 255 characters, kept as given.
pub const EMAIL: Rule<String> = Rule {
    parse: email,
    schema: || {
        json!({
            "type": "string", "format": "email", "maxLength": MAX_EMAIL, "examples": ["ann@example.com"],
        })
    },
};

/// A display name of at most 255 characters, trimmed.
pub const NAME: Rule<String> = Rule {
    parse: |text| check_length(text.trim(), 0..=MAX_NAME).map(str::to_owned),
    schema: || json!({"type": "string", "maxLength": MAX_NAME, "pattern": NO_NUL, "examples": ["Ann Lee"]}),
};

/// The name of a personal access token: 1 to 100 characters, trimmed.
pub const TOKEN_NAME: Rule<String> = Rule {
    parse: |text| check_length(text.trim(), TOKEN_NAME_LENGTH).map(str::to_owned),
    schema: || {
        let (min, max) = TOKEN_NAME_LENGTH.into_inner();
        json!({
            "type": "string", "minLength": min, "maxLength": max, "pattern": NO_NUL, "examples": ["backup script"],
        })
    },
};

/// A new password: 8 to 1024 characters. It is never trimmed.
pub const PASSWORD: Rule<String> = Rule {
    parse: password,
    schema: || {
        let (min, max) = PASSWORD_LENGTH.into_inner();
        json!({
            "type": "string", "format": "password", "minLength": min, "maxLength": max, "pattern": NO_NUL,
            "examples": ["correct horse battery"],
        })
    },
};

/// A password that is compared with the stored one. It may be anything but empty.
pub const CURRENT_PASSWORD: Rule<String> = Rule {
    schema: || {
        json!({
            "type": "string", "format": "password", "minLength": 1, "pattern": NO_NUL,
            "examples": ["correct horse battery"],
        })
    },
    ..NON_EMPTY
};

/// The permissions of an account: at most 100 words of 1 to 64 characters.
pub const PERMISSIONS: ListRule = ListRule {
    max_items: Some(MAX_PERMISSIONS),
    item: Rule {
        parse: |text| check_length(text, PERMISSION_LENGTH).map(str::to_owned),
        schema: || {
            let (min, max) = PERMISSION_LENGTH.into_inner();
            json!({"type": "string", "minLength": min, "maxLength": max, "pattern": NO_NUL})
        },
    },
};

/// The description of a file: at most 4096 characters.
pub const DESCRIPTION: Rule<String> = Rule {
    parse: |text| check_length(text, 0..=MAX_DESCRIPTION).map(str::to_owned),
    schema: || json!({"type": "string", "maxLength": MAX_DESCRIPTION, "pattern": NO_NUL}),
};

/// A text to search for, of any length.
pub const SEARCH: Rule<String> = Rule {
    parse: |text| check_length(text, 0..=usize::MAX).map(str::to_owned),
    schema: || json!({"type": "string", "pattern": NO_NUL}),
};

/// A part of a name or an address to search for: at most 255 characters. An empty part matches everything.
pub const SEARCH_PART: Rule<String> = Rule {
    parse: |text| check_length(text, 0..=MAX_SEARCH).map(str::to_owned),
    schema: || json!({"type": "string", "maxLength": MAX_SEARCH, "pattern": NO_NUL}),
};

/// A role: `user` or `admin`.
pub const ROLE: Rule<Role> = Rule {
    parse: |text| choice(text, &Role::CHOICES),
    schema: || json!({"type": "string", "enum": Role::CHOICES.map(|(word, _)| word)}),
};

/// A text of an account made for a test: anything that the database can store and index, at most 1,500 bytes.
pub const TEST_TEXT: Rule<String> = Rule {
    parse: test_text,
    schema: || json!({"type": "string", "maxLength": MAX_TEST_TEXT, "pattern": NO_NUL}),
};

/// The permissions of an account made for a test: any number of [`TEST_TEXT`]s.
pub const TEST_PERMISSIONS: ListRule = ListRule { max_items: None, item: TEST_TEXT };

/// A point in time in RFC 3339, see [`Timestamp::parse`].
pub const TIMESTAMP: Rule<Timestamp> = Rule {
    parse: |text| {
        Timestamp::parse(text).ok_or_else(|| problem("datetime_parsing", "Invalid timestamp"))
    },
    schema: || json!({"type": "string", "format": "date-time", "examples": ["2026-01-31T12:00:00Z"]}),
};

/// A text that is only looked up or compared, such as a login name. It may be anything but empty.
pub const NON_EMPTY: Rule<String> = Rule {
    parse: |text| check_length(text, 1..=usize::MAX).map(str::to_owned),
    schema: || json!({"type": "string", "minLength": 1, "pattern": NO_NUL}),
};

/// A signed token. Any text is accepted, because a malformed token is refused like any other invalid token, and not as
/// a bad field.
pub const TOKEN: Rule<String> =
    Rule { parse: |text| Ok(text.to_owned()), schema: || json!({"type": "string"}) };

/// The maximum number of items on a page. Any integer is parsed; [`PageRequest::by_offset`] refuses one out of range
/// with an error of its own, which is a 400 and not a 422.
pub const LIMIT: Rule<i64> = Rule {
    parse: |text| integer(text, &(i64::MIN..=i64::MAX)),
    schema: || json!({"type": "integer", "minimum": 1, "maximum": PageRequest::MAX_SIZE}),
};

/// The number of items before a page. A negative one is refused as for [`LIMIT`].
pub const OFFSET: Rule<i64> = Rule {
    parse: |text| integer(text, &(i64::MIN..=i64::MAX)),
    schema: || json!({"type": "integer", "minimum": 0, "maximum": i64::MAX}),
};

fn username(text: &str) -> Result<String, Problem> {
    let text = check_length(text, USERNAME_LENGTH)?;
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        Ok(text.to_owned())
    } else {
        Err(value_error("Only letters, digits and underscore are allowed"))
    }
}

fn email(text: &str) -> Result<String, Problem> {
    let text = check_length(text, 0..=MAX_EMAIL)?;
    // By default the parser also accepts `Name <address>` and `user@[192.0.2.1]`.
    let options = email_address::Options::default().without_display_text().without_domain_literal();
    match email_address::EmailAddress::parse_with_options(text, options.with_required_tld()) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(value_error("Invalid e-mail address")),
    }
}

/// Cleans the value of a `User-Agent` header before it is stored and shown to users: removes control characters and
/// those of [`is_bidi_control`], trims it, and cuts it to 200 characters. Returns `None` if nothing is left.
pub fn user_agent(text: &str) -> Option<String> {
    let visible = |c: &char| !c.is_control() && !is_bidi_control(*c);
    let text: String = text.chars().filter(visible).collect();
    let cut: String = text.trim().chars().take(MAX_USER_AGENT).collect();
    (!cut.is_empty()).then_some(cut)
}

fn password(text: &str) -> Result<String, Problem> {
    if text.chars().count() < *PASSWORD_LENGTH.start() {
        return Err(problem("string_too_short", "Password must be at least 8 characters long"));
    }
    check_length(text, 0..=*PASSWORD_LENGTH.end()).map(str::to_owned)
}

fn test_text(text: &str) -> Result<String, Problem> {
    let text = check_length(text, 0..=usize::MAX)?;
    if text.len() > MAX_TEST_TEXT {
        let message = format!("Must be at most {MAX_TEST_TEXT} bytes long");
        return Err(problem("string_too_long", message));
    }
    Ok(text.to_owned())
}

/// A UUID, as the ids in paths are.
pub const UUID: Rule<Uuid> = Rule {
    parse: |text| text.parse().map_err(|_| problem("uuid_parsing", "Invalid UUID")),
    schema: || json!({"type": "string", "format": "uuid"}),
};

/// A place in the audit log, as a page of it names the next one.
pub const AUDIT_POSITION: Rule<AuditPosition> = Rule {
    parse: |text| AuditPosition::parse(text).ok_or_else(|| value_error("Invalid cursor")),
    // Times of 17 digits end before the year 9999.
    schema: || json!({"type": "string", "pattern": "^[0-9]{1,17}-[0-9a-f]{32}$"}),
};

/// A whole number in decimal digits that lies in the range.
pub fn integer(text: &str, allowed: &RangeInclusive<i64>) -> Result<i64, Problem> {
    in_range(text.parse().map_err(|_| not_an_integer())?, allowed)
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
