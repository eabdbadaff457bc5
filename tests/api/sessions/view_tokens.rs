//! View tokens, by which a page or a download manager reads contents with nothing but an address.

use crate::harness::*;
use crate::service::rate_limits::{ON, TRUSTED};

impl Server {
    fn view_token(&self, sender: impl Credentials) -> String {
        let answer = self.post("/auth/view-token", sender, json!({})).expect(200);
        answer.has(json!({"expires_in": 300})).json()["token"].as_str().expect("a token").to_owned()
    }

    fn view(&self, method: &str, file: &str, token: &str) -> Request {
        self.request(method, &format!("/uploads/{file}/download?view={token}"))
    }
}

#[test]
fn a_view_token_opens_what_its_user_may_read_and_nothing_else() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let own = api.new_file(&ann, "a.txt", "of ann");
    let private = api.new_file(&bob, "b.txt", "of bob");
    let public = api.new_file(&bob, "c.txt", "of all");
    api.update_file(&bob, &public, json!({"is_public": true})).expect(200);
    let token = api.view_token(&ann);
    let view = |file: &str| api.view("GET", file, &token);
    assert_eq!(view(&own).send().expect(200).text(), "of ann");
    assert_eq!(view(&public).send().expect(200).text(), "of all");
    view(&private).send().refused(403, "Not enough permissions");
    view(&uuid(7)).send().refused(404, "File not found");
    api.view("HEAD", &own, &token).send().expect(200);
    // All that downloads can, such as a video that is wound on.
    let part = view(&own).header("Range", "bytes=3-").send().expect(206);
    assert_eq!(part.text(), "ann");
    let tag = part.header("ETag").to_owned();
    view(&own).header("If-None-Match", &tag).send().expect(304);
    // Nothing but a download looks at it, and no header accepts it.
    for (method, path) in [
        ("GET", format!("/uploads/{own}")),
        ("GET", "/uploads".to_owned()),
        ("GET", "/auth/me".to_owned()),
        ("DELETE", format!("/uploads/{own}")),
        ("PUT", format!("/uploads/{own}")),
        ("POST", "/auth/view-token".to_owned()),
    ] {
        let request = api.request(method, &format!("{path}?view={token}"));
        request.send().case(&path).refused(401, "Authentication required");
    }
    api.me(token.as_str()).refused(401, "Invalid token");
    api.download(token.as_str(), &own).refused(401, "Invalid token");
    api.refresh(&token).refused(401, "Invalid token");
    api.reset_password(&token, NEW_PASSWORD).expect(400);
    // Where there is a header, the parameter is not looked at.
    view(&private).by(&bob).send().expect(200);
    api.view("GET", &own, "nonsense").by(&ann).send().expect(200);
    view(&own).header("Authorization", "Bearer nonsense").send().refused(401, "Invalid token");
    // Whoever has a personal access token has no session for it to end with.
    let personal = api.new_token(&ann, false);
    let answer = api.post("/auth/view-token", personal.as_str(), json!({}));
    answer.refused(403, "Not enough permissions");
}

#[test]
fn a_view_token_ends_with_its_session_and_is_no_other_token() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    let file = api.new_file(&ann, "a.txt", "of ann");
    let refused = |token: &str| {
        let answer = api.view("GET", &file, token).send();
        answer.refused(401, "Invalid token");
    };
    let made = claims(&api.view_token(&ann));
    assert_eq!((&made["type"], &made["sub"]), (&json!("view"), &json!(ann.id())));
    let lifetime = made["exp"].as_u64().expect("a time") - now();
    assert!((295..=300).contains(&lifetime), "{lifetime}");
    for token in [
        "",
        "nonsense",
        &*ann.access,
        &ann.refresh,
        &api.new_token(&ann, true),
        &sign(with_member(&made, "exp", now() - 1)),
        &sign(with_member(&made, "type", "access")),
        &sign(with_member(&made, "sub", bob.id())),
        &sign(with_member(&made, "sid", bob.session())),
        &sign(with_member(&made, "sub", uuid(7))),
    ] {
        refused(token);
    }
    // In the same second, whatever ends the session.
    let ends: [&dyn Fn(&Tokens); 4] = [
        &|of| drop(api.logout(of).expect(204)),
        &|of| drop(api.end_session(api.sign_in("ann"), &of.session()).expect(204)),
        &|_| api.database.run("UPDATE users SET is_active = false WHERE username = 'ann'"),
        &|_| drop(api.delete_me(api.sign_in("ann"), PASSWORD).expect(204)),
    ];
    for end in ends {
        api.database.run("UPDATE users SET is_active = true WHERE username = 'ann'");
        let session = api.sign_in("ann");
        let token = api.view_token(&session);
        api.view("GET", &file, &token).send().expect(200);
        end(&session);
        refused(&token);
    }
}

#[test]
fn views_have_a_limit_of_their_own_for_each_user_and_need_no_key() {
    let keys = [("CLOAKROOM_API_KEY_ENABLED", "true"), ("CLOAKROOM_API_KEY_SCOPE", "all")];
    let key = ("CLOAKROOM_API_KEY", "a-key-for-tests-0123456789");
    let settings = [ON, TRUSTED, ("CLOAKROOM_RATE_LIMIT_GENERAL", "20")];
    let open = Server::start(&[]);
    let (ann, bob) = (open.sign_up("ann"), open.sign_up("bob"));
    let file = open.new_file(&ann, "a.txt", "of ann");
    open.update_file(&ann, &file, json!({"is_public": true})).expect(200);
    let tokens = [&ann, &bob].map(|user| open.view_token(user));
    // Young accounts count for their addresses too.
    open.database.run("UPDATE users SET created_at = now() - interval '8 days'");
    let api = open.beside(&settings);
    let view = || api.view("GET", &file, &tokens[0]).send();
    assert_eq!(view().expect(200).rate_limit().0, 600);
    // Ten come back each second, which other tests may need for one.
    wait_until(|| parallel(8, |_| view().status).contains(&429));
    api.view("GET", &file, &tokens[1]).send().expect(200);
    assert_eq!(api.download(&ann, &file).expect(200).rate_limit(), (20, 19));
    // A bad one counts for the address that it comes from.
    let bad = |from: &str| {
        let request = api.view("GET", &file, "nonsense").header("X-Forwarded-For", from);
        request.send()
    };
    assert_eq!(bad("203.0.113.9").expect(401).rate_limit(), (20, 19));
    wait_until(|| bad("203.0.113.9").status == 429);
    bad("203.0.114.9").expect(401);
    let guarded = open.beside(&[keys[0], keys[1], key]);
    guarded.view("GET", &file, &tokens[0]).send().expect(200);
    guarded.download(&ann, &file).refused(401, "API key is required");
    guarded.view("GET", &file, "nonsense").send().refused(401, "Invalid token");
}

#[test]
fn no_log_has_a_view_token() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "of ann");
    let token = api.view_token(&ann);
    api.view("GET", &file, &token).send().expect(200);
    api.view("GET", &uuid(7), &token).send().expect(404);
    api.logged(&format!("/api/v1/uploads/{file}/download"));
    let (_, signature) = token.rsplit_once('.').expect("a token");
    assert!(!api.log().contains(signature) && !api.metrics().contains(signature));
}
