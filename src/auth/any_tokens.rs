//! What a client may send as a token: anything. Only the key makes a signed one, and no other text says more than it.

#![cfg(test)]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest, Sha256, Sha384, Sha512};
use uuid::Uuid;

use super::jwt::{Claims, SigningKeys, TokenType, key_id};
#[cfg(feature = "extras")]
use super::personal_token::{self, RANDOM_BYTES};
use crate::config::Algorithm;
use crate::model::user::Role;

const NOW: u64 = 1_800_000_000;
/// The current secret, an old one and one of somebody else.
const SECRETS: [[u8; 32]; 3] = [[7; 32], [8; 32], [9; 32]];
/// The algorithms, with their names in tokens and what they make of a secret and a text.
const ALGORITHMS: [(Algorithm, &str, Mac); 3] = [
    (Algorithm::Hs256, "HS256", |secret, text| mac::<Sha256>(64, secret, text)),
    (Algorithm::Hs384, "HS384", |secret, text| mac::<Sha384>(128, secret, text)),
    (Algorithm::Hs512, "HS512", |secret, text| mac::<Sha512>(128, secret, text)),
];
type Mac = fn(&[u8], &str) -> Vec<u8>;

/// HMAC (RFC 2104) with a hash whose blocks have `block` bytes.
fn mac<Hash: Digest>(block: usize, secret: &[u8], text: &str) -> Vec<u8> {
    let pad = |byte: u8| {
        let mut key = vec![byte; block];
        key.iter_mut().zip(secret).for_each(|(b, secret)| *b ^= secret);
        Hash::new().chain_update(key)
    };
    let inner = pad(0x36).chain_update(text).finalize();
    pad(0x5c).chain_update(inner).finalize().to_vec()
}

/// Checks claims that were verified against the JSON that was signed.
fn check_claims(claims: &Claims, wanted: TokenType, payload: &Value) {
    let id = |name: &str| payload[name].as_str().and_then(|text| text.parse::<Uuid>().ok());
    assert_eq!((Some(claims.user), claims.session), (id("sub"), id("sid")), "{payload}");
    let role = if payload["role"] == "admin" { Role::Admin } else { Role::User };
    assert_eq!(claims.role, role, "{payload}");
    let expected = match wanted {
        TokenType::Access => payload["type"].is_null() || payload["type"] == "access",
        TokenType::Refresh => payload["type"] == "refresh",
        TokenType::PasswordReset => payload["type"] == "password_reset",
        TokenType::View => payload["type"] == "view",
    };
    assert!(expected && claims.token_type == wanted, "{payload}");
    let number = |name: &str| payload[name].as_f64();
    assert!(number("exp").is_some_and(|exp| exp > NOW as f64), "{payload}");
    assert!(number("nbf").is_none_or(|nbf| nbf <= NOW as f64 + 61.0), "{payload}");
    assert_eq!(claims.version.map(f64::from), number("ver"), "{payload}");
}

#[test]
fn fuzz_signed_tokens() {
    let [current, old, _] = &SECRETS;
    let keys = |algorithm| SigningKeys::new(algorithm, current, [&old[..]].into_iter(), None);
    let keys = ALGORITHMS.map(|(algorithm, ..)| keys(algorithm));
    let claims = Claims {
        user: Uuid::nil(),
        username: None,
        email: None,
        role: Role::User,
        token_type: TokenType::Refresh,
        session: None,
        id: None,
        version: None,
        issued_at: None,
        expires_at: NOW + 1,
    };
    let valid = keys.each_ref().map(|keys| keys.sign(claims.clone()).unwrap_or_default());
    // The library does not look whether what it ignores is UTF-8.
    let json = |bytes: &[u8]| String::from_utf8_lossy(bytes).parse::<Value>().unwrap_or_default();
    fuzz::check("signed_tokens", move |input| {
        use TokenType::{Access, PasswordReset, Refresh, View};
        let types = [Access, Refresh, PasswordReset, View];
        // One that was changed, or anything.
        let text = String::from_utf8_lossy(input);
        for (keys, valid) in keys.iter().zip(&valid) {
            let changed = match text.split_once('|') {
                Some((end, rest)) => valid.replacen(end, rest, 1),
                None => text.clone().into_owned(),
            };
            let is_valid = |wanted: &TokenType| keys.verify(&changed, *wanted, NOW).is_ok();
            assert_eq!(types.iter().any(is_valid), changed == *valid, "{changed}");
        }
        // One that says anything, and is signed. No UTF-8 has this byte.
        let mut parts = input.splitn(2, |byte| *byte == 0xff);
        let (header, payload) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let signed = format!("{}.{}", encode(header), encode(payload));
        let (header, payload) = (json(header), json(payload));
        for (at, secret) in (0..3).flat_map(|at| SECRETS.map(|secret| (at, secret))) {
            let (_, name, mac) = ALGORITHMS[at];
            let token = format!("{signed}.{}", encode(&mac(&secret, &signed)));
            let types = if header["alg"] == name { &types[..] } else { &types[..1] };
            for (other, wanted) in (0..3).flat_map(|other| types.iter().map(move |t| (other, *t))) {
                let Ok(claims) = keys[other].verify(&token, wanted, NOW) else { continue };
                assert!(other == at && secret != SECRETS[2] && header["alg"] == name, "{token}");
                let id = &header["kid"];
                assert!(id.is_null() || *id == key_id(&secret), "{token}");
                check_claims(&claims, wanted, &payload);
            }
        }
    });
}

#[test]
#[cfg(feature = "extras")]
fn fuzz_personal_tokens() {
    fuzz::check("personal_tokens", |input| {
        let text = String::from_utf8_lossy(input);
        let is_token = text.len() == 46 && personal_token::is_personal(&text);
        assert!(is_token || personal_token::hash(&text).is_none());
        if let Some((&[at, byte], random)) = input.split_first_chunk()
            && let Some(random) = random.first_chunk::<RANDOM_BYTES>()
        {
            let mut token = personal_token::encode(*random).into_bytes();
            assert!(personal_token::hash(&String::from_utf8_lossy(&token)).is_some());
            let changed = std::mem::replace(&mut token[usize::from(at) % 46], byte) != byte;
            let hash = personal_token::hash(&String::from_utf8_lossy(&token));
            assert_eq!(hash.is_none(), changed);
        }
    });
}
