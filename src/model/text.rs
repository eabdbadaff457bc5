//! Texts in one form, and without regard to case. Both are Unicode's, so they are the same whatever the locale of the
//! machine or of the database.

use std::borrow::Cow;

use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizer;
use idna::AsciiDenyList;

/// The longest domain in bytes of ASCII (RFC 1035, 2.3.4).
const MAX_DOMAIN: usize = 253;

/// The text in Unicode's normalization form C (UAX #15): an accented letter is one character where there is one,
/// however it was typed. It is borrowed if it is in this form already, as nearly all texts are.
pub fn nfc(text: &str) -> Cow<'_, str> {
    ComposingNormalizer::new_nfc().normalize(text)
}

/// The text in NFC with its case folded character by character (CaseFolding.txt, C and S). A small letter may compose
/// with an accent where the capital one does not, so the result is composed again.
pub fn folded(text: &str) -> String {
    let folded: String = nfc(text).chars().map(|c| CaseMapper::new().simple_fold(c)).collect();
    nfc(&folded).into_owned()
}

/// The key by which e-mail addresses are compared: in NFC, with the case folded and the domain in ASCII, if it has such
/// a form. Any text has a key, because any may be sent as a login name.
pub fn email_key(address: &str) -> String {
    let in_ascii = |(user, domain)| Some(format!("{user}@{}", ascii_domain(domain)?));
    folded(address.rsplit_once('@').and_then(in_ascii).as_deref().unwrap_or(address))
}

/// The address to which a mail goes that confirms this one, and which the account has then. Where the name is not
/// ASCII, several mailboxes may have one key, and an account with one of them keeps all others from having an account.
/// So it is the key itself that must be proven.
pub fn mailed_address(address: String) -> String {
    match address.rsplit_once('@') {
        Some((name, _)) if !name.is_ascii() => email_key(&address),
        _ => address,
    }
}

/// A domain in ASCII (IDNA, UTS #46); `None` if it has no such form. One that is too long for a domain is not looked
/// at, because the time for it grows with the square of its length.
pub fn ascii_domain(domain: &str) -> Option<Cow<'_, str>> {
    if domain.is_ascii() {
        return Some(domain.into());
    }
    let bytes = Some(domain.as_bytes()).filter(|bytes| bytes.len() <= 4 * MAX_DOMAIN)?;
    let ascii = idna::domain_to_ascii_cow(bytes, AsciiDenyList::URL).ok()?;
    (1..=MAX_DOMAIN).contains(&ascii.len()).then_some(ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_composed_and_folded_character_by_character() {
        for (given, composed, plain) in [
            ("FIDAN", "FIDAN", "fidan"),
            ("U\u{308}ber", "\u{dc}ber", "\u{fc}ber"),
            ("\u{212b}\u{2126}\u{212a}", "\u{c5}\u{3a9}K", "\u{e5}\u{3c9}k"),
            ("\u{1fd3}", "\u{390}", "\u{390}"),
            ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}", "\u{d55c}"),
            ("e\u{323}\u{302}e\u{302}\u{323}", "\u{1ec7}\u{1ec7}", "\u{1ec7}\u{1ec7}"),
            ("\u{1e9e}\u{df}\u{17f}", "\u{1e9e}\u{df}\u{17f}", "\u{df}\u{df}s"),
            ("\u{3a3}\u{3c2}", "\u{3a3}\u{3c2}", "\u{3c3}\u{3c3}"),
            // No compatibility, no language, and nothing that makes two characters of one.
            (
                "\u{fb01}\u{130}\u{131}\u{ff21}",
                "\u{fb01}\u{130}\u{131}\u{ff21}",
                "\u{fb01}\u{130}\u{131}\u{ff41}",
            ),
            ("T\u{308}", "T\u{308}", "\u{1e97}"),
        ] {
            assert_eq!((&*nfc(given), &*folded(given)), (composed, plain), "{given:?}");
            assert_eq!(folded(plain), plain);
        }
    }

    #[test]
    fn addresses_are_compared_by_folded_names_and_domains_in_ascii() {
        let (long, folded_long) =
            (format!("A@{}.example", "\u{c9}".repeat(250)), "\u{e9}".repeat(250));
        for (given, key) in [
            ("a@example.com", "a@example.com"),
            ("\u{c9}@Example.com", "\u{e9}@example.com"),
            ("Nobody", "nobody"),
            ("A@\u{ff45}xample.com", "a@example.com"),
            ("a@exam\u{ad}ple\u{3002}com", "a@example.com"),
            ("a@B\u{dc}CHER.example", "a@xn--bcher-kva.example"),
            ("a@bu\u{308}cher.example", "a@xn--bcher-kva.example"),
            // A final sigma in a domain is another letter, in a name it is not.
            ("\u{3c2}@\u{3b1}\u{3c2}.example", "\u{3c3}@xn--mxa8a.example"),
            ("\u{3c3}@\u{3b1}\u{3c3}.example", "\u{3c3}@xn--mxa0b.example"),
            ("A@ex\u{ff20}ample.com", "a@ex\u{ff20}ample.com"),
            ("A@\u{ad}", "a@\u{ad}"),
            (&long, &format!("a@{folded_long}.example")),
        ] {
            assert_eq!(email_key(given), key, "{given:?}");
        }
    }
}
