//! Whether a content is text in UTF-8, found out while it arrives.

use std::mem;

use memchr::memchr;

/// Looks at bytes that come in pieces of any length, which may end within a character. It keeps at most three of them.
#[derive(Default)]
pub struct Utf8Check {
    /// The first bytes of a character of which the last ones have not come yet.
    cut: Vec<u8>,
    /// Whether something has come that no text in UTF-8 holds. Nothing more is looked at then.
    is_broken: bool,
}

impl Utf8Check {
    /// Looks at the bytes that follow those of before.
    pub fn add(&mut self, mut bytes: &[u8]) {
        while !self.cut.is_empty()
            && let Some((next, rest)) = bytes.split_first()
        {
            let character = [&mem::take(&mut self.cut)[..], &[*next]].concat();
            self.look_at(&character);
            bytes = rest;
        }
        if !self.is_broken {
            self.look_at(bytes);
        }
    }

    fn look_at(&mut self, bytes: &[u8]) {
        self.is_broken |= memchr(0, bytes).is_some();
        match str::from_utf8(bytes) {
            Err(error) if error.error_len().is_some() => self.is_broken = true,
            Err(error) => self.cut.extend_from_slice(&bytes[error.valid_up_to()..]),
            Ok(_) => {}
        }
    }

    /// Whether all that has come is UTF-8 without NUL.
    pub fn is_whole(&self) -> bool {
        self.may_go_on() && self.cut.is_empty()
    }

    /// Whether it is, but for a character at its end that may be cut off.
    pub fn may_go_on(&self) -> bool {
        !self.is_broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_recognised_wherever_it_is_cut_and_nothing_else_is() {
        for (bytes, is_whole, may_go_on, reason) in [
            (&b""[..], true, true, "nothing"),
            (b"plain", true, true, "ASCII"),
            (
                "\u{feff}Gr\u{fc}\u{df}e \u{20ac} \u{1f600}".as_bytes(),
                true,
                true,
                "characters of 1 to 4 bytes",
            ),
            (b"a\x1b[0m\x7f\xc2\x80", true, true, "control characters"),
            (b"a\0b", false, false, "NUL"),
            (b"Gr\xfc\xdfe", false, false, "ISO 8859-1"),
            (b"\xff\xfea\0", false, false, "UTF-16"),
            (b"a\xc0\x80", false, false, "NUL in too many bytes"),
            (b"\xed\xa0\x80", false, false, "a surrogate"),
            (b"\xf4\x90\x80\x80", false, false, "after the last character"),
            (b"\x80a", false, false, "no beginning of a character"),
            (b"\xe2\x82a", false, false, "no end of a character"),
            (b"\xe2\x82\0", false, false, "NUL in place of an end"),
            (b"a\xc3", false, true, "the first of two bytes"),
            (b"a\xe2\x82", false, true, "two of three bytes"),
            (b"a\xf0\x9f\x98", false, true, "three of four bytes"),
        ] {
            for length in 1..=bytes.len().max(1) {
                let mut text = Utf8Check::default();
                for piece in bytes.chunks(length) {
                    text.add(piece);
                    text.add(b"");
                    assert!(text.cut.len() < 4, "{reason}");
                }
                let found = (text.is_whole(), text.may_go_on());
                assert_eq!(found, (is_whole, may_go_on), "{reason} in pieces of {length}");
            }
        }
    }
}
