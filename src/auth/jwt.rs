//! Signed tokens (RFC 7519): access tokens, refresh tokens and password reset tokens.

use jwt_simple::prelude::{
    Duration as Seconds, HS256Key, HS384Key, HS512Key, JWTClaims, MACLike, VerificationOptions,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::Algorithm;
use crate::model::user::Role;

/// Longest token that is looked at, bytes; ours are under 600.
const MAX_TOKEN: usize = 4096;

/// What a token is for. A token signed with our secret that has no `type` is an access token
/// (contract, 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Opens the API.
    #[default]
    Access,
    /// Is exchanged for the next pair of tokens.
    Refresh,
    /// Sets a new password, once.
    PasswordReset,
}

/// Claims of a token, checked: the types say what a token of ours must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// `sub`: the user.
    pub user: Uuid,
    /// `username`, for clients that read tokens.
    pub username: Option<String>,
    /// `role`: the role of the request.
    pub role: Role,
    /// `type`.
    pub kind: Kind,
    /// `sid`: the session; tokens made elsewhere with our secret may have none.
    pub session: Option<Uuid>,
    /// `jti`: this token.
    pub id: Option<Uuid>,
    /// `ver`: version of the account's credentials that a reset token is good for.
    pub version: Option<i32>,
    /// `iat`, seconds since 1970.
    pub issued_at: Option<u64>,
}

/// The claims beside the registered ones, as they stand in the token.
#[derive(Serialize, Deserialize)]
struct Extra {
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    role: Option<Role>,
    #[serde(default, rename = "type")]
    kind: Option<Kind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sid: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ver: Option<i32>,
}

/// The signing key.
pub enum Key {
    /// HMAC with SHA-256.
    Hs256(HS256Key),
    /// HMAC with SHA-384.
    Hs384(HS384Key),
    /// HMAC with SHA-512.
    Hs512(HS512Key),
}

impl Key {
    /// A key from the configured secret. Its length was checked with the settings.
    pub fn new(algorithm: Algorithm, secret: &[u8]) -> Key {
        match algorithm {
            Algorithm::Hs256 => Key::Hs256(HS256Key::from_bytes(secret)),
            Algorithm::Hs384 => Key::Hs384(HS384Key::from_bytes(secret)),
            Algorithm::Hs512 => Key::Hs512(HS512Key::from_bytes(secret)),
        }
    }

    /// Signs `claims`; times are seconds since 1970. Fails only where memory for the text is refused.
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
            custom: Extra {
                username: claims.username,
                role: Some(claims.role),
                kind: Some(claims.kind),
                sid: claims.session,
                ver: claims.version,
            },
        };
        match self {
            Key::Hs256(key) => key.authenticate(claims),
            Key::Hs384(key) => key.authenticate(claims),
            Key::Hs512(key) => key.authenticate(claims),
        }
    }

    /// The claims of a good token at `now`, seconds since 1970. `None`: forged, another algorithm,
    /// expired, no `exp`, no `sub`, or a claim of the wrong shape.
    pub fn verify(&self, token: &str, now: u64) -> Option<Claims> {
        let options = VerificationOptions {
            // Clocks of two hosts differ, so an `iat` ahead of ours is no fault (contract, 6).
            accept_future: true,
            time_tolerance: Some(Seconds::from_secs(0)),
            max_token_length: Some(MAX_TOKEN),
            artificial_time: Some(Seconds::from_secs(now)),
            ..VerificationOptions::default()
        };
        let claims = match self {
            Key::Hs256(key) => key.verify_token::<Extra>(token, Some(options)),
            Key::Hs384(key) => key.verify_token::<Extra>(token, Some(options)),
            Key::Hs512(key) => key.verify_token::<Extra>(token, Some(options)),
        }
        .ok()?;
        // The library lets the second of `exp` itself pass; RFC 7519, 4.1.4 does not.
        if claims.expires_at?.as_secs() <= now {
            return None;
        }
        Some(Claims {
            user: claims.subject?.parse().ok()?,
            username: claims.custom.username,
            role: claims.custom.role.unwrap_or_default(),
            kind: claims.custom.kind.unwrap_or_default(),
            session: claims.custom.sid,
            id: claims.jwt_id.and_then(|id| id.parse().ok()),
            version: claims.custom.ver,
            issued_at: claims.issued_at.map(|at| at.as_secs()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn key() -> Key {
        Key::new(Algorithm::Hs256, &[7; 32])
    }

    fn claims() -> Claims {
        Claims {
            user: Uuid::from_u128(1),
            username: Some("ann".into()),
            role: Role::Admin,
            kind: Kind::Refresh,
            session: Some(Uuid::from_u128(2)),
            id: Some(Uuid::from_u128(3)),
            version: Some(4),
            issued_at: Some(NOW),
        }
    }

    #[test]
    fn claims_survive_the_journey() -> Result<(), jwt_simple::Error> {
        for algorithm in [Algorithm::Hs256, Algorithm::Hs384, Algorithm::Hs512] {
            let key = Key::new(algorithm, &[7; 64]);
            assert_eq!(key.verify(&key.sign(claims(), NOW + 1)?, NOW), Some(claims()));
        }
        Ok(())
    }

    #[test]
    fn a_token_ends_with_its_last_second() -> Result<(), jwt_simple::Error> {
        let token = key().sign(claims(), NOW + 1)?;
        assert!(key().verify(&token, NOW).is_some());
        assert_eq!(key().verify(&token, NOW + 1), None);
        assert_eq!(key().verify(&token, NOW + 2), None);
        Ok(())
    }

    #[test]
    fn a_clock_behind_the_issuer_is_no_fault() -> Result<(), jwt_simple::Error> {
        let token = key().sign(claims(), NOW + 60)?;
        assert!(key().verify(&token, NOW - 30).is_some());
        Ok(())
    }

    #[test]
    fn another_key_or_algorithm_is_refused() -> Result<(), jwt_simple::Error> {
        for other in [Key::new(Algorithm::Hs256, &[8; 32]), Key::new(Algorithm::Hs512, &[7; 64])] {
            assert_eq!(key().verify(&other.sign(claims(), NOW + 60)?, NOW), None);
        }
        Ok(())
    }
}
