//! Signed tokens, personal access tokens, tokens of mails, the sealing of secrets, password hashes, also those that
//! other programs made, and their queue, token buckets, and the channel of refused actions. No network or database
//! access, and none to files but that of `refused_passwords`. `jwt` and `token_bucket` take the time as an argument,
//! `personal_token` its random bytes, so that tests can choose them.

mod any_tokens;
#[cfg(feature = "extras")]
pub mod email_token;
pub mod failure_channel;
pub mod hash_queue;
#[cfg(feature = "extras")]
pub mod imported;
pub mod jwt;
pub mod password;
#[cfg(feature = "extras")]
pub mod personal_token;
#[cfg(feature = "extras")]
pub mod refused_passwords;
#[cfg(feature = "extras")]
pub mod sealing;
pub mod token_bucket;
mod verified_tokens;
#[cfg(not(feature = "extras"))]
mod without_extras;

#[cfg(not(feature = "extras"))]
pub use without_extras::{imported, refused_passwords, sealing};

use crate::error::Error;

/// How every personal access token begins. Signed tokens never do: they begin with `ey`, which is `{"` in Base64.
pub const PERSONAL_TOKEN_PREFIX: &str = "cloak_";

/// `N` random bytes from the operating system.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| Error::Internal(format!("randomness: {e}")))?;
    Ok(bytes)
}
