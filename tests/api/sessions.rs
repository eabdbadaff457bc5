//! Refresh, reuse, logout.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::harness::{Answer, PASSWORD, Server, Tokens, parallel};
use crate::tokens::{now, sign};

fn refresh(server: &Server, token: &str) -> Answer {
    server.post("/auth/refresh", json!({"refresh_token": token}))
}

/// The claims of a token, unverified.
fn claims(token: &str) -> Value {
    let options = jwt_simple::prelude::VerificationOptions::default();
    let key = jwt_simple::prelude::HS256Key::from_bytes(crate::harness::SECRET.as_bytes());
    let claims =
        jwt_simple::prelude::MACLike::verify_token::<Value>(&key, token, Some(options)).unwrap();
    serde_json::to_value(claims).unwrap()
}

#[test]
fn tokens_carry_the_claims_of_the_contract() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    for (token, kind, lifetime) in
        [(&ann.access, "access", 3600), (&ann.refresh, "refresh", 7 * 86_400)]
    {
        let claims = claims(token);
        assert_eq!((&claims["sub"], &claims["username"]), (&ann.user["id"], &json!("ann")));
        assert_eq!((&claims["role"], &claims["type"]), (&json!("user"), &json!(kind)));
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), lifetime);
        assert!(
            claims["sid"].is_string() && claims["jti"].is_string() && claims.get("nbf").is_none(),
            "{claims}"
        );
    }
}

#[test]
fn a_refresh_token_comes_in_the_body_or_the_header_and_the_body_wins() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let header = |token: &str| server.api("POST", "/auth/refresh").bearer(token);
    let next = header(&ann.refresh).send().expect(200).tokens();
    assert_eq!(next.user["username"], "ann");
    let next =
        header("nonsense").json(json!({"refresh_token": next.refresh})).send().expect(200).tokens();
    let next =
        header(&next.refresh).json(json!({"refresh_token": null})).send().expect(200).tokens();
    let next = header(&next.refresh).json(json!({})).send().expect(200).tokens();
    server.get("/auth/me", &next.access).expect(200);
    header(&next.refresh)
        .json(json!({"refresh_token": "nonsense"}))
        .send()
        .refused(401, "Invalid token");
    header(&next.refresh)
        .json(json!({"refresh_token": 7}))
        .send()
        .invalid(&[("body.refresh_token", "string_type")]);
    server.api("POST", "/auth/refresh").send().refused(401, "Authentication required");
    server
        .api("POST", "/auth/refresh")
        .header("Authorization", "Basic x")
        .send()
        .refused(401, "Invalid authentication scheme");
    header(&next.access).send().refused(401, "Invalid token");
}

#[test]
fn twenty_parallel_refreshes_of_one_token_leave_one_live_chain() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let next: Vec<Tokens> = parallel(20, |_| refresh(&server, &ann.refresh).expect(200).tokens());
    let ids: HashSet<String> =
        next.iter().map(|tokens| claims(&tokens.refresh)["jti"].to_string()).collect();
    assert_eq!(ids.len(), 1, "all go on with one token: {ids:?}");
    for tokens in &next {
        server.get("/auth/me", &tokens.access).expect(200);
    }
    assert_eq!(server.database.value::<i64>("SELECT count(*) FROM sessions"), 1);
    let last = refresh(&server, &next[7].refresh).expect(200).tokens();
    refresh(&server, &last.refresh).expect(200);
}

#[test]
fn a_rotated_token_works_within_the_grace_and_goes_on_with_the_chain() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let second = refresh(&server, &ann.refresh).expect(200).tokens();
    let third = refresh(&server, &second.refresh).expect(200).tokens();
    let id = |token: &str| claims(token)["jti"].clone();
    for (token, reason) in
        [(&ann.refresh, "two rotations ago"), (&second.refresh, "one rotation ago")]
    {
        let again = refresh(&server, token).expect(200).tokens();
        assert_eq!(id(&again.refresh), id(&third.refresh), "{reason}");
    }
}

#[test]
fn a_refresh_token_used_again_after_the_grace_ends_its_session() {
    let server = Server::start(&[("CLOAKROOM_REFRESH_REUSE_SECONDS", "1")]);
    let (other, ann) = (server.sign_up("ann"), server.sign_in("ann"));
    let next = refresh(&server, &ann.refresh).expect(200).tokens();
    // The rotation is moved into the past instead of waiting for it.
    server.database.run(
        "UPDATE sessions SET rotated_at = array[now() - interval '2 s'] WHERE rotated_at <> '{}'",
    );
    refresh(&server, &ann.refresh).refused(401, "Invalid token");
    refresh(&server, &next.refresh).refused(401, "Invalid token");
    server.get("/auth/me", &next.access).refused(401, "Invalid token");
    server.get("/auth/me", &other.access).expect(200);
    assert!(server.log().contains("was used again"), "{}", server.log());
}

#[test]
fn a_forged_refresh_token_of_a_known_session_ends_it() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let mut forged = claims(&ann.refresh);
    forged["jti"] = json!("00000000-0000-4000-8000-000000000000");
    refresh(&server, &sign(forged)).refused(401, "Invalid token");
    refresh(&server, &ann.refresh).refused(401, "Invalid token");
    for (missing, reason) in [("sid", "no session"), ("jti", "no id")] {
        let mut forged = claims(&server.sign_in("ann").refresh);
        forged.as_object_mut().unwrap().remove(missing);
        assert_eq!(refresh(&server, &sign(forged)).status, 401, "{reason}");
    }
}

#[test]
fn an_expired_refresh_token_is_refused() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let mut expired = claims(&ann.refresh);
    expired["exp"] = json!(now() - 1);
    refresh(&server, &sign(expired)).refused(401, "Invalid token");
    refresh(&server, &ann.refresh).expect(200);
}

#[test]
fn logout_ends_what_its_scope_says() {
    let server = Server::start(&[]);
    server.sign_up("ann");
    // scope, and what is left of {the presented session, another one}
    for (query, mine, other) in [
        ("", 401, 401),
        ("?scope=all", 401, 401),
        ("?scope=local", 401, 200),
        ("?scope=others", 200, 401),
    ] {
        let (a, b) = (server.sign_in("ann"), server.sign_in("ann"));
        let answer = server
            .api("POST", &format!("/auth/logout{query}"))
            .bearer(&a.access)
            .send()
            .expect(204);
        assert!(answer.bytes.is_empty());
        for (tokens, status) in [(&a, mine), (&b, other)] {
            assert_eq!(server.get("/auth/me", &tokens.access).status, status, "{query}");
            assert_eq!(refresh(&server, &tokens.refresh).status, status, "{query}");
        }
    }
    let ann = server.sign_in("ann");
    let answer = server.api("POST", "/auth/logout?scope=some").bearer(&ann.access).send();
    let answer = answer.invalid(&[("query.scope", "enum")]);
    assert_eq!(answer.json()["detail"][0]["msg"], "Must be one of: all, local, others");
    server.get("/auth/me", &ann.access).expect(200);
}

#[test]
fn a_token_without_a_session_can_be_signed_out() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let foreign = || sign(json!({"sub": ann.id(), "iat": now(), "exp": now() + 600}));
    let (first, second) = (foreign(), foreign());
    server.api("POST", "/auth/logout?scope=others").bearer(&first).send().expect(204);
    server.get("/auth/me", &first).expect(200);
    server.get("/auth/me", &ann.access).refused(401, "Invalid token");
    let ann2 = server.sign_in("ann");
    server.api("POST", "/auth/logout?scope=local").bearer(&first).send().expect(204);
    server.get("/auth/me", &second).refused(401, "Invalid token");
    server.get("/auth/me", &ann2.access).expect(200);
}

#[test]
fn a_role_change_ends_sessions_and_two_processes_share_that() {
    let server = Server::start(&[]);
    let second = Server::start_on(&server.database, &[]);
    let ann = server.sign_up("ann");
    second.get("/auth/me", &ann.access).expect(200);
    second.api("POST", "/auth/logout").bearer(&ann.access).send().expect(204);
    server.get("/auth/me", &ann.access).refused(401, "Invalid token");
    refresh(&server, &ann.refresh).refused(401, "Invalid token");
    // create-admin is the one way to another role so far.
    let ann = server.sign_in("ann");
    let output = crate::harness::run(
        &server.database.url,
        &["create-admin", "--email", "ann@example.com"],
        &[("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)],
    );
    assert!(output.status.success(), "{output:?}");
    for process in [&server, &second] {
        process.get("/auth/me", &ann.access).refused(401, "Invalid token");
        refresh(process, &ann.refresh).refused(401, "Invalid token");
    }
    let ann = second.sign_in("ann");
    assert_eq!(server.get("/auth/me", &ann.access).expect(200).json()["role"], "admin");
}

#[test]
fn access_tokens_live_as_long_as_the_settings_say() {
    for name in ["CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES", "ACCESS_TOKEN_EXPIRE_MINUTES"] {
        let server = Server::start(&[(name, "15")]);
        server.sign_up("ann");
        let body = server
            .post("/auth/login", json!({"username": "ann", "password": PASSWORD}))
            .expect(200)
            .json();
        assert_eq!(body["expires_in"], 900);
    }
}

#[test]
fn what_has_expired_is_swept_at_start() {
    let server = Server::start(&[]);
    server.sign_up("ann");
    server.sign_in("ann");
    server.database.run(
        "UPDATE sessions SET ended_at = now(), expires_at = now() - interval '1 s'
         WHERE id = (SELECT id FROM sessions LIMIT 1)",
    );
    let _second = Server::start_on(&server.database, &[]);
    crate::harness::eventually(|| {
        (server.database.value::<i64>("SELECT count(*) FROM sessions") == 1).then_some(())
    });
}
