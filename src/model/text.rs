//! Texts in one form, and without regard to case. Both are Unicode's, so they are the same whatever the locale of the
//! machine or of the database.

use std::borrow::Cow;

use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizer;

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
