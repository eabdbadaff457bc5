//! The verification of ID tokens (OpenID Connect Core, 3.1.3.7).

use std::collections::HashSet;

use jwt_simple::prelude::{
    Audiences, Duration, ECDSAP256PublicKeyLike, ES256PublicKey, JWTClaims, PS256PublicKey,
    RS256PublicKey, RSAPublicKeyLike, Token, VerificationOptions,
};
use serde_json::{Map, Value};

use super::metadata::KeySet;
use crate::config::ProviderSettings;
use crate::model::rules;
use crate::model::timestamp::unix_time;

/// How many seconds the clocks of the provider and of this host may differ, and how old a token may be.
const LEEWAY: u64 = 60;
const MAX_TOKEN_AGE: u64 = 600;
/// How long ago somebody may have signed in to the provider who is to do so anew, in seconds.
const MAX_SIGN_IN_AGE: u64 = 300;
/// Longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 64 << 10;
/// Longest subject (Core, 2), in bytes.
const MAX_SUBJECT: usize = 255;

/// Why nothing was proven.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// The provider cannot be used now. That is logged.
    Unavailable,
    /// What the browser has brought proves nothing.
    Invalid,
    /// The ID token names a key that is not known.
    UnknownKey,
}

/// The claims of a token, but for those that have a meaning to everybody.
type Claims = Map<String, Value>;

/// Who the provider says that somebody is.
pub struct Person {
    pub subject: String,
    /// Further claims.
    pub claims: Claims,
    /// The token by which the provider tells more.
    pub access_token: Option<String>,
}

impl Person {
    /// The address, if the provider says that it has confirmed it.
    pub fn confirmed_email(&self) -> Option<String> {
        let is_confirmed = self.claims.get("email_verified") == Some(&Value::Bool(true));
        let email = self.text("email").filter(|_| is_confirmed)?;
        rules::email(email).ok()
    }

    /// Display name.
    pub fn name(&self) -> Option<String> {
        rules::name(self.text("name")?).ok().filter(|name| !name.is_empty())
    }

    /// What shows people which identity this is: cleaned, and of no further meaning.
    pub fn label(&self) -> String {
        let claims = ["email", "name", "preferred_username"];
        let found = claims.iter().find_map(|name| rules::user_agent(self.text(name)?));
        found.unwrap_or_default()
    }

    /// Whether it is told what an account needs.
    pub fn is_complete(&self) -> bool {
        ["email", "email_verified"].iter().all(|name| self.claims.contains_key(*name))
    }

    /// Whether the person has just signed in to the provider (Core, 2, `auth_time`).
    pub fn has_just_signed_in(&self) -> bool {
        let now = unix_time().as_secs();
        let time = self.claims.get("auth_time").and_then(Value::as_u64);
        time.is_some_and(|time| time.saturating_add(MAX_SIGN_IN_AGE) >= now && time <= now + LEEWAY)
    }

    fn text(&self, claim: &str) -> Option<&str> {
        self.claims.get(claim)?.as_str()
    }
}

/// Verifies an ID token: signature, issuer, audience, times, nonce and subject.
pub fn verify(
    token: &str,
    keys: &KeySet,
    settings: &ProviderSettings,
    nonce: &str,
) -> Result<Person, Fault> {
    let options = VerificationOptions {
        required_nonce: Some(nonce.to_owned()),
        allowed_issuers: Some(HashSet::from([settings.issuer.clone()])),
        allowed_audiences: Some(HashSet::from([settings.client_id.clone()])),
        time_tolerance: Some(Duration::from_secs(LEEWAY)),
        max_validity: Some(Duration::from_secs(MAX_TOKEN_AGE + LEEWAY)),
        max_token_length: Some(MAX_TOKEN),
        ..VerificationOptions::default()
    };
    let verified = verify_signature(token, keys, options)?;
    let JWTClaims { subject, audiences, expires_at, issued_at, custom: claims, .. } = verified;
    let is_for_others = match audiences {
        Some(Audiences::AsString(one)) => one != settings.client_id,
        Some(Audiences::AsSet(all)) => all.iter().any(|one| *one != settings.client_id),
        None => true,
    };
    let party = claims.get("azp");
    let is_for_others = is_for_others || party.is_some_and(|it| *it != *settings.client_id);
    let subject = subject.filter(|it| {
        (1..=MAX_SUBJECT).contains(&it.len()) && it.bytes().all(|byte| matches!(byte, b' '..=b'~'))
    });
    match subject {
        Some(subject) if !is_for_others && expires_at.is_some() && issued_at.is_some() => {
            Ok(Person { subject, claims, access_token: None })
        }
        _ => Err(Fault::Invalid),
    }
}

/// Verifies with the one key that the token means: that of its `kid`, or else the only one of its algorithm. A key is
/// read as one of that algorithm, whose size and use the library checks: RSA of 2,048 bits and more, for signatures.
/// The token's own `jku`, `x5u`, `jwk` and `x5c` count for nothing.
fn verify_signature(
    token: &str,
    keys: &KeySet,
    options: VerificationOptions,
) -> Result<JWTClaims<Claims>, Fault> {
    let header = Token::decode_metadata(token).map_err(|_| Fault::Invalid)?;
    let id = header.key_id();
    let has_id =
        |key: &&Value| id.is_none_or(|id| key.get("kid").and_then(Value::as_str) == Some(id));
    let named = keys.keys.iter().filter(has_id).map(Value::to_string);
    let options = Some(options);
    let verified = match header.algorithm() {
        "RS256" => only(named.filter_map(|key| RS256PublicKey::from_jwk(&key).ok()), id)?
            .verify_token(token, options),
        "PS256" => only(named.filter_map(|key| PS256PublicKey::from_jwk(&key).ok()), id)?
            .verify_token(token, options),
        "ES256" => only(named.filter_map(|key| ES256PublicKey::from_jwk(&key).ok()), id)?
            .verify_token(token, options),
        _ => return Err(Fault::Invalid),
    };
    verified.map_err(|_| Fault::Invalid)
}

/// The only key of these. That there is none is no fault of a token that names one: the provider may have a new one.
fn only<K>(mut keys: impl Iterator<Item = K>, id: Option<&str>) -> Result<K, Fault> {
    match (keys.next(), keys.next()) {
        (Some(key), None) => Ok(key),
        (None, _) if id.is_some() => Err(Fault::UnknownKey),
        _ => Err(Fault::Invalid),
    }
}
