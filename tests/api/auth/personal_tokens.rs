//! Personal access tokens: their form, what they may be used for, and what ends them. `access.rs` has the table of the
//! endpoints that accept them.

use std::collections::HashSet;
use std::thread;

use serde_json::{Value, json};

use crate::harness::*;

const REFUSED: &str = "Not enough permissions";

#[track_caller]
fn tokens(answer: Answer) -> Vec<Value> {
    answer.expect(200).json()["tokens"].as_array().expect("a list").clone()
}

/// A well-formed token that nobody has. The checksum is Python's `zlib.crc32(b"0" * 34)`.
fn unknown_token() -> String {
    format!("cloak_{}0iqUEf", "0".repeat(34))
}

#[test]
fn a_token_is_shown_once_and_only_its_hash_is_stored() {
    let api = Server::start(&[("CLOAKROOM_LOG", "trace")]);
    let ann = api.sign_up("ann");
    let begin = now();
    let answer = api.create_token(&ann, json!({"name": " backup \n"})).expect(201);
    let names = ["created_at", "expires_at", "id", "last_used_at", "name", "read_only", "token"];
    assert_eq!(answer.member_names(), names);
    let answer = answer.has(json!({"name": "backup", "read_only": false, "last_used_at": null}));
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    let digits = token.strip_prefix("cloak_").expect("the prefix");
    assert!(digits.len() == 40 && digits.bytes().all(|b| b.is_ascii_alphanumeric()), "{token}");
    api.me(&token).expect(200).has(json!({"username": "ann"}));
    // The list shows the same, but for the token itself and its use.
    let mut shown = answer.json();
    shown.as_object_mut().unwrap().remove("token");
    let hour: i64 =
        api.database.value("SELECT extract(epoch FROM date_trunc('hour', now(), 'UTC'))::bigint");
    let listed = tokens(api.list_tokens(&ann));
    shown["last_used_at"] = listed[0]["last_used_at"].clone();
    assert_eq!(listed, [shown]);
    let used: i64 =
        api.database.value("SELECT extract(epoch FROM last_used_at)::bigint FROM personal_tokens");
    assert!(
        used == hour || used == hour - 3600,
        "{used} is not {hour}, or an hour began meanwhile"
    );
    let row: String = api.database.value("SELECT personal_tokens::text FROM personal_tokens");
    assert!(
        !row.contains(digits)
            && row.contains(sha256(token.as_bytes()).trim_start_matches("sha256:"))
    );
    let expires_at: i64 =
        api.database.value("SELECT extract(epoch FROM expires_at)::bigint FROM personal_tokens");
    let default = begin + 90 * 86_400;
    assert!((default..=default + 60).contains(&(expires_at as u64)), "{expires_at} {default}");
    assert!(!api.log().contains(digits), "a token is in the log");
}

#[test]
fn a_token_in_place_of_an_id_is_not_logged() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let tokens = [api.new_token(&ann, false), ann.access.clone()];
    for token in &tokens {
        api.delete_token(&ann, token).expect(422);
    }
    wait_until(|| api.log().matches(" DELETE ").count() == tokens.len());
    let log = api.log();
    assert!(tokens.iter().all(|token| !log.contains(&token[..40])), "{log}");
}

#[test]
fn fields_of_a_new_token_are_checked() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    for (body, problems) in [
        (json!({}), &[("body.name", "missing")][..]),
        (json!({"name": null}), &[("body.name", "missing")]),
        (json!({"name": " "}), &[("body.name", "string_too_short")]),
        (json!({"name": "x".repeat(101)}), &[("body.name", "string_too_long")]),
        (json!({"name": "a\0b"}), &[("body.name", "value_error")]),
        (json!({"name": "a\tb"}), &[("body.name", "value_error")]),
        (json!({"name": "a\u{202e}b"}), &[("body.name", "value_error")]),
        (json!({"name": 7}), &[("body.name", "string_type")]),
        (json!({"name": "a", "expires_in_days": 0}), &[("body.expires_in_days", "value_error")]),
        (json!({"name": "a", "expires_in_days": 366}), &[("body.expires_in_days", "value_error")]),
        (json!({"name": "a", "expires_in_days": -1}), &[("body.expires_in_days", "value_error")]),
        (json!({"name": "a", "expires_in_days": 1.5}), &[("body.expires_in_days", "int_parsing")]),
        (json!({"name": "a", "expires_in_days": "9"}), &[("body.expires_in_days", "int_parsing")]),
        (json!({"name": "a", "read_only": "yes"}), &[("body.read_only", "bool_type")]),
        (
            json!({"expires_in_days": u64::MAX, "read_only": 1}),
            &[
                ("body.name", "missing"),
                ("body.expires_in_days", "int_parsing"),
                ("body.read_only", "bool_type"),
            ],
        ),
    ] {
        api.create_token(&ann, body.clone()).case(body).invalid(problems);
    }
    assert_eq!(tokens(api.list_tokens(&ann)), [json!(null); 0]);
    for (body, days, read_only) in [
        (json!({"name": "x".repeat(100), "expires_in_days": 1, "read_only": true}), 1, true),
        (json!({"name": "a", "expires_in_days": 365, "read_only": false}), 365, false),
        (json!({"name": "a", "expires_in_days": 30.0}), 30, false),
        (json!({"name": "a", "expires_in_days": null, "read_only": null, "other": 1}), 90, false),
    ] {
        let id = api.create_token(&ann, body).expect(201).has(json!({"read_only": read_only})).id();
        let found: f64 = api.database.value(&format!(
            "SELECT extract(epoch FROM expires_at - created_at)::float8 / 86400 FROM personal_tokens WHERE id = '{id}'"
        ));
        assert_eq!(found, f64::from(days));
    }
    let listed = json!(tokens(api.list_tokens(&ann)));
    assert_eq!(names_of(&listed, "name"), ["a", "a", "a", &"x".repeat(100)], "newest first");
}

#[test]
fn a_token_is_accepted_where_an_access_token_is() {
    let api = Server::start(&[]);
    let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
    let token = api.new_token(&ann, false);
    assert_eq!(api.profile(&token).expect(200).json(), api.profile(&ann).expect(200).json());
    let file = api.new_file(&token, "a.txt", "text");
    api.update_file(&token, &file, json!({"description": "by a script"})).expect(200);
    assert_eq!(api.all_files(&ann).len(), 1);
    assert_eq!(api.download(&token, &file).expect(200).text(), "text");
    api.show_file(api.new_token(&bob, false), &file).refused(403, REFUSED);
    api.delete_file(&token, &file).expect(204);
    api.list_users(&token, "").refused(403, "Admin privileges required.");
    api.refresh(&token).refused(401, "Invalid token");
}

#[test]
fn a_read_only_token_is_accepted_only_for_reading() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let token = api.new_token(&ann, true);
    let file = api.new_file(&ann, "a.txt", "text");
    api.profile(&token).expect(200);
    assert_eq!(api.download(&token, &file).expect(200).text(), "text");
    api.download_request("HEAD", &token, &file).send().expect(200);
    api.upload(&token, "b.txt", "text").refused(403, REFUSED);
    api.update_file(&token, &file, json!({"description": "x"})).refused(403, REFUSED);
    api.delete_file(&token, &file).refused(403, REFUSED);
    // The token is refused before the id and the body are checked, like a wrong role.
    api.update_file(&token, "no-id", json!({"filename": 7})).refused(403, REFUSED);
    assert_eq!(api.all_files(&ann).len(), 1);
}

#[test]
fn a_token_has_the_role_that_its_user_has_at_the_moment() {
    let api = Server::start(&[("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true")]);
    let (root, ann) = (api.sign_up_admin("root"), api.sign_up("ann"));
    let (token, read_only) = (api.new_token(&ann, false), api.new_token(&ann, true));
    for (role, status) in [("user", 403), ("admin", 200), ("user", 403)] {
        api.update_user(&root, ann.id(), json!({"role": role})).expect(200);
        for token in [&token, &read_only] {
            api.list_users(token, "").case(role).expect(status);
            api.export_full(token).case(role).expect(status);
        }
    }
    api.export_full(unknown_token()).refused(401, "Invalid token");
}

#[test]
fn tokens_end_with_the_password_and_the_account() {
    let api = Server::start(&[("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")]);
    let (root, ann, bob) = (api.sign_up_admin("root"), api.sign_up("ann"), api.sign_up("bob"));
    let of_bob = api.new_token(&bob, false);
    let admin = |change| api.update_user(&root, ann.id(), change).expect(200);
    let run_create_admin = || {
        let password = [("CLOAKROOM_ADMIN_PASSWORD", PASSWORD)];
        let email = ["create-admin", "--email", "ann@example.com"];
        run(&api.database.url, &email, &password).exits(0);
    };
    let causes: [(&str, &dyn Fn()); 6] = [
        ("a change of the password", &|| {
            api.change_password(api.sign_in("ann"), PASSWORD, PASSWORD).expect(200);
        }),
        ("a reset of the password", &|| {
            let token = api.reset_token("ann@example.com");
            api.reset_password(&token, PASSWORD).expect(200);
        }),
        ("a password set by an admin", &|| drop(admin(json!({"password": PASSWORD})))),
        ("deactivation, for good", &|| {
            admin(json!({"is_active": false}));
            admin(json!({"is_active": true}));
        }),
        ("create-admin", &run_create_admin),
        ("deletion", &|| drop(api.delete_user(&root, ann.id()).expect(204))),
    ];
    for (cause, end) in causes {
        let token = api.new_token(api.sign_in("ann"), false);
        api.me(&token).expect(200);
        end();
        api.me(&token).case(cause).refused(401, "Invalid token");
        assert_eq!(api.database.count("personal_tokens"), 1, "{cause}");
    }
    api.me(&of_bob).expect(200);
    let of_root = api.new_token(&root, false);
    api.delete("/users/test-only/delete-all", &root).expect(200);
    for token in [of_bob, of_root] {
        api.me(token).refused(401, "Invalid token");
    }
    assert_eq!(api.database.count("personal_tokens"), 0);
}

#[test]
fn tokens_stay_valid_after_changes_of_other_things_than_the_password_and_the_account() {
    let api = Server::start(&[]);
    let dearer = Server::start_on(&api.database, &[("CLOAKROOM_SCRYPT", "5,8,1")]);
    let (root, ann) = (api.sign_up_admin("root"), api.sign_up("ann"));
    let token = api.new_token(&ann, false);
    let hash =
        || api.database.value::<String>("SELECT password_hash FROM users WHERE username = 'ann'");
    let admin = |change| drop(api.update_user(&root, ann.id(), change).expect(200));
    let stays: [(&str, &dyn Fn()); 7] = [
        ("logout", &|| drop(api.logout(&ann).expect(204))),
        ("an admin who ends all sessions", &|| {
            drop(api.end_user_sessions(&root, ann.id()).expect(204))
        }),
        ("another address", &|| {
            api.update_me(api.sign_in("ann"), json!({"email": "ann2@example.com"})).expect(200);
        }),
        ("another address by an admin", &|| admin(json!({"email": "ann3@example.com"}))),
        ("another role, and the same activity", &|| {
            admin(json!({"role": "admin", "is_active": true}))
        }),
        ("a renewed hash", &|| {
            let before = hash();
            dearer.sign_in("ann");
            assert_ne!(hash(), before);
        }),
        ("another user's password", &|| {
            api.change_password(api.sign_up("bob"), PASSWORD, NEW_PASSWORD).expect(200);
        }),
    ];
    for (event, happen) in stays {
        happen();
        api.me(&token).case(event).expect(200);
    }
}

#[test]
fn a_user_ends_own_tokens_and_nobody_elses() {
    let api = Server::start(&[]);
    let second = Server::start_on(&api.database, &[]);
    let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
    let (token, other) = (api.new_token(&ann, false), api.new_token(&ann, false));
    let ids = names_of(&json!(tokens(api.list_tokens(&ann))), "id");
    second.me(&token).expect(200);
    api.delete_token(&bob, &ids[1]).refused(404, "Token not found");
    assert!(api.delete_token(&ann, &ids[1]).expect(204).bytes.is_empty());
    for process in [&api, &second] {
        process.me(&token).refused(401, "Invalid token");
        process.me(&other).expect(200);
    }
    assert_eq!(names_of(&json!(tokens(second.list_tokens(&ann))), "id"), [ids[0].as_str()]);
    for id in [ids[1].as_str(), UNKNOWN_ID] {
        api.delete_token(&ann, id).refused(404, "Token not found");
    }
    api.delete_token(&ann, "no-id").invalid(&[("path.token_id", "uuid_parsing")]);
    assert_eq!(tokens(api.list_tokens(&bob)), [json!(null); 0]);
}

#[test]
fn of_twenty_parallel_requests_to_end_a_token_one_ends_it() {
    let api = Server::start(&[]);
    let second = Server::start_on(&api.database, &[]);
    let ann = api.sign_up("ann");
    let token = api.new_token(&ann, false);
    let id = names_of(&json!(tokens(api.list_tokens(&ann))), "id").remove(0);
    let statuses = parallel(20, |i| [&api, &second][i % 2].delete_token(&ann, &id).status);
    assert_eq!(tally(statuses), [(204, 1), (404, 19)].into());
    api.me(&token).refused(401, "Invalid token");
}

#[test]
fn an_admin_sees_and_ends_the_tokens_of_any_user() {
    let api = Server::start(&[]);
    let (root, ann, bob) = (api.sign_up_admin("root"), api.sign_up("ann"), api.sign_up("bob"));
    let (first, second) = (api.new_token(&ann, false), api.new_token(&ann, true));
    let of_bob = api.new_token(&bob, false);
    assert_eq!(tokens(api.user_tokens(&root, ann.id())), tokens(api.list_tokens(&ann)));
    api.user_tokens(&bob, bob.id()).refused(403, "Admin privileges required.");
    api.delete_user_tokens(&bob, bob.id()).refused(403, "Admin privileges required.");
    assert!(api.delete_user_tokens(&root, ann.id()).expect(204).bytes.is_empty());
    for token in [&first, &second] {
        api.me(token).refused(401, "Invalid token");
    }
    api.me(&of_bob).expect(200);
    assert_eq!(tokens(api.user_tokens(&root, ann.id())), [json!(null); 0]);
    api.delete_user_tokens(&root, ann.id()).case("there is none any more").expect(204);
    api.delete_user(&root, ann.id()).expect(204);
    for id in [UNKNOWN_ID, ann.id()] {
        api.user_tokens(&root, id).refused(404, "User not found");
        api.delete_user_tokens(&root, id).refused(404, "User not found");
    }
    api.delete_user_tokens(&root, "no-id").invalid(&[("path.user_id", "uuid_parsing")]);
}

#[test]
fn a_user_has_at_most_fifty_live_tokens_also_when_they_are_made_in_parallel() {
    let api = Server::start(&[]);
    let second = Server::start_on(&api.database, &[]);
    let (ann, bob) = (api.sign_up("ann"), api.sign_up("bob"));
    let create = |process: &Server| process.create_token(&ann, json!({"name": "a"}));
    let answers = parallel(60, |i| create([&api, &second][i % 2]));
    assert_eq!(tally(answers.iter().map(|answer| answer.status)), [(201, 50), (409, 10)].into());
    let made = answers.iter().filter(|answer| answer.status == 201);
    let distinct: HashSet<_> = made.map(|answer| answer.json()["token"].to_string()).collect();
    assert_eq!(distinct.len(), 50);
    create(&api).refused(409, "Too many tokens").has(json!({"error_code": "CONFLICT"}));
    assert_eq!(tokens(api.list_tokens(&ann)).len(), 50);
    api.new_token(&bob, false);
    // One that has ended or expired makes room for another.
    let id = names_of(&json!(tokens(api.list_tokens(&ann))), "id").remove(7);
    api.delete_token(&ann, &id).expect(204);
    create(&api).expect(201);
    create(&second).expect(409);
    api.database.run(&format!(
        "UPDATE personal_tokens SET expires_at = now()
         WHERE id = (SELECT id FROM personal_tokens WHERE user_id = '{}' LIMIT 1)",
        ann.id()
    ));
    create(&second).expect(201);
    create(&api).expect(409);
}

#[test]
fn an_expired_token_is_refused_and_removed() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let token = api.new_token(&ann, false);
    let id = names_of(&json!(tokens(api.list_tokens(&ann))), "id").remove(0);
    let staying = api.new_token(&ann, false);
    api.database.run(&format!("UPDATE personal_tokens SET expires_at = now() WHERE id = '{id}'"));
    api.me(&token).refused(401, "Invalid token");
    assert_eq!(tokens(api.list_tokens(&ann)).len(), 1);
    api.delete_token(&ann, &id).refused(404, "Token not found");
    let used = api.database.count("personal_tokens WHERE last_used_at IS NOT NULL");
    assert_eq!(used, 0, "a refused token is not used");
    let _second = Server::start_on(&api.database, &[]);
    wait_until(|| api.database.count("personal_tokens") == 1);
    api.me(&staying).expect(200);
}

#[test]
fn the_hour_of_the_last_use_is_written_once_an_hour() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    let token = api.new_token(&ann, false);
    let row = || {
        api.database
            .value::<String>("SELECT xmin::text || ' ' || last_used_at FROM personal_tokens")
    };
    // Twenty requests that come together all want to write the hour.
    for answer in parallel(20, |_| api.me(&token)) {
        answer.expect(200);
    }
    let first = row();
    for _ in 0..5 {
        api.me(&token).expect(200);
    }
    let began = "date_trunc('hour', now(), 'UTC')";
    let is_same_hour = format!("personal_tokens WHERE last_used_at = {began}");
    // An hour may begin between the requests.
    assert!(row() == first || api.database.count(&is_same_hour) == 1, "{first}, {}", row());
    api.database
        .run(&format!("UPDATE personal_tokens SET last_used_at = {began} - interval '1 h'"));
    api.me(&token).expect(200);
    let hours: f64 = api
        .database
        .value("SELECT extract(epoch FROM last_used_at)::float8 / 3600 FROM personal_tokens");
    assert_eq!(hours.fract(), 0.0);
    assert!(now() as f64 / 3600.0 - hours < 1.02, "{hours}");
}

#[test]
fn malformed_tokens_and_signed_tokens_do_not_touch_the_table() {
    let api = Server::start(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")]);
    let ann = api.sign_up("ann");
    let token = api.new_token(&ann, false);
    let lock = api.database.begin("LOCK TABLE personal_tokens");
    api.me(&token).refused(504, "Request timed out");
    api.me(&ann).expect(200);
    let swapped = if token.ends_with('x') { "y" } else { "x" };
    for (malformed, reason) in [
        (format!("{}{swapped}", &token[..45]), "another last character"),
        (token[..45].to_owned(), "cut short"),
        (format!("{token}0"), "a character too many"),
        (token.replacen("cloak_", "cloak_0", 1), "one too many in the middle"),
        ("cloak_".to_owned(), "the prefix alone"),
        (format!("cloak_{}", "-".repeat(40)), "40 characters that are no digits"),
        (format!("cloak_{}", "0".repeat(5000)), "far too long"),
        (token.replacen("cloak_", "CLOAK_", 1), "another prefix"),
        (token["cloak_".len()..].to_owned(), "no prefix"),
    ] {
        api.me(&malformed).case(reason).refused(401, "Invalid token");
    }
    lock.roll_back();
    api.me(unknown_token()).refused(401, "Invalid token");
    api.me(&token).expect(200);
}

#[test]
fn requests_with_tokens_share_a_bucket_of_their_user_and_rejected_ones_count_for_their_address() {
    let api = Server::start(&[
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "true"),
        ("CLOAKROOM_RATE_LIMIT_AUTH", "100"),
        ("CLOAKROOM_RATE_LIMIT_GENERAL", "4"),
    ]);
    let ann = api.sign_up("ann");
    let (token, other) = (api.new_token(&ann, false), api.new_token(&ann, true));
    for (sender, remaining) in
        [(&token, 3), (&ann.access, 3), (&other, 2), (&token, 1), (&other, 0), (&ann.access, 2)]
    {
        assert_eq!(api.me(sender).expect(200).rate_limit(), (4, remaining));
    }
    api.me(&token).refused(429, "Rate limit exceeded");
    let malformed = "cloak_nonsense".to_owned();
    for (rejected, remaining) in
        [(&malformed, 3), (&unknown_token(), 2), (&malformed, 1), (&malformed, 0)]
    {
        assert_eq!(api.me(rejected).refused(401, "Invalid token").rate_limit(), (4, remaining));
    }
    api.me(unknown_token()).refused(429, "Rate limit exceeded");
    // A request that is refused for its token counts like one that is refused for its role.
    let read_only = api.new_token(api.sign_up("bob"), true);
    for remaining in [3, 2, 1, 0] {
        let answer = api.request("POST", "/auth/logout").by(&read_only).send();
        assert_eq!(answer.refused(403, REFUSED).rate_limit(), (4, remaining));
    }
    api.me(&read_only).refused(429, "Rate limit exceeded");
}

#[test]
fn no_token_outlives_a_change_of_the_password_that_happens_at_the_same_time() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    // The request for the token was authenticated, and waits for the change of the password.
    let change = api.database.begin(
        "UPDATE users SET password_hash = 'x', credentials_version = credentials_version + 1",
    );
    thread::scope(|scope| {
        let create = scope.spawn(|| api.create_token(&ann, json!({"name": "a"})));
        api.database.wait_for_blocked_statement();
        change.commit();
        create.join().expect("an answer").refused(401, "Invalid token");
    });
    // The other way round: the change of the password waits for the token.
    let bob = api.sign_up("bob");
    let create = api.database.begin(
        "SELECT FROM users WHERE username = 'bob' FOR NO KEY UPDATE;
         INSERT INTO personal_tokens (id, user_id, token_hash, name, read_only, expires_at)
         SELECT gen_random_uuid(), id, 'x', 'a', false, now() + interval '1 day' FROM users WHERE username = 'bob'",
    );
    thread::scope(|scope| {
        let change = scope.spawn(|| api.change_password(&bob, PASSWORD, NEW_PASSWORD));
        api.database.wait_for_blocked_statement();
        create.commit();
        change.join().expect("an answer").expect(200);
    });
    assert_eq!(api.database.count("personal_tokens"), 0);
}

#[test]
fn a_killed_backend_fails_no_request_with_a_token() {
    let api = Server::start(&[("CLOAKROOM_DATABASE_POOL_SIZE", "2")]);
    let token = api.new_token(api.sign_up("ann"), false);
    for _ in 0..10 {
        api.me(&token).expect(200);
        api.database.end_connections("true");
        api.me(&token).expect(200);
    }
}

#[test]
fn the_development_admin_has_no_tokens() {
    let api = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    api.create_token(Anonymous, json!({"name": "a"})).refused(403, REFUSED);
    assert_eq!(tokens(api.list_tokens(Anonymous)), [json!(null); 0]);
    api.delete_token(Anonymous, UNKNOWN_ID).refused(404, "Token not found");
}
