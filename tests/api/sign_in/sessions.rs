//! Refresh, reuse of refresh tokens, logout.

use crate::harness::*;

#[test]
fn tokens_carry_the_claims_of_their_kind_and_live_as_long_as_the_settings_say() {
    for (settings, minutes) in [
        (&[][..], 60),
        (&[("CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES", "15")], 15),
        (&[("ACCESS_TOKEN_EXPIRE_MINUTES", "15")], 15),
    ] {
        let (api, [ann]) = Server::with_users(settings, ["ann"]);
        for (token, kind, lifetime) in
            [(&ann.access, "access", 60 * minutes), (&ann.refresh, "refresh", 7 * 86_400)]
        {
            let claims = claims(token);
            assert_eq!((&claims["sub"], &claims["username"]), (&ann.user["id"], &json!("ann")));
            assert_eq!((&claims["role"], &claims["type"]), (&json!("user"), &json!(kind)));
            assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), lifetime);
            assert!(claims["sid"].is_string() && claims["jti"].is_string(), "{claims}");
            assert!(claims.get("nbf").is_none(), "{claims}");
        }
        api.login("ann", PASSWORD).expect(200).has(json!({"expires_in": 60 * minutes}));
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
    #[rustfmt::skip] // One row a request, as in a table.
    let requests = [
        (own, json, b"".as_slice(), ok, "header only"),
        (bad, json, br#"{"refresh_token": "TOKEN"}"#, ok, "the body wins"),
        (own, json, br#"{"refresh_token": "nonsense"}"#, invalid, "the body wins, also if it is wrong"),
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
        (none, json, b"", missing, "nothing"),
        (none, form, b"grant_type=refresh_token", missing, "a form without the field"),
        (Some("Basic x"), json, b"", scheme, "another scheme"),
        (Some("Bearer ACCESS"), json, b"", invalid, "an access token"),
    ];
    let filled = |text: &str| text.replace("TOKEN", &ann.refresh).replace("ACCESS", &ann.access);
    let post = || api.request("POST", "/auth/refresh");
    for (header, content_type, body, refusal, reason) in requests {
        let request = post().header("Content-Type", content_type);
        let request =
            header.iter().fold(request, |r, value| r.header("Authorization", &filled(value)));
        let text = std::str::from_utf8(body);
        let request = request.body(text.map_or(body.to_vec(), |text| filled(text).into_bytes()));
        let answer = request.send().case(reason);
        if refusal != ok {
            answer.refused(401, refusal);
            continue;
        }
        let renewed = answer.expect(200).tokens();
        api.me(renewed).case(reason).expect(200).has(json!({"username": "ann"}));
    }
    // Without a header the body must be readable.
    for body in [&b"{"[..], b"\xff", b"[]"] {
        post().body(body).send().case(body.len()).expect(422);
    }
}

#[test]
fn twenty_parallel_refreshes_of_one_token_leave_one_live_chain() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let next = parallel(20, |_| api.refresh(&ann.refresh).expect(200).tokens());
    for tokens in &next {
        api.me(tokens).expect(200);
        assert_eq!(id(&tokens.refresh), id(&next[0].refresh), "all get the same next token");
    }
    assert_eq!(api.database.count("sessions"), 1);
    let last = api.refresh(&next[7].refresh).expect(200).tokens();
    api.refresh(&last.refresh).expect(200);
}

/// The id of a refresh token.
fn id(token: &str) -> Value {
    claims(token)["jti"].clone()
}

#[test]
fn a_rotated_token_works_within_the_grace_and_gives_the_newest_token() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let second = api.refresh(&ann.refresh).expect(200).tokens();
    let third = api.refresh(&second.refresh).expect(200).tokens();
    for token in [&ann.refresh, &second.refresh] {
        assert_eq!(id(&api.refresh(token).expect(200).tokens().refresh), id(&third.refresh));
    }
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
