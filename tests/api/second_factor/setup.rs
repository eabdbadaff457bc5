//! Setting a second factor up, its recovery codes, and taking it away.

use std::collections::BTreeSet;

use crate::harness::*;

/// The kinds of mail that were queued for a user after the first ones, in the order of queueing.
fn notices(api: &Server, user: &Tokens, first: usize) -> Vec<String> {
    let sql = format!("SELECT kind FROM outbox WHERE user_id = '{}' ORDER BY id", user.id());
    let rows = api.database.client().query(&sql, &[]).expect("rows");
    rows.iter().skip(first).map(|row| row.get(0)).collect()
}

/// A service that queues mail and never sends it, because nothing listens at the address, and its user `ann`.
fn service() -> (Server, Tokens) {
    let (api, [ann]) = Server::with_users(&mail_settings("smtp://127.0.0.1:1"), ["ann"]);
    // One that is not settled gets only three mails that one network causes.
    api.database.run("UPDATE users SET is_settled = true");
    (api, ann)
}

const WRONG: &str = "Current password is incorrect";
const INVALID: &str = "Invalid code";
const NONE: &str = "Second factor not found";

#[test]
fn a_second_factor_is_offered_confirmed_and_shown() {
    let (api, ann) = service();
    let off = json!({"enabled": false, "enabled_at": null, "recovery_codes_left": 0});
    assert_eq!(api.second_factor(&ann).expect(200).json(), off);
    let offer = api.begin_second_factor(&ann, PASSWORD).expect(200).json();
    let secret = offer["secret"].as_str().expect("a secret").to_owned();
    let parameters = format!("secret={secret}&issuer=Cloakroom&algorithm=SHA1&digits=6&period=30");
    assert_eq!(offer["uri"], json!(format!("otpauth://totp/Cloakroom:ann?{parameters}")));
    let picture = offer["qr_svg"].as_str().expect("a picture");
    assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox="), "{picture}");
    assert!(!picture.contains("script") && picture.ends_with("</svg>"), "{picture}");
    // An offer changes nothing yet.
    assert_eq!(api.second_factor(&ann).expect(200).json(), off);
    assert_eq!(api.sign_in("ann").user["second_factor"], json!(false));
    let factor = SecondFactor { secret, recovery_codes: Vec::new() };
    let codes = api.confirm_second_factor(&ann, &factor.code()).expect(200).json();
    assert_eq!(codes["recovery_codes"].as_array().map(Vec::len), Some(10));
    let shown = api.second_factor(&ann).expect(200);
    let shown = shown.has(json!({"enabled": true, "recovery_codes_left": 10})).json();
    assert!(shown["enabled_at"].is_string(), "{shown}");
    api.me(&ann).expect(200).has(json!({"second_factor": true}));
    api.begin_second_factor(&ann, PASSWORD).refused(409, "Second factor already enabled");
    api.confirm_second_factor(&ann, &factor.code()).refused(409, "Second factor already enabled");
    assert_eq!(notices(&api, &ann, 0), ["second_factor_enabled"]);
}

#[test]
fn an_offer_needs_the_password_and_a_code_of_its_own_secret_in_time() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.confirm_second_factor(&ann, "123456").refused(404, NONE);
    api.begin_second_factor(&ann, "wrong").refused(400, WRONG);
    api.confirm_second_factor(&ann, "123456").refused(404, NONE);
    let secret = || api.offer_second_factor(&ann, PASSWORD);
    let (first, second) = (secret(), secret());
    assert_ne!(first.secret, second.secret);
    for code in [&first.code(), &second.wrong_code(), "A4DQ-OBYH-A4DQ-OBYH", "12345"] {
        // The two secrets have a code in common once in three hundred thousand times.
        api.confirm_second_factor(&ann, code).refused(400, INVALID);
    }
    api.database.run("UPDATE users SET second_factor_pending_until = now() - interval '1 s'");
    api.confirm_second_factor(&ann, &second.code()).refused(404, NONE);
    api.login("ann", PASSWORD).expect(200);
    api.confirm_second_factor(&ann, &secret().code()).expect(200);
}

#[test]
fn a_recovery_code_serves_once_in_place_of_a_code() {
    let (api, ann) = service();
    let codes = api.new_second_factor(&ann, PASSWORD).recovery_codes;
    let login = |code: &str| api.login_with_code("ann", PASSWORD, code);
    for code in [&codes[0], &codes[1].replace('-', "").to_lowercase()] {
        login(code).expect(200);
        login(code).refused(401, INVALID);
    }
    login(&codes[1]).refused(401, INVALID);
    api.second_factor(&ann).expect(200).has(json!({"recovery_codes_left": 8}));
    assert_eq!(notices(&api, &ann, 1), ["recovery_code_used"; 2]);
    // New ones end the old ones, and are paid for by an old one here.
    api.renew_recovery_codes(&ann, "wrong", &codes[2]).refused(400, WRONG);
    api.renew_recovery_codes(&ann, PASSWORD, &codes[0]).refused(400, INVALID);
    let renewed = api.renew_recovery_codes(&ann, PASSWORD, &codes[2]).expect(200).json();
    // One request queues both.
    let told = |first| BTreeSet::from_iter(notices(&api, &ann, first));
    assert_eq!(told(3), ["recovery_code_used", "recovery_codes_renewed"].map(String::from).into());
    let renewed: Vec<String> = serde_json::from_value(renewed["recovery_codes"].clone()).unwrap();
    assert_eq!(renewed.len(), 10);
    for old in [&codes[2], &codes[3]] {
        login(old).refused(401, INVALID);
    }
    login(&renewed[0]).expect(200);
    api.disable_second_factor(&ann, PASSWORD, &renewed[0]).refused(400, INVALID);
    api.disable_second_factor(&ann, PASSWORD, &renewed[1]).expect(204);
    assert_eq!(notices(&api, &ann, 5)[0], "recovery_code_used");
    assert_eq!(told(6), ["recovery_code_used", "second_factor_disabled"].map(String::from).into());
    api.login("ann", PASSWORD).expect(200);
}

#[test]
fn a_second_factor_is_taken_away_with_password_and_code() {
    let (api, ann) = service();
    api.disable_second_factor(&ann, PASSWORD, "123456").refused(404, NONE);
    api.renew_recovery_codes(&ann, PASSWORD, "123456").refused(404, NONE);
    let factor = api.new_second_factor(&ann, PASSWORD);
    api.disable_second_factor(&ann, "wrong", &factor.code()).refused(400, WRONG);
    let answer = api.disable_second_factor(&ann, PASSWORD, &factor.wrong_code());
    answer.refused(400, INVALID).has(json!({"error_code": "SECOND_FACTOR_INVALID"}));
    api.disable_second_factor(&ann, PASSWORD, &factor.code()).expect(204);
    api.login("ann", PASSWORD).expect(200);
    api.me(&ann).expect(200).has(json!({"second_factor": false}));
    assert_eq!(notices(&api, &ann, 0), ["second_factor_enabled", "second_factor_disabled"]);
    // Another one has another secret.
    assert_ne!(api.new_second_factor(&ann, PASSWORD).secret, factor.secret);
    for old in &factor.recovery_codes {
        let stored = format!("sha256('{}') = ANY (recovery_codes)", old.replace('-', ""));
        assert_eq!(api.database.count(&format!("users WHERE {stored}")), 0);
    }
}

#[test]
fn an_administrator_takes_a_second_factor_away_but_not_the_own_without_password_and_code() {
    let (api, ann) = service();
    let (root, other) = (api.sign_up_admin("root"), api.sign_up_admin("other"));
    api.reset_second_factor(&root, UNKNOWN_ID).refused(404, "User not found");
    let own_is_refused = || {
        let answer = api.reset_second_factor(&root, root.id());
        let answer = answer.refused(403, "Not enough permissions");
        answer.has(json!({"error_code": "FORBIDDEN", "reason": "OWN_SECOND_FACTOR"}));
    };
    // Whether or not there is one.
    own_is_refused();
    let factor = api.new_second_factor(&root, PASSWORD);
    own_is_refused();
    api.me(&root).expect(200).has(json!({"second_factor": true}));
    assert_eq!(notices(&api, &root, 0), ["second_factor_enabled"]);
    assert_eq!(api.database.count("audit_events WHERE action = 'second_factor.disable'"), 0);
    api.disable_second_factor(&root, PASSWORD, &factor.code()).expect(204);
    api.new_second_factor(&root, PASSWORD);
    api.reset_second_factor(&other, root.id()).expect(204);
    let root = api.sign_in("root");
    api.new_second_factor(&ann, PASSWORD);
    api.reset_second_factor(&root, ann.id()).expect(204);
    let ann = api.sign_in("ann");
    assert_eq!(ann.user["second_factor"], json!(false));
    assert_eq!(notices(&api, &ann, 0), ["second_factor_enabled", "second_factor_disabled"]);
    // Without one it ends the sessions all the same, and tells nobody.
    api.reset_second_factor(&root, ann.id()).expect(204);
    api.me(&ann).refused(401, "Invalid token");
    assert_eq!(notices(&api, &ann, 2), [""; 0]);
    let query = format!("action=second_factor.disable&subject_id={}", ann.id());
    let events = api.all_events(&root, &query);
    let details: Vec<_> = events.iter().map(|event| &event["details"]["had_one"]).collect();
    assert_eq!(details, [&json!(false), &json!(true)]);
    assert!(events.iter().all(|event| event["actor_id"] == json!(root.id())), "{events:?}");
}

#[test]
fn where_administrators_need_a_second_factor_one_without_may_only_set_it_up() {
    let required = ("CLOAKROOM_ADMIN_SECOND_FACTOR", "required");
    let settings = [required, ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true")];
    let (api, [ann, root]) = Server::with_users(&settings, ["ann", "root"]);
    let token = api.new_token(&root, false);
    for sender in [&root.access, &token] {
        for path in ["/users", "/admin/stats", "/admin/audit", "/users/export"] {
            let answer = api.get(path, sender).refused(403, "Second factor required");
            let reason = "ADMIN_SECOND_FACTOR_REQUIRED";
            answer.has(json!({"error_code": "FORBIDDEN", "reason": reason}));
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
    let query = format!("action=access.denied&actor_id={}", root.id());
    wait_until(|| !api.all_events(&root, &query).is_empty());
    api.disable_second_factor(&root, PASSWORD, &factor.code()).expect(204);
    api.list_users(&root, "").refused(403, "Second factor required");
    let open = api.beside(&[required, ("CLOAKROOM_AUTH_ENABLED", "false")]);
    open.list_users(Anonymous, "").expect(200);
}
