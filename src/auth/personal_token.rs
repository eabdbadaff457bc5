//! The form of personal access tokens: `cloak_`, 34 random characters, and 6 characters of a checksum. The prefix and
//! the checksum let programs that search for leaked secrets recognise a token, and a mistyped one is refused without
//! asking the database.

use flate2::Crc;
use sha2::{Digest, Sha256};

use super::PERSONAL_TOKEN_PREFIX;

/// The digits of base 62, in the order of their values.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Bytes of randomness in a token.
pub const RANDOM_BYTES: usize = 25;
/// The smallest number of base-62 digits that can hold [`RANDOM_BYTES`] bytes.
const RANDOM_DIGITS: usize = 34;
/// The smallest number of base-62 digits that can hold a CRC-32.
const CHECKSUM_DIGITS: usize = 6;

/// The token made of these random bytes.
pub fn encode(random: [u8; RANDOM_BYTES]) -> String {
    let digits = base62::<RANDOM_DIGITS>(&random);
    let checksum = checksum(&digits);
    let bytes = PERSONAL_TOKEN_PREFIX.bytes().chain(digits).chain(checksum);
    bytes.map(char::from).collect()
}

/// Whether the bearer token of a request is meant to be a personal access token, well-formed or not.
pub fn is_personal(token: &str) -> bool {
    token.starts_with(PERSONAL_TOKEN_PREFIX)
}

/// The hash under which a token is stored, or `None` if the token is not well-formed. One hash without a salt is
/// enough, because nobody can guess 200 random bits.
pub fn hash(token: &str) -> Option<[u8; 32]> {
    let digits = token.strip_prefix(PERSONAL_TOKEN_PREFIX)?.as_bytes();
    let (random, sum) = digits.split_at_checked(RANDOM_DIGITS)?;
    let is_well_formed =
        random.iter().all(|digit| DIGITS.contains(digit)) && sum == checksum(random);
    is_well_formed.then(|| Sha256::digest(token.as_bytes()).into())
}

/// The checksum of the random digits.
fn checksum(digits: &[u8]) -> [u8; CHECKSUM_DIGITS] {
    let mut crc = Crc::new();
    crc.update(digits);
    base62(&crc.sum().to_be_bytes())
}

/// Writes a number, given as big-endian bytes, with `N` base-62 digits, padded with zeros.
fn base62<const N: usize>(number: &[u8]) -> [u8; N] {
    let mut number = number.to_vec();
    let mut digits = [b'0'; N];
    for digit in digits.iter_mut().rev() {
        // One step of long division: the number becomes the quotient.
        let mut remainder = 0;
        for byte in &mut number {
            let dividend = remainder << 8 | usize::from(*byte);
            *byte = (dividend / DIGITS.len()) as u8;
            remainder = dividend % DIGITS.len();
        }
        *digit = DIGITS[remainder];
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_standard_crc_32() {
        // The first is the check value of the catalogue of CRC algorithms (CRC-32/ISO-HDLC).
        for (text, crc) in [
            ("123456789", 0xCBF4_3926_u32),
            ("", 0),
            ("a", 0xE8B7_BE43),
            ("The quick brown fox jumps over the lazy dog", 0x414F_A339),
        ] {
            assert_eq!(checksum(text.as_bytes()), base62(&crc.to_be_bytes()), "{text}");
        }
    }

    #[test]
    fn numbers_are_padded_to_their_length() {
        assert_eq!(&base62::<6>(&[0; 4]), b"000000");
        assert_eq!(&base62::<6>(&61_u32.to_be_bytes()), b"00000z");
        assert_eq!(&base62::<6>(&62_u32.to_be_bytes()), b"000010");
        assert_eq!(&base62::<6>(&u32::MAX.to_be_bytes()), b"4gfFC3");
        // 2^200 - 1, by Python's integers.
        assert_eq!(&base62::<34>(&[0xff; 25]), b"BP4biDE7quFXfAgmULag6MxClGiCLn9m4V");
    }

    #[test]
    fn a_token_is_a_prefix_34_random_digits_and_6_of_a_checksum() {
        let token = encode([0; RANDOM_BYTES]);
        assert_eq!(token, format!("cloak_{}{}", "0".repeat(34), "0iqUEf"));
        for random in [[0; RANDOM_BYTES], [7; RANDOM_BYTES], [0xff; RANDOM_BYTES]] {
            let token = encode(random);
            assert_eq!(token.len(), 46, "{token}");
            assert!(is_personal(&token));
            assert_eq!(hash(&token), Some(Sha256::digest(token.as_bytes()).into()));
        }
    }

    #[test]
    fn a_token_with_any_other_character_is_not_well_formed() {
        let token = encode([7; RANDOM_BYTES]);
        for at in 6..token.len() {
            let other = if token.as_bytes()[at] == b'x' { "y" } else { "x" };
            let mut changed = token.clone();
            changed.replace_range(at..=at, other);
            assert_eq!(hash(&changed), None, "{changed}");
        }
        for malformed in [
            "",
            "cloak_",
            &token[..45],
            &format!("{token}0"),
            &token.to_uppercase(),
            &token[6..],
            &format!("cloak_{}", "\u{e9}".repeat(20)),
            &format!("cloak_{}", "-".repeat(40)),
        ] {
            assert_eq!(hash(malformed), None, "{malformed}");
        }
    }
}
