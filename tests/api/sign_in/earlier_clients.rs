//! What clients of version 1 of the API need: claims that they show, another path and name of a refresh, the body of a
//! sign-out. `exports/users.rs` has the columns that they read, and `protocol.rs` the credentials that they send.

use crate::harness::*;

#[test]
fn an_access_token_has_the_address_and_nothing_decides_by_it() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let address = |token: &str| claims(token)["email"].clone();
    assert_eq!(address(&ann.access), "ann@example.com");
    assert_eq!(claims(&ann.refresh).get("email"), None);
    let of_ann = claims(&ann.access);
    for (other, reason) in [
        (without_member(&of_ann, "email"), "none"),
        (with_member(&of_ann, "email", "bob@example.com"), "that of another account"),
        (with_member(&of_ann, "email", "nobody"), "no address"),
        (with_member(&of_ann, "email", Value::Null), "null"),
        (with_member(&of_ann, "email", 7), "a number"),
        (with_member(&of_ann, "email", json!([{}])), "a list"),
    ] {
        let me = api.me(sign(other).as_str()).case(reason).expect(200).json();
        assert_eq!((&me["id"], &me["email"]), (&json!(ann.id()), &json!("ann@example.com")));
    }
    // After a change the token of before goes on, and the next one has the new address.
    api.update_me(&ann, json!({"email": "Übersee@example.com"})).expect(200);
    api.me(&ann).expect(200).has(json!({"email": "Übersee@example.com"}));
    let next = api.refresh(&ann.refresh).expect(200).tokens();
    assert_eq!(address(&next.access), "Übersee@example.com");
    assert_eq!(address(&bob.access), "bob@example.com");
    let registered = json!({"email": "cy@example.com", "password": PASSWORD});
    let tokens = api.register_with(registered).expect(201).tokens();
    assert_eq!(address(&tokens.access), "cy@example.com");
}

#[test]
fn the_longest_names_fit_in_a_token() {
    let (api, [root]) =
        Server::with_users(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")], ["root"]);
    let long = |c: &str| c.repeat(500);
    let account = json!({"username": long("ä字"), "email": long("字"), "password": PASSWORD});
    let account = with_member(&account, "username", long("字"));
    api.post("/users/test-only/create", &root, account).expect(201);
    let tokens = api.login(&long("字"), PASSWORD).expect(200).tokens();
    api.me(&tokens).expect(200);
}

#[test]
fn a_refresh_has_another_path_and_its_token_another_name() {
    let api = Server::start(&[]);
    api.sign_up("ann");
    for path in ["/auth/refresh", "/auth/refresh-token", "/auth/refresh-token/"] {
        let token = || api.sign_in("ann").refresh;
        let post = |body: Value| api.post(path, Anonymous, body);
        for body in [
            json!({"refresh_token": token()}),
            json!({"token": token()}),
            json!({"refresh_token": null, "token": token()}),
            json!({"refresh_token": token(), "token": "x"}),
            json!({"refresh_token": token(), "token": 7}),
        ] {
            let answer = post(body).case(path).expect(200);
            api.me(answer.tokens()).expect(200);
        }
        let form = api.request("POST", path).form(format!("token={}", token()));
        form.send().expect(200).tokens();
        api.request("POST", path).by(token().as_str()).send().expect(200).tokens();
        // The body wins over the header, under either name.
        let both = api.request("POST", path).by(token().as_str()).json(json!({"token": "x"}));
        both.send().refused(401, "Invalid token");
        post(json!({"refresh_token": "x", "token": token()})).refused(401, "Invalid token");
        post(json!({"refresh_token": "", "token": token()})).refused(401, "Invalid token");
        post(json!({"token": api.sign_in("ann").access})).refused(401, "Invalid token");
        post(json!({"token": 7})).invalid(&[("body.refresh_token", "string_type")]);
        post(json!({})).refused(401, "Authentication required");
        post(json!({"token": "a\0"})).refused(401, "Invalid token");
    }
    api.request("GET", "/auth/refresh-token").send().refused(405, "Method Not Allowed");
    let requests =
        r#"cloakroom_requests_total{endpoint="POST /api/v1/auth/refresh-token",status="200"}"#;
    assert!(api.metric(requests).is_some_and(|count| count > 0.0), "{}", api.metrics());
}

#[test]
fn both_paths_of_a_refresh_share_their_limits() {
    let limits = [("CLOAKROOM_RATE_LIMIT_ENABLED", "true")];
    let api = Server::start(&limits);
    let mut ann = api.sign_up("ann").refresh;
    let paths = ["/auth/refresh", "/auth/refresh-token"];
    for n in 0..5 {
        let body = json!({"refresh_token": ann});
        let answer = api.post(paths[n % 2], Anonymous, body).expect(200);
        assert_eq!(answer.rate_limit(), (5, 4 - n as u64));
        ann = answer.tokens().refresh;
    }
    for path in paths {
        let body = json!({"token": ann});
        api.post(path, Anonymous, body).refused(429, "Rate limit exceeded");
    }
    // So do bad tokens of one address.
    for n in 0..5 {
        api.post(paths[n % 2], Anonymous, json!({"token": "x"})).expect(401);
    }
    for path in paths {
        api.post(path, Anonymous, json!({"token": "x"})).refused(429, "Rate limit exceeded");
    }
}

#[test]
fn both_paths_of_a_refresh_need_the_key_where_all_do() {
    let api = Server::start(&[
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ("CLOAKROOM_API_KEY", "a-key-for-tests-0123456789"),
        ("CLOAKROOM_API_KEY_SCOPE", "all"),
    ]);
    for path in ["/auth/refresh", "/auth/refresh-token"] {
        api.post(path, Anonymous, json!({"token": "x"})).refused(401, "API key is required");
    }
}

#[test]
fn a_sign_out_has_a_body_where_the_setting_says_so() {
    for (status, setting) in [(204, ""), (204, "204"), (200, "200")] {
        let api = Server::start(&[("CLOAKROOM_LOGOUT_STATUS", setting)]);
        api.sign_up("ann");
        for query in ["", "?scope=all", "?scope=local", "?scope=others"] {
            let ann = api.sign_in("ann");
            let answer = api.request("POST", &format!("/auth/logout{query}")).by(&ann).send();
            let answer = answer.case(query).expect(status);
            match status {
                200 => assert_eq!(answer.json(), json!({"message": "Logged out successfully"})),
                _ => assert_eq!(answer.bytes, b""),
            }
            api.me(&ann).expect(if query.ends_with("others") { 200 } else { 401 });
        }
        let ann = api.sign_in("ann");
        api.logout_scope(&ann, "mine").invalid(&[("query.scope", "enum")]);
        let document = api.request_at_root("GET", "/openapi.json").send().expect(200).json();
        let responses = &document["paths"]["/api/v1/auth/logout"]["post"]["responses"];
        let shown = ["200", "204"].map(|status| responses.get(status).is_some());
        assert_eq!(shown, [status == 200, status == 204]);
    }
}
