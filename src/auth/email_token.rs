//! Tokens of mails that confirm an e-mail address. Such a token is all that there is of a registration until its link
//! is opened, and of a wish for another address: but for its mail nothing is stored, and only a mailbox and a password
//! make something of it.
//!
//! A token is sealed for this installation, and in a link it is written in base64 (RFC 4648, 5). What is sealed is JSON:
//! what the token confirms, and the second of the expiry.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::sealing::SealingKeys;
use crate::error::Error;

/// How long a token is valid.
const LIFETIME: Duration = Duration::hours(48);
/// Longest token that is looked at, in bytes of base64. The longest that is made here has about 3,300.
const MAX_TOKEN: usize = 4096;
/// What tokens are sealed for, before the installation.
const PURPOSE: &[u8] = b"cloakroom e-mail confirmation:";

/// What a token confirms. Addresses are those that the mail goes to, and that the account has then.
#[derive(Debug, Serialize, Deserialize)]
pub enum EmailToken {
    Registration(Registration),
    Change(EmailChange),
}

/// An account that somebody wants to register. What it has not is left out, so that links are short.
#[derive(Debug, Serialize, Deserialize)]
pub struct Registration {
    /// The id that the account gets, and by which the token is used once.
    pub id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    pub email: String,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A PHC string.
    pub password_hash: String,
}

/// Another address that the owner of an account wants to have.
#[derive(Debug, Serialize, Deserialize)]
pub struct EmailChange {
    pub account: Uuid,
    /// The version of the account's credentials. The token is void once that changes.
    pub version: i32,
    pub email: String,
}

impl EmailToken {
    /// Seals a token that is made at `now`.
    pub fn seal(
        &self,
        keys: &SealingKeys,
        installation: Uuid,
        now: OffsetDateTime,
    ) -> Result<Vec<u8>, Error> {
        let plain = serde_json::to_vec(&(self, (now + LIFETIME).unix_timestamp()));
        let plain = plain.map_err(|e| Error::Internal(format!("token: {e}")))?;
        keys.seal(&purpose(installation), &plain)
    }

    /// Opens a sealed token, and returns it with the time of its expiry, which is not looked at. `None` if none of the
    /// keys has sealed it for this installation.
    pub fn open(
        keys: &SealingKeys,
        installation: Uuid,
        sealed: &[u8],
    ) -> Option<(EmailToken, OffsetDateTime)> {
        let plain = keys.open(&purpose(installation), sealed)?;
        let (token, expiry) = serde_json::from_slice(&plain).ok()?;
        Some((token, OffsetDateTime::from_unix_timestamp(expiry).ok()?))
    }

    /// Opens a token of a link that has not expired at `now`.
    pub fn verify(
        keys: &SealingKeys,
        installation: Uuid,
        token: &str,
        now: OffsetDateTime,
    ) -> Option<EmailToken> {
        let token = Some(token).filter(|token| token.len() <= MAX_TOKEN)?;
        let sealed = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (token, expires_at) = EmailToken::open(keys, installation, &sealed)?;
        (now < expires_at).then_some(token)
    }
}

/// What a token is sealed for.
fn purpose(installation: Uuid) -> Vec<u8> {
    [PURPOSE, installation.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client may send as a token: anything. Only a key makes one that opens.
    #[test]
    fn fuzz_email_tokens() {
        let keys = SealingKeys::new([&[7; 32][..]].into_iter());
        let installation = Uuid::from_u128(1);
        let token = EmailToken::Change(EmailChange {
            account: Uuid::nil(),
            version: 1,
            email: "a@b.c".into(),
        });
        let sealed =
            token.seal(&keys, installation, OffsetDateTime::UNIX_EPOCH).unwrap_or_default();
        fuzz::check("email_tokens", move |input| {
            // One that was changed.
            if let Some((&[at, bits], _)) = input.split_first_chunk() {
                let mut changed = sealed.clone();
                changed[usize::from(at) % sealed.len()] ^= bits;
                let opened = EmailToken::open(&keys, installation, &changed);
                assert_eq!(opened.is_some(), bits == 0);
            }
            // One that says anything, and is sealed. What is read of it is written in the same way.
            let sealed = keys.seal(&purpose(installation), input).unwrap_or_default();
            let Some((token, expires_at)) = EmailToken::open(&keys, installation, &sealed) else {
                return;
            };
            let again = token.seal(&keys, installation, expires_at - LIFETIME);
            let again = EmailToken::open(&keys, installation, &again.unwrap_or_default());
            assert_eq!(format!("{again:?}"), format!("{:?}", Some((token, expires_at))));
        });
    }
}
