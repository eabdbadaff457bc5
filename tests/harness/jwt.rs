//! Tokens that tests read and sign themselves.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jwt_simple::prelude::{
    HS256Key, JWTClaims, MACLike, Token, TokenMetadata, VerificationOptions,
};
use serde_json::{Value, json};

use super::{FAR_FUTURE, SECRET, UNKNOWN_ID};

/// Seconds since the epoch.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// A token with exactly these claims, signed as the server would.
pub fn sign(claims: Value) -> String {
    sign_with(&HS256Key::from_bytes(SECRET.as_bytes()), claims)
}

pub fn sign_with(key: &impl MACLike, claims: Value) -> String {
    key.authenticate(serde_json::from_value::<JWTClaims<Value>>(claims).unwrap()).unwrap()
}

/// An access token of no session, issued now and good for ten minutes.
pub fn token_without_session(user: &str) -> String {
    sign(json!({"sub": user, "iat": now(), "exp": now() + 600}))
}

/// The claims of a token that the server signed and that has not expired.
pub fn claims(token: &str) -> Value {
    let key = HS256Key::from_bytes(SECRET.as_bytes());
    let claims = key.verify_token::<Value>(token, Some(VerificationOptions::default())).unwrap();
    serde_json::to_value(claims).unwrap()
}

/// The header of a token, which is not verified.
pub fn header(token: &str) -> TokenMetadata {
    Token::decode_metadata(token).expect("a token")
}

/// A copy of the claims in which one is replaced.
pub fn with_member(claims: &Value, name: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims.clone();
    claims[name] = value.into();
    claims
}

/// A copy of the claims in which one is missing.
pub fn without_member(claims: &Value, name: &str) -> Value {
    let mut claims = claims.clone();
    claims.as_object_mut().expect("an object").remove(name);
    claims
}

/// The access token and the refresh token of a session, which ends later than any test.
pub fn tokens_of_session(user: &str, session: &str, refresh: &str) -> [String; 2] {
    [("access", UNKNOWN_ID), ("refresh", refresh)].map(|(kind, id)| {
        sign(json!({
            "sub": user, "role": "user", "type": kind, "sid": session, "jti": id,
            "iat": now(), "exp": FAR_FUTURE,
        }))
    })
}
