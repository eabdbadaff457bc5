//! Sealing: encryption of what the service must read again, such as the secrets of second factors, and the tokens of
//! mails that confirm an address. Whoever reads the database, or a backup of it, cannot use them without a key, which
//! only the settings or the data directory have.
//!
//! What is sealed consists of a version, the id of the key, a random nonce, and the secret encrypted by AES-256-GCM
//! (NIST SP 800-38D). Version, id of the key and a purpose are authenticated with it, so that it serves no other one.
//! For a second factor that is the id of the user, so that it cannot be moved to another account.

use super::random_bytes;
use crate::error::Error;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use sha2::{Digest, Sha256};

/// The only version of the format.
const VERSION: u8 = 1;
/// Bytes of the version and the id of the key.
const PREFIX_BYTES: usize = 9;
/// Bytes of a nonce. At random, they do not repeat in the few billions of messages that one key may seal.
const NONCE_BYTES: usize = 12;

/// The keys that open sealed secrets. The first one seals.
pub struct SealingKeys(Vec<SealingKey>);

struct SealingKey {
    /// The version and the id of the key, with which all that it seals begins.
    prefix: [u8; PREFIX_BYTES],
    cipher: Aes256Gcm,
}

impl SealingKey {
    /// Derives a key from a secret of at least 32 bytes. The labels make key and id different from each other, and from
    /// all else that is derived from the same secret, which may be one that signs tokens.
    fn new(secret: &[u8]) -> SealingKey {
        let derive =
            |label: &[u8]| Sha256::new().chain_update(label).chain_update(secret).finalize();
        let mut prefix = [VERSION; PREFIX_BYTES];
        prefix[1..].copy_from_slice(&derive(b"cloakroom sealing key id:")[..PREFIX_BYTES - 1]);
        SealingKey { prefix, cipher: Aes256Gcm::new(&derive(b"cloakroom sealing key:")) }
    }

    /// What is authenticated beside the secret.
    fn associated_data(&self, purpose: &[u8]) -> Vec<u8> {
        [self.prefix.as_slice(), purpose].concat()
    }
}

impl SealingKeys {
    /// Makes keys of the secret that seals, and of others that have sealed before.
    pub fn new<'a>(secrets: impl Iterator<Item = &'a [u8]>) -> SealingKeys {
        SealingKeys(secrets.map(SealingKey::new).collect())
    }

    /// How all begins that the first key seals.
    pub fn current_prefix(&self) -> &[u8] {
        self.0.first().map_or(&[], |key| &key.prefix)
    }

    /// Seals a secret for a purpose. Fails only if the operating system gives no random bytes, or if there is no key.
    pub fn seal(&self, purpose: &[u8], secret: &[u8]) -> Result<Vec<u8>, Error> {
        let key = self.0.first().ok_or_else(|| Error::Internal("no key to seal with".into()))?;
        let nonce = random_bytes::<NONCE_BYTES>()?;
        let aad = &key.associated_data(purpose);
        let sealed = key.cipher.encrypt(&Nonce::from(nonce), Payload { msg: secret, aad });
        let sealed = sealed.map_err(|e| Error::Internal(format!("sealing: {e}")))?;
        Ok([key.prefix.as_slice(), &nonce, &sealed].concat())
    }

    /// Opens a sealed secret. `None` if none of the keys has sealed it for this purpose.
    pub fn open(&self, purpose: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (prefix, rest) = sealed.split_at_checked(PREFIX_BYTES)?;
        let (nonce, msg) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let key = self.0.iter().find(|key| key.prefix == prefix)?;
        let aad = &key.associated_data(purpose);
        key.cipher.decrypt(&Nonce::from(*nonce), Payload { msg, aad }).ok()
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

    const OLD: &[u8] = &[1; 32];
    const NEW: &[u8] = &[2; 32];
    const PURPOSE: &[u8] = b"of an account";
    const SECRET: &[u8] = b"12345678901234567890";

    fn keys(secrets: &[&'static [u8]]) -> SealingKeys {
        SealingKeys::new(secrets.iter().copied())
    }

    #[test]
    fn what_a_key_has_sealed_is_opened_by_it_also_after_another_one_has_taken_its_place() {
        let sealed = keys(&[OLD]).seal(PURPOSE, SECRET).expect("sealed");
        assert_eq!(keys(&[OLD]).open(PURPOSE, &sealed).as_deref(), Some(SECRET));
        assert_eq!(keys(&[NEW, OLD]).open(PURPOSE, &sealed).as_deref(), Some(SECRET));
        assert_eq!(keys(&[NEW]).open(PURPOSE, &sealed), None);
        let again = keys(&[OLD]).seal(PURPOSE, SECRET).expect("sealed");
        assert_ne!(sealed, again);
        assert!(sealed.starts_with(keys(&[OLD]).current_prefix()));
        assert!(!sealed.windows(4).any(|part| SECRET.windows(4).any(|secret| part == secret)));
    }

    #[test]
    fn what_was_changed_cut_or_sealed_for_another_purpose_is_not_opened() {
        let keys = keys(&[OLD]);
        let sealed = keys.seal(PURPOSE, SECRET).expect("sealed");
        assert_eq!(keys.open(b"of another account", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(keys.open(PURPOSE, &changed), None, "{at}");
            assert_eq!(keys.open(PURPOSE, &sealed[..at]), None, "{at}");
        }
    }

    #[test]
    fn the_id_of_a_key_is_the_same_in_every_process() {
        // The first 16 digits of `(printf 'cloakroom sealing key id:'; printf '\1%.0s' {1..32}) | sha256sum`.
        assert_eq!(crate::model::hex(&SealingKey::new(OLD).prefix), "014ad164890e10da7f");
    }
}
