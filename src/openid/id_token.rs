//! The verification of ID tokens (OpenID Connect Core, 3.1.3.7).

use std::collections::HashSet;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jwt_simple::prelude::*;
use jwt_simple::{Error, JWTError};
use serde_json::{Map, Value, json};

use super::fault::{Fault, words};
use super::metadata::KeySet;
use crate::config::ProviderSettings;
use crate::model::rules;
use crate::model::timestamp::unix_time;

/// How many seconds the clocks of the provider and of this host may differ, and how old a token may be.
const LEEWAY: f64 = 60.0;
const MAX_TOKEN_AGE: u64 = 660;
/// How long ago somebody may have signed in to the provider who is to do so anew, in seconds.
const MAX_SIGN_IN_AGE: f64 = 300.0;
/// Longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 64 << 10;
/// Longest subject (Core, 2), in bytes.
const MAX_SUBJECT: usize = 255;

/// The algorithms whose signatures are verified.
pub const ALGORITHMS: [&str; 7] = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"];

/// The claims of a token, but for those that have a meaning to everybody.
pub type Claims = Map<String, Value>;

/// Who the provider says that somebody is.
pub struct Person {
    pub subject: String,
    /// Further claims.
    pub claims: Claims,
    /// The token by which the provider tells more.
    pub access_token: Option<String>,
}

impl Person {
    /// The address, if the provider says that it has confirmed it, or is believed without that.
    pub fn confirmed_email(&self, settings: &ProviderSettings) -> Option<String> {
        let verified = self.claims.get("email_verified");
        let is_confirmed = verified.is_some_and(|it| *it == json!(true) || *it == json!("true"));
        let email = self.text("email").filter(|_| is_confirmed || settings.trusts_emails)?;
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

    /// Whether a claim is this text, or a list that has it. `None` if it is not told. An address must be confirmed,
    /// because otherwise people choose it themselves.
    pub fn has_claim(&self, name: &str, value: &str, settings: &ProviderSettings) -> Option<bool> {
        if name == "email" {
            let confirmed = self.confirmed_email(settings).map(|email| email == value);
            return confirmed.or(self.is_complete().then_some(false));
        }
        self.claims.get(name).map(|claim| match claim {
            Value::Array(all) => all.iter().any(|one| one == value),
            one => one == value,
        })
    }

    /// Fails unless the person has just signed in to the provider (Core, 2, `auth_time`).
    pub fn has_just_signed_in(&self) -> Result<(), Fault> {
        let time = self.claims.get("auth_time").and_then(Value::as_f64);
        let age = time.map(|time| unix_time().as_secs_f64() - time);
        if age.is_some_and(|age| (-LEEWAY..=MAX_SIGN_IN_AGE).contains(&age)) {
            return Ok(());
        }
        let found = age.map_or("none".to_owned(), |age| format!("of {age:.0} seconds ago"));
        let detail = format!("it is {found}, and must be of the last {MAX_SIGN_IN_AGE} seconds");
        Err(Fault::invalid("the ID token has no auth_time of just now", detail))
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
    let own = &settings.client_id;
    let options = VerificationOptions {
        required_nonce: Some(nonce.to_owned()),
        allowed_issuers: Some(HashSet::from([settings.issuer.clone()])),
        allowed_audiences: Some(HashSet::from([own.clone()])),
        time_tolerance: Some(Duration::from_secs(LEEWAY as u64)),
        max_validity: Some(Duration::from_secs(MAX_TOKEN_AGE)),
        max_token_length: Some(MAX_TOKEN),
        ..VerificationOptions::default()
    };
    let verified = verify_signature(token, keys, options)?;
    let JWTClaims { subject, audiences, expires_at, issued_at, custom: claims, .. } = verified;
    let party = claims.get("azp");
    let is_only_ours = match audiences {
        Some(Audiences::AsString(one)) => one == *own,
        Some(Audiences::AsSet(all)) => all.iter().all(|one| one == own),
        None => false,
    };
    if !party.map_or(is_only_ours, |it| *it == **own) {
        let party = party.map_or("none".to_owned(), said);
        let detail = format!("azp is {party}; beside additional audiences it must be {own}");
        return Err(Fault::invalid("the ID token is for another client too", detail));
    }
    let subject = subject.filter(|it| {
        (1..=MAX_SUBJECT).contains(&it.len()) && it.bytes().all(|byte| matches!(byte, b' '..=b'~'))
    });
    match subject.filter(|_| expires_at.is_some() && issued_at.is_some()) {
        Some(subject) => Ok(Person { subject, claims, access_token: None }),
        None => {
            let detail = "sub must have 1 to 255 characters of ASCII";
            Err(Fault::invalid("the ID token lacks exp, iat or a usable sub", detail))
        }
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
    let header = Token::decode_metadata(token)
        .map_err(|_| Fault::invalid("the ID token cannot be read", "it has no readable header"))?;
    let id = header.key_id();
    let has_id =
        |key: &&Value| id.is_none_or(|id| key.get("kid").and_then(Value::as_str) == Some(id));
    let named = keys.keys.iter().filter(has_id).map(Value::to_string);
    macro_rules! verify_by {
        ($($name:literal => $key:ty,)*) => {
            match header.algorithm() {
                $($name => only(named.filter_map(|key| <$key>::from_jwk(&key).ok()), id)?
                    .verify_token(token, Some(options)),)*
                other => {
                    let detail = format!("{}; taken are {}", words(other), ALGORITHMS.join(", "));
                    return Err(Fault::invalid("the ID token has another algorithm", detail));
                }
            }
        };
    }
    let verified = verify_by! {
        "RS256" => RS256PublicKey,
        "RS384" => RS384PublicKey,
        "RS512" => RS512PublicKey,
        "PS256" => PS256PublicKey,
        "ES256" => ES256PublicKey,
        "ES384" => ES384PublicKey,
        "EdDSA" => Ed25519PublicKey,
    };
    verified.map_err(|error| why_refused(token, &error))
}

/// The only key of these. That there is none, or several, is no fault of the token: the provider may have a new one.
fn only<K>(mut keys: impl Iterator<Item = K>, id: Option<&str>) -> Result<K, Fault> {
    let cause = match (keys.next(), keys.next()) {
        (Some(key), None) => return Ok(key),
        (None, _) => "the ID token is signed with none of the provider's keys",
        (Some(_), Some(_)) => "the ID token fits several of the provider's keys",
    };
    let detail = format!("its kid is {}", id.map_or("not there".to_owned(), words));
    Err(Fault { is_of_key: true, ..Fault::invalid(cause, detail) })
}

/// What a claim says, for a log.
fn said(claim: &Value) -> String {
    words(claim.as_str().unwrap_or(&claim.to_string()))
}

/// The cause of a token that the library refuses, in its words. It looks at the claims only after the signature.
fn why_refused(token: &str, error: &Error) -> Fault {
    let error = error.downcast_ref::<JWTError>();
    if let Some(JWTError::InvalidSignature) = error {
        let fault = Fault::invalid("the ID token is not signed by the provider", "");
        return Fault { is_of_key: true, ..fault };
    }
    let cause = error.map_or("it has claims of other types".to_owned(), ToString::to_string);
    let payload = token.split('.').nth(1).and_then(|it| BASE64_URL_SAFE_NO_PAD.decode(it).ok());
    let claims = payload.and_then(|it| serde_json::from_slice::<Claims>(&it).ok());
    let claim = |name: &str| claims.as_ref()?.get(name).map(said);
    let shown = ["iss", "aud", "iat", "exp", "nbf"]
        .map(|name| format!("{name} {}", claim(name).unwrap_or_else(|| "none".to_owned())));
    let detail = format!("{}; now it is {}", shown.join(", "), unix_time().as_secs());
    Fault::invalid(format!("the ID token is refused: {cause}"), detail)
}
