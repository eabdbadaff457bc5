//! The endpoints that list and end sessions, and the maximum age of a session. `sessions.rs` has sign-in, refresh and
//! logout.

use serde_json::{Value, json};

use crate::harness::*;

const DAY: u64 = 86_400;

/// Signs `ann` in from an address and with a user agent. The server must trust the test's address as a proxy.
fn sign_in_from(api: &Server, address: &str, user_agent: &str) -> Tokens {
    let body = json!({"username": "ann", "password": PASSWORD});
    from(api.request("POST", "/auth/login"), address, user_agent)
        .json(body)
        .send()
        .expect(200)
        .tokens()
}

fn from(request: Request, address: &str, user_agent: &str) -> Request {
    request.header("X-Forwarded-For", address).header("User-Agent", user_agent)
}

#[track_caller]
fn sessions(answer: Answer) -> Vec<Value> {
    answer.expect(200).json()["sessions"].as_array().expect("a list").clone()
}

fn session_id(tokens: &Tokens) -> String {
    claims(&tokens.access)["sid"].as_str().expect("a session").to_owned()
}

/// Makes all sessions older by so many seconds.
fn make_sessions_older(database: &Database, seconds: u64) {
    database.run(&format!(
        "UPDATE sessions SET created_at = created_at - make_interval(secs => {seconds})"
    ));
}

#[test]
fn a_list_of_sessions_is_newest_first_with_addresses_and_user_agents_and_marks_the_current_one() {
    let api = Server::start(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    api.sign_up("bob");
    api.register("ann").expect(201);
    let old = sign_in_from(&api, "192.0.2.7", "curl/8.5.0");
    let new = sign_in_from(&api, "2001:db8::7", "Mozilla/5.0 (X11)");
    let found = sessions(api.list_sessions(&old));
    let expected = |tokens: &Tokens, address: &str, user_agent: &str, is_current: bool| {
        let at = |column: &str| -> String {
            let column = format!("to_json({column} AT TIME ZONE 'UTC') #>> '{{}}'");
            let id = session_id(tokens);
            api.database.value(&format!("SELECT {column} FROM sessions WHERE id = '{id}'"))
        };
        json!({
            "id": session_id(tokens), "created_at": utc(&at("created_at")), "last_refreshed_at": null,
            "expires_at": utc(&at("expires_at")), "address": address, "user_agent": user_agent,
            "is_current": is_current,
        })
    };
    let of_new = expected(&new, "2001:db8::7", "Mozilla/5.0 (X11)", false);
    let of_old = expected(&old, "192.0.2.7", "curl/8.5.0", true);
    assert_eq!(found, [of_new, of_old]);
    // Seen from the other session, that one is the request's. A token without a session belongs to none.
    let current = |sender: &str| -> Vec<Value> {
        sessions(api.list_sessions(sender)).iter().map(|s| s["is_current"].clone()).collect()
    };
    assert_eq!(current(&new.access), [json!(true), json!(false)]);
    let without_session = sign(json!({"sub": old.id(), "iat": now(), "exp": now() + 600}));
    assert_eq!(current(&without_session), [json!(false), json!(false)]);
}

/// PostgreSQL's text of a timestamp in UTC, such as `2026-01-02T03:04:05.6`, as the API writes it.
fn utc(text: &str) -> String {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{seconds}.{fraction:0<6}Z")
}

#[test]
fn a_refresh_updates_address_and_user_agent_and_other_requests_do_not() {
    let api = Server::start(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    let body = json!({"email": "ann@example.com", "password": PASSWORD});
    let request = from(api.request("POST", "/auth/register"), "192.0.2.7", "phone").json(body);
    let ann = request.send().expect(201).tokens();
    let shown = || {
        let found = sessions(api.list_sessions(&ann));
        assert_eq!(found.len(), 1);
        found[0].clone()
    };
    let before = shown();
    assert_eq!((&before["address"], &before["user_agent"]), (&json!("192.0.2.7"), &json!("phone")));
    let row = || api.database.value::<String>("SELECT xmin::text || sessions::text FROM sessions");
    let unchanged = row();
    from(api.request("GET", "/auth/me").by(&ann), "192.0.2.8", "tablet").send().expect(200);
    assert_eq!(row(), unchanged);
    from(api.request("POST", "/auth/refresh").by(&ann.refresh), "192.0.2.8", "tablet")
        .send()
        .expect(200);
    let after = shown();
    assert_eq!((&after["address"], &after["user_agent"]), (&json!("192.0.2.8"), &json!("tablet")));
    assert_eq!((&after["id"], &after["created_at"]), (&before["id"], &before["created_at"]));
    assert!(after["last_refreshed_at"].as_str() > before["created_at"].as_str(), "{after}");
    assert!(after["expires_at"].as_str() > before["expires_at"].as_str(), "{after}");
    // The last one may do without a user agent.
    let body = json!({"refresh_token": api.refresh(&ann.refresh).expect(200).tokens().refresh})
        .to_string();
    let (_, answer) = ask(
        &api.address,
        format!(
            "POST /api/v1/auth/refresh HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    );
    assert_eq!(answer.status, 200);
    assert_eq!(shown()["user_agent"], Value::Null);
    assert_eq!(shown()["address"], "127.0.0.1");
}

#[test]
fn a_hostile_user_agent_is_cleaned_and_cut() {
    let api = Server::start(&[]);
    api.register("ann").expect(201);
    let body = json!({"username": "ann", "password": PASSWORD}).to_string();
    let login = |user_agent: &[u8]| {
        let head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nUser-Agent: ";
        let rest = format!("\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        ask(&api.address, [head, user_agent, rest.as_bytes()].concat()).1
    };
    let long = "\u{1f600}".repeat(300);
    for (sent, shown) in [
        (&b"a\tb"[..], json!("ab")),
        ("\u{202e}moc.live\u{85}".as_bytes(), json!("moc.live")),
        (long.as_bytes(), json!("\u{1f600}".repeat(200))),
        (b"'; DROP TABLE sessions; --", json!("'; DROP TABLE sessions; --")),
        (b"", Value::Null),
        (b" \t ", Value::Null),
    ] {
        let answer = login(sent);
        assert_eq!(answer.status, 200, "{sent:?}");
        let token = answer.json()["access_token"].as_str().expect("a token").to_owned();
        assert_eq!(sessions(api.list_sessions(&token))[0]["user_agent"], shown);
    }
    for sent in [&b"a\xff"[..], b"a\0b", b"a\x07b"] {
        assert_eq!(login(sent).status, 400, "{sent:?}");
    }
}

#[test]
fn ended_and_expired_sessions_are_not_listed() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let (logged_out, expired, reused) =
        (api.sign_in("ann"), api.sign_in("ann"), api.sign_in("ann"));
    api.logout_scope(&logged_out, "local").expect(204);
    let forged = with_member(&claims(&reused.refresh), "jti", UNKNOWN_ID);
    api.refresh(&sign(forged)).expect(401);
    api.database.run(&format!(
        "UPDATE sessions SET expires_at = now() WHERE id = '{}'",
        session_id(&expired)
    ));
    let found = sessions(api.list_sessions(&ann));
    assert_eq!(names_of(&json!(found), "id"), [session_id(&ann)]);
    for ended in [&logged_out, &expired, &reused] {
        api.end_session(&ann, &session_id(ended)).refused(404, "Session not found");
    }
}

#[test]
fn an_ended_session_keeps_neither_address_nor_user_agent() {
    let api = Server::start(&[]);
    let (root, ann) = (api.sign_up_admin("root"), api.sign_up("ann"));
    let other = || api.sign_in("ann");
    let ends: [(&str, &dyn Fn()); 5] = [
        ("revocation", &|| drop(api.end_session(&ann, &session_id(&other())).expect(204))),
        ("logout here", &|| drop(api.logout_scope(other(), "local").expect(204))),
        ("logout elsewhere", &|| drop(api.logout_scope(&ann, "others").expect(204))),
        ("reuse of a refresh token", &|| {
            let forged = with_member(&claims(&other().refresh), "jti", UNKNOWN_ID);
            api.refresh(&sign(forged)).expect(401);
        }),
        ("deletion of the account", &|| drop(api.delete_user(&root, ann.id()).expect(204))),
    ];
    for (cause, end) in ends {
        other();
        let live =
            "sessions WHERE ended_at IS NULL AND address IS NOT NULL AND user_agent IS NOT NULL";
        assert!(api.database.count(live) >= 3, "{cause}");
        end();
        // The background thread marks those that end together.
        wait_until(|| api.database.count("ended_epochs") == 0);
        let ended = "sessions WHERE ended_at IS NOT NULL";
        assert!(api.database.count(ended) >= 1, "{cause}");
        let kept = format!("{ended} AND (address IS NOT NULL OR user_agent IS NOT NULL)");
        assert_eq!(api.database.count(&kept), 0, "{cause}");
    }
}

#[test]
fn a_list_shows_at_most_a_thousand_sessions() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    api.database.run(
        "INSERT INTO sessions (id, user_id, refresh_id, created_at, expires_at)
         SELECT gen_random_uuid(), u.id, gen_random_uuid(), now() - interval '1 h', now() + interval '1 day'
         FROM users u, generate_series(1, 1500)",
    );
    let found = sessions(api.list_sessions(&ann));
    assert_eq!((found.len(), &found[0]["is_current"]), (1000, &json!(true)));
}

#[test]
fn an_ended_session_is_refused_by_all_processes_and_the_others_go_on() {
    let api = Server::start(&[]);
    let second = Server::start_on(&api.database, &[]);
    let (ann, other) = (api.sign_up("ann"), api.sign_in("ann"));
    second.me(&other).expect(200);
    assert!(api.end_session(&ann, &session_id(&other)).expect(204).bytes.is_empty());
    for process in [&api, &second] {
        process.me(&other).refused(401, "Invalid token");
        process.refresh(&other.refresh).refused(401, "Invalid token");
        process.me(&ann).expect(200);
        assert_eq!(sessions(process.list_sessions(&ann)).len(), 1);
    }
    // A session may end itself.
    api.end_session(&ann, &session_id(&ann)).expect(204);
    second.me(&ann).refused(401, "Invalid token");
}

#[test]
fn nobody_ends_the_session_of_another_user() {
    let api = Server::start(&[]);
    let (ann, root) = (api.sign_up("ann"), api.sign_up_admin("root"));
    api.end_session(&root, &session_id(&ann)).refused(404, "Session not found");
    api.end_session(&ann, UNKNOWN_ID).refused(404, "Session not found");
    api.end_session(&ann, "no-id").invalid(&[("path.session_id", "uuid_parsing")]);
    api.me(&ann).expect(200);
    api.list_sessions(Anonymous).refused(401, "Authentication required");
}

#[test]
fn of_twenty_parallel_requests_to_end_a_session_one_ends_it() {
    let api = Server::start(&[]);
    let second = Server::start_on(&api.database, &[]);
    let (ann, other) = (api.sign_up("ann"), api.sign_in("ann"));
    let id = session_id(&other);
    let statuses = parallel(20, |i| [&api, &second][i % 2].end_session(&ann, &id).status);
    assert_eq!(tally(statuses), [(204, 1), (404, 19)].into());
    api.me(&other).refused(401, "Invalid token");
    api.me(&ann).expect(200);
}

#[test]
fn an_admin_sees_and_ends_the_sessions_of_any_user() {
    let api = Server::start(&[]);
    let (root, ann, bob) = (api.sign_up_admin("root"), api.sign_up("ann"), api.sign_up("bob"));
    let again = api.sign_in("ann");
    let found = json!(sessions(api.user_sessions(&root, ann.id())));
    assert_eq!(names_of(&found, "id"), [session_id(&again), session_id(&ann)]);
    assert_eq!((&found[0]["is_current"], &found[1]["is_current"]), (&json!(false), &json!(false)));
    let own = sessions(api.user_sessions(&root, root.id()));
    assert_eq!((own.len(), &own[0]["is_current"]), (1, &json!(true)));
    let without_session = sign(json!({"sub": ann.id(), "iat": now(), "exp": now() + 600}));
    assert!(api.end_user_sessions(&root, ann.id()).expect(204).bytes.is_empty());
    for token in [&ann.access, &again.access, &without_session] {
        api.me(token).refused(401, "Invalid token");
    }
    assert_eq!(sessions(api.user_sessions(&root, ann.id())), [json!(null); 0]);
    api.end_user_sessions(&root, ann.id()).case("there is none any more").expect(204);
    api.me(&bob).expect(200);
    // Users without the role, and users that are not there.
    api.user_sessions(&bob, ann.id()).refused(403, "Admin privileges required.");
    api.end_user_sessions(&bob, bob.id()).refused(403, "Admin privileges required.");
    api.me(&bob).expect(200);
    api.delete_user(&root, ann.id()).expect(204);
    let development_admin = "0dead000-0000-8000-8000-000000000001";
    let open = Server::start_with(&api.database, &api.data, &[("CLOAKROOM_AUTH_ENABLED", "false")]);
    assert_eq!(sessions(open.list_sessions(Anonymous)), [json!(null); 0]);
    for id in [UNKNOWN_ID, ann.id(), development_admin] {
        api.user_sessions(&root, id).refused(404, "User not found");
        api.end_user_sessions(&root, id).refused(404, "User not found");
    }
    api.user_sessions(&root, "no-id").invalid(&[("path.user_id", "uuid_parsing")]);
}

#[test]
fn a_session_ends_for_good_at_its_maximum_age_however_often_it_is_refreshed() {
    let api = Server::start(&[("CLOAKROOM_SESSION_MAX_DAYS", "3")]);
    let ann = api.sign_up("ann");
    // Ten minutes before its end: both tokens end with it.
    make_sessions_older(&api.database, 3 * DAY - 600);
    let end: i64 = api.database.value(
        "SELECT floor(extract(epoch FROM created_at + interval '72 h'))::bigint FROM sessions",
    );
    let mut tokens = ann;
    for _ in 0..3 {
        let answer = api.refresh(&tokens.refresh).expect(200);
        let lifetime = answer.json()["expires_in"].as_u64().unwrap();
        assert!((300..=600).contains(&lifetime), "{lifetime}");
        tokens = answer.tokens();
        for token in [&tokens.access, &tokens.refresh] {
            assert_eq!(claims(token)["exp"], end);
        }
    }
    let shown = sessions(api.list_sessions(&tokens));
    let expires_at: i64 =
        api.database.value("SELECT floor(extract(epoch FROM expires_at))::bigint FROM sessions");
    assert_eq!((shown.len(), expires_at), (1, end));
    // After its end neither token serves, even one that would be valid for longer.
    api.database.run("UPDATE sessions SET expires_at = now() + interval '7 days'");
    make_sessions_older(&api.database, 600);
    let longer = sign(with_member(&claims(&tokens.access), "exp", FAR_FUTURE));
    for token in [&tokens.access, &longer] {
        api.me(token).refused(401, "Invalid token");
    }
    api.refresh(&tokens.refresh).refused(401, "Invalid token");
    let again = api.sign_in("ann");
    assert_eq!(sessions(api.list_sessions(&again)).len(), 1);
    api.end_session(&again, claims(&longer)["sid"].as_str().unwrap())
        .refused(404, "Session not found");
}

#[test]
fn no_token_of_a_sign_in_outlives_its_session() {
    let api = Server::start(&[
        ("CLOAKROOM_SESSION_MAX_DAYS", "1"),
        ("CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES", "2880"),
    ]);
    let body = json!({"email": "eve@example.com", "password": PASSWORD});
    let registered = api.register_with(body).expect(201).has(json!({"expires_in": DAY}));
    api.register("ann").expect(201);
    let signed_in = api.login("ann", PASSWORD).expect(200).has(json!({"expires_in": DAY}));
    for tokens in [registered.tokens(), signed_in.tokens()] {
        for token in [&tokens.access, &tokens.refresh] {
            let claims = claims(token);
            assert_eq!(claims["exp"].as_u64().unwrap(), claims["iat"].as_u64().unwrap() + DAY);
        }
    }
    let longest: f64 = api
        .database
        .value("SELECT max(extract(epoch FROM expires_at - created_at))::float8 FROM sessions");
    // The server's time and the database's are read one after the other.
    assert!(longest <= DAY as f64 + 1.0, "{longest}");
}

#[test]
fn a_smaller_maximum_age_applies_to_existing_sessions() {
    let api = Server::start(&[]);
    let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
    api.database.run(
        "UPDATE sessions SET created_at = now() - interval '2 days'
         WHERE user_id = (SELECT id FROM users WHERE username = 'ann')",
    );
    let strict = Server::start_on(&api.database, &[("CLOAKROOM_SESSION_MAX_DAYS", "1")]);
    api.me(&ann).expect(200);
    strict.me(&ann).refused(401, "Invalid token");
    strict.refresh(&ann.refresh).refused(401, "Invalid token");
    let shown = sessions(strict.list_sessions(&bob));
    let created_at = shown[0]["created_at"].as_str().unwrap();
    // Its tokens last longer, but the session does not: it expires a day after it was opened.
    let expires_at: String = strict.database.value(&format!(
        "SELECT to_json(('{created_at}'::timestamptz + interval '24 h') AT TIME ZONE 'UTC') #>> '{{}}'"
    ));
    assert_eq!(shown[0]["expires_at"], utc(&expires_at));
}
