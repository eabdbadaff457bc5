//! Registration, login, profile, password change.

use serde_json::json;

use crate::harness::{PASSWORD, Server, median, parallel};

#[test]
fn registration_by_username_gives_the_full_user() {
    let server = Server::start(&[]);
    let user = server
        .post("/auth/register", json!({"username": "Ann_1", "email": "Ann@Example.com", "password": PASSWORD, "name": "  Ann  "}))
        .expect(201)
        .json();
    let fields: Vec<_> = user.as_object().expect("an object").keys().collect();
    assert_eq!(
        fields,
        [
            "created_at",
            "email",
            "id",
            "is_active",
            "last_login",
            "name",
            "permissions",
            "role",
            "updated_at",
            "username"
        ]
    );
    assert_eq!(
        (
            &user["username"],
            &user["email"],
            &user["name"],
            &user["role"],
            &user["permissions"],
            &user["last_login"]
        ),
        (
            &json!("Ann_1"),
            &json!("Ann@Example.com"),
            &json!("Ann"),
            &json!("user"),
            &json!([]),
            &json!(null)
        )
    );
    let created = user["created_at"].as_str().expect("text");
    assert!(
        created.len() == "2026-01-01T00:00:00.000000Z".len() && created.ends_with('Z'),
        "{created}"
    );
}

#[test]
fn registration_by_e_mail_signs_in() {
    let server = Server::start(&[]);
    let answer = server
        .post("/auth/register", json!({"email": "bo@example.com", "password": PASSWORD}))
        .expect(201);
    let body = answer.json();
    assert_eq!((&body["token_type"], &body["expires_in"]), (&json!("bearer"), &json!(3600)));
    assert_eq!(
        (&body["user"]["email"], &body["user"]["username"]),
        (&json!("bo@example.com"), &json!(null))
    );
    let tokens = answer.tokens();
    server.get("/auth/me", &tokens.access).expect(200);
    server.post("/auth/refresh", json!({"refresh_token": tokens.refresh})).expect(200);
}

#[test]
fn names_and_addresses_are_taken_without_regard_to_case() {
    let server = Server::start(&[]);
    server.sign_up("ann");
    let register = |username: &str, email: &str| {
        server.post(
            "/auth/register",
            json!({"username": username, "email": email, "password": PASSWORD}),
        )
    };
    register("ANN", "other@example.com").refused(400, "Username already exists");
    register("other", "ANN@EXAMPLE.COM").refused(400, "Email already exists");
    server
        .post("/auth/register", json!({"email": "Ann@example.com", "password": PASSWORD}))
        .refused(400, "Email already exists");
    assert_eq!(server.database.value::<i64>("SELECT count(*) FROM users"), 1);
}

#[test]
fn twenty_parallel_registrations_of_one_name_make_one_account() {
    let server = Server::start(&[]);
    let statuses = parallel(20, |i| {
        let body = json!({"username": "ann", "email": format!("ann{i}@example.com"), "password": PASSWORD});
        server.post("/auth/register", body).status
    });
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 400).count(), 19, "{statuses:?}");
}

#[test]
fn login_takes_username_or_e_mail_as_json_or_form() {
    let server = Server::start(&[]);
    server.sign_up("ann");
    for body in [
        json!({"username": "ann", "password": PASSWORD}),
        json!({"username": "ANN", "password": PASSWORD}),
        json!({"username": "Ann@Example.com", "password": PASSWORD}),
        json!({"email": "ann@example.com", "password": PASSWORD}),
        json!({"email": "ann@example.com", "username": null, "password": PASSWORD}),
    ] {
        server.post("/auth/login", body).expect(200).tokens();
    }
    for (body, content_type) in [
        (
            "grant_type=password&username=ann&password=correct%20horse",
            "application/x-www-form-urlencoded",
        ),
        (
            "username=ann%40example.com&password=correct+horse",
            "Application/X-WWW-Form-Urlencoded; charset=utf-8",
        ),
        (
            r#" {"username": "ann", "password": "correct horse"}"#,
            "application/x-www-form-urlencoded",
        ),
        (r#"{"username": "ann", "password": "correct horse"}"#, "text/plain"),
    ] {
        let answer = server
            .api("POST", "/auth/login")
            .header("Content-Type", content_type)
            .body(body)
            .send();
        let tokens = answer.expect(200).tokens();
        assert_eq!(tokens.user["username"], "ann");
        assert!(tokens.user["last_login"].is_string());
    }
}

#[test]
fn a_wrong_name_and_a_wrong_password_are_answered_alike() {
    let server = Server::start(&[]);
    server.sign_up("ann");
    for (name, password) in [
        ("ann", "wrong horse"),
        ("ann", "correct horse "),
        ("nobody", PASSWORD),
        ("x@example.com", "x"),
    ] {
        let answer = server.post("/auth/login", json!({"username": name, "password": password}));
        let answer = answer.refused(401, "Invalid username or password");
        assert_eq!(answer.header("WWW-Authenticate"), "Bearer");
    }
}

#[test]
fn an_inactive_account_is_told_so_only_with_its_password() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    server.database.run("UPDATE users SET is_active = false");
    let login = |password: &str| {
        server.post("/auth/login", json!({"username": "ann", "password": password}))
    };
    login(PASSWORD).refused(403, "Inactive or deleted user.");
    login("wrong horse").refused(401, "Invalid username or password");
    server.get("/auth/me", &ann.access).refused(401, "User not found or inactive");
    server
        .post("/auth/refresh", json!({"refresh_token": ann.refresh}))
        .refused(401, "User not found or inactive");
    server.database.run("UPDATE users SET is_active = true, is_deleted = true");
    login(PASSWORD).refused(401, "Invalid username or password");
    server.get("/auth/me", &ann.access).refused(401, "User not found or inactive");
}

/// The default cost of a hash, so that its time stands out from the rest.
#[test]
fn login_takes_as_long_for_an_unknown_user_as_for_a_wrong_password() {
    let server = Server::start(&[("CLOAKROOM_SCRYPT", "14,8,5")]);
    server.sign_up("ann");
    let time = |name: &str| {
        let begin = std::time::Instant::now();
        server
            .post("/auth/login", json!({"username": name, "password": "wrong horse"}))
            .expect(401);
        begin.elapsed()
    };
    // In turn, so that whatever else the machine does meets both alike.
    let (known, unknown): (Vec<_>, Vec<_>) = (0..21).map(|_| (time("ann"), time("nobody"))).unzip();
    let ratio = median(known).as_secs_f64() / median(unknown).as_secs_f64();
    assert!((0.8..1.25).contains(&ratio), "{ratio}");
}

#[test]
fn a_hash_of_other_parameters_is_renewed_at_login() {
    let server = Server::start(&[("CLOAKROOM_SCRYPT", "4,8,1")]);
    server.sign_up("ann");
    let dearer = Server::start_on(&server.database, &[("CLOAKROOM_SCRYPT", "5,8,1")]);
    let hash = || server.database.value::<String>("SELECT password_hash FROM users");
    dearer.post("/auth/login", json!({"username": "ann", "password": "wrong horse"})).expect(401);
    assert!(hash().starts_with("$scrypt$ln=4,r=8,p=1$"), "{}", hash());
    dearer.sign_in("ann");
    assert!(hash().starts_with("$scrypt$ln=5,r=8,p=1$"), "{}", hash());
    let renewed = hash();
    dearer.sign_in("ann");
    assert_eq!(hash(), renewed, "a hash of the right parameters stays");
}

#[test]
fn both_paths_of_the_current_user_give_the_profile_with_stats() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let me = server.get("/auth/me", &ann.access).expect(200).json();
    assert_eq!(server.get("/users/me", &ann.access).expect(200).json(), me);
    assert_eq!(me["stats"], json!({"total_uploads": 0, "total_storage_used": 0}));
    assert_eq!(me["id"], ann.user["id"]);
    assert!(me.get("password_hash").is_none());
}

#[test]
fn statistics_follow_the_files() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    server.database.run(
        "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
         SELECT gen_random_uuid(), u.id, 'f', 'f', 'text/plain', g, 'f' || g, 'h' FROM users u, generate_series(1, 4) g;
         DELETE FROM files WHERE file_size = 2",
    );
    let me = server.get("/users/me", &ann.access).expect(200).json();
    assert_eq!(me["stats"], json!({"total_uploads": 3, "total_storage_used": 8}));
}

#[test]
fn a_user_changes_what_is_given_and_nothing_else() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    server.sign_up("bob");
    let update = |body| server.api("PUT", "/users/me").bearer(&ann.access).json(body).send();
    let before = update(json!({})).expect(200).json();
    let after = update(json!({"name": "Ann", "username": null})).expect(200).json();
    assert_eq!(
        (&after["name"], &after["username"], &after["email"]),
        (&json!("Ann"), &json!("ann"), &before["email"])
    );
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    assert_eq!(after["created_at"], before["created_at"]);
    update(json!({"username": "BOB"})).refused(409, "Username already exists");
    update(json!({"email": "Bob@example.com"})).refused(409, "Email already exists");
    update(json!({"username": "ANN", "email": "ann2@example.com"})).expect(200);
    server
        .post("/auth/login", json!({"username": "ann2@example.com", "password": PASSWORD}))
        .expect(200);
    server
        .post("/auth/login", json!({"username": "ann@example.com", "password": PASSWORD}))
        .expect(401);
}

#[test]
fn a_password_change_needs_the_current_one_and_ends_other_sessions() {
    let server = Server::start(&[]);
    let (other, ann) = (server.sign_up("ann"), server.sign_in("ann"));
    let change =
        |body| server.api("POST", "/users/change-password").bearer(&ann.access).json(body).send();
    change(json!({"current_password": "wrong horse", "new_password": "battery staple"}))
        .refused(400, "Current password is incorrect");
    let answer = change(json!({"current_password": PASSWORD, "new_password": "short"}));
    let answer = answer.invalid(&[("body.new_password", "string_too_short")]);
    assert_eq!(answer.json()["detail"][0]["msg"], "Password must be at least 8 characters long");
    let answer =
        change(json!({"old_password": PASSWORD, "new_password": "battery staple"})).expect(200);
    assert_eq!(answer.json(), json!({"message": "Password changed successfully"}));
    server.get("/auth/me", &ann.access).expect(200);
    server.get("/auth/me", &other.access).refused(401, "Invalid token");
    server
        .post("/auth/refresh", json!({"refresh_token": other.refresh}))
        .refused(401, "Invalid token");
    server.post("/auth/login", json!({"username": "ann", "password": PASSWORD})).expect(401);
    server
        .post("/auth/login", json!({"username": "ann", "password": "battery staple"}))
        .expect(200);
}

#[test]
fn without_authentication_every_request_is_the_development_admin() {
    let server = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    let me = server.api("GET", "/auth/me").send().expect(200).json();
    assert_eq!((&me["username"], &me["role"]), (&json!("dev_admin"), &json!("admin")));
    server.database.run("DELETE FROM users");
    let again = server
        .api("GET", "/users/me")
        .header("Authorization", "nonsense")
        .send()
        .expect(200)
        .json();
    assert_eq!(again["id"], me["id"], "a fixed id");
    server
        .api("POST", "/users/change-password")
        .json(json!({"current_password": PASSWORD, "new_password": "battery staple"}))
        .send()
        .refused(400, "Current password is incorrect");
    server.api("POST", "/auth/logout").send().expect(204);
    server.api("GET", "/auth/me").send().expect(200);
    // Its name is nobody's, and it cannot be signed in to.
    server.sign_up("dev_admin");
    server
        .post("/auth/login", json!({"username": "dev_admin@example.com", "password": PASSWORD}))
        .expect(200);
    let strict = Server::start_on(&server.database, &[]);
    let sub = me["id"].as_str().expect("an id");
    let forged = crate::tokens::sign(
        json!({"sub": sub, "role": "admin", "exp": 4_000_000_000_u64, "iat": 1_700_000_000}),
    );
    strict.get("/auth/me", &forged).refused(401, "User not found or inactive");
}
