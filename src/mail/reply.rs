//! The replies of a mail server, and the extensions of SMTP that one of them lists.

use std::fmt;

/// A reply of the server (RFC 5321, 4.2): a code of three digits, and lines of text.
#[derive(Debug)]
pub struct Reply {
    pub code: u16,
    /// The text after the code of each line. There is at least one line.
    pub lines: Vec<String>,
}

/// Shows the code and the enhanced status (RFC 2034), if there is one, but nothing else of the text.
impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        let word = self.lines.first().and_then(|line| line.split(' ').next()).unwrap_or_default();
        let is_number = |part: &str| {
            (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_status = word.split('.').count() == 3 && word.split('.').all(is_number);
        if is_status { write!(f, " {word}") } else { Ok(()) }
    }
}

/// The extensions that the server offers in its reply to `EHLO`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    pub start_tls: bool,
    /// Whether it takes addresses other than ASCII (`SMTPUTF8`, RFC 6531) and, as those need, messages with bytes other
    /// than ASCII (`8BITMIME`, RFC 6152).
    pub utf8: bool,
    /// The names of the mechanisms of `AUTH` (RFC 4954), in upper case.
    pub mechanisms: Vec<String>,
}

impl Extensions {
    /// Reads the reply to `EHLO`. Its first line is a greeting. Keywords are not case-sensitive (RFC 5321, 4.1.1.1).
    pub fn of(reply: &Reply) -> Extensions {
        let lines = reply.lines.iter().skip(1).map(|line| line.to_ascii_uppercase());
        let lines: Vec<_> = lines.collect();
        let line = |keyword: &str| {
            lines.iter().find_map(|line| {
                let mut words = line.split_ascii_whitespace();
                (words.next() == Some(keyword)).then(|| words.collect::<Vec<_>>())
            })
        };
        let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_name = |word: &&str| word.len() <= 20 && word.bytes().all(is_in_name);
        let mechanisms = line("AUTH").into_iter().flatten().filter(is_name);
        Extensions {
            start_tls: line("STARTTLS").is_some(),
            utf8: line("SMTPUTF8").is_some() && line("8BITMIME").is_some(),
            mechanisms: mechanisms.map(str::to_owned).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(code: u16, lines: &[&str]) -> Reply {
        Reply { code, lines: lines.iter().map(|&line| line.to_owned()).collect() }
    }
    #[test]
    fn extensions_are_recognised_in_upper_and_lower_case() {
        let found = Extensions::of(&reply(
            250,
            &["starttls", "Auth login plain", "smtputf8", "8bitmime", "SIZE 100"],
        ));
        let mechanisms = ["LOGIN", "PLAIN"].map(str::to_owned).to_vec();
        let expected = Extensions { start_tls: false, utf8: true, mechanisms };
        assert_eq!(found, expected, "the first line is a name");
        let found = Extensions::of(&reply(250, &["host", "STARTTLSX", "SMTPUTF8", "AUTHX PLAIN"]));
        assert_eq!(found, Extensions::default(), "SMTPUTF8 needs 8BITMIME");
    }
}
