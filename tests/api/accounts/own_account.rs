//! Registration, login, the current user's profile, password change.

use crate::harness::*;

const EVERYTHING_BUT_STATS: &str = "created_at email file_quota has_identity has_password id is_active last_login \
                                    name permissions role second_factor storage_quota updated_at username";

#[test]
fn registration_by_username_gives_the_full_user() {
    let api = Server::start(&[]);
    let body = json!({"username": "Ann_1", "email": "Ann@Example.com", "password": PASSWORD, "name": "  Ann  "});
    let answer = api.register_with(body).expect(201).has(json!({
        "username": "Ann_1",
        "email": "Ann@Example.com",
        "name": "Ann",
        "role": "user",
        "permissions": [],
        "last_login": null,
    }));
    assert_eq!(answer.member_names().join(" "), EVERYTHING_BUT_STATS);
    let created = answer.json()["created_at"].as_str().expect("text").to_owned();
    assert!(created.len() == 27 && created.ends_with('Z'), "{created}");
}

#[test]
fn registration_by_e_mail_signs_in() {
    let api = Server::start(&[]);
    let answer = api.register_with(json!({"email": "bo@example.com", "password": PASSWORD}));
    let answer = answer.expect(201).has(json!({"token_type": "bearer", "expires_in": 3600}));
    let tokens = answer.tokens();
    assert_eq!(tokens.user["email"], "bo@example.com");
    assert_eq!(tokens.user["username"], json!(null));
    // The sign-in is that of the registration, to the microsecond.
    assert_eq!(tokens.user["last_login"], tokens.user["created_at"]);
    api.me(&tokens).expect(200).has(json!({"last_login": tokens.user["created_at"]}));
    let signed_in = "users WHERE username IS NULL AND last_login = created_at";
    assert_eq!(api.database.count(signed_in), 1);
    api.refresh(&tokens.refresh).expect(200);
}

#[test]
fn names_and_addresses_are_taken_without_regard_to_case_wherever_they_are_given() {
    let (api, [root, ann, _]) = Server::with_users(&[], ["root", "ann", "bob"]);
    for (field, taken, message) in [
        ("username", "BOB", "Username already exists"),
        ("email", "BOB@Example.com", "Email already exists"),
    ] {
        let new = json!({"username": "new", "email": "new@example.com", "name": "x", "password": PASSWORD});
        let body = with_member(&new, field, taken);
        api.register_with(body.clone()).refused(400, message);
        api.create_user(&root, body).refused(409, message);
        api.update_me(&ann, json!({field: taken})).refused(409, message);
        api.update_user(&root, ann.id(), json!({field: taken})).refused(409, message);
    }
    let without_username = json!({"email": "Bob@example.com", "password": PASSWORD});
    api.register_with(without_username).refused(400, "Email already exists");
    assert_eq!(api.database.count("users"), 3);
    // The account's own in another case are not taken.
    api.update_me(&ann, json!({"username": "ANN", "email": "ANN@example.com"})).expect(200);
    api.update_user(&root, ann.id(), json!({"email": "Ann@example.com"})).expect(200);
}

#[test]
fn an_address_is_one_in_each_spelling_of_its_domain_and_shown_as_given() {
    let (api, [root, carl]) = Server::with_users(&[], ["root", "carl"]);
    let spellings = [
        "Bo@b\u{fc}cher.example",
        "bo@\u{ff22}\u{dc}CHER.example",
        "bo@xn--bcher-kva.example",
        "BO@b\u{fc}cher.ex\u{ff41}mple",
    ];
    for given in spellings {
        let body = json!({"username": "bob", "email": given, "password": PASSWORD});
        let id = api.register_with(body).expect(201).has(json!({"email": given})).id();
        for other in spellings {
            assert_eq!(api.sign_in(other).id(), id, "{given}, {other}");
            for body in [
                json!({"username": "other", "email": other, "password": PASSWORD}),
                json!({"email": other, "password": PASSWORD}),
            ] {
                api.register_with(body).refused(400, "Email already exists");
            }
            let email = json!({"email": other});
            api.update_me(&carl, email.clone()).refused(409, "Email already exists");
            api.update_user(&root, carl.id(), email).refused(409, "Email already exists");
        }
        // The account itself may change from one spelling to another.
        let bob = api.sign_in("bob");
        for own in [spellings[2], given] {
            api.update_me(&bob, json!({"email": own})).expect(200).has(json!({"email": own}));
            api.update_user(&root, &id, json!({"email": given})).expect(200);
            assert_eq!(api.sign_in(spellings[1]).id(), id);
        }
        // With the account its address is free again, in all spellings.
        api.delete_user(&root, &id).expect(204);
        api.login(given, PASSWORD).expect(401);
        assert_eq!(api.database.count("users WHERE is_deleted AND email_key IS NOT NULL"), 0);
    }
    // A domain that has no ASCII form is no domain.
    let bad = json!({"email": "dan@\u{628}a\u{660}1.example", "password": PASSWORD});
    api.register_with(bad).invalid(&[("body.email", "value_error")]);
}

#[test]
fn login_takes_username_or_e_mail_as_json_or_form() {
    let (api, [_]) = Server::with_users(&[], ["ann"]);
    for body in [
        json!({"username": "ann", "password": PASSWORD}),
        json!({"username": "ANN", "password": PASSWORD}),
        json!({"username": "Ann@Example.com", "password": PASSWORD}),
        json!({"email": "ann@example.com", "password": PASSWORD}),
        json!({"email": "ann@example.com", "username": null, "password": PASSWORD}),
    ] {
        api.login_with(body).expect(200).tokens();
    }
    let form = "application/x-www-form-urlencoded";
    let spelt = "Application/X-WWW-Form-Urlencoded; charset=utf-8";
    let json = r#" {"username": "ann", "password": "correct horse"}"#;
    for (body, content_type, reason) in [
        ("grant_type=password&username=ann&password=correct%20horse", form, "the form of OAuth2"),
        ("username=ann%40example.com&password=correct+horse", spelt, "other case, a parameter"),
        (json, form, "JSON that claims to be a form"),
        (json.trim(), "text/plain", "JSON that claims to be text"),
    ] {
        let request = api.request("POST", "/auth/login").header("Content-Type", content_type);
        let tokens = request.body(body).send().case(reason).expect(200).tokens();
        assert_eq!(tokens.user["username"], "ann");
        assert!(tokens.user["last_login"].is_string());
    }
}

/// Sends an HTML form.
fn send_form(api: &Server, path: &str, body: &str) -> Answer {
    api.request("POST", path).form(body.to_owned()).send()
}

#[test]
fn a_refused_form_says_why_in_the_words_of_oauth_too() {
    let (api, [_, _]) = Server::with_users(&[], ["ann", "carl"]);
    api.database.run("UPDATE users SET is_active = false WHERE username = 'carl'");
    let (login, refresh) = ("/auth/login", "/auth/refresh");
    let (grant, request) = ("invalid_grant", "invalid_request");
    for (path, body, status, error, message) in [
        (login, "username=ann&password=x", 401, grant, "Invalid username or password"),
        (login, "username=carl&password=correct+horse", 403, grant, "Inactive or deleted user."),
        (login, "grant_type=password&username=ann", 422, request, "Validation failed"),
        (login, "username=%ff&password=x", 422, request, "Validation failed"),
        (refresh, "refresh_token=x", 401, grant, "Invalid token"),
        (refresh, "grant_type=refresh_token", 401, request, "Authentication required"),
    ] {
        let answer = send_form(&api, path, body).case(body).expect(status);
        let answer = answer.has(json!({"error": error, "error_description": message}));
        let names = answer.member_names();
        assert!(["detail", "error_code", "reason"].iter().all(|n| names.contains(&(*n).into())));
    }
    // Nobody else is told so: neither clients that send JSON, whatever they call it, nor where envelopes are asked for.
    let json = r#"{"username": "ann", "password": "x"}"#;
    let names = ["detail", "error_code", "hint", "reason"];
    assert_eq!(send_form(&api, login, json).expect(401).member_names(), names);
    assert_eq!(api.login("ann", "x").expect(401).member_names(), names);
    let api = Server::start(&[("CLOAKROOM_ERROR_FORMAT", "envelope")]);
    let answer = send_form(&api, login, "username=ann&password=x").expect(401);
    assert_eq!(answer.member_names(), ["error"]);
    assert_eq!(answer.json()["error"]["code"], "UNAUTHORIZED");
}

#[test]
fn what_is_wrong_is_answered_alike_and_an_inactive_account_is_told_so_only_with_its_password() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    for (name, password) in [
        ("ann", "wrong horse"),
        ("ann", "correct horse "),
        ("nobody", PASSWORD),
        ("x@example.com", "x"),
    ] {
        let answer = api.login(name, password).refused(401, "Invalid username or password");
        assert_eq!(answer.header("WWW-Authenticate"), "Bearer");
    }
    api.database.run("UPDATE users SET is_active = false");
    api.login("ann", PASSWORD).refused(403, "Inactive or deleted user.");
    api.login("ann", "wrong horse").refused(401, "Invalid username or password");
    api.me(&ann).refused(401, "User not found or inactive");
    api.refresh(&ann.refresh).refused(401, "User not found or inactive");
    api.database.run("UPDATE users SET is_active = true, is_deleted = true");
    api.login("ann", PASSWORD).refused(401, "Invalid username or password");
    api.me(&ann).refused(401, "User not found or inactive");
}

/// So the time tells neither whether there is an account nor how old its hash is. The cheaper hash takes a fifth of the
/// configured work, the dearer one three times as much.
#[test]
fn login_does_the_same_work_whatever_the_stored_hash_costs() {
    let api = Server::start(&[("CLOAKROOM_SCRYPT", "13,8,5")]);
    for (name, cost) in [("cheap", "13,8,1"), ("dear", "13,8,15")] {
        Server::start_on(&api.database, &[("CLOAKROOM_SCRYPT", cost)]).register(name).expect(201);
    }
    api.register("usual").expect(201);
    // Whatever else the machine does makes single measurements uneven, so more are added until their sums agree.
    let compare = |names: &[&str]| {
        let mut times = vec![0; names.len()];
        let agree = (0..8).any(|_| {
            for _ in 0..2 {
                for (time, name) in times.iter_mut().zip(names) {
                    let before = api.cpu_ticks();
                    for _ in 0..3 {
                        api.login(name, "wrong horse").expect(401);
                    }
                    *time += api.cpu_ticks() - before;
                }
            }
            times.iter().all(|time| (0.85..1.18).contains(&(*time as f64 / times[0] as f64)))
        });
        assert!(agree, "{names:?}: {times:?}");
    };
    compare(&["nobody", "usual", "cheap"]);
    // The process learns of dearer hashes when it meets one.
    api.login("dear", "wrong horse").expect(401);
    compare(&["nobody", "usual", "cheap", "dear"]);
}

#[test]
fn a_hash_of_other_parameters_is_renewed_at_login() {
    let (api, [_]) = Server::with_users(&[("CLOAKROOM_SCRYPT", "4,8,1")], ["ann"]);
    let dearer = Server::start_on(&api.database, &[("CLOAKROOM_SCRYPT", "5,8,1")]);
    let hash = || api.database.value::<String>("SELECT password_hash FROM users");
    dearer.login("ann", "wrong horse").expect(401);
    assert!(hash().starts_with("$scrypt$ln=4,r=8,p=1$"), "{}", hash());
    dearer.sign_in("ann");
    assert!(hash().starts_with("$scrypt$ln=5,r=8,p=1$"), "{}", hash());
    let renewed = hash();
    dearer.sign_in("ann");
    assert_eq!(hash(), renewed, "a hash of the configured parameters stays");
}

#[test]
fn both_paths_of_the_current_user_give_the_profile_with_stats_that_follow_the_files() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let me = api.me(&ann).expect(200).has(json!({"id": ann.user["id"]}));
    let profile = api.profile(&ann).expect(200);
    let stats = json!({
        "total_uploads": 0, "total_storage_used": 0, "storage_quota": 1 << 30, "file_quota": 100_000
    });
    let profile = profile.has(json!({ "stats": stats }));
    assert_eq!(profile.json(), me.json());
    assert!(!me.member_names().contains(&"password_hash".to_owned()));
    api.database.insert_files(ann.id(), &[1, 2, 3, 4]);
    api.database.run("DELETE FROM files WHERE file_size = 2");
    assert_eq!(api.file_stats(&ann), (3, 8));
}

#[test]
fn an_update_changes_what_is_given_and_nothing_else() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    let [by_id, of_admins] = ["users", "admin/users"].map(|list| format!("/{list}/{}", ann.id()));
    api.update_me(&ann, json!({})).expect(200);
    for (path, sender, field, value) in [
        ("/users/me", &ann, "name", json!("Ann")),
        ("/users/me", &ann, "username", json!("ANN")),
        ("/users/me", &ann, "email", json!("ann2@example.com")),
        (&by_id, &root, "name", json!("Anna")),
        (&by_id, &root, "email", json!("ann@example.org")),
        (&of_admins, &root, "username", json!("anna")),
        (&of_admins, &root, "permissions", json!(["a"])),
        (&by_id, &root, "permissions", json!([])),
    ] {
        let before = api.show_user(&root, ann.id()).expect(200).json();
        let change = json!({field: value, "role": null, "created_at": null, "id": 7});
        api.put(path, sender, change).expect(200).has(json!({field: value}));
        let after = api.show_user(&root, ann.id()).expect(200).json();
        assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
        let expected = with_member(&before, field, value);
        assert_eq!(after, with_member(&expected, "updated_at", after["updated_at"].clone()));
    }
    // None of these changes concerns what a token says, so the user stays signed in.
    api.profile(&ann).expect(200);
    api.login("ann@example.org", PASSWORD).expect(200);
    api.login("ann@example.com", PASSWORD).expect(401);
}

#[test]
fn an_own_change_takes_no_role_right_quota_or_password() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let before = api.me(&ann).expect(200).json();
    for (field, value) in [
        ("role", json!("admin")),
        ("permissions", json!(["all"])),
        ("is_active", json!(false)),
        ("is_admin", json!(true)),
        ("storage_quota", json!(1_u64 << 40)),
        ("file_quota", json!(1_000_000)),
        ("id", json!(UNKNOWN_ID)),
        ("password", json!(NEW_PASSWORD)),
        ("Password", json!(NEW_PASSWORD)),
        ("new_password", json!(NEW_PASSWORD)),
        ("password_hash", json!("x")),
    ] {
        api.update_me(&ann, json!({field: value})).case(field).expect(200);
        let after = api.me(&ann).expect(200).json();
        let after = with_member(&after, "updated_at", before["updated_at"].clone());
        assert_eq!(after, before, "{field}");
    }
    api.login("ann", NEW_PASSWORD).expect(401);
    api.login("ann", PASSWORD).expect(200).tokens();
}

#[test]
fn a_password_change_needs_the_current_one() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let wrong = api.change_password(&ann, "wrong horse", NEW_PASSWORD);
    wrong.refused(400, "Current password is incorrect");
    let short = api.change_password(&ann, PASSWORD, "short");
    let short = short.invalid(&[("body.new_password", "string_too_short")]);
    assert_eq!(short.json()["detail"][0]["msg"], "Password must be at least 8 characters long");
    let body = json!({"old_password": PASSWORD, "new_password": NEW_PASSWORD});
    let answer = api.post("/users/change-password", &ann, body).expect(200);
    assert_eq!(answer.json(), json!({"message": "Password changed successfully"}));
    api.login("ann", PASSWORD).expect(401);
    api.login("ann", NEW_PASSWORD).expect(200);
}

#[test]
fn without_authentication_every_request_is_the_development_admin() {
    let api = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    let me =
        api.me(Anonymous).expect(200).has(json!({"username": "dev_admin", "role": "admin"})).json();
    api.database.run("DELETE FROM users");
    let request = api.request("GET", "/users/me").header("Authorization", "nonsense");
    request.send().expect(200).has(json!({"id": me["id"]})); // the id is fixed
    api.update_me(Anonymous, json!({"name": "x"})).refused(403, "Not enough permissions");
    let change = json!({"name": "x"});
    api.update_user(Anonymous, me["id"].as_str().unwrap(), change).refused(404, "User not found");
    api.logout(Anonymous).expect(204);
    api.me(Anonymous).expect(200);
    // Another account may have its name, and nobody can sign in to it.
    api.sign_up("dev_admin");
    api.login("dev_admin@example.com", PASSWORD).expect(200);
    let strict = Server::start_on(&api.database, &[]);
    let forged =
        sign(json!({"sub": me["id"], "role": "admin", "exp": FAR_FUTURE, "iat": 1_700_000_000}));
    strict.me(&forged).refused(401, "User not found or inactive");
}
