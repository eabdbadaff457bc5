//! Password reset.

use serde_json::json;

use crate::harness::{Answer, PASSWORD, Server, eventually, parallel};
use crate::tokens::{now, sign};

/// Asks for a reset and takes the token from the development log.
fn reset_token(server: &Server, email: &str) -> String {
    let count = || server.log().matches("password reset token").count();
    let before = count();
    let answer = server.post("/auth/request-password-reset", json!({ "email": email })).expect(200);
    assert_eq!(
        answer.json(),
        json!({"message": "If the e-mail exists, a reset message has been sent"})
    );
    eventually(|| (count() > before).then_some(()));
    let line = server.logged("password reset token");
    line.split_whitespace().last().expect("a token").to_owned()
}

fn reset(server: &Server, token: &str, password: &str) -> Answer {
    server.post("/auth/reset-password", json!({"token": token, "new_password": password}))
}

#[test]
fn a_reset_token_sets_a_password_and_ends_all_sessions() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let token = reset_token(&server, "ANN@example.com");
    assert!(!server.log().contains("ann@example.com") && !server.log().contains("ANN@example.com"));
    let answer =
        reset(&server, &token, "short").invalid(&[("body.new_password", "string_too_short")]);
    assert_eq!(
        answer.json()["field_errors"]["new_password"][0],
        "Password must be at least 8 characters long"
    );
    assert_eq!(
        reset(&server, &token, "battery staple").expect(200).json(),
        json!({"message": "Password has been reset"})
    );
    server.get("/auth/me", &ann.access).refused(401, "Invalid token");
    server
        .post("/auth/refresh", json!({"refresh_token": ann.refresh}))
        .refused(401, "Invalid token");
    server.post("/auth/login", json!({"username": "ann", "password": PASSWORD})).expect(401);
    server
        .post("/auth/login", json!({"username": "ann", "password": "battery staple"}))
        .expect(200);
    reset(&server, &token, "battery staple").refused(400, "Invalid or expired token");
    let used = "SELECT count(*) FROM used_password_reset_tokens JOIN users ON users.id = user_id";
    assert_eq!(server.database.value::<i64>(used), 1);
}

#[test]
fn twenty_parallel_uses_of_one_reset_token_change_the_password_once() {
    let server = Server::start(&[]);
    server.sign_up("ann");
    let token = reset_token(&server, "ann@example.com");
    let statuses = parallel(20, |i| reset(&server, &token, &format!("battery staple {i}")).status);
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 400).count(), 19, "{statuses:?}");
    let winner = statuses.iter().position(|status| *status == 200).expect("one");
    let login = |i: usize| {
        server.post(
            "/auth/login",
            json!({"username": "ann", "password": format!("battery staple {i}")}),
        )
    };
    login(winner).expect(200);
    login((winner + 1) % 20).expect(401);
    assert_eq!(server.database.value::<i64>("SELECT count(*) FROM used_password_reset_tokens"), 1);
}

#[test]
fn a_reset_token_dies_with_any_change_of_password_or_address() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let token = reset_token(&server, "ann@example.com");
    let update =
        |body| server.api("PUT", "/users/me").bearer(&ann.access).json(body).send().expect(200);
    update(json!({"name": "Ann", "email": "ann@example.com"}));
    update(json!({"email": "ann2@example.com"}));
    reset(&server, &token, "battery staple").refused(400, "Invalid or expired token");
    let (first, second) =
        (reset_token(&server, "ann2@example.com"), reset_token(&server, "ann2@example.com"));
    reset(&server, &second, "battery staple").expect(200);
    reset(&server, &first, "battery stable").refused(400, "Invalid or expired token");
    let token = reset_token(&server, "ann2@example.com");
    server.sign_up("bob");
    let bob = server.sign_in("bob");
    let own = server
        .post("/auth/login", json!({"username": "ann", "password": "battery staple"}))
        .expect(200)
        .tokens();
    server
        .api("POST", "/users/change-password")
        .bearer(&own.access)
        .json(json!({"current_password": "battery staple", "new_password": "a third one"}))
        .send()
        .expect(200);
    reset(&server, &token, "battery staple").refused(400, "Invalid or expired token");
    server.get("/auth/me", &bob.access).expect(200);
}

#[test]
fn a_renewed_hash_does_not_touch_reset_tokens() {
    let server = Server::start(&[]);
    server.sign_up("ann");
    let token = reset_token(&server, "ann@example.com");
    let dearer = Server::start_on(&server.database, &[("CLOAKROOM_SCRYPT", "5,8,1")]);
    dearer.sign_in("ann");
    reset(&server, &token, "battery staple").expect(200);
}

#[test]
fn what_is_no_reset_token_is_answered_alike() {
    let server = Server::start(&[]);
    let ann = server.sign_up("ann");
    let claims = json!({"sub": ann.id(), "type": "password_reset", "ver": 1, "iat": now(), "exp": now() + 60});
    let with = |name: &str, value| {
        let mut claims = claims.clone();
        claims[name] = value;
        sign(claims)
    };
    for (token, reason) in [
        (String::new(), "empty"),
        ("nonsense".into(), "no token"),
        ("a\0b".into(), "a NUL character"),
        (ann.access.clone(), "an access token"),
        (ann.refresh.clone(), "a refresh token"),
        (with("exp", json!(now() - 1)), "expired by a second"),
        (with("ver", json!(2)), "another version"),
        (with("ver", json!(null)), "no version"),
        (with("ver", json!("1")), "a version of another type"),
        (with("sub", json!("00000000-0000-4000-8000-000000000000")), "nobody"),
        (sign(claims.clone()) + "x", "a spoilt signature"),
    ] {
        let answer = reset(&server, &token, "battery staple");
        assert_eq!(
            (answer.status, &answer.json()["detail"]),
            (400, &json!("Invalid or expired token")),
            "{reason}"
        );
    }
    server.post("/auth/login", json!({"username": "ann", "password": PASSWORD})).expect(200);
    reset(&server, &sign(claims.clone()), "battery staple").expect(200);
}

#[test]
fn unknown_and_unusable_addresses_get_the_same_answer_and_no_token() {
    let server = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]);
    server.api("GET", "/auth/me").send().expect(200);
    server.sign_up("ann");
    server.sign_up("bob");
    server.database.run("UPDATE users SET is_deleted = true WHERE username = 'ann'; UPDATE users SET is_active = false WHERE username = 'bob'");
    for email in
        ["nobody@example.com", "ann@example.com", "bob@example.com", "dev_admin@example.com"]
    {
        let answer =
            server.post("/auth/request-password-reset", json!({ "email": email })).expect(200);
        assert_eq!(
            answer.json(),
            json!({"message": "If the e-mail exists, a reset message has been sent"})
        );
    }
    // All were looked at: the last request's token is the first.
    server.sign_up("eve");
    reset_token(&server, "eve@example.com");
    assert_eq!(server.log().matches("password reset token").count(), 1, "{}", server.log());
    assert_eq!(server.database.value::<i64>("SELECT count(*) FROM password_reset_requests"), 0);
    server.post("/auth/request-password-reset", json!({})).invalid(&[("body.email", "missing")]);
    server
        .post("/auth/request-password-reset", json!({"email": "x"}))
        .invalid(&[("body.email", "value_error")]);
}

#[test]
fn a_request_stores_nothing_that_could_be_used_as_a_token() {
    let server = Server::start(&[]);
    let columns: String = server.database.value(
        "SELECT string_agg(column_name, ',' ORDER BY ordinal_position) FROM information_schema.columns
         WHERE table_name = 'password_reset_requests'",
    );
    assert_eq!(columns, "id,email,requested_at");
}

#[test]
fn a_request_of_another_process_is_looked_at_too() {
    let server = Server::start(&[]);
    server.sign_up("ann");
    server.database.run("INSERT INTO password_reset_requests (email) VALUES ('ann@example.com')");
    server.logged("password reset token");
}

#[test]
fn a_used_token_is_kept_until_it_would_have_expired() {
    let server = Server::start(&[("CLOAKROOM_PASSWORD_RESET_EXPIRE_MINUTES", "7")]);
    server.sign_up("ann");
    let token = reset_token(&server, "ann@example.com");
    reset(&server, &token, "battery staple").expect(200);
    let minutes: f64 = server.database.value(
        "SELECT extract(epoch FROM expires_at - used_at)::float8 / 60 FROM used_password_reset_tokens",
    );
    assert!((6.9..7.1).contains(&minutes), "{minutes}");
    let hash: String = server.database.value("SELECT token_hash FROM used_password_reset_tokens");
    assert!(hash.len() == 64 && !token.contains(&hash));
}
