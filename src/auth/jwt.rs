//! Signed tokens (RFC 7519): access tokens, refresh tokens, and those in mails.

use std::sync::Arc;

use jwt_simple::prelude::{
    Duration as Seconds, HS256Key, HS384Key, HS512Key, JWTClaims, MACLike, Token,
    VerificationOptions,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::verified_tokens::VerifiedTokens;
use crate::config::Algorithm;
use crate::error::{Error, TokenProblem};
use crate::model::hex;
use crate::model::user::Role;

/// Longest token that is verified, in bytes. The tokens made here are under 2,500 bytes long, but for accounts made for
/// a test, whose names and addresses may be longer than others.
const MAX_TOKEN: usize = 8192;

/// How many seconds before its `nbf` a token is accepted, because the clock of the host that signed it may be ahead of
/// ours. Tokens that are signed here have none.
const NOT_BEFORE_TOLERANCE: u64 = 60;

/// The use of a token: its claim `type`.
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
    /// Opens a content, in the address of a request.
    View,
}

/// The claims of a token that is to be signed, or that was verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// `sub`: the user.
    pub user: Uuid,
    /// `username`: for clients that read tokens. The service does not use it, so it is left out of verified claims.
    pub username: Option<String>,
    /// `email`, in access tokens: likewise for clients only.
    pub email: Option<String>,
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
    /// `exp`: the second since 1970 from which on the token is not valid.
    pub expires_at: u64,
}

/// The claims that are not registered in RFC 7519, 4.1, as they are written in a token.
#[derive(Serialize, Deserialize)]
struct PrivateClaims {
    username: Option<String>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    role: Option<Role>,
    #[serde(rename = "type")]
    token_type: Option<TokenType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sid: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ver: Option<i32>,
}

/// The keys that sign and verify tokens. There are several while secrets are changed, because tokens that were signed
/// with the old secret stay valid meanwhile.
pub struct SigningKeys {
    /// Signs new tokens.
    current: SigningKey,
    /// Verify tokens, but sign none.
    old: Vec<SigningKey>,
    /// The claim `iss` of new tokens, which verified ones must have too. If `None`, new tokens have no `iss`, and that
    /// of others is ignored.
    issuer: Option<String>,
    /// Access tokens that were verified lately.
    verified: VerifiedTokens<SignedToken>,
}

/// A token that one of the keys has signed. Its times are not checked yet.
struct SignedToken {
    claims: Claims,
    /// `nbf`, in seconds since 1970.
    not_before: Option<u64>,
}

impl SigningKeys {
    /// Makes keys of the secret that signs new tokens, and of old ones whose tokens are still valid.
    pub fn new<'a>(
        algorithm: Algorithm,
        secret: &[u8],
        old_secrets: impl Iterator<Item = &'a [u8]>,
        issuer: Option<String>,
    ) -> SigningKeys {
        SigningKeys {
            current: SigningKey::new(algorithm, secret),
            old: old_secrets.map(|secret| SigningKey::new(algorithm, secret)).collect(),
            issuer,
            verified: VerifiedTokens::new(),
        }
    }

    /// Signs a token with `claims`. Errors are not expected: the library fails only if the claims cannot be serialised.
    pub fn sign(&self, claims: Claims) -> Result<String, Error> {
        let claims = JWTClaims {
            issued_at: claims.issued_at.map(Seconds::from_secs),
            expires_at: Some(Seconds::from_secs(claims.expires_at)),
            invalid_before: None,
            issuer: self.issuer.clone(),
            subject: Some(claims.user.to_string()),
            audiences: None,
            jwt_id: claims.id.map(|id| id.to_string()),
            nonce: None,
            custom: PrivateClaims {
                username: claims.username,
                email: claims.email,
                role: Some(claims.role),
                token_type: Some(claims.token_type),
                sid: claims.session,
                ver: claims.version,
            },
        };
        self.current.sign(claims).map_err(|e| Error::Internal(format!("token: {e}")))
    }

    /// Verifies a token of the given type at `now`, in seconds since 1970. Fails with [`TokenProblem::NotOurs`] if the
    /// token is forged, signed with another algorithm or not yet valid, lacks `exp` or `sub`, has a claim of the wrong
    /// shape or another issuer than the configured one; otherwise with the other problems that a signed token can have.
    ///
    /// The header `kid` says which key to try; if no key has that id, the token is not valid. A token without `kid`,
    /// which other software or an earlier version has signed, is tried with every key.
    pub fn verify(
        &self,
        token: &str,
        token_type: TokenType,
        now: u64,
    ) -> Result<Claims, TokenProblem> {
        let signed = self.signed_token(token).ok_or(TokenProblem::NotOurs)?;
        if signed.claims.token_type != token_type {
            return Err(match token_type {
                TokenType::Access => TokenProblem::NotAccess,
                TokenType::Refresh => TokenProblem::NotRefresh,
                TokenType::PasswordReset | TokenType::View => TokenProblem::NotOurs,
            });
        }
        // A token is not valid any more at the very second of `exp` (RFC 7519, 4.1.4).
        if signed.claims.expires_at <= now {
            return Err(TokenProblem::Expired);
        }
        // The library ignores `nbf` if it is told to accept an `iat` in the future.
        if signed.not_before.is_some_and(|not_before| not_before > now + NOT_BEFORE_TOLERANCE) {
            return Err(TokenProblem::NotOurs);
        }
        Ok(signed.claims.clone())
    }

    /// Returns the claims of a token that one of the keys has signed, with the configured issuer. Does not check its
    /// times.
    fn signed_token(&self, token: &str) -> Option<Arc<SignedToken>> {
        if let Some(known) = self.verified.get(token) {
            return Some(known);
        }
        let claims = self.verify_signature(token)?;
        if self.issuer.is_some() && claims.issuer != self.issuer {
            return None;
        }
        let signed = Arc::new(SignedToken {
            claims: Claims {
                user: claims.subject?.parse().ok()?,
                role: claims.custom.role.unwrap_or_default(),
                token_type: claims.custom.token_type.unwrap_or_default(),
                session: claims.custom.sid,
                id: claims.jwt_id.and_then(|id| id.parse().ok()),
                version: claims.custom.ver,
                issued_at: claims.issued_at.map(|at| at.as_secs()),
                expires_at: claims.expires_at?.as_secs(),
                ..Claims::default()
            },
            not_before: claims.invalid_before.map(|not_before| not_before.as_secs()),
        });
        // Refresh and reset tokens are used once, and view tokens seldom.
        if signed.claims.token_type == TokenType::Access {
            self.verified.insert(token, signed.clone());
        }
        Some(signed)
    }

    /// Returns the claims of a token that one of the keys has signed. Does not check the claims.
    fn verify_signature(&self, token: &str) -> Option<JWTClaims<PrivateClaims>> {
        if token.len() > MAX_TOKEN {
            return None;
        }
        let options = || VerificationOptions {
            // An `iat` in the future is accepted, because the clock of the host that signed may be ahead of ours.
            accept_future: true,
            // Checks the signature as of 1970, when no token has expired; `verify` checks `exp` itself. So it can tell
            // an expired token from a forged one.
            artificial_time: Some(Seconds::from_secs(0)),
            time_tolerance: Some(Seconds::from_secs(0)),
            ..VerificationOptions::default()
        };
        let metadata = Token::decode_metadata(token).ok()?;
        std::iter::once(&self.current)
            .chain(&self.old)
            .filter(|key| metadata.key_id().is_none() || metadata.key_id() == key.id())
            .find_map(|key| key.verify(token, options()))
    }
}

/// One secret that signs and verifies tokens, with one of the algorithms that the settings allow (RFC 7518, 3.2).
enum SigningKey {
    Hs256(HS256Key),
    Hs384(HS384Key),
    Hs512(HS512Key),
}

impl SigningKey {
    /// Makes a key of the secret, whose length was checked when the settings were read.
    fn new(algorithm: Algorithm, secret: &[u8]) -> SigningKey {
        let id = key_id(secret);
        match algorithm {
            Algorithm::Hs256 => SigningKey::Hs256(HS256Key::from_bytes(secret).with_key_id(&id)),
            Algorithm::Hs384 => SigningKey::Hs384(HS384Key::from_bytes(secret).with_key_id(&id)),
            Algorithm::Hs512 => SigningKey::Hs512(HS512Key::from_bytes(secret).with_key_id(&id)),
        }
    }

    /// The header `kid` of the tokens that this key signs.
    fn id(&self) -> Option<&str> {
        match self {
            SigningKey::Hs256(key) => key.key_id(),
            SigningKey::Hs384(key) => key.key_id(),
            SigningKey::Hs512(key) => key.key_id(),
        }
        .as_deref()
    }

    /// Signs a token with `claims`.
    fn sign(&self, claims: JWTClaims<PrivateClaims>) -> Result<String, jwt_simple::Error> {
        match self {
            SigningKey::Hs256(key) => key.authenticate(claims),
            SigningKey::Hs384(key) => key.authenticate(claims),
            SigningKey::Hs512(key) => key.authenticate(claims),
        }
    }

    /// The claims of a token that this key has signed and that `options` accept.
    fn verify(
        &self,
        token: &str,
        options: VerificationOptions,
    ) -> Option<JWTClaims<PrivateClaims>> {
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
pub fn key_id(secret: &[u8]) -> String {
    let hash = Sha256::new().chain_update(b"cloakroom token key id:").chain_update(secret);
    hex(&hash.finalize()[..8])
}

mod tests;
