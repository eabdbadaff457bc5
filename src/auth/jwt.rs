//! Signed tokens (RFC 7519): access tokens, refresh tokens and password reset tokens.

use jwt_simple::prelude::{
    Duration as Seconds, HS256Key, HS384Key, HS512Key, JWTClaims, MACLike, VerificationOptions,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::Algorithm;
use crate::model::user::Role;

/// Longest token that is verified, in bytes. The tokens made here are under 600 bytes long.
const MAX_TOKEN: usize = 4096;

/// How many seconds before its `nbf` a token is accepted, because the clock of the host that signed it may be ahead of
/// ours. Tokens that are signed here have none.
const NOT_BEFORE_TOLERANCE: u64 = 60;

/// What a token may be used for: its claim `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenType {
    /// Authenticates requests. A token without `type` counts as one, because other software may sign tokens with the
    /// same secret and does not know this claim.
    #[default]
    Access,
    /// Is exchanged for a new access token and a new refresh token.
    Refresh,
    /// Sets a new password, once.
    PasswordReset,
}

/// The claims of a token that is to be signed, or that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// `sub`: the user.
    pub user: Uuid,
    /// `username`: for clients that read tokens. The service does not use it.
    pub username: Option<String>,
    /// `role`: the role that a request with this token has.
    pub role: Role,
    /// `type`.
    pub token_type: TokenType,
    /// `sid`: the session. Tokens that other software signed have none.
    pub session: Option<Uuid>,
    /// `jti`: the id of the token itself.
    pub id: Option<Uuid>,
    /// `ver`, in password reset tokens: the version of the account's credentials. The token is void once that changes.
    pub version: Option<i32>,
    /// `iat`: when the token was made, in seconds since 1970.
    pub issued_at: Option<u64>,
}

/// The claims that are not registered in RFC 7519, 4.1, as they stand in a token.
#[derive(Serialize, Deserialize)]
struct PrivateClaims {
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    role: Option<Role>,
    #[serde(default, rename = "type")]
    token_type: Option<TokenType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sid: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ver: Option<i32>,
}

/// The key that signs and verifies tokens (RFC 7518, 3.2).
pub enum SigningKey {
    Hs256(HS256Key),
    Hs384(HS384Key),
    Hs512(HS512Key),
}

impl SigningKey {
    /// Makes a key of the secret, whose length was checked when the settings were read.
    pub fn new(algorithm: Algorithm, secret: &[u8]) -> SigningKey {
        match algorithm {
            Algorithm::Hs256 => SigningKey::Hs256(HS256Key::from_bytes(secret)),
            Algorithm::Hs384 => SigningKey::Hs384(HS384Key::from_bytes(secret)),
            Algorithm::Hs512 => SigningKey::Hs512(HS512Key::from_bytes(secret)),
        }
    }

    /// Signs a token with `claims` that is valid until just before `expires_at`, in seconds since 1970. Errors are not
    /// expected: the library fails only if the claims cannot be serialised.
    pub fn sign(&self, claims: Claims, expires_at: u64) -> Result<String, jwt_simple::Error> {
        let claims = JWTClaims {
            issued_at: claims.issued_at.map(Seconds::from_secs),
            expires_at: Some(Seconds::from_secs(expires_at)),
            invalid_before: None,
            issuer: None,
            subject: Some(claims.user.to_string()),
            audiences: None,
            jwt_id: claims.id.map(|id| id.to_string()),
            nonce: None,
            custom: PrivateClaims {
                username: claims.username,
                role: Some(claims.role),
                token_type: Some(claims.token_type),
                sid: claims.session,
                ver: claims.version,
            },
        };
        match self {
            SigningKey::Hs256(key) => key.authenticate(claims),
            SigningKey::Hs384(key) => key.authenticate(claims),
            SigningKey::Hs512(key) => key.authenticate(claims),
        }
    }

    /// Verifies a token of the given type at `now`, in seconds since 1970. Returns `None` if the token is forged,
    /// signed with another algorithm, expired, not yet valid or of another type, lacks `exp` or `sub`, or has a claim
    /// of the wrong shape.
    pub fn verify(&self, token: &str, token_type: TokenType, now: u64) -> Option<Claims> {
        let options = VerificationOptions {
            // An `iat` in the future is accepted, because the clock of the host that signed may be ahead of ours.
            accept_future: true,
            time_tolerance: Some(Seconds::from_secs(0)),
            max_token_length: Some(MAX_TOKEN),
            artificial_time: Some(Seconds::from_secs(now)),
            ..VerificationOptions::default()
        };
        let claims = match self {
            SigningKey::Hs256(key) => key.verify_token::<PrivateClaims>(token, Some(options)),
            SigningKey::Hs384(key) => key.verify_token::<PrivateClaims>(token, Some(options)),
            SigningKey::Hs512(key) => key.verify_token::<PrivateClaims>(token, Some(options)),
        }
        .ok()?;
        // The library still accepts a token at the very second of `exp`; RFC 7519, 4.1.4 does not.
        if claims.expires_at?.as_secs() <= now {
            return None;
        }
        // The library does not look at `nbf` where it accepts an `iat` in the future.
        if claims.invalid_before.is_some_and(|nbf| nbf.as_secs() > now + NOT_BEFORE_TOLERANCE) {
            return None;
        }
        let claims = Claims {
            user: claims.subject?.parse().ok()?,
            username: claims.custom.username,
            role: claims.custom.role.unwrap_or_default(),
            token_type: claims.custom.token_type.unwrap_or_default(),
            session: claims.custom.sid,
            id: claims.jwt_id.and_then(|id| id.parse().ok()),
            version: claims.custom.ver,
            issued_at: claims.issued_at.map(|at| at.as_secs()),
        };
        (claims.token_type == token_type).then_some(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn key() -> SigningKey {
        SigningKey::new(Algorithm::Hs256, &[7; 32])
    }

    fn claims() -> Claims {
        Claims {
            user: Uuid::from_u128(1),
            username: Some("ann".into()),
            role: Role::Admin,
            token_type: TokenType::Refresh,
            session: Some(Uuid::from_u128(2)),
            id: Some(Uuid::from_u128(3)),
            version: Some(4),
            issued_at: Some(NOW),
        }
    }

    #[test]
    fn a_signed_token_verifies_to_the_same_claims() -> Result<(), jwt_simple::Error> {
        for algorithm in [Algorithm::Hs256, Algorithm::Hs384, Algorithm::Hs512] {
            let key = SigningKey::new(algorithm, &[7; 64]);
            assert_eq!(
                key.verify(&key.sign(claims(), NOW + 1)?, TokenType::Refresh, NOW),
                Some(claims())
            );
        }
        Ok(())
    }

    #[test]
    fn a_token_is_refused_from_its_expiry_on() -> Result<(), jwt_simple::Error> {
        let token = key().sign(claims(), NOW + 1)?;
        assert!(key().verify(&token, TokenType::Refresh, NOW).is_some());
        assert_eq!(key().verify(&token, TokenType::Refresh, NOW + 1), None);
        assert_eq!(key().verify(&token, TokenType::Refresh, NOW + 2), None);
        Ok(())
    }

    #[test]
    fn a_token_issued_in_the_future_is_accepted() -> Result<(), jwt_simple::Error> {
        let token = key().sign(claims(), NOW + 60)?;
        assert!(key().verify(&token, TokenType::Refresh, NOW - 30).is_some());
        Ok(())
    }

    #[test]
    fn another_key_or_algorithm_is_refused() -> Result<(), jwt_simple::Error> {
        for other in [
            SigningKey::new(Algorithm::Hs256, &[8; 32]),
            SigningKey::new(Algorithm::Hs512, &[7; 64]),
        ] {
            assert_eq!(
                key().verify(&other.sign(claims(), NOW + 60)?, TokenType::Refresh, NOW),
                None
            );
        }
        Ok(())
    }
}
