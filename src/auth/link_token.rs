//! The tokens of links to files: 256 random bits in base64url (RFC 4648, 5).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The token made of these random bytes: 43 characters that need no escape in a path.
pub fn encode(random: [u8; 32]) -> String {
    URL_SAFE_NO_PAD.encode(random)
}

/// The hash under which a token is stored. It is looked up for every text that stands in its place, so that one which
/// cannot be a token takes the same work. One hash without a salt is enough, because nobody can guess 256 random bits.
pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
