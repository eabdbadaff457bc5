//! One secret that signs and verifies tokens, with one of the algorithms that the settings allow.

use jwt_simple::prelude::{HS256Key, HS384Key, HS512Key, JWTClaims, MACLike, VerificationOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::config::Algorithm;
use crate::model::hex;

/// A secret that signs and verifies tokens (RFC 7518, 3.2).
pub enum SigningKey {
    Hs256(HS256Key),
    Hs384(HS384Key),
    Hs512(HS512Key),
}

impl SigningKey {
    /// Makes a key of the secret, whose length was checked when the settings were read.
    pub fn new(algorithm: Algorithm, secret: &[u8]) -> SigningKey {
        let id = key_id(secret);
        match algorithm {
            Algorithm::Hs256 => SigningKey::Hs256(HS256Key::from_bytes(secret).with_key_id(&id)),
            Algorithm::Hs384 => SigningKey::Hs384(HS384Key::from_bytes(secret).with_key_id(&id)),
            Algorithm::Hs512 => SigningKey::Hs512(HS512Key::from_bytes(secret).with_key_id(&id)),
        }
    }

    /// The header `kid` of the tokens that this key signs.
    pub fn id(&self) -> Option<&str> {
        match self {
            SigningKey::Hs256(key) => key.key_id(),
            SigningKey::Hs384(key) => key.key_id(),
            SigningKey::Hs512(key) => key.key_id(),
        }
        .as_deref()
    }

    /// Signs a token with `claims`.
    pub fn sign<C: Serialize + DeserializeOwned>(
        &self,
        claims: JWTClaims<C>,
    ) -> Result<String, jwt_simple::Error> {
        match self {
            SigningKey::Hs256(key) => key.authenticate(claims),
            SigningKey::Hs384(key) => key.authenticate(claims),
            SigningKey::Hs512(key) => key.authenticate(claims),
        }
    }

    /// The claims of a token that this key has signed and that `options` accept.
    pub fn verify<C: Serialize + DeserializeOwned>(
        &self,
        token: &str,
        options: VerificationOptions,
    ) -> Option<JWTClaims<C>> {
        match self {
            SigningKey::Hs256(key) => key.verify_token(token, Some(options)),
            SigningKey::Hs384(key) => key.verify_token(token, Some(options)),
            SigningKey::Hs512(key) => key.verify_token(token, Some(options)),
        }
        .ok()
    }
}

/// The id of a secret, for the header `kid` of its tokens: 64 bits of a hash, in hexadecimal. It reveals no more about
/// the secret than the signature of the same token does, because an attacker could test guesses of the secret against
/// either. The prefix makes it different from other hashes of the same secret.
fn key_id(secret: &[u8]) -> String {
    let hash = Sha256::new().chain_update(b"cloakroom token key id:").chain_update(secret);
    hex(&hash.finalize()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_id_is_the_same_in_every_process() {
        // The first 16 digits of `(printf 'cloakroom token key id:'; printf '\7%.0s' {1..32}) | sha256sum`.
        assert_eq!(key_id(&[7; 32]), "58e34b5e8386e07e");
    }
}
