//! Access tokens: which are accepted and which are refused. `auth/jwt.rs` has keys, algorithms, types and expiry.

use crate::harness::*;

/// The `WWW-Authenticate` of an answer to a request whose token is not accepted.
pub fn challenge(description: &str) -> String {
    format!("Bearer error=\"invalid_token\", error_description=\"{description}\"")
}

#[test]
fn authorization_is_two_words() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let me = |value: &str| api.request("GET", "/auth/me").header("Authorization", value).send();
    api.me(Anonymous).refused(401, "Authentication required");
    let not_ours = &challenge("malformed or not ours");
    for (value, message, expected) in [
        ("", "Authentication required", "Bearer"),
        ("Basic YTpi", "Invalid authentication scheme", "Bearer"),
        (&ann.access, "Invalid authentication scheme", "Bearer"),
        ("Bearer", "Invalid authorization header format", "Bearer"),
        (&format!("Bearer {} more", ann.access), "Invalid authorization header format", "Bearer"),
        ("Bearer nonsense", "Invalid token", not_ours),
        ("Bearer a.b.c", "Invalid token", not_ours),
        (&format!("Bearer {}", "x".repeat(5000)), "Invalid token", not_ours),
    ] {
        let answer =
            me(value).case(value).refused(401, message).has(json!({"error_code": "UNAUTHORIZED"}));
        assert_eq!(answer.header("WWW-Authenticate"), expected, "{value}");
    }
    me(&format!("bEARER {}", ann.access)).expect(200);
}

#[test]
fn forged_and_expired_tokens_are_refused() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let good = json!({"sub": ann.id(), "username": "ann", "role": "user", "iat": now(), "exp": now() + 600});
    let with = |name: &str, value| sign(with_member(&good, name, value));
    let without = |name: &str| sign(without_member(&good, name));
    let payload = ann.access.split('.').nth(1).unwrap();
    let (not_ours, not_access) = ("malformed or not ours", "not an access token");
    let (expired, ended) = ("expired", "session ended");
    for (token, description, reason) in [
        (format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{payload}."), not_ours, "alg: none"),
        (format!("eyJhbGciOiJOT05FIn0.{payload}."), not_ours, "alg: NONE"),
        (ann.access[..ann.access.len() - 1].to_owned(), not_ours, "cut short"),
        (with("exp", json!(now() - 1)), expired, "expired by a second"),
        (without("exp"), not_ours, "no expiry"),
        (without("sub"), not_ours, "no subject"),
        (with("sub", json!("ann")), not_ours, "a subject that is no UUID"),
        (with("type", json!("password_reset")), not_access, "a reset token"),
        (with("type", json!("other")), not_ours, "an unknown type"),
        (with("role", json!("root")), not_ours, "an unknown role"),
        (with("sid", json!("session")), not_ours, "a session that is no UUID"),
        (with("sid", json!(UNKNOWN_ID)), ended, "an unknown session"),
        (with("nbf", json!(now() + 300)), not_ours, "good only in five minutes"),
        (ann.refresh.clone(), not_access, "a refresh token of the server itself"),
    ] {
        let answer = api.me(&token).case(reason).refused(401, "Invalid token");
        assert_eq!(answer.header("WWW-Authenticate"), challenge(description), "{reason}");
    }
    let answer = api.me(with("sub", json!(UNKNOWN_ID)));
    let answer = answer.refused(401, "User not found or inactive");
    assert_eq!(answer.header("WWW-Authenticate"), challenge(ended));
    for (token, role, reason) in [
        (sign(good.clone()), "user", "no type and no session"),
        (without("role"), "user", "no role"),
        (with("role", json!("admin")), "admin", "another role than the account's"),
        (with("type", json!("access")), "user", "with a type"),
        (with("nbf", json!(now() - 1)), "user", "good since a second ago"),
        (with("nbf", json!(now() + 50)), "user", "good in 50 seconds, within the tolerance"),
    ] {
        api.me(&token).case(reason).expect(200).has(json!({"role": role}));
    }
}

/// Other spellings of the same bytes: Base64 leaves bits of its last character unused, and may be padded.
fn other_spellings(token: &str) -> Vec<String> {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (start, last) = token.split_at(token.len() - 1);
    let value = ALPHABET.find(last).expect("a character of Base64");
    let unused = (0..4).map(|bits| value & !3 | bits).filter(|other| *other != value);
    let unused = unused.map(|other| format!("{start}{}", &ALPHABET[other..=other]));
    let standard = token.replace('-', "+").replace('_', "/");
    let padded = ["=", "==", "%3D", "."].map(|end| format!("{token}{end}"));
    unused.chain(padded).chain([standard]).filter(|other| other != token).collect()
}

#[test]
fn no_spelling_of_a_token_is_accepted_but_its_own_and_that_ends_with_its_session() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    // Its signature is known from here on.
    api.me(&ann).expect(200);
    let (access, refresh) = (other_spellings(&ann.access), other_spellings(&ann.refresh));
    assert!(access.len() >= 7, "{access:?}");
    for is_over in [false, true] {
        if is_over {
            api.logout(&ann).expect(204);
            api.me(&ann).refused(401, "Invalid token");
        }
        access.iter().for_each(|token| drop(api.me(token).refused(401, "Invalid token")));
        refresh.iter().for_each(|token| drop(api.refresh(token).refused(401, "Invalid token")));
    }
}

#[test]
fn a_refused_token_is_described_wherever_it_is_sent() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let description = |answer: Answer, expected: &str| {
        let answer = answer.refused(401, "Invalid token");
        assert_eq!(answer.header("WWW-Authenticate"), challenge(expected), "{answer:?}");
    };
    let in_header = |token: &str| api.request("POST", "/auth/refresh").by(token).send();
    description(api.refresh("nonsense"), "malformed or not ours");
    description(api.refresh(&ann.access), "not a refresh token");
    description(in_header(&ann.access), "not a refresh token");
    let refresh = claims(&ann.refresh);
    description(api.refresh(&sign(with_member(&refresh, "exp", now() - 1))), "expired");
    for missing in ["sid", "jti"] {
        description(api.refresh(&sign(without_member(&refresh, missing))), "malformed or not ours");
    }

    api.logout(&ann).expect(204);
    description(api.me(&ann), "session ended");
    description(api.refresh(&ann.refresh), "session ended");

    for answer in [
        api.login("ann", "wrong horse").refused(401, "Invalid username or password"),
        api.request("POST", "/auth/refresh").send().refused(401, "Authentication required"),
    ] {
        assert_eq!(answer.header("WWW-Authenticate"), "Bearer", "{answer:?}");
    }
}

#[test]
fn longer_algorithms_work_from_end_to_end() {
    for algorithm in ["HS384", "HS512"] {
        let (api, [ann]) = Server::with_users(&[("CLOAKROOM_JWT_ALGORITHM", algorithm)], ["ann"]);
        assert_eq!(header(&ann.access).algorithm(), algorithm);
        api.me(&ann).expect(200);
        let shorter = sign(json!({"sub": ann.id(), "exp": now() + 600}));
        api.me(&shorter).refused(401, "Invalid token");
    }
}
