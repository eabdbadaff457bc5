//! Tokens of mails that confirm an e-mail address. Such a token is all that there is of a registration until its link
//! is opened, and of a wish for another address: but for its mail nothing is stored, and only a mailbox and a password
//! make something of it.
//!
//! A token is a byte that tells its kind, and the rest sealed for this kind and this installation; in a link it is
//! written in base64 (RFC 4648, 5). What is sealed is an id, the version of credentials, the second of the expiry, and
//! texts, between which is a NUL, which none of them can hold.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::sealing::SealingKeys;
use crate::error::Error;

/// How long a token is valid.
const LIFETIME: Duration = Duration::hours(48);
/// Longest token that is looked at, in bytes of base64. The longest that is made here has about 3,000.
const MAX_TOKEN: usize = 4096;
/// What tokens are sealed for, before the kind and the installation.
const PURPOSE: &[u8] = b"cloakroom e-mail confirmation:";
const REGISTRATION: u8 = 1;
const CHANGE: u8 = 2;

/// What a token confirms. Addresses are those that the mail goes to, and that the account has then.
#[derive(Debug)]
pub enum EmailToken {
    Registration(Registration),
    Change(EmailChange),
}

/// An account that somebody wants to register.
#[derive(Debug)]
pub struct Registration {
    /// The id that the account gets, and by which the token is used once.
    pub id: Uuid,
    pub username: Option<String>,
    pub email: String,
    /// Display name.
    pub name: Option<String>,
    /// A PHC string.
    pub password_hash: String,
}

/// Another address that the owner of an account wants to have.
#[derive(Debug)]
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
        let (kind, id, version, texts) = match self {
            EmailToken::Registration(Registration { id, username, email, name, password_hash }) => {
                let texts = [Some(email), Some(password_hash), username.as_ref(), name.as_ref()];
                (REGISTRATION, id, 0, texts.map(|text| text.map_or("", String::as_str)).join("\0"))
            }
            EmailToken::Change(change) => {
                (CHANGE, &change.account, change.version, change.email.clone())
            }
        };
        let (version, expiry) = (version.to_be_bytes(), (now + LIFETIME).unix_timestamp());
        let plain = [id.as_bytes(), &version[..], &expiry.to_be_bytes(), texts.as_bytes()].concat();
        Ok([&[kind], &keys.seal(&purpose(kind, installation), &plain)?[..]].concat())
    }

    /// Opens a sealed token, and returns it with the time of its expiry, which is not looked at. `None` if none of the
    /// keys has sealed it for this installation.
    pub fn open(
        keys: &SealingKeys,
        installation: Uuid,
        sealed: &[u8],
    ) -> Option<(EmailToken, OffsetDateTime)> {
        let (&kind, sealed) = sealed.split_first()?;
        let plain = keys.open(&purpose(kind, installation), sealed)?;
        let (id, rest) = plain.split_first_chunk()?;
        let (version, rest) = rest.split_first_chunk()?;
        let (expiry, texts) = rest.split_first_chunk()?;
        let (id, version) = (Uuid::from_bytes(*id), i32::from_be_bytes(*version));
        let expires_at = OffsetDateTime::from_unix_timestamp(i64::from_be_bytes(*expiry)).ok()?;
        let texts = str::from_utf8(texts).ok()?.split('\0');
        let optional = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let token = match (kind, &texts.collect::<Vec<_>>()[..]) {
            (REGISTRATION, [email, hash, username, name]) => {
                let (username, name) = (optional(username), optional(name));
                let (email, password_hash) = ((*email).to_owned(), (*hash).to_owned());
                EmailToken::Registration(Registration { id, username, email, name, password_hash })
            }
            (CHANGE, [email]) => {
                let email = (*email).to_owned();
                EmailToken::Change(EmailChange { account: id, version, email })
            }
            _ => return None,
        };
        Some((token, expires_at))
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

/// What a token of a kind is sealed for.
fn purpose(kind: u8, installation: Uuid) -> Vec<u8> {
    [PURPOSE, &[kind], installation.as_bytes()].concat()
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
            let Some((&kind, plain)) = input.split_first() else { return };
            let purpose = purpose(kind, installation);
            let sealed = keys.seal(&purpose, plain).unwrap_or_default();
            let sealed = [&[kind], sealed.as_slice()].concat();
            let Some((token, expires_at)) = EmailToken::open(&keys, installation, &sealed) else {
                return;
            };
            let again = token.seal(&keys, installation, expires_at - LIFETIME);
            let again = EmailToken::open(&keys, installation, &again.unwrap_or_default());
            assert_eq!(format!("{again:?}"), format!("{:?}", Some((token, expires_at))));
        });
    }
}
