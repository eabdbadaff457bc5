//! The tokens of mails that confirm an address, opened and sealed here by an implementation of their own: what is
//! changed, expired or sealed for anything else is refused, and seal keys can be exchanged.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use super::registrations::*;
use crate::harness::*;

const A: &str = "a-key-for-confirmations-0123456789abcdef";
const B: &str = "b-key-for-confirmations-0123456789abcdef";
const KEYS: &str = "CLOAKROOM_SEAL_KEYS";

const REGISTRATION: u8 = 1;
const CHANGE: u8 = 2;

/// A token in its parts.
#[derive(Clone)]
struct Token {
    kind: u8,
    key: String,
    purpose: Vec<u8>,
    installation: Vec<u8>,
    plain: Vec<u8>,
}

/// Version and id of a key, the key, and what is authenticated.
fn sealing(token: &Token) -> ([u8; 9], Aes256Gcm, Vec<u8>) {
    let derive = |label: &str| Sha256::digest(format!("{label}{}", token.key));
    let mut prefix = [1; 9];
    prefix[1..].copy_from_slice(&derive("cloakroom sealing key id:")[..8]);
    let parts = [&prefix[..], &token.purpose, &[token.kind], &token.installation];
    (prefix, Aes256Gcm::new(&derive("cloakroom sealing key:")), parts.concat())
}

impl Token {
    fn open(api: &Server, text: &str, key: &str) -> Token {
        let bytes = URL_SAFE_NO_PAD.decode(text).expect("base64");
        let installation: uuid::Uuid = api.database.value("SELECT id FROM installation");
        let mut token = Token {
            kind: bytes[0],
            key: key.to_owned(),
            purpose: b"cloakroom e-mail confirmation:".to_vec(),
            installation: installation.as_bytes().to_vec(),
            plain: Vec::new(),
        };
        let (prefix, cipher, aad) = sealing(&token);
        assert_eq!(bytes[1..10], prefix);
        let nonce = Nonce::from(<[u8; 12]>::try_from(&bytes[10..22]).expect("a nonce"));
        let payload = Payload { msg: &bytes[22..], aad: &aad };
        token.plain = cipher.decrypt(&nonce, payload).expect("sealed by this key");
        token
    }

    fn bytes(&self) -> Vec<u8> {
        let (prefix, cipher, aad) = sealing(self);
        let payload = Payload { msg: &self.plain, aad: &aad };
        let sealed = cipher.encrypt(&Nonce::from([7; 12]), payload).expect("sealed");
        [&[self.kind], &prefix[..], &[7; 12], &sealed].concat()
    }

    fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.bytes())
    }

    fn with(&self, change: impl FnOnce(&mut Token)) -> String {
        let mut token = self.clone();
        change(&mut token);
        token.text()
    }

    fn expiry(&self) -> u64 {
        u64::from_be_bytes(self.plain[20..28].try_into().expect("eight bytes"))
    }

    /// The same with another second of expiry.
    fn expiring(&self, at: u64) -> String {
        self.with(|token| token.plain[20..28].copy_from_slice(&at.to_be_bytes()))
    }
}

#[test]
fn what_is_changed_cut_expired_or_sealed_for_anything_else_is_refused() {
    let (smtp, api) = confirming(&[(KEYS, A)]);
    let ann = sign_up(&smtp, &api, "ann");
    begin(&api, "bob", "bob@example.com").expect(201);
    let good = token(&mail_to(&smtp, "bob@example.com", CONFIRM, 1));
    let opened = Token::open(&api, &good, A);
    assert_eq!(opened.kind, REGISTRATION);
    assert!((now() + 47 * 3600..=now() + 48 * 3600).contains(&opened.expiry()));
    api.update_me(&ann, json!({"email": "ann2@example.com"})).expect(200);
    let wish = token(&mail_to(&smtp, "ann2@example.com", CONFIRM, 1));
    let change = Token::open(&api, &wish, A);
    assert_eq!(change.kind, CHANGE);
    let reset = api.reset_token("ann@example.com");
    let sealed = api.new_second_factor(&ann, PASSWORD);
    api.login_with_code("ann", PASSWORD, &sealed.code()).expect(200);
    let sealed: Vec<u8> = api
        .database
        .value("SELECT second_factor_sealed FROM users WHERE second_factor_at IS NOT NULL");
    let refused = |text: &str, why: &str| {
        confirm(&api, text, PASSWORD).case(format!("{why}: {text}")).refused(400, REFUSED);
    };
    for (text, why) in [
        (String::new(), "nothing"),
        ("nonsense".to_owned(), "nonsense"),
        (ann.access.clone(), "an access token"),
        (ann.refresh.clone(), "a refresh token"),
        (reset, "a reset token"),
        (URL_SAFE_NO_PAD.encode(&sealed), "the sealed secret of a second factor"),
        (URL_SAFE_NO_PAD.encode([&[REGISTRATION], &sealed[..]].concat()), "the same of this kind"),
        (good.clone() + "x", "longer"),
        (good.clone() + "AAAA", "longer by whole bytes"),
        (good.clone() + "=", "padded"),
        (format!(" {good}"), "a blank"),
        (STANDARD.encode(opened.bytes()) + "+/", "the other alphabet"),
        (good.repeat(20), "many times"),
        ("A".repeat(100_000), "very long"),
        (opened.expiring(now()), "expired"),
        (opened.expiring(now() - 1), "expired for a second"),
        (opened.expiring(0), "expired long ago"),
        (opened.expiring(u64::MAX), "before 1970"),
        (opened.expiring(i64::MAX.unsigned_abs()), "after all time"),
        (opened.with(|token| token.kind = CHANGE), "of the other kind"),
        (change.with(|token| token.kind = REGISTRATION), "of the other kind, too"),
        (opened.with(|token| token.kind = 3), "of no kind"),
        (opened.with(|token| token.kind = 0), "of no kind, either"),
        (opened.with(|token| token.purpose.clear()), "for no purpose"),
        (opened.with(|token| token.installation = vec![0; 16]), "of another installation"),
        (opened.with(|token| token.key = B.to_owned()), "by another key"),
        (opened.with(|token| token.plain.truncate(28)), "without its texts"),
        (opened.with(|token| token.plain.truncate(27)), "without its times"),
        (opened.with(|token| token.plain.push(0)), "with another text"),
        (change.with(|token| token.plain.push(0)), "with another text, too"),
        (opened.with(|token| token.plain.clear()), "empty"),
        (opened.with(|token| token.plain[28] = 0xff), "with a text that is no UTF-8"),
    ] {
        refused(&text, why);
    }
    let bytes = opened.bytes();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        refused(&URL_SAFE_NO_PAD.encode(changed), "a bit");
    }
    for end in (0..good.len()).step_by(7) {
        refused(&good[..end], "cut");
    }
    // A token of a mail serves for nothing else.
    for token in [&good, &wish] {
        api.reset_password(token, NEW_PASSWORD).refused(400, REFUSED);
        api.refresh(token).expect(401);
        api.request("GET", "/auth/me")
            .header("Authorization", &format!("Bearer {token}"))
            .send()
            .refused(401, "Invalid token");
    }
    // What is sealed here as there is taken, also in the last seconds.
    confirm(&api, &opened.expiring(now() + 5), PASSWORD).expect(200);
    refused(&good, "used");
    confirm(&api, &change.text(), PASSWORD).expect(200);
    refused(&wish, "used");
    assert!(!api.log().contains(" 500 ") && !api.log().contains("panicked"), "{}", api.log());
}

#[test]
fn a_new_seal_key_is_added_last_and_then_made_the_first_and_no_link_is_lost() {
    let (smtp, api) = confirming(&[(KEYS, A)]);
    let begin = |api: &Server, name: &str| {
        begin(api, name, &format!("{name}@example.com")).expect(201);
        token(&mail_to(&smtp, &format!("{name}@example.com"), CONFIRM, 1))
    };
    let of_a = ["ann", "bob", "cyd"].map(|name| begin(&api, name));
    let added = confirming_beside(&smtp, &api, &[(KEYS, &[A, B].join(","))]);
    let keys = |keys: &[&str]| confirming_beside(&smtp, &added, &[(KEYS, &keys.join(","))]);
    let also_of_a = begin(&added, "dan");
    confirm(&api, &also_of_a, PASSWORD).expect(200);
    confirm(&added, &of_a[0], PASSWORD).expect(200);
    // The new one may seal once all processes open it: one that does not would drop the mail.
    api.end(Signal::TERM);
    let first = keys(&[B, A]);
    let of_b = ["eve", "fay"].map(|name| begin(&first, name));
    confirm(&added, &of_b[0], PASSWORD).expect(200);
    confirm(&first, &of_a[1], PASSWORD).expect(200);
    // Where the old one has gone, its links have, too.
    let alone = keys(&[B]);
    confirm(&alone, &of_a[2], PASSWORD).refused(400, REFUSED);
    confirm(&alone, &of_b[1], PASSWORD).expect(200);
    confirm(&added, &of_a[2], PASSWORD).expect(200);
    // A token is of one installation, whatever keys another one has.
    let other = Server::start(&[&REQUIRED[..], &[(KEYS, A)]].concat());
    let foreign = other.register("gus").expect(201);
    let foreign_id = foreign.id();
    let line = other.logged("e-mail confirmation token");
    let foreign = line.split_whitespace().last().expect("a token");
    confirm(&added, foreign, PASSWORD).refused(400, REFUSED);
    confirm(&other, foreign, PASSWORD).expect(200);
    assert_eq!(other.database.count(&format!("users WHERE id = '{foreign_id}'")), 1);
}
