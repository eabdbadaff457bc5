//! How a shell would read the lines of a file that systemd reads: whoever sources the file would get other settings.

use super::parser::{Entry, EntryKind};

/// Characters that have a meaning for a shell in a value without quotes (POSIX, Shell Command Language, 2.2).
const SPECIAL: &[char] = &['&', '|', ';', '<', '>', '(', ')', '$', '`'];

/// Why a shell would not read the entry as systemd does, if so. The entry must be one that systemd does not ignore.
pub fn difference(entry: &Entry) -> Option<&'static str> {
    let raw = entry.raw;
    match entry.kind {
        EntryKind::Comment if raw.starts_with(';') => {
            Some("a shell takes it for a command: begin comments with #")
        }
        EntryKind::Comment if raw.contains('\n') => {
            Some("a comment that ends in \\ hides the next line from systemd before version 254")
        }
        EntryKind::Comment | EntryKind::Word => None,
        _ => raw
            .strip_prefix(entry.name)
            .and_then(|rest| rest.strip_prefix('='))
            .map_or(Some("blanks before = make it no assignment for a shell"), of_value),
    }
}

/// The same for what stands behind the `=`.
fn of_value(raw: &str) -> Option<&'static str> {
    let mut rest = raw.trim_end_matches([' ', '\t']).chars();
    // The quote that is open, whether a character has stood in no quotes, and the character before.
    let (mut quote, mut is_bare, mut before) = (None, false, '=');
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some('"'), '\\') => drop(rest.next()),
            (Some('"'), '$' | '`') => {
                return Some("a shell gives $ and ` a meaning in double quotes: use single ones");
            }
            (Some(_), _) => {}
            (None, '\\') => {
                is_bare = true;
                rest.next();
            }
            (None, ' ' | '\t') => {
                let is_comment = rest.as_str().trim_start_matches([' ', '\t']).starts_with('#');
                return Some(if is_comment {
                    "what looks like a comment belongs to the value for systemd: give it a line of its own"
                } else {
                    "a shell ends the value at the blank: put the value in single quotes"
                });
            }
            (None, '\'' | '"') if is_bare => {
                return Some(
                    "a quote in the middle belongs to the value for systemd, not for a shell",
                );
            }
            (None, '\'' | '"') => quote = Some(c),
            (None, '~') if before == '=' || before == ':' => {
                return Some(
                    "a shell replaces ~ by a home directory: put the value in single quotes",
                );
            }
            (None, _) if SPECIAL.contains(&c) => {
                return Some(
                    "a shell gives characters such as & and $ a meaning: put the value in single quotes",
                );
            }
            (None, _) => is_bare = true,
        }
        before = c;
    }
    None
}
