//! Refresh, reuse of refresh tokens, logout.

use std::collections::HashSet;

use serde_json::json;

use crate::harness::*;

#[test]
fn tokens_carry_the_claims_of_their_kind() {
    let (_api, [ann]) = Server::with_users(&[], ["ann"]);
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
    // The token is used again and again.
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_REFRESH_REUSE_SECONDS", "600")], ["ann"]);
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    let (own, bad, none) = (Some("Bearer TOKEN"), Some("Bearer nonsense"), None);
    let (ok, invalid, missing) = ("", "Invalid token", "Authentication required");
    let scheme = "Invalid authentication scheme";
    let long = " ".repeat(200_000);
    for (header, content_type, body, refusal, reason) in [
        (own, json, b"".as_slice(), ok, "header only"),
        (bad, json, br#"{"refresh_token": "TOKEN"}"#, ok, "the body wins"),
        (
            own,
            json,
            br#"{"refresh_token": "nonsense"}"#,
            invalid,
            "the body wins, also if it is wrong",
        ),
        (own, json, br#"{"refresh_token": null}"#, ok, "null is the same as absent"),
        (own, json, b"{}", ok, "no field in the body"),
        (none, form, b"grant_type=refresh_token&refresh_token=TOKEN", ok, "a form"),
        (bad, form, b"grant_type=refresh_token&refresh_token=TOKEN", ok, "the form wins"),
        (own, form, b"refresh_token=nonsense", invalid, "the form wins, also if it is wrong"),
        (own, form, b"grant_type=refresh_token", ok, "no field in the form"),
        (none, form, br#"{"refresh_token": "TOKEN"}"#, ok, "JSON that claims to be a form"),
        (own, json, b"{", ok, "a body that is not JSON"),
        (own, json, b"\xff", ok, "a body that is not UTF-8"),
        (own, json, b"[]", ok, "a body that is no object"),
        (own, json, long.as_bytes(), ok, "a body that is too long"),
        (none, json, b"", missing, "nothing"),
        (none, form, b"grant_type=refresh_token", missing, "a form without the field"),
        (Some("Basic x"), json, b"", scheme, "another scheme"),
        (Some("Bearer ACCESS"), json, b"", invalid, "an access token"),
    ] {
        let filled =
            |text: &str| text.replace("TOKEN", &ann.refresh).replace("ACCESS", &ann.access);
        let request = api.request("POST", "/auth/refresh").header("Content-Type", content_type);
        let request =
            header.iter().fold(request, |r, value| r.header("Authorization", &filled(value)));
        let text = std::str::from_utf8(body);
        let request = request.body(text.map_or(body.to_vec(), |text| filled(text).into_bytes()));
        let answer = request.send().case(reason);
        if refusal == ok {
            api.me(answer.expect(200).tokens())
                .case(reason)
                .expect(200)
                .has(json!({"username": "ann"}));
        } else {
            answer.refused(401, refusal);
        }
    }
    // Without a header the body must be readable.
    for (body, status) in [(&b"{"[..], 422), (b"\xff", 422), (b"[]", 422), (long.as_bytes(), 413)] {
        api.request("POST", "/auth/refresh").body(body).send().case(body.len()).expect(status);
    }
    let number =
        api.request("POST", "/auth/refresh").by(&ann.refresh).json(json!({"refresh_token": 7}));
    number.send().invalid(&[("body.refresh_token", "string_type")]);
}

#[test]
fn twenty_parallel_refreshes_of_one_token_leave_one_live_chain() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
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
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
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
fn a_scope_of_a_logout_is_one_of_three_words_and_a_token_without_a_session_has_them_too() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let answer = api.logout_scope(&ann, "some").invalid(&[("query.scope", "enum")]);
    assert_eq!(answer.json()["detail"][0]["msg"], "Must be one of: all, local, others");
    api.me(&ann).expect(200);
    let [first, second] = [(); 2].map(|()| token_without_session(ann.id()));
    api.logout_scope(&first, "others").expect(204);
    api.me(&first).expect(200);
    api.me(&ann).refused(401, "Invalid token");
    let again = api.sign_in("ann");
    api.logout_scope(&first, "local").expect(204);
    api.me(&second).refused(401, "Invalid token");
    api.me(&again).expect(200);
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
