//! The endpoints that list and end sessions, and the maximum age of a session. `sign_in/sessions.rs` has sign-in,
//! refresh and logout.

use crate::harness::*;
use crate::sign_in::revocations::keep_unmarked;

const DAY: u64 = 86_400;

/// Signs `ann` in from an address and with a user agent. The server must trust the test's address as a proxy.
fn sign_in_from(api: &Server, address: &str, user_agent: &str) -> Tokens {
    let login = from(api.request("POST", "/auth/login"), address, user_agent);
    login.json(json!({"username": "ann", "password": PASSWORD})).send().expect(200).tokens()
}

fn from(request: Request, address: &str, user_agent: &str) -> Request {
    request.header("X-Forwarded-For", address).header("User-Agent", user_agent)
}

/// Makes all sessions older by so many seconds.
fn make_sessions_older(database: &Database, seconds: u64) {
    database.run(&format!(
        "UPDATE sessions SET created_at = created_at - make_interval(secs => {seconds})"
    ));
}

#[test]
fn a_list_of_sessions_is_newest_first_with_addresses_and_user_agents_and_marks_the_current_one() {
    let (api, [_]) = Server::with_users(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")], ["bob"]);
    api.register("ann").expect(201);
    let old = sign_in_from(&api, "192.0.2.7", "curl/8.5.0");
    // `model/rules.rs` has what is cleaned.
    let new = sign_in_from(&api, "2001:db8::7", "Mozilla/5.0\t (X11)");
    let expected = |tokens: &Tokens, address: &str, user_agent: &str, sender: &str| {
        let id = tokens.session();
        let at = |column: &str| {
            utc(&api.database, &format!("(SELECT {column} FROM sessions WHERE id = '{id}')"))
        };
        json!({
            "id": id, "created_at": at("created_at"), "last_refreshed_at": null,
            "expires_at": at("expires_at"), "address": address, "user_agent": user_agent,
            "is_current": sender == tokens.access,
        })
    };
    // Seen from the other session, that one is the request's. A token without a session belongs to none.
    for sender in [&old.access, &new.access, &token_without_session(old.id())] {
        let of_new = expected(&new, "2001:db8::7", "Mozilla/5.0 (X11)", sender);
        let of_old = expected(&old, "192.0.2.7", "curl/8.5.0", sender);
        let found = api.list_sessions(sender).expect(200).list("sessions");
        assert_eq!(found, [of_new, of_old]);
    }
}

/// A time of the database as the API writes it.
fn utc(database: &Database, time: &str) -> String {
    let format = "YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"";
    database.value(&format!("SELECT to_char({time} AT TIME ZONE 'UTC', '{format}')"))
}

#[test]
fn a_refresh_updates_address_and_user_agent_and_other_requests_do_not() {
    let api = Server::start(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    let body = json!({"email": "ann@example.com", "password": PASSWORD});
    let request = from(api.request("POST", "/auth/register"), "192.0.2.7", "phone").json(body);
    let ann = request.send().expect(201).tokens();
    let shown = || {
        let found = api.list_sessions(&ann).expect(200).list("sessions");
        assert_eq!(found.len(), 1);
        found[0].clone()
    };
    let before = shown();
    let client = |session: &Value| (session["address"].clone(), session["user_agent"].clone());
    assert_eq!(client(&before), (json!("192.0.2.7"), json!("phone")));
    let row = || api.database.value::<String>("SELECT xmin::text || sessions::text FROM sessions");
    let unchanged = row();
    let by_tablet = |request: Request| from(request, "192.0.2.8", "tablet").send().expect(200);
    by_tablet(api.request("GET", "/auth/me").by(&ann));
    assert_eq!(row(), unchanged);
    by_tablet(api.request("POST", "/auth/refresh").by(&ann.refresh));
    let after = shown();
    assert_eq!(client(&after), (json!("192.0.2.8"), json!("tablet")));
    assert_eq!((&after["id"], &after["created_at"]), (&before["id"], &before["created_at"]));
    assert!(after["last_refreshed_at"].as_str() > before["created_at"].as_str(), "{after}");
    assert!(after["expires_at"].as_str() > before["expires_at"].as_str(), "{after}");
    // The last one may do without a user agent.
    let body = json!({"refresh_token": api.refresh(&ann.refresh).expect(200).tokens().refresh});
    let body = body.to_string();
    let head = format!("Host: x\r\nContent-Length: {}", body.len());
    let request = format!("POST /api/v1/auth/refresh HTTP/1.1\r\n{head}\r\n\r\n{body}");
    assert_eq!(ask(&api.address, request).1.status, 200);
    assert_eq!(client(&shown()), (json!("127.0.0.1"), json!(null)));
}

#[test]
fn ended_and_expired_sessions_are_not_listed() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let [logged_out, expired, reused] = [(); 3].map(|()| api.sign_in("ann"));
    api.logout_scope(&logged_out, "local").expect(204);
    let forged = with_member(&claims(&reused.refresh), "jti", UNKNOWN_ID);
    api.refresh(&sign(forged)).expect(401);
    let expired_id = expired.session();
    api.database.run(&format!("UPDATE sessions SET expires_at = now() WHERE id = '{expired_id}'"));
    let found = api.list_sessions(&ann).expect(200).names("sessions", "id");
    assert_eq!(found, [ann.session()]);
    for ended in [&logged_out, &expired, &reused] {
        api.end_session(&ann, &ended.session()).refused(404, "Session not found");
    }
}

/// A list without what depends on who asks.
fn without_current(mut list: Vec<Value>) -> Vec<Value> {
    for item in &mut list {
        item.as_object_mut().expect("an object").remove("is_current");
    }
    list
}

#[test]
fn owners_and_administrators_see_and_end_sessions_and_tokens_and_nobody_else_does() {
    let (api, [root, bob, gone]) = Server::with_users(&[], ["root", "bob", "gone"]);
    api.delete_user(&root, gone.id()).expect(204);
    let open = api.beside(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    open.create_token(Anonymous, json!({"name": "a"})).refused(403, "Not enough permissions");
    for (kind, place, not_found) in [
        ("sessions", "path.session_id", "Session not found"),
        ("tokens", "path.token_id", "Token not found"),
    ] {
        let ann = api.sign_up(&format!("owner_of_{kind}"));
        let bearers = [(); 2].map(|()| match kind {
            "sessions" => api.sign_in(&format!("owner_of_{kind}")).access,
            _ => api.new_token(&ann, false),
        });
        let own_path = format!("/auth/{kind}");
        let of_user = |id: &str| format!("/users/{id}/{kind}");
        let list = |path: &str, sender: &Tokens| api.get(path, sender).expect(200).list(kind);
        let end = |sender: &Tokens, id: &str| api.delete(&format!("{own_path}/{id}"), sender);
        let listed = list(&own_path, &ann);
        let seen = list(&of_user(ann.id()), &root);
        assert!(seen.iter().all(|item| item["is_current"] != true), "{seen:?}");
        assert_eq!(without_current(seen), without_current(listed.clone()), "{kind}");
        // The newest comes first.
        let ids = names_of(&json!(listed), "id");
        for stranger in [&bob, &root] {
            end(stranger, &ids[1]).refused(404, not_found);
        }
        assert!(end(&ann, &ids[1]).expect(204).bytes.is_empty());
        api.me(&bearers[0]).refused(401, "Invalid token");
        api.me(&bearers[1]).case(kind).expect(200);
        for id in [&ids[1], UNKNOWN_ID] {
            end(&ann, id).refused(404, not_found);
        }
        end(&ann, "no-id").invalid(&[(place, "uuid_parsing")]);
        assert!(!names_of(&json!(list(&own_path, &ann)), "id").contains(&ids[1]), "{kind}");
        for _ in 0..2 {
            // Also where there is none any more.
            assert!(api.delete(&of_user(ann.id()), &root).expect(204).bytes.is_empty());
            assert_eq!(list(&of_user(ann.id()), &root), [json!(null); 0], "{kind}");
        }
        api.me(&bearers[1]).refused(401, "Invalid token");
        // Users that are not there, and the development admin, who has none.
        for id in [UNKNOWN_ID, gone.id(), "0dead000-0000-8000-8000-000000000001"] {
            api.get(&of_user(id), &root).refused(404, "User not found");
            api.delete(&of_user(id), &root).refused(404, "User not found");
        }
        for answer in [api.get(&of_user("no-id"), &root), api.delete(&of_user("no-id"), &root)] {
            answer.invalid(&[("path.user_id", "uuid_parsing")]);
        }
        assert_eq!(open.get(&own_path, Anonymous).expect(200).list(kind), [json!(null); 0]);
        open.delete(&format!("{own_path}/{UNKNOWN_ID}"), Anonymous).refused(404, not_found);
    }
    api.me(&bob).expect(200);
    // Among their own sessions, administrators see which is the current one.
    let own = api.user_sessions(&root, root.id()).expect(200).list("sessions");
    assert_eq!((own.len(), &own[0]["is_current"]), (1, &json!(true)));
}

#[test]
fn a_session_ends_for_good_at_its_maximum_age_however_often_it_is_refreshed() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_SESSION_MAX_DAYS", "3")], ["ann"]);
    // Ten minutes before its end: both tokens end with it.
    make_sessions_older(&api.database, 3 * DAY - 600);
    let second = |time: &str| -> i64 {
        api.database
            .value(&format!("SELECT floor(extract(epoch FROM {time}))::bigint FROM sessions"))
    };
    let end = second("created_at + interval '72 h'");
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
    let shown = api.list_sessions(&tokens).expect(200).list("sessions");
    assert_eq!((shown.len(), second("expires_at")), (1, end));
    // After its end neither token serves, even one that would be valid for longer.
    api.database.run("UPDATE sessions SET expires_at = now() + interval '7 days'");
    make_sessions_older(&api.database, 600);
    let longer = sign(with_member(&claims(&tokens.access), "exp", FAR_FUTURE));
    for token in [&tokens.access, &longer] {
        api.me(token).refused(401, "Invalid token");
    }
    api.refresh(&tokens.refresh).refused(401, "Invalid token");
    let again = api.sign_in("ann");
    assert_eq!(api.list_sessions(&again).expect(200).list("sessions").len(), 1);
    api.end_session(&again, &tokens.session()).refused(404, "Session not found");
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
    // The server's time and the database's are read one after the other.
    let longer = "sessions WHERE expires_at - created_at > interval '24 h' + interval '1 s'";
    assert_eq!(api.database.count(longer), 0);
}

#[test]
fn a_smaller_maximum_age_applies_to_existing_sessions() {
    let (api, [ann, bob]) = Server::with_users(&[], ["ann", "bob"]);
    api.database.run(
        "UPDATE sessions SET created_at = now() - interval '2 days'
         WHERE user_id = (SELECT id FROM users WHERE username = 'ann')",
    );
    let strict = Server::start_on(&api.database, &[("CLOAKROOM_SESSION_MAX_DAYS", "1")]);
    api.me(&ann).expect(200);
    strict.me(&ann).refused(401, "Invalid token");
    strict.refresh(&ann.refresh).refused(401, "Invalid token");
    let shown = strict.list_sessions(&bob).expect(200).list("sessions");
    let created_at = shown[0]["created_at"].as_str().unwrap();
    // Its tokens last longer, but the session does not: it expires a day after it was opened.
    let end = format!("('{created_at}'::timestamptz + interval '24 h')");
    assert_eq!(shown[0]["expires_at"], utc(&api.database, &end));
}

#[test]
fn sessions_that_ended_with_others_are_ended_everywhere_before_their_rows_are_marked() {
    let (api, [ann, root]) = Server::with_users(&[], ["ann", "root"]);
    let old = api.refresh(&ann.refresh).expect(200).tokens();
    keep_unmarked(&api.database);
    api.end_user_sessions(&root, ann.id()).expect(204);
    let again = api.sign_in("ann");
    assert_eq!(api.database.count("sessions WHERE ended_at IS NULL"), 3);
    api.me(&old).refused(401, "Invalid token");
    // The current refresh token, one that was replaced just now, and one that never was this session's.
    let forged = sign(with_member(&claims(&old.refresh), "jti", UNKNOWN_ID));
    for refresh in [&old.refresh, &ann.refresh, &forged] {
        api.refresh(refresh).refused(401, "Invalid token");
    }
    api.end_session(&again, &old.session()).refused(404, "Session not found");
    let listed = api.list_sessions(&again).expect(200).json();
    assert_eq!(names_of(&listed["sessions"], "id"), [again.session()]);
    let listed = api.user_sessions(&root, ann.id()).expect(200).json();
    assert_eq!(names_of(&listed["sessions"], "id"), [again.session()]);
    api.logout(&again).expect(204);
    let logout = &api.all_events(&root, "action=auth.logout")[0];
    assert_eq!(logout["details"], json!({"scope": "all", "sessions": 1}));
    assert_eq!(api.all_events(&root, "action=auth.refresh_reuse").len(), 0);
}
