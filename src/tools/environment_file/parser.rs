//! Reads files of environment variables by the rules of systemd's `EnvironmentFile=` (systemd.exec(5)), as version 252
//! applies them. Almost nothing is an error to them: what they cannot read they ignore.

/// Blanks and the ends of lines, which surround names and values.
const SPACE: &[char] = &[' ', '\t', '\n', '\r'];
/// A carriage return ends a line, too.
const LINE_ENDS: &[char] = &['\n', '\r'];
/// The characters before which a backslash disappears in double quotes.
const ESCAPED_IN_QUOTES: &[char] = &['"', '\\', '`', '$'];

/// A comment, or what stands for a variable. It may take several lines.
pub struct Entry<'a> {
    /// Where it begins in the text.
    pub start: usize,
    /// The text that it was read from, without the end of its last line.
    pub raw: &'a str,
    pub kind: EntryKind,
    /// What stands before the `=`.
    pub name: &'a str,
    /// What systemd makes of that behind the `=`.
    pub value: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Comment,
    /// A line without `=`.
    Word,
    Assignment,
    /// An assignment with a quote that is not closed, which takes all the rest of the text.
    OpenQuote,
}

/// Returns the entries of a text in their order.
pub fn parse(text: &str) -> impl Iterator<Item = Entry<'_>> {
    let mut scanner = Scanner { text, position: 0 };
    std::iter::from_fn(move || scanner.entry())
}

impl Entry<'_> {
    /// Why systemd gives the service no such variable, if so.
    pub fn refusal(&self) -> Option<&'static str> {
        match self.kind {
            EntryKind::Comment => None,
            EntryKind::Word => Some("ignored, because it has no ="),
            _ if self.name.starts_with("export ") => {
                Some("ignored: write NAME=value, without `export`")
            }
            _ if !is_name(self.name) => Some("ignored, because what stands before = is no name"),
            _ => None,
        }
    }

    /// The variable that systemd gives the service, if any, and its value.
    pub fn variable(&self) -> Option<(&str, &str)> {
        let is_variable = self.kind != EntryKind::Comment && self.refusal().is_none();
        is_variable.then_some((self.name, &self.value))
    }
}

fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| is_part(c) && !c.is_ascii_digit()) && text.chars().all(is_part)
}

/// Walks through a text.
struct Scanner<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<char> {
        self.text[self.position..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.position += c.len_utf8();
        Some(c)
    }

    /// The next character, unless the line ends before it.
    fn next_in_line(&mut self) -> Option<char> {
        self.peek().filter(|c| !LINE_ENDS.contains(c))?;
        self.next()
    }

    fn entry(&mut self) -> Option<Entry<'a>> {
        let rest = &self.text[self.position..];
        self.position += rest.len() - rest.trim_start_matches(SPACE).len();
        let start = self.position;
        let first = self.peek()?;
        let (mut name, mut value) = ("", String::new());
        let kind = if first == '#' || first == ';' {
            self.comment();
            EntryKind::Comment
        } else if let Some(found) = self.name() {
            name = found;
            let is_closed = self.value(&mut value);
            if is_closed { EntryKind::Assignment } else { EntryKind::OpenQuote }
        } else {
            EntryKind::Word
        };
        Some(Entry { start, raw: &self.text[start..self.position], kind, name, value })
    }

    /// Skips a comment. A backslash before the end of its line makes the next line a part of it; since version 254 it
    /// does not.
    fn comment(&mut self) {
        while let Some(c) = self.next_in_line() {
            if c == '\\' {
                self.next();
            }
        }
    }

    /// What stands before the next `=`, which is skipped. `None` if the line ends before.
    fn name(&mut self) -> Option<&'a str> {
        let start = self.position;
        while let Some(c) = self.next_in_line() {
            if c == '=' {
                return Some(self.text[start..self.position - 1].trim_end_matches(SPACE));
            }
        }
        None
    }

    /// Reads a value to the end of its line. Quotes count only before the first character that stands in none. Returns
    /// whether all of them are closed.
    fn value(&mut self, value: &mut String) -> bool {
        // The length of the value without blanks at its end, and whether a character has stood in no quotes.
        let (mut length, mut is_bare) = (0, false);
        while let Some(c) = self.next_in_line() {
            match c {
                '\'' if !is_bare => {
                    if !self.single_quoted(value) {
                        return false;
                    }
                }
                '"' if !is_bare => {
                    if !self.double_quoted(value) {
                        return false;
                    }
                }
                // The end of a line behind a backslash is nothing.
                '\\' => {
                    is_bare = true;
                    value.extend(self.next().filter(|c| !LINE_ENDS.contains(c)));
                }
                _ if SPACE.contains(&c) => {
                    if is_bare {
                        value.push(c);
                    }
                    continue;
                }
                _ => {
                    is_bare = true;
                    value.push(c);
                }
            }
            length = value.len();
        }
        value.truncate(length);
        true
    }

    fn single_quoted(&mut self, value: &mut String) -> bool {
        while let Some(c) = self.next() {
            match c {
                '\'' => return true,
                _ => value.push(c),
            }
        }
        false
    }

    fn double_quoted(&mut self, value: &mut String) -> bool {
        while let Some(c) = self.next() {
            match c {
                '"' => return true,
                '\\' => match self.next() {
                    None | Some('\n') => {}
                    Some(c) if ESCAPED_IN_QUOTES.contains(&c) => value.push(c),
                    Some(c) => value.extend(['\\', c]),
                },
                _ => value.push(c),
            }
        }
        false
    }
}
