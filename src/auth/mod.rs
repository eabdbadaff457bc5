//! Signed tokens, personal access tokens, password hashes and token buckets. Nothing here does I/O. `jwt`, `password`,
//! `personal_token` and `token_bucket` take the time and the random bytes they need as arguments, so that tests can
//! choose them.

pub mod jwt;
pub mod password;
pub mod password_hasher;
pub mod personal_token;
mod signing_key;
pub mod token_bucket;
mod verified_tokens;

use crate::error::Error;

/// `N` random bytes from the operating system.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| Error::Internal(format!("randomness: {e}")))?;
    Ok(bytes)
}
