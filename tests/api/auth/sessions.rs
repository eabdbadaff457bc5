//! Refresh, reuse of refresh tokens, logout.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::harness::*;

#[test]
fn tokens_carry_the_claims_of_their_kind() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    for (token, kind, lifetime) in
        [(&ann.access, "access", 3600), (&ann.refresh, "refresh", 7 * 86_400)]
    {
        let claims = claims(token);
        assert_eq!((&claims["sub"], &claims["username"]), (&ann.user["id"], &json!("ann")));
        assert_eq!((&claims["role"], &claims["type"]), (&json!("user"), &json!(kind)));
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), lifetime);
        assert!(claims["sid"].is_string() && claims["jti"].is_string(), "{claims}");
        assert!(claims.get("nbf").is_none(), "{claims}");
    }
}

#[test]
fn a_refresh_token_comes_in_the_body_or_the_header_and_the_body_wins() {
    let api = Server::start(&[]);
    let mut tokens = api.sign_up("ann");
    let request = || api.request("POST", "/auth/refresh");
    // Each row rotates the token: the header (`TOKEN` stands for it), the body and the reason.
    for (header, body, reason) in [
        ("TOKEN", None, "header only"),
        ("nonsense", Some("TOKEN"), "the body wins"),
        ("TOKEN", Some("null"), "null is the same as absent"),
        ("TOKEN", Some(""), "no field in the body"),
    ] {
        let header = header.replace("TOKEN", &tokens.refresh);
        let request = match body {
            None => request().by(header),
            Some("") => request().by(header).json(json!({})),
            Some("null") => request().by(header).json(json!({"refresh_token": null})),
            Some(_) => request().by(header).json(json!({"refresh_token": tokens.refresh})),
        };
        tokens = request.send().case(reason).expect(200).tokens();
        assert_eq!(tokens.user["username"], "ann");
    }
    api.me(&tokens).expect(200);
    let with_body =
        |token: Value| request().by(&tokens.refresh).json(json!({ "refresh_token": token })).send();
    with_body(json!("nonsense")).refused(401, "Invalid token");
    with_body(json!(7)).invalid(&[("body.refresh_token", "string_type")]);
    request().send().refused(401, "Authentication required");
    let basic = request().header("Authorization", "Basic x");
    basic.send().refused(401, "Invalid authentication scheme");
    request().by(&tokens.access).send().refused(401, "Invalid token");
}

#[test]
fn a_refresh_token_may_come_in_a_form_and_an_unreadable_body_does_not_matter_beside_a_header() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let form = "application/x-www-form-urlencoded";
    let send = |header: Option<&str>, content_type: &str, body: Vec<u8>| {
        let request = api.request("POST", "/auth/refresh").header("Content-Type", content_type);
        let request = match header {
            Some(token) => request.by(token.to_owned()),
            None => request,
        };
        request.body(body).send()
    };
    let in_form = format!("grant_type=refresh_token&refresh_token={}", ann.refresh);
    send(None, form, in_form.clone().into()).expect(200);
    send(Some("nonsense"), form, in_form.into()).case("the form wins").expect(200);
    let json = json!({"refresh_token": ann.refresh}).to_string();
    send(None, form, json.into()).case("JSON that claims to be a form").expect(200);
    send(Some(&ann.refresh), form, "refresh_token=nonsense".into()).refused(401, "Invalid token");
    send(Some(&ann.refresh), form, "grant_type=refresh_token".into()).expect(200);
    for (body, reason) in [
        (b"{".to_vec(), "not JSON"),
        (b"\xff".to_vec(), "not UTF-8"),
        (b"[]".to_vec(), "not an object"),
        (vec![b' '; 200_000], "too long"),
    ] {
        let answer = send(Some(&ann.refresh), "application/json", body.clone()).case(reason);
        answer.expect(200).tokens();
        let alone = send(None, "application/json", body).case(reason);
        assert!([413, 422].contains(&alone.status), "{alone:?}");
    }
    send(None, form, "grant_type=refresh_token".into()).refused(401, "Authentication required");
}

#[test]
fn twenty_parallel_refreshes_of_one_token_leave_one_live_chain() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let next = parallel(20, |_| api.refresh(&ann.refresh).expect(200).tokens());
    let ids: HashSet<_> =
        next.iter().map(|tokens| claims(&tokens.refresh)["jti"].to_string()).collect();
    assert_eq!(ids.len(), 1, "all get the same next token: {ids:?}");
    for tokens in &next {
        api.me(tokens).expect(200);
    }
    assert_eq!(api.database.count("sessions"), 1);
    let last = api.refresh(&next[7].refresh).expect(200).tokens();
    api.refresh(&last.refresh).expect(200);
}

#[test]
fn a_rotated_token_works_within_the_grace_and_gives_the_newest_token() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let second = api.refresh(&ann.refresh).expect(200).tokens();
    let third = api.refresh(&second.refresh).expect(200).tokens();
    let id = |token: &str| claims(token)["jti"].clone();
    for (token, reason) in
        [(&ann.refresh, "two rotations ago"), (&second.refresh, "one rotation ago")]
    {
        let again = api.refresh(token).expect(200).tokens();
        assert_eq!(id(&again.refresh), id(&third.refresh), "{reason}");
    }
}

#[test]
fn a_refresh_token_used_again_after_the_grace_ends_its_session() {
    let api = Server::start(&[("CLOAKROOM_REFRESH_REUSE_SECONDS", "1")]);
    let (other, ann) = (api.sign_up("ann"), api.sign_in("ann"));
    let next = api.refresh(&ann.refresh).expect(200).tokens();
    // The test moves the rotation into the past, instead of waiting.
    api.database.run(
        "UPDATE sessions SET rotated_at = array[now() - interval '2 s'] WHERE rotated_at <> '{}'",
    );
    api.refresh(&ann.refresh).refused(401, "Invalid token");
    api.refresh(&next.refresh).refused(401, "Invalid token");
    api.me(&next).refused(401, "Invalid token");
    api.me(&other).expect(200);
    assert!(api.log().contains("was used again"), "{}", api.log());
}

#[test]
fn a_forged_refresh_token_of_a_known_session_ends_it() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let forged = with_member(&claims(&ann.refresh), "jti", UNKNOWN_ID);
    api.refresh(&sign(forged)).refused(401, "Invalid token");
    api.refresh(&ann.refresh).refused(401, "Invalid token");
    for missing in ["sid", "jti"] {
        let forged = without_member(&claims(&api.sign_in("ann").refresh), missing);
        api.refresh(&sign(forged)).case(missing).expect(401);
    }
}

#[test]
fn an_expired_refresh_token_is_refused() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let expired = with_member(&claims(&ann.refresh), "exp", now() - 1);
    api.refresh(&sign(expired)).refused(401, "Invalid token");
    api.refresh(&ann.refresh).expect(200);
}

#[test]
fn logout_ends_what_its_scope_says() {
    let api = Server::start(&[]);
    api.sign_up("ann");
    // The scope, and the status of the session that asked and of another one afterwards.
    for (scope, own, other) in [
        (None, 401, 401),
        (Some("all"), 401, 401),
        (Some("local"), 401, 200),
        (Some("others"), 200, 401),
    ] {
        let sessions = [api.sign_in("ann"), api.sign_in("ann")];
        let answer = match scope {
            None => api.logout(&sessions[0]),
            Some(scope) => api.logout_scope(&sessions[0], scope),
        };
        assert!(answer.expect(204).bytes.is_empty());
        for (session, status) in sessions.iter().zip([own, other]) {
            api.me(session).case(format_args!("{scope:?}")).expect(status);
            api.refresh(&session.refresh).case(format_args!("{scope:?}")).expect(status);
        }
    }
    let ann = api.sign_in("ann");
    let answer = api.logout_scope(&ann, "some").invalid(&[("query.scope", "enum")]);
    assert_eq!(answer.json()["detail"][0]["msg"], "Must be one of: all, local, others");
    api.me(&ann).expect(200);
}

#[test]
fn a_token_without_a_session_can_be_signed_out() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let without_session = || sign(json!({"sub": ann.id(), "iat": now(), "exp": now() + 600}));
    let (first, second) = (without_session(), without_session());
    api.logout_scope(&first, "others").expect(204);
    api.me(&first).expect(200);
    api.me(&ann).refused(401, "Invalid token");
    let again = api.sign_in("ann");
    api.logout_scope(&first, "local").expect(204);
    api.me(&second).refused(401, "Invalid token");
    api.me(&again).expect(200);
}

#[test]
fn a_role_change_ends_sessions_and_two_processes_share_that() {
    let api = Server::start(&[]);
    let second = Server::start_on(&api.database, &[]);
    let ann = api.sign_up("ann");
    second.me(&ann).expect(200);
    second.logout(&ann).expect(204);
    api.me(&ann).refused(401, "Invalid token");
    api.refresh(&ann.refresh).refused(401, "Invalid token");
    let ann = api.sign_in("ann");
    let password = [("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)];
    run(&api.database.url, &["create-admin", "--email", "ann@example.com"], &password).exits(0);
    for process in [&api, &second] {
        process.me(&ann).refused(401, "Invalid token");
        process.refresh(&ann.refresh).refused(401, "Invalid token");
    }
    let ann = second.sign_in("ann");
    api.me(&ann).expect(200).has(json!({"role": "admin"}));
}

#[test]
fn access_tokens_live_as_long_as_the_settings_say() {
    for name in ["CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES", "ACCESS_TOKEN_EXPIRE_MINUTES"] {
        let api = Server::start(&[(name, "15")]);
        api.register("ann").expect(201);
        api.login("ann", PASSWORD).expect(200).has(json!({"expires_in": 900}));
    }
}

#[test]
fn expired_sessions_are_removed_at_start() {
    let api = Server::start(&[]);
    api.sign_up("ann");
    api.sign_in("ann");
    api.database.run(
        "UPDATE sessions SET ended_at = now(), expires_at = now() - interval '1 s'
         WHERE id = (SELECT id FROM sessions LIMIT 1)",
    );
    let _second = Server::start_on(&api.database, &[]);
    wait_until(|| api.database.count("sessions") == 1);
}
