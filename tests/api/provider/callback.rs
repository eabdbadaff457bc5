//! The way back from the provider: the state, and the ID token.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jwt_simple::prelude::KeyMetadata;
use sha2::{Digest, Sha256};

use crate::harness::*;

#[test]
fn a_state_is_good_once_in_its_browser() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let beside = api.beside(&provider_settings(&provider.issuer()));
    let departure = api.depart("");
    let (query, cookie) = (provider.authorize(&departure), &departure.cookie);
    // Another browser, and one that has a cookie of another way.
    assert_eq!(api.come_back(&query, ""), "error=expired");
    let other = api.depart("");
    let name = cookie.split('=').next().expect("a name");
    let value = other.cookie.split_once('=').expect("a value").1;
    assert_eq!(api.come_back(&query, &format!("{name}={value}")), "error=expired");
    assert_eq!(api.come_back(&query, &format!("{cookie}x")), "error=expired");
    assert_eq!(api.come_back("code=x", cookie), "error=invalid");
    assert_eq!(provider.count("/token"), 0);
    // Of twenty at once, over two processes, one gets a code, and the provider is asked once.
    let found = parallel(20, |i| [&api, &beside][i % 2].come_back(&query, cookie));
    let codes = found.iter().filter(|fragment| fragment.starts_with("code=")).count();
    let expired = found.iter().filter(|fragment| *fragment == "error=expired").count();
    assert_eq!((codes, expired, provider.count("/token")), (1, 19, 1), "{found:?}");
    // The cookie ends with each answer, unless the state is made up.
    let made_up = format!("/auth/oidc/callback?code=x&state={}", "a".repeat(43));
    let answer = api.request("GET", &made_up).header("Cookie", cookie).send();
    assert!(!answer.has_header("Set-Cookie"), "{answer:?}");
    let path = format!("/auth/oidc/callback?{query}");
    let answer = api.request("GET", &path).header("Cookie", cookie).send();
    assert!(answer.header("Set-Cookie").starts_with(&format!("{name}=; Path=/; Max-Age=0;")));
}

#[test]
fn the_page_is_told_where_one_signs_out_at_the_provider() {
    let provider = OpenIdProvider::start();
    let end = json!(format!("{}/out?a=b", provider.issuer()));
    provider.with(|state| state.document.insert("end_session_endpoint".to_owned(), end));
    let api = provider.service(&[]);
    let departure = api.depart("");
    let fragment = api.come_back(&provider.authorize(&departure), &departure.cookie);
    let (_, end) = fragment.split_once("&end=http%3A%2F%2F127%2E0%2E0%2E1%3A").expect(&fragment);
    let client = "%26client%5Fid%3Dcloakroom%2B%2526%2Bco";
    assert!(end.ends_with(&format!("%2Fout%3Fa%3Db{client}")), "{end}");
}

#[test]
fn a_way_ends_after_ten_minutes_and_a_state_is_remembered_for_longer() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let departure = api.depart("");
    let query = provider.authorize(&departure);
    assert!(api.come_back(&query, &departure.cookie).starts_with("code="));
    api.database.run("UPDATE provider_sign_ins SET used_at = now() - interval '14 minutes'");
    assert_eq!(api.come_back(&query, &departure.cookie), "error=expired");
}

#[test]
fn an_id_token_that_breaks_one_rule_is_refused() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let good = ["exact", "leeway"];
    for (case, name, value) in [
        ("exact", "aud", json!([CLIENT_ID])),
        ("exact", "azp", json!(CLIENT_ID)),
        ("exact", "aud", json!(["other", CLIENT_ID, "more"])),
        ("leeway", "exp", json!(now() - 30)),
        ("leeway", "iat", json!(now() + 30)),
        ("leeway", "iat", json!(now() - 590)),
        ("another issuer", "iss", json!("https://login.example.com")),
        ("the issuer with a slash", "iss", json!(format!("{}/", provider.issuer()))),
        ("no issuer", "iss", Value::Null),
        ("another audience", "aud", json!("other")),
        ("an additional audience", "aud", json!([CLIENT_ID, "other"])),
        ("no audience", "aud", Value::Null),
        ("an empty audience", "aud", json!([])),
        ("another party", "azp", json!("other")),
        ("a party that is no text", "azp", json!(1)),
        ("expired", "exp", json!(now() - 90)),
        ("no expiry", "exp", Value::Null),
        ("issued later", "iat", json!(now() + 90)),
        ("issued long ago", "iat", json!(now() - 700)),
        ("not issued", "iat", Value::Null),
        ("not valid yet", "nbf", json!(now() + 90)),
        ("another nonce", "nonce", json!("other")),
        ("no nonce", "nonce", Value::Null),
        ("no subject", "sub", Value::Null),
        ("an empty subject", "sub", json!("")),
        ("a long subject", "sub", json!("a".repeat(256))),
        ("a subject with NUL", "sub", json!("a\0b")),
    ] {
        provider.with(|state| state.claims.clear());
        if value.as_array().is_some_and(|all| all.len() > 1) && case == "exact" {
            provider.claim("azp", CLIENT_ID);
        }
        provider.claim(name, value);
        match good.contains(&case) {
            true => drop(api.provider_code(&provider, "")),
            false => assert_eq!(api.provider_error(&provider, ""), "invalid", "{case}"),
        }
    }
    provider.with(|state| state.claims.clear());
    // A token of an earlier sign-in, and others that no key has signed.
    let claims = json!({"iss": provider.issuer(), "sub": "ann", "aud": CLIENT_ID, "iat": now(), "exp": now() + 300});
    let signed = provider.with(|state| state.key.sign(state.key_id.as_deref(), &claims));
    let parts: Vec<&str> = signed.split('.').collect();
    for token in [
        signed.clone(),
        format!("{}.{}.", parts[0], parts[1]),
        format!("eyJhbGciOiJub25lIn0.{}.", parts[1]),
        sign(claims.clone()),
        String::new(),
        "a.b.c".to_owned(),
        "x".repeat(100_000),
    ] {
        provider.with(|state| state.token = Some(token));
        assert_eq!(api.provider_error(&provider, ""), "invalid");
    }
}

/// A signature is verified also where all claims are right.
#[test]
fn keys_are_chosen_by_id_or_as_the_only_one() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    api.provider_code(&provider, "");
    // A key that only claims to be the known one.
    let (own, other) = (provider.with(|state| state.key.clone()), ProviderKey::new());
    provider.with(|state| state.key = other.clone());
    assert_eq!(api.provider_error(&provider, ""), "invalid");
    // One that is new, and for which nobody asks within a minute of the last time.
    let fetches = || provider.count("/keys");
    provider.with(|state| {
        state.key_id = Some("second".to_owned());
        state.keys.push(other.public(json!({"kid": "second"})));
    });
    assert_eq!(api.provider_error(&provider, ""), "invalid");
    assert_eq!(fetches(), 1);
    for (case, keys, id, key, expected) in [
        ("one of two by its id", vec![("a", json!({})), ("b", json!({}))], Some("b"), "b", true),
        ("the only one", vec![("b", json!({}))], None, "b", true),
        ("two fit", vec![("a", json!({})), ("b", json!({}))], None, "b", false),
        ("for encryption", vec![("b", json!({"use": "enc"}))], None, "b", false),
        ("of another algorithm", vec![("b", json!({"alg": "RS256"}))], None, "b", false),
    ] {
        let find = |name: &str| if name == "a" { own.clone() } else { other.clone() };
        provider.with(|state| {
            state.key = find(key);
            state.key_id = id.map(str::to_owned);
            let public = |(name, more): &(&str, Value)| {
                let mut key = find(name).public(more.clone());
                key["kid"] = json!(name);
                key
            };
            state.keys = keys.iter().map(public).collect();
        });
        let api = api.beside(&provider_settings(&provider.issuer()));
        let departure = api.depart("");
        let fragment = api.come_back(&provider.authorize(&departure), &departure.cookie);
        assert_eq!(fragment.starts_with("code="), expected, "{case}: {fragment}");
    }
    for key in ProviderKey::others() {
        provider.with(|state| {
            state.keys = vec![key.public(json!({"kid": "rsa"}))];
            (state.key, state.key_id) = (key, Some("rsa".to_owned()));
        });
        let api = api.beside(&provider_settings(&provider.issuer()));
        api.provider_code(&provider, "");
        // Its public key as a shared secret.
        provider.with(|state| state.token = Some(sign(json!({"iss": provider_issuer(state)}))));
        assert_eq!(api.provider_error(&provider, ""), "invalid");
        provider.with(|state| state.token = None);
    }
}

fn provider_issuer(state: &ProviderState) -> String {
    state.claims.get("iss").map(Value::to_string).unwrap_or_default()
}

#[test]
fn a_new_key_is_fetched_at_most_once_a_minute() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let begin = Instant::now();
    api.provider_code(&provider, "");
    let new = ProviderKey::new();
    provider.with(|state| {
        state.keys = vec![new.public(json!({"kid": "second"}))];
        (state.key, state.key_id) = (new.clone(), Some("second".to_owned()));
    });
    let come_back = || {
        let departure = api.depart("");
        api.come_back(&provider.authorize(&departure), &departure.cookie)
    };
    for _ in 0..5 {
        assert_eq!(come_back(), "error=invalid");
    }
    assert_eq!(provider.count("/keys"), 1);
    wait_until(|| {
        thread::sleep(Duration::from_secs(1)); // each look is a whole sign-in
        come_back().starts_with("code=")
    });
    assert_eq!(provider.count("/keys"), 2);
    assert!(begin.elapsed() >= Duration::from_secs(59), "{:?}", begin.elapsed());
}

/// A key that replaces another under the same id, or without one, is found by the signature that is wrong by the old.
#[test]
fn a_key_without_an_id_may_be_another_one_by_now() {
    parallel(2, |i| {
        let (provider, id) = (OpenIdProvider::start(), [None, Some("same")][i]);
        let publish = |key: &ProviderKey| {
            let public = key.public(id.map_or(json!({}), |id| json!({"kid": id})));
            provider.with(|state| {
                state.keys = vec![public];
                (state.key, state.key_id) = (key.clone(), id.map(str::to_owned));
            });
        };
        publish(&ProviderKey::new());
        let api = provider.service(&[]);
        api.provider_code(&provider, "");
        publish(&ProviderKey::new());
        wait_until(|| {
            thread::sleep(Duration::from_secs(1)); // each look is a whole sign-in
            let departure = api.depart("");
            api.come_back(&provider.authorize(&departure), &departure.cookie).starts_with("code=")
        });
    });
}

#[test]
fn a_token_does_not_say_where_its_key_is() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let other = ProviderKey::new();
    let url = format!("{}/other-keys", provider.issuer());
    let keys = json!({"keys": [other.public(json!({}))]}).to_string().into_bytes();
    provider.reply("/other-keys", Reply::With(200, String::new(), keys));
    let departure = api.depart("");
    let claims = json!({
        "iss": provider.issuer(), "sub": "ann", "aud": CLIENT_ID, "iat": now(), "exp": now() + 300,
        "nonce": departure.query["nonce"],
    });
    let more = KeyMetadata::default().with_key_set_url(&url).with_certificate_url(&url);
    let token = other.sign_with(&more, &claims);
    provider.with(|state| state.token = Some(token));
    let query = provider.authorize(&departure);
    assert_eq!(api.come_back(&query, &departure.cookie), "error=invalid");
    assert_eq!(provider.count("/other-keys"), 0);
    // With the key of the provider these claims are good.
    let departure = api.depart("");
    let claims = with_member(&claims, "nonce", departure.query["nonce"].as_str());
    provider.with(|state| state.token = Some(state.key.sign(None, &claims)));
    let query = provider.authorize(&departure);
    assert!(api.come_back(&query, &departure.cookie).starts_with("code="));
}

/// What the service seals, by the key of the settings of tests.
fn sealed(purpose: &[u8], plain: &[u8]) -> String {
    let derive = |label: &[u8]| Sha256::digest([label, SECRET.as_bytes()].concat());
    let id = derive(b"cloakroom sealing key id:");
    let (prefix, nonce) = ([&[1][..], &id[..8]].concat(), [7; 12]);
    let aad = [&prefix[..], purpose].concat();
    let cipher = Aes256Gcm::new(&derive(b"cloakroom sealing key:"));
    let payload = Payload { msg: plain, aad: &aad };
    let text = cipher.encrypt(&Nonce::from(nonce), payload).expect("a text");
    BASE64_URL_SAFE_NO_PAD.encode([&prefix[..], &nonce, &text].concat())
}

#[test]
fn a_cookie_is_good_for_ten_minutes_and_one_issuer() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let purpose = &b"cloakroom sign-in by an OpenID provider"[..];
    let secret = [5; 32];
    let of =
        |label: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest([label, &secret].concat()));
    for (purpose, age, issuer, expected) in [
        (purpose, 30, provider.issuer(), "code="),
        (purpose, 590, provider.issuer(), "code="),
        (purpose, 601, provider.issuer(), "error=expired"),
        (purpose, 30, "https://login.example.com".to_owned(), "error=invalid"),
        (b"another purpose", 30, provider.issuer(), "error=expired"),
    ] {
        let challenge = challenge_of(VERIFIER);
        let (began, texts) = ((now() - age).to_be_bytes(), format!("{challenge}{issuer}"));
        let plain = [&secret[..], &began, &[0], texts.as_bytes()].concat();
        let departure = api.depart("");
        let (state, nonce) = (of(b"state"), of(b"nonce"));
        let mut departure = Departure { cookie: String::new(), ..departure };
        departure.query.insert("nonce".to_owned(), nonce);
        departure.query.insert("code_challenge".to_owned(), challenge_of(&of(b"verifier")));
        departure.query.insert("state".to_owned(), state.clone());
        let name = format!("oidc-{:x}", Sha256::digest(&state)[0] >> 4);
        let cookie = format!("{name}={}", sealed(purpose, &plain));
        let fragment = api.come_back(&provider.authorize(&departure), &cookie);
        assert!(fragment.starts_with(expected), "{age} {issuer}: {fragment}");
        // The same state again.
        api.database.run("DELETE FROM provider_sign_ins");
    }
}

#[test]
fn a_fresh_sign_in_is_proven_by_auth_time() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    for (auth_time, is_good) in [
        (json!(now()), true),
        (json!(now() - 240), true),
        (json!(now() as f64 - 0.25), true),
        (json!(now() as f64 - 280.5), true),
        (json!(now() - 360), false),
        (json!(-1e300), false),
        (json!(1e300), false),
        (json!(now() + 120), false),
        (json!("now"), false),
        (Value::Null, false),
    ] {
        provider.claim("auth_time", auth_time.clone());
        let departure = api.depart("&again=1");
        let fragment = api.come_back(&provider.authorize(&departure), &departure.cookie);
        let expected = if is_good { "code=" } else { "error=invalid" };
        assert!(fragment.starts_with(expected), "{auth_time}: {fragment}");
    }
    // It matters only then.
    api.provider_code(&provider, "");
}

#[test]
fn the_issuer_of_an_answer_is_compared() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    let issuer = provider.issuer();
    let come_back = |api: &Server, more: &str| {
        let departure = api.depart("");
        api.come_back(&format!("{}{more}", provider.authorize(&departure)), &departure.cookie)
    };
    assert!(come_back(&api, &format!("&iss={issuer}")).starts_with("code="));
    assert_eq!(come_back(&api, "&iss=https://login.example.com"), "error=invalid");
    assert_eq!(come_back(&api, "&iss="), "error=invalid");
    let promise = "authorization_response_iss_parameter_supported";
    provider.with(|state| state.document.insert(promise.to_owned(), json!(true)));
    let api = api.beside(&provider_settings(&issuer));
    assert_eq!(come_back(&api, ""), "error=invalid");
    assert!(come_back(&api, &format!("&iss={issuer}")).starts_with("code="));
}

#[test]
fn the_client_is_authenticated_as_discovery_says() {
    let provider = OpenIdProvider::start();
    let issuer = provider.issuer();
    for (methods, in_body) in [
        (Value::Null, false),
        (json!(["client_secret_post"]), true),
        (json!(["client_secret_post", "client_secret_basic"]), false),
        (json!(["private_key_jwt"]), false),
    ] {
        let name = "token_endpoint_auth_methods_supported".to_owned();
        provider.with(|state| state.document.insert(name, methods.clone()));
        let api = Server::start(&provider_settings(&issuer));
        api.provider_code(&provider, "");
        let (head, body) = provider.with(|state| {
            state.requests.iter().rfind(|(head, _)| head.contains("/token")).cloned().expect("one")
        });
        let head = head.to_lowercase();
        assert_eq!(head.contains("authorization: basic"), !in_body, "{methods}");
        assert_eq!(body.contains("client_secret="), in_body, "{methods}");
    }
}

#[test]
fn what_the_provider_says_of_an_attempt_is_told_in_few_words() {
    let provider = OpenIdProvider::start();
    let api = provider.service(&[]);
    for (answer, reason) in [
        ("error=access_denied", "denied"),
        ("error=login_required&error_description=%3Cb%3E", "denied"),
        ("error=server_error", "unavailable"),
        ("error=temporarily_unavailable", "unavailable"),
        ("", "invalid"),
        ("code=", "invalid"),
        ("code=not-a-code", "invalid"),
        ("code=%ff", "invalid"),
    ] {
        let departure = api.depart("");
        let query = format!("{answer}&state={}", departure.query["state"]);
        assert_eq!(api.come_back(&query, &departure.cookie), format!("error={reason}"), "{answer}");
    }
    // What people know the identity by is shown as text, and cleaned.
    provider.claim("name", "A \u{202e}<b>&#\n");
    let departure = api.depart("");
    let fragment = api.come_back(&provider.authorize(&departure), &departure.cookie);
    let (_, name) = fragment.split_once("&name=").expect("a name");
    assert_eq!(name, "A%20%3Cb%3E%26%23");
    let codes: BTreeSet<_> = (0..3).map(|_| api.provider_code(&provider, "")).collect();
    assert_eq!(codes.len(), 3);
}
