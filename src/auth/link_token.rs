//! The tokens of links to files: 256 random bits in base64url (RFC 4648, 5).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Bytes of randomness in a token.
const RANDOM_BYTES: usize = 32;
/// The number of characters that hold them.
const LENGTH: usize = 43;

/// The token made of these random bytes.
pub fn encode(random: [u8; RANDOM_BYTES]) -> String {
    URL_SAFE_NO_PAD.encode(random)
}

/// The hash under which a token is stored, or `None` if no token is as long as this text. One hash without a salt is
/// enough, because nobody can guess 256 random bits.
pub fn hash(token: &str) -> Option<[u8; 32]> {
    (token.len() == LENGTH).then(|| Sha256::digest(token.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_43_characters_that_need_no_escape_in_a_path() {
        for random in [[0; RANDOM_BYTES], [0xff; RANDOM_BYTES], [0xfb; RANDOM_BYTES]] {
            let token = encode(random);
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
            assert!(token.len() == LENGTH && token.bytes().all(is_plain), "{token}");
            assert_eq!(hash(&token), Some(Sha256::digest(token.as_bytes()).into()));
            assert_eq!((hash(&token[1..]), hash(&format!("{token}A"))), (None, None));
        }
    }
}
