//! Access tokens: what is taken and what is refused.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jwt_simple::prelude::{HS256Key, HS512Key, MACLike};
use serde_json::{Value, json};

use crate::harness::{SECRET, Server};

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// A token with exactly these claims, signed with the tests' secret.
pub fn sign(claims: Value) -> String {
    sign_with(&HS256Key::from_bytes(SECRET.as_bytes()), claims)
}

fn sign_with(key: &impl MACLike, claims: Value) -> String {
    key.authenticate(
        serde_json::from_value::<jwt_simple::prelude::JWTClaims<Value>>(claims).unwrap(),
    )
    .unwrap()
}

#[test]
fn authorization_is_two_words() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let me = |value: &str| server.api("GET", "/auth/me").header("Authorization", value).send();
    server.api("GET", "/auth/me").send().refused(401, "Authentication required");
    for (value, message) in [
        ("", "Authentication required"),
        ("Basic YTpi", "Invalid authentication scheme"),
        (&*ann.access, "Invalid authentication scheme"),
        ("Bearer", "Invalid authorization header format"),
        (&*format!("Bearer {} more", ann.access), "Invalid authorization header format"),
        ("Bearer nonsense", "Invalid token"),
        ("Bearer a.b.c", "Invalid token"),
        (&*format!("Bearer {}", "x".repeat(5000)), "Invalid token"),
    ] {
        let answer = me(value).refused(401, message);
        assert_eq!(answer.header("WWW-Authenticate"), "Bearer", "{value}");
        assert_eq!(answer.json()["error_code"], "UNAUTHORIZED");
    }
    me(&format!("bEARER {}", ann.access)).expect(200);
}

#[test]
fn forged_and_expired_tokens_are_refused() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let sub = ann.id();
    let good =
        json!({"sub": sub, "username": "ann", "role": "user", "iat": now(), "exp": now() + 60});
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    let without = |name: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().remove(name);
        claims
    };
    let payload = ann.access.split('.').nth(1).unwrap();
    let other_secret = HS256Key::from_bytes(b"another-secret-0123456789abcdef-0123456789abcdef");
    for (token, reason) in [
        (format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{payload}."), "alg: none"),
        (format!("eyJhbGciOiJOT05FIn0.{payload}."), "alg: NONE"),
        (sign_with(&HS512Key::from_bytes(SECRET.as_bytes()), good.clone()), "another algorithm"),
        (sign_with(&other_secret, good.clone()), "another secret"),
        (ann.access[..ann.access.len() - 1].to_owned(), "cut short"),
        (sign(with("exp", json!(now() - 1))), "expired by a second"),
        (sign(with("exp", json!(now()))), "expires now"),
        (sign(without("exp")), "no end"),
        (sign(without("sub")), "nobody"),
        (sign(with("sub", json!("ann"))), "no UUID"),
        (sign(with("type", json!("refresh"))), "a refresh token"),
        (sign(with("type", json!("password_reset"))), "a reset token"),
        (sign(with("type", json!("other"))), "an unknown type"),
        (sign(with("role", json!("root"))), "an unknown role"),
        (sign(with("sid", json!("session"))), "a session that is no UUID"),
        (sign(with("sid", json!("00000000-0000-4000-8000-000000000000"))), "an unknown session"),
        (ann.refresh.clone(), "our own refresh token"),
    ] {
        let answer = server.get("/auth/me", &token);
        assert_eq!(
            (answer.status, &answer.json()["detail"]),
            (401, &json!("Invalid token")),
            "{reason}"
        );
    }
    let nobody = sign(with("sub", json!("00000000-0000-4000-8000-000000000000")));
    server.get("/auth/me", &nobody).refused(401, "User not found or inactive");
    for (token, reason) in [
        (sign(good.clone()), "no type and no session"),
        (sign(without("role")), "no role"),
        (sign(with("iat", json!(now() + 300))), "a clock ahead of ours"),
        (sign(with("type", json!("access"))), "with a type"),
    ] {
        assert_eq!(server.get("/auth/me", &token).status, 200, "{reason}");
    }
}

#[test]
fn the_session_of_another_user_does_not_help() {
    let server = Server::start(&[]);
    let (ann, bo) = (server.sign_up("ann"), server.sign_up("bob"));
    let session: String = server
        .database
        .value(&format!("SELECT id::text FROM sessions WHERE user_id = '{}'", bo.id()));
    let token = sign(json!({"sub": ann.id(), "iat": now(), "exp": now() + 60, "sid": session}));
    server.get("/auth/me", &token).refused(401, "Invalid token");
}

#[test]
fn the_role_of_the_token_is_the_role_of_the_request() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let token = sign(json!({"sub": ann.id(), "role": "admin", "iat": now(), "exp": now() + 60}));
    assert_eq!(server.get("/auth/me", &token).expect(200).json()["role"], "admin");
    assert_eq!(server.get("/auth/me", &ann.access).expect(200).json()["role"], "user");
}

#[test]
fn longer_algorithms_work_from_end_to_end() {
    for (algorithm, header) in [
        ("HS384", "eyJhbGciOiJIUzM4NCIsInR5cCI6IkpXVCJ9"),
        ("HS512", "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9"),
    ] {
        let server = Server::start(&[("CLOAKROOM_JWT_ALGORITHM", algorithm)]);
        let ann = server.sign_up("ann");
        assert!(ann.access.starts_with(header), "{}", ann.access);
        server.get("/auth/me", &ann.access).expect(200);
        server
            .get("/auth/me", &sign(json!({"sub": ann.id(), "exp": now() + 60})))
            .refused(401, "Invalid token");
    }
}

#[test]
fn a_token_without_a_session_dies_when_all_sessions_end() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let token = |iat: u64| sign(json!({"sub": ann.id(), "iat": iat, "exp": now() + 600}));
    let old = token(now() - 5);
    server.get("/auth/me", &old).expect(200);
    server.api("POST", "/auth/logout").bearer(&ann.access).send().expect(204);
    server.get("/auth/me", &old).refused(401, "Invalid token");
    server
        .get("/auth/me", &sign(json!({"sub": ann.id(), "exp": now() + 600})))
        .refused(401, "Invalid token");
    let ended: i64 = server
        .database
        .value("SELECT floor(extract(epoch FROM sessions_ended_at))::bigint FROM users");
    server.get("/auth/me", &token(ended as u64)).refused(401, "Invalid token");
    server.get("/auth/me", &token(ended as u64 + 1)).expect(200);
}
