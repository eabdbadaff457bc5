//! What a client may send as a token: anything. Only the key makes a signed one, and no other text says more than it.

#![cfg(test)]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::jwt::{Claims, SigningKeys, TokenType};
use super::personal_token::{self, RANDOM_BYTES};
use crate::config::Algorithm;
use crate::model::user::Role;

const NOW: u64 = 1_800_000_000;
const SECRET: [u8; 32] = [7; 32];

/// HMAC-SHA256 (RFC 2104) with [`SECRET`].
fn mac(text: &str) -> [u8; 32] {
    let pad = |byte: u8| {
        let mut block = [byte; 64];
        block.iter_mut().zip(SECRET).for_each(|(b, secret)| *b ^= secret);
        Sha256::new().chain_update(block)
    };
    let inner = pad(0x36).chain_update(text).finalize();
    pad(0x5c).chain_update(inner).finalize().into()
}

/// Checks claims that were verified against the JSON that was signed.
fn check_claims(claims: &Claims, wanted: TokenType, header: &[u8], payload: &[u8]) {
    // The library does not look whether what it ignores is UTF-8.
    let json = |bytes| String::from_utf8_lossy(bytes).parse::<Value>().unwrap_or_default();
    let (header, payload) = (json(header), json(payload));
    assert_eq!(header["alg"], "HS256");
    let id = |name: &str| payload[name].as_str().and_then(|text| text.parse::<Uuid>().ok());
    assert_eq!((Some(claims.user), claims.session), (id("sub"), id("sid")), "{payload}");
    let role = if payload["role"] == "admin" { Role::Admin } else { Role::User };
    assert_eq!(claims.role, role, "{payload}");
    let expected = match wanted {
        TokenType::Access => payload["type"].is_null() || payload["type"] == "access",
        TokenType::Refresh => payload["type"] == "refresh",
        TokenType::PasswordReset => payload["type"] == "password_reset",
        TokenType::EmailConfirmation => payload["type"] == "email_confirmation",
    };
    assert!(expected && claims.token_type == wanted, "{payload}");
    let number = |name: &str| payload[name].as_f64();
    assert!(number("exp").is_some_and(|exp| exp > NOW as f64), "{payload}");
    assert!(number("nbf").is_none_or(|nbf| nbf <= NOW as f64 + 61.0), "{payload}");
    assert_eq!(claims.version.map(f64::from), number("ver"), "{payload}");
    assert_eq!(claims.email.as_deref(), payload["email"].as_str(), "{payload}");
}

#[test]
fn fuzz_signed_tokens() {
    let keys = SigningKeys::new(Algorithm::Hs256, &SECRET, std::iter::empty(), None);
    let claims = Claims {
        user: Uuid::nil(),
        username: None,
        role: Role::User,
        token_type: TokenType::Refresh,
        session: None,
        id: None,
        version: None,
        email: None,
        issued_at: None,
        expires_at: NOW + 1,
    };
    let Ok(valid) = keys.sign(claims) else { panic!("not signed") };
    fuzz::check("signed_tokens", move |input| {
        use TokenType::{Access, EmailConfirmation, PasswordReset, Refresh};
        let types = [Access, Refresh, PasswordReset, EmailConfirmation];
        // One that was changed, or anything.
        let text = String::from_utf8_lossy(input);
        let changed = match text.split_once('|') {
            Some((end, rest)) => valid.replacen(end, rest, 1),
            None => text.clone().into_owned(),
        };
        let is_valid = |wanted: &TokenType| keys.verify(&changed, *wanted, NOW).is_ok();
        assert!(!types.iter().any(is_valid) || changed == valid, "{changed}");
        // One that says anything, and is signed. No UTF-8 has this byte.
        let mut parts = input.splitn(2, |byte| *byte == 0xff);
        let (header, payload) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let signed = format!("{}.{}", encode(header), encode(payload));
        let token = format!("{signed}.{}", encode(&mac(&signed)));
        for wanted in types {
            if let Ok(claims) = keys.verify(&token, wanted, NOW) {
                check_claims(&claims, wanted, header, payload);
            }
        }
    });
}

#[test]
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
