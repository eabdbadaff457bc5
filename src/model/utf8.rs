//! Whether a content is text in UTF-8, found out while it arrives.

use memchr::memchr;

/// Looks at bytes that come in pieces of any length, which may end within a character.
#[derive(Clone, Default)]
pub struct Utf8Check {
    /// The first bytes of a character, three at most, of which the last ones have not come yet.
    pub cut: Vec<u8>,
    /// Whether something has come that no text in UTF-8 holds.
    pub is_broken: bool,
}

impl Utf8Check {
    /// Looks at the bytes that follow those of before.
    pub fn add(&mut self, bytes: &[u8]) {
        if self.is_broken {
            return;
        }
        if !self.cut.is_empty() {
            let joined = [&std::mem::take(&mut self.cut)[..], bytes].concat();
            return self.add(&joined);
        }
        self.is_broken = memchr(0, bytes).is_some();
        match str::from_utf8(bytes) {
            Err(error) if error.error_len().is_some() => self.is_broken = true,
            Err(error) => self.cut.extend_from_slice(&bytes[error.valid_up_to()..]),
            Ok(_) => {}
        }
    }

    /// Whether all that has come is UTF-8 without NUL, or the beginning of it, whose last character may be cut off.
    pub fn is_utf8(&self, is_beginning: bool) -> bool {
        !self.is_broken && (is_beginning || self.cut.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_recognised_wherever_it_is_cut_and_nothing_else_is() {
        for (bytes, is_whole, is_beginning, reason) in [
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
                let found = (text.is_utf8(false), text.is_utf8(true));
                assert_eq!(found, (is_whole, is_beginning), "{reason} in pieces of {length}");
            }
        }
    }
}
