//! Signed tokens, personal access tokens, tokens of mails, second factors and their sealing, password hashes and their
//! queue, token buckets, and the channel of refused actions. No network, file or database access. `jwt`,
//! `second_factor` and `token_bucket` take the time as an argument, `personal_token` and `second_factor` their random
//! bytes, so that tests can choose them.

mod any_tokens;
pub mod email_token;
pub mod failure_channel;
pub mod hash_queue;
pub mod jwt;
pub mod password;
pub mod personal_token;
pub mod refused_passwords;
pub mod sealing;
pub mod second_factor;
pub mod token_bucket;
mod verified_tokens;

use crate::error::Error;

/// `N` random bytes from the operating system.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| Error::Internal(format!("randomness: {e}")))?;
    Ok(bytes)
}
