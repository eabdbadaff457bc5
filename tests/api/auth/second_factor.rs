//! Setting a second factor up, its recovery codes, and taking it away.

use std::thread;

use serde_json::{Value, json};

use crate::harness::*;

/// The kinds of mail that were queued for a user, in the order of queueing.
fn notices(api: &Server, id: &str) -> Vec<String> {
    let sql = format!("SELECT kind FROM outbox WHERE user_id = '{id}' ORDER BY id");
    api.database.client().query(&sql, &[]).expect("rows").iter().map(|row| row.get(0)).collect()
}

/// A service that queues mail and never sends it, because nothing listens at the address.
fn service() -> Server {
    Server::start(&mail_settings("smtp://127.0.0.1:1"))
}

#[test]
fn a_second_factor_is_offered_confirmed_and_shown() {
    let api = service();
    let ann = api.sign_up("ann");
    let off = json!({"enabled": false, "enabled_at": null, "recovery_codes_left": 0});
    assert_eq!(api.second_factor(&ann).expect(200).json(), off);
    let offer = api.begin_second_factor(&ann, PASSWORD).expect(200).json();
    let secret = offer["secret"].as_str().expect("a secret").to_owned();
    let uri = format!(
        "otpauth://totp/Cloakroom:ann?secret={secret}&issuer=Cloakroom&algorithm=SHA1&digits=6&period=30"
    );
    assert_eq!(offer["uri"], json!(uri));
    let picture = offer["qr_svg"].as_str().expect("a picture");
    assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox="), "{picture}");
    assert!(!picture.contains("script") && picture.ends_with("</svg>"), "{picture}");
    // An offer changes nothing yet.
    assert_eq!(api.second_factor(&ann).expect(200).json(), off);
    let (other, token) = (api.sign_in("ann"), api.new_token(&ann, false));
    assert_eq!(other.user["second_factor"], json!(false));
    let factor = SecondFactor { secret, recovery_codes: Vec::new() };
    let codes = api.confirm_second_factor(&ann, &factor.code()).expect(200).json();
    assert_eq!(codes["recovery_codes"].as_array().map(Vec::len), Some(10));
    let shown = api.second_factor(&ann).expect(200);
    let shown = shown.has(json!({"enabled": true, "recovery_codes_left": 10})).json();
    assert!(shown["enabled_at"].is_string(), "{shown}");
    // Other sessions end, this one and the personal access token go on.
    api.me(&other).refused(401, "Invalid token");
    api.me(&ann).expect(200).has(json!({"second_factor": true}));
    api.refresh(&ann.refresh).expect(200);
    api.me(&token).expect(200);
    api.begin_second_factor(&ann, PASSWORD).refused(409, "Second factor already enabled");
    api.confirm_second_factor(&ann, &factor.code()).refused(409, "Second factor already enabled");
    assert_eq!(notices(&api, ann.id()), ["token_created", "second_factor_enabled"]);
}

#[test]
fn an_offer_needs_the_password_and_a_code_of_its_own_secret_in_time() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let none = "Second factor not found";
    api.confirm_second_factor(&ann, "123456").refused(404, none);
    api.begin_second_factor(&ann, "wrong").refused(400, "Current password is incorrect");
    api.confirm_second_factor(&ann, "123456").refused(404, none);
    let secret = || {
        let offer = api.begin_second_factor(&ann, PASSWORD).expect(200).json();
        let secret = offer["secret"].as_str().expect("a secret").to_owned();
        SecondFactor { secret, recovery_codes: Vec::new() }
    };
    let (first, second) = (secret(), secret());
    assert_ne!(first.secret, second.secret);
    for code in [&first.code(), &second.wrong_code(), "A4DQ-OBYH-A4DQ-OBYH", "12345"] {
        // The two secrets have a code in common once in three hundred thousand times.
        api.confirm_second_factor(&ann, code).refused(400, "Invalid code");
    }
    api.database.run("UPDATE users SET second_factor_pending_until = now() - interval '1 s'");
    api.confirm_second_factor(&ann, &second.code()).refused(404, none);
    api.login("ann", PASSWORD).expect(200);
    let third = secret();
    let shown = third.code();
    // With a space, as apps show it.
    let spaced = format!(" {} {}", &shown[..3], &shown[3..]);
    api.confirm_second_factor(&ann, &spaced).expect(200);
}

#[test]
fn a_confirmation_is_refused_once_its_session_or_the_password_is_no_longer_the_one_it_came_with() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let (id, session) = (ann.id(), claims(&ann.access)["sid"].as_str().expect("one").to_owned());
    let offer = api.begin_second_factor(&ann, PASSWORD).expect(200).json();
    let secret = offer["secret"].as_str().expect("a secret").to_owned();
    let factor = SecondFactor { secret, recovery_codes: Vec::new() };
    let confirm_during = |change: &str| {
        let change = api.database.begin(change);
        thread::scope(|scope| {
            let confirm = scope.spawn(|| api.confirm_second_factor(&ann, &factor.code()));
            api.database.wait_for_blocked_statement();
            change.commit();
            confirm.join().expect("no panic").case(&session)
        })
    };
    let version = |by| {
        format!(
            "UPDATE users SET credentials_version = credentials_version + {by} WHERE id = '{id}'"
        )
    };
    for (change, undo) in [
        (version(1), version(-1)),
        (
            format!("UPDATE users SET session_epoch = session_epoch + 1 WHERE id = '{id}'"),
            format!("UPDATE users SET session_epoch = session_epoch - 1 WHERE id = '{id}'"),
        ),
    ] {
        confirm_during(&change)
            .refused(401, "Invalid token")
            .has(json!({"reason": "SESSION_ENDED"}));
        api.database.run(&undo);
        api.me(&ann).expect(200).has(json!({"second_factor": false}));
    }
    // An end of all other sessions keeps this one.
    confirm_during(&format!("SELECT end_sessions('{id}', '{session}')")).expect(200);
    api.me(&ann).expect(200).has(json!({"second_factor": true}));
}

#[test]
fn a_confirmation_whose_body_comes_after_the_end_of_its_session_is_refused() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let offer = api.begin_second_factor(&ann, PASSWORD).expect(200).json();
    let secret = offer["secret"].as_str().expect("a secret").to_owned();
    let factor = SecondFactor { secret, recovery_codes: Vec::new() };
    let slow = api.sign_in("ann");
    let body = json!({"code": factor.code()}).to_string();
    let mut connection = RawConnection::open(&api.address);
    connection.send(format!(
        "POST /api/v1/auth/second-factor/confirm HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        slow.access,
        body.len()
    ));
    assert_eq!(connection.head().expect("a head"), "HTTP/1.1 100 Continue\r\n\r\n");
    api.logout_scope(&slow, "local").expect(204);
    connection.send(body);
    let answer = connection.answer();
    assert_eq!((answer.status, &answer.json()["reason"]), (401, &json!("SESSION_ENDED")));
    api.me(&ann).expect(200).has(json!({"second_factor": false}));
}

#[test]
fn a_recovery_code_serves_once_in_place_of_a_code() {
    let api = service();
    let ann = api.sign_up("ann");
    let factor = api.new_second_factor(&ann, PASSWORD);
    let codes = &factor.recovery_codes;
    api.login_with_code("ann", PASSWORD, &codes[0]).expect(200);
    api.login_with_code("ann", PASSWORD, &codes[0]).refused(401, "Invalid code");
    let spelling = codes[1].replace('-', "").to_lowercase();
    api.login_with_code("ann", PASSWORD, &spelling).expect(200);
    api.login_with_code("ann", PASSWORD, &codes[1]).refused(401, "Invalid code");
    api.second_factor(&ann).expect(200).has(json!({"recovery_codes_left": 8}));
    let used = ["second_factor_enabled", "recovery_code_used", "recovery_code_used"];
    assert_eq!(notices(&api, ann.id()), used);
    // New ones end the old ones, and are paid for by an old one here.
    api.renew_recovery_codes(&ann, "wrong", &codes[2])
        .refused(400, "Current password is incorrect");
    api.renew_recovery_codes(&ann, PASSWORD, &codes[0]).refused(400, "Invalid code");
    let renewed = api.renew_recovery_codes(&ann, PASSWORD, &codes[2]).expect(200).json();
    let mut told = notices(&api, ann.id()).split_off(used.len());
    told.sort();
    assert_eq!(told, ["recovery_code_used", "recovery_codes_renewed"]);
    let renewed: Vec<String> = serde_json::from_value(renewed["recovery_codes"].clone()).unwrap();
    assert_eq!(renewed.len(), 10);
    for old in [&codes[2], &codes[3]] {
        api.login_with_code("ann", PASSWORD, old).refused(401, "Invalid code");
    }
    api.login_with_code("ann", PASSWORD, &renewed[0]).expect(200);
    api.disable_second_factor(&ann, PASSWORD, &renewed[0]).refused(400, "Invalid code");
    let before = notices(&api, ann.id()).len();
    api.disable_second_factor(&ann, PASSWORD, &renewed[1]).expect(204);
    let mut told = notices(&api, ann.id()).split_off(before);
    told.sort();
    assert_eq!(told, ["recovery_code_used", "second_factor_disabled"]);
    api.login("ann", PASSWORD).expect(200);
}

#[test]
fn a_second_factor_is_taken_away_with_password_and_code() {
    let api = service();
    let ann = api.sign_up("ann");
    let none = "Second factor not found";
    api.disable_second_factor(&ann, PASSWORD, "123456").refused(404, none);
    api.renew_recovery_codes(&ann, PASSWORD, "123456").refused(404, none);
    let factor = api.new_second_factor(&ann, PASSWORD);
    api.disable_second_factor(&ann, "wrong", &factor.code())
        .refused(400, "Current password is incorrect");
    let wrong = factor.wrong_code();
    api.disable_second_factor(&ann, PASSWORD, &wrong)
        .refused(400, "Invalid code")
        .has(json!({"error_code": "SECOND_FACTOR_INVALID"}));
    api.disable_second_factor(&ann, PASSWORD, &factor.code()).expect(204);
    api.login("ann", PASSWORD).expect(200).has(json!({}));
    api.me(&ann).expect(200).has(json!({"second_factor": false}));
    assert_eq!(notices(&api, ann.id()), ["second_factor_enabled", "second_factor_disabled"]);
    // Another one has another secret.
    let again = api.new_second_factor(&ann, PASSWORD);
    assert_ne!(again.secret, factor.secret);
    for old in &factor.recovery_codes {
        let stored = format!("sha256('{}') = ANY (recovery_codes)", old.replace('-', ""));
        assert_eq!(api.database.count(&format!("users WHERE {stored}")), 0);
    }
}

#[test]
fn an_administrator_takes_a_second_factor_away_and_ends_the_sessions() {
    let api = service();
    let (ann, root) = (api.sign_up("ann"), api.sign_up_admin("root"));
    api.reset_second_factor(&root, UNKNOWN_ID).refused(404, "User not found");
    api.new_second_factor(&ann, PASSWORD);
    api.reset_second_factor(&root, ann.id()).expect(204);
    api.me(&ann).refused(401, "Invalid token");
    let ann = api.sign_in("ann");
    assert_eq!(ann.user["second_factor"], json!(false));
    assert_eq!(notices(&api, ann.id()), ["second_factor_enabled", "second_factor_disabled"]);
    // Without one it ends the sessions all the same, and tells nobody.
    api.reset_second_factor(&root, ann.id()).expect(204);
    api.me(&ann).refused(401, "Invalid token");
    assert_eq!(notices(&api, ann.id()).len(), 2);
    let events = api.all_events(&root, "action=second_factor.disable");
    let details: Vec<_> = events.iter().map(|event| &event["details"]["had_one"]).collect();
    assert_eq!(details, [&json!(false), &json!(true)]);
    assert!(events.iter().all(|event| event["actor_id"] == json!(root.id())), "{events:?}");
}

#[test]
fn administrators_do_not_take_their_own_second_factor_away_without_password_and_code() {
    let api = service();
    let root = api.sign_up_admin("root");
    let refused = || {
        api.reset_second_factor(&root, root.id())
            .refused(403, "Not enough permissions")
            .has(json!({"error_code": "FORBIDDEN", "reason": "OWN_SECOND_FACTOR"}));
    };
    // Whether or not there is one.
    refused();
    let factor = api.new_second_factor(&root, PASSWORD);
    refused();
    api.me(&root).expect(200).has(json!({"second_factor": true}));
    assert_eq!(notices(&api, root.id()), ["second_factor_enabled"]);
    assert_eq!(api.database.count("audit_events WHERE action = 'second_factor.disable'"), 0);
    // Another administrator may, and so does the endpoint of one's own.
    api.disable_second_factor(&root, PASSWORD, &factor.code()).expect(204);
    api.new_second_factor(&root, PASSWORD);
    let other = api.sign_up_admin("other");
    api.reset_second_factor(&other, root.id()).expect(204);
    api.login("root", PASSWORD).expect(200);
}

#[test]
fn what_happens_to_a_second_factor_is_in_the_audit_log_without_any_code() {
    let api = Server::start(&[]);
    let (ann, root) = (api.sign_up("ann"), api.sign_up_admin("root"));
    let factor = api.new_second_factor(&ann, PASSWORD);
    let codes = &factor.recovery_codes;
    api.login("ann", PASSWORD).expect(401);
    api.login_with_code("ann", PASSWORD, &factor.wrong_code()).expect(401);
    api.login_with_code("ann", PASSWORD, &codes[0]).expect(200);
    api.renew_recovery_codes(&ann, PASSWORD, &codes[1]).expect(200);
    api.disable_second_factor(&ann, "wrong", &codes[2]).expect(400);
    let found = || {
        let query = format!("subject_id={}", ann.id());
        let event = |event: &Value| {
            let mut details = event["details"].clone();
            details.as_object_mut().expect("an object").remove("session_id");
            format!("{} {} {details}", event["action"], event["outcome"]).replace('"', "")
        };
        let mut events: Vec<_> = api.all_events(&root, &query).iter().map(event).collect();
        events.sort();
        events
    };
    let expected = [
        "auth.login failure {reason:second_factor_invalid}",
        "auth.login failure {reason:second_factor_required}",
        "auth.login success {}",
        "auth.login success {}",
        "auth.register success {}",
        "second_factor.disable failure {}",
        "second_factor.enable success {new_recovery_codes:true}",
        "second_factor.enable success {}",
        "second_factor.recovery success {codes_left:9}",
        "second_factor.recovery success {}",
    ];
    // Failures are written within a second.
    wait_until(|| found().len() >= expected.len());
    assert_eq!(found(), expected);
}

#[test]
fn a_deleted_account_keeps_nothing_of_its_second_factor() {
    let api = Server::start(&[]);
    let (ann, root) = (api.sign_up("ann"), api.sign_up_admin("root"));
    let bob = api.sign_up("bob");
    let factor = api.new_second_factor(&ann, PASSWORD);
    api.login_with_code("ann", PASSWORD, &factor.wrong_code()).expect(401);
    // The other one is only offered.
    api.begin_second_factor(&bob, PASSWORD).expect(200);
    let rest = "users WHERE is_deleted AND num_nonnulls(second_factor_sealed, second_factor_pending_until,
                second_factor_at, second_factor_step, recovery_codes, wrong_code_times, wrong_code_networks) = 0
                AND wrong_codes = 0";
    api.delete_me(&ann, PASSWORD).expect(204);
    api.delete_user(&root, bob.id()).expect(204);
    assert_eq!(api.database.count(rest), 2);
}

#[test]
fn where_administrators_need_a_second_factor_one_without_may_only_set_it_up() {
    let api = Server::start(&[
        ("CLOAKROOM_ADMIN_SECOND_FACTOR", "required"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
    ]);
    let (ann, root) = (api.sign_up("ann"), api.sign_up_admin("root"));
    let token = api.new_token(&root, false);
    for sender in [&root.access, &token] {
        for path in ["/users", "/admin/stats", "/admin/audit", "/users/export"] {
            api.get(path, sender).refused(403, "Second factor required").has(json!({
                "error_code": "FORBIDDEN", "reason": "ADMIN_SECOND_FACTOR_REQUIRED",
            }));
        }
        api.me(sender).expect(200);
        api.list_files(sender, "").expect(200);
    }
    // The role comes first.
    api.list_users(&ann, "").refused(403, "Admin privileges required.");
    let factor = api.new_second_factor(&root, PASSWORD);
    for sender in [&root.access, &token] {
        api.list_users(sender, "").expect(200);
        api.export(sender, "").expect(200);
    }
    // Failures are written within a second.
    wait_until(|| {
        let denied = api.all_events(&root, "action=access.denied");
        denied.iter().any(|event| event["actor_id"] == json!(root.id()))
    });
    api.disable_second_factor(&root, PASSWORD, &factor.code()).expect(204);
    api.list_users(&root, "").refused(403, "Second factor required");
    let open = Server::start_with(
        &api.database,
        &api.data,
        &[("CLOAKROOM_ADMIN_SECOND_FACTOR", "required"), ("CLOAKROOM_AUTH_ENABLED", "false")],
    );
    open.list_users(Anonymous, "").expect(200);
}
