//! Tokens, passwords and token buckets. Nothing here does I/O: the time and the randomness that jwt, password and
//! token_bucket need are their arguments, so that tests can choose them.

pub mod jwt;
pub mod password;
pub mod password_hasher;
pub mod token_bucket;

use crate::error::Error;

/// `N` bytes of the operating system's randomness.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| Error::Internal(format!("randomness: {e}")))?;
    Ok(bytes)
}
