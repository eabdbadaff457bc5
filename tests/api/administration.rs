//! User management, the admin pages, and the rule of the last admin.

use serde_json::{Value, json};

use crate::harness::{Answer, PASSWORD, Server, Tokens, parallel};

fn put(server: &Server, admin: &Tokens, id: &str, body: Value) -> Answer {
    server.api("PUT", &format!("/users/{id}")).bearer(&admin.access).json(body).send()
}

fn delete(server: &Server, admin: &Tokens, id: &str) -> Answer {
    server.api("DELETE", &format!("/users/{id}")).bearer(&admin.access).send()
}

fn create(server: &Server, admin: &Tokens, body: Value) -> Answer {
    server.api("POST", "/users").bearer(&admin.access).json(body).send()
}

#[test]
fn an_admin_makes_users_with_everything() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    let body = json!({
        "username": "ann", "email": "Ann@Example.com", "name": " Ann ", "password": PASSWORD,
        "role": "admin", "permissions": ["read", "write"], "is_active": false,
    });
    let made = create(&server, &root, body).expect(201).json();
    for (field, value) in [
        ("username", json!("ann")),
        ("email", json!("Ann@Example.com")),
        ("name", json!("Ann")),
        ("role", json!("admin")),
        ("permissions", json!(["read", "write"])),
        ("is_active", json!(false)),
        ("last_login", json!(null)),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    let shown =
        server.get(&format!("/users/{}", made["id"].as_str().expect("an id")), &root.access);
    assert_eq!(shown.expect(200).json(), made);
    let least = json!({"email": "bo@example.com", "name": "Bo", "password": PASSWORD});
    let made = create(&server, &root, least).expect(201).json();
    assert_eq!(
        (&made["username"], &made["role"], &made["permissions"], &made["is_active"]),
        (&json!(null), &json!("user"), &json!([]), &json!(true))
    );
    server
        .post("/auth/login", json!({"email": "bo@example.com", "password": PASSWORD}))
        .expect(200);
}

#[test]
fn bad_descriptions_of_users_are_refused_field_by_field() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    create(&server, &root, json!({})).invalid(&[
        ("body.email", "missing"),
        ("body.name", "missing"),
        ("body.password", "missing"),
    ]);
    let word = "x".repeat(65);
    for (field, value, kind) in [
        ("username", json!("a b"), "value_error"),
        ("email", json!("nobody"), "value_error"),
        ("email", json!(1), "string_type"),
        ("name", json!("x".repeat(256)), "string_too_long"),
        ("name", json!("a\0b"), "value_error"),
        ("password", json!("short"), "string_too_short"),
        ("role", json!("root"), "enum"),
        ("role", json!("ADMIN"), "enum"),
        ("role", json!(1), "string_type"),
        ("permissions", json!("read"), "value_error"),
        ("permissions", json!({}), "value_error"),
        ("permissions", json!([1]), "value_error"),
        ("permissions", json!([""]), "string_too_short"),
        ("permissions", json!(["a\0"]), "value_error"),
        ("permissions", json!([word]), "string_too_long"),
        ("permissions", json!(vec!["x"; 101]), "value_error"),
        ("is_active", json!("true"), "bool_type"),
        ("is_active", json!(1), "bool_type"),
    ] {
        let mut body = json!({"email": "ann@example.com", "name": "Ann", "password": PASSWORD});
        body[field] = value;
        let place = format!("body.{field}");
        create(&server, &root, body.clone()).invalid(&[(&place, kind)]);
        put(&server, &root, root.id(), body).invalid(&[(&place, kind)]);
    }
    let most = json!({"permissions": vec!["x".repeat(64); 100]});
    put(&server, &root, root.id(), most).expect(200);
    put(&server, &root, root.id(), json!({"permissions": []})).expect(200);
    assert_eq!(server.database.value::<i64>("SELECT count(*) FROM users"), 1);
}

#[test]
fn taken_names_are_conflicts_without_regard_to_case() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    let ann = server.sign_up("ann");
    let body = |username: &str, email: &str| json!({"username": username, "email": email, "name": "x", "password": PASSWORD});
    create(&server, &root, body("ANN", "new@example.com")).refused(409, "Username already exists");
    create(&server, &root, body("new", "ANN@example.com")).refused(409, "Email already exists");
    put(&server, &root, ann.id(), json!({"email": "Root@Example.com"}))
        .refused(409, "Email already exists");
    put(&server, &root, ann.id(), json!({"username": "ROOT"}))
        .refused(409, "Username already exists");
    // One's own in other case is free.
    put(&server, &root, ann.id(), json!({"email": "ANN@example.com"})).expect(200);
}

#[test]
fn an_update_changes_what_is_given_and_nothing_else() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    let ann = server.sign_up("ann");
    let before = server.get(&format!("/users/{}", ann.id()), &root.access).expect(200).json();
    for (method_path, field, value) in [
        ("/users", "name", json!("Ann")),
        ("/users", "email", json!("ann@example.org")),
        ("/admin/users", "username", json!("anna")),
        ("/admin/users", "permissions", json!(["a"])),
        ("/users", "permissions", json!([])),
    ] {
        let path = format!("{method_path}/{}", ann.id());
        let answer = server
            .api("PUT", &path)
            .bearer(&root.access)
            .json(json!({field: value, "role": null, "id": 7}))
            .send();
        let after = answer.expect(200).json();
        assert_eq!(after[field], value);
        assert_eq!(
            (&after["id"], &after["role"], &after["created_at"]),
            (&before["id"], &before["role"], &before["created_at"])
        );
        assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    }
    // None of these says anything about what the tokens say.
    server.get("/users/me", &ann.access).expect(200);
}

#[test]
fn role_activity_and_password_end_the_users_sessions() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    for (n, change) in [
        json!({"role": "admin"}),
        json!({"is_active": false}),
        json!({"password": "another password"}),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("user{n}");
        let user = server.sign_up(&name);
        let loose = crate::tokens::sign(
            json!({"sub": user.id(), "exp": 4_000_000_000_u64, "iat": crate::tokens::now()}),
        );
        server.get("/users/me", &loose).expect(200);
        put(&server, &root, user.id(), change.clone()).expect(200);
        let message = if change.get("is_active").is_some() {
            "User not found or inactive"
        } else {
            "Invalid token"
        };
        server.get("/users/me", &user.access).refused(401, message);
        server.get("/users/me", &loose).refused(401, message);
        server.post("/auth/refresh", json!({"refresh_token": user.refresh})).refused(401, message);
    }
    server
        .post("/auth/login", json!({"username": "user1", "password": PASSWORD}))
        .refused(403, "Inactive or deleted user.");
    server
        .post("/auth/login", json!({"username": "user2", "password": PASSWORD}))
        .refused(401, "Invalid username or password");
    server
        .post("/auth/login", json!({"username": "user2", "password": "another password"}))
        .expect(200);
    let user1 =
        server.database.value::<String>("SELECT id::text FROM users WHERE username = 'user1'");
    put(&server, &root, &user1, json!({"is_active": true})).expect(200);
    server.sign_in("user1");
}

#[test]
fn a_new_address_or_password_by_an_admin_kills_reset_tokens() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    for (name, change) in [
        ("ann", json!({"email": "new@example.com"})),
        ("bob", json!({"password": "another password"})),
    ] {
        let user = server.sign_up(name);
        server
            .post("/auth/request-password-reset", json!({"email": format!("{name}@example.com")}))
            .expect(200);
        let line = server.logged(&format!("password reset token of user {}", user.id()));
        let token = line.rsplit(' ').next().expect("a token").to_owned();
        put(&server, &root, user.id(), change).expect(200);
        server
            .post("/auth/reset-password", json!({"token": token, "new_password": "third password"}))
            .refused(400, "Invalid or expired token");
    }
}

#[test]
fn a_deleted_user_is_gone_and_its_names_are_free() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    let ann = server.sign_up("ann");
    server.database.run(&format!(
        "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash)
         SELECT gen_random_uuid(), '{}', 'f', 'f', 'text/plain', 1, 'x' || i, 'h' FROM generate_series(1, 3) i",
        ann.id()
    ));
    delete(&server, &root, ann.id()).expect(204);
    let path = format!("/users/{}", ann.id());
    for answer in [
        server.get(&path, &root.access),
        put(&server, &root, ann.id(), json!({"name": "x"})),
        delete(&server, &root, ann.id()),
        server
            .api("PUT", &format!("/admin{path}"))
            .bearer(&root.access)
            .json(json!({"role": "admin"}))
            .send(),
    ] {
        answer.refused(404, "User not found");
    }
    server.get("/users/me", &ann.access).refused(401, "User not found or inactive");
    server
        .post("/auth/login", json!({"username": "ann", "password": PASSWORD}))
        .refused(401, "Invalid username or password");
    assert_eq!(server.database.value::<i64>("SELECT count(*) FROM files"), 0);
    assert_eq!(
        server.database.value::<i64>("SELECT count(*) FROM sessions WHERE ended_at IS NULL"),
        2,
        "those of root"
    );
    for list in ["/users", "/admin/users"] {
        assert_eq!(server.get(list, &root.access).expect(200).json()["total"], 1);
    }
    let again = server.sign_up("ann");
    assert_ne!(again.id(), ann.id());
}

#[test]
fn ids_are_uuids_and_unknown_ones_are_not_found() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    for id in ["1", "abc", "%00", "00000000-0000-0000-0000-00000000000g", &"x".repeat(500)] {
        for answer in [
            server.get(&format!("/users/{id}"), &root.access),
            put(&server, &root, id, json!({})),
            delete(&server, &root, id),
        ] {
            answer.invalid(&[("path.user_id", "uuid_parsing")]);
        }
    }
    let nobody = "00000000-0000-4000-8000-000000000000";
    server.get(&format!("/users/{nobody}"), &root.access).refused(404, "User not found");
    delete(&server, &root, nobody).refused(404, "User not found");
    for (method, path, allow) in [
        ("DELETE", "/users/me", "GET, HEAD, PUT"),
        ("GET", "/users/change-password", "POST"),
        ("PUT", "/users/export", "GET, HEAD"),
        ("DELETE", "/users/export-alive", "GET, HEAD"),
        ("PATCH", "/users", "GET, HEAD, POST"),
        ("GET", &*format!("/admin/users/{nobody}"), "PUT"),
    ] {
        let answer =
            server.api(method, path).bearer(&root.access).send().refused(405, "Method Not Allowed");
        assert_eq!(answer.header("Allow"), allow, "{method} {path}");
    }
}

#[test]
fn the_last_active_admin_stays() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    let message = "At least one active admin is required";
    for change in [json!({"role": "user"}), json!({"is_active": false})] {
        put(&server, &root, root.id(), change).refused(409, message);
    }
    delete(&server, &root, root.id()).refused(409, message);
    // Neither an inactive admin nor the development admin counts.
    create(&server, &root, json!({"email": "a@example.com", "name": "A", "password": PASSWORD, "role": "admin", "is_active": false})).expect(201);
    server.database.run("INSERT INTO users (id, email, role) VALUES (gen_random_uuid(), 'dev@example.com', 'admin')");
    delete(&server, &root, root.id()).refused(409, message);
    put(&server, &root, root.id(), json!({"role": "admin", "is_active": true, "name": "Root"}))
        .expect(200);
    // With another one it may go, and then the other stays.
    let other = server.sign_up_admin("other");
    put(&server, &root, root.id(), json!({"role": "user"})).expect(200);
    put(&server, &other, other.id(), json!({"role": "user"})).refused(409, message);
}

#[test]
fn of_two_admins_that_demote_each_other_one_stays() {
    let server = Server::start(&[]);
    for round in 0..20 {
        server.database.run("DELETE FROM users");
        let admins = ["one", "two"].map(|name| server.sign_up_admin(name));
        let statuses = parallel(2, |i| {
            let (me, victim) = (&admins[i], &admins[1 - i]);
            match round % 3 {
                0 => put(&server, me, victim.id(), json!({"role": "user"})),
                1 => put(&server, me, victim.id(), json!({"is_active": false})),
                _ => delete(&server, me, victim.id()),
            }
            .status
        });
        // The slower one may be refused for the rule, or because it was signed out before.
        let done = statuses.iter().filter(|status| [200, 204].contains(status)).count();
        assert_eq!(done, 1, "{statuses:?}");
        let left =
            "SELECT count(*) FROM users WHERE role = 'admin' AND is_active AND NOT is_deleted";
        assert_eq!(server.database.value::<i64>(left), 1, "round {round}");
    }
}

#[test]
fn statements_that_overlap_cannot_remove_both_admins() {
    // The same race without luck: the second statement begins while the first is not yet committed.
    let server = Server::start(&[]);
    for name in ["one", "two"] {
        server.sign_up_admin(name);
    }
    let two = server.sign_in("two");
    let mut client = server.database.client();
    let mut first = client.transaction().expect("a transaction");
    first
        .batch_execute("UPDATE users SET role = 'user' WHERE username = 'one'")
        .expect("one of two");
    std::thread::scope(|scope| {
        let second = scope.spawn(|| put(&server, &two, two.id(), json!({"role": "user"})));
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()";
        crate::harness::eventually(|| (server.database.value::<i64>(waits) == 1).then_some(()));
        first.commit().expect("a commit");
        second.join().expect("no panic").refused(409, "At least one active admin is required");
    });
}

#[test]
fn a_login_in_flight_does_not_outlive_the_loss_of_a_role() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    let ann = server.sign_up_admin("ann");
    let mut client = server.database.client();
    let mut login = client.transaction().expect("a transaction");
    login
        .batch_execute(
            "UPDATE users SET last_login = now() WHERE username = 'ann';
             INSERT INTO sessions (id, user_id, refresh_id, expires_at)
             SELECT gen_random_uuid(), id, gen_random_uuid(), now() + interval '1 day' FROM users WHERE username = 'ann'",
        )
        .expect("a login");
    std::thread::scope(|scope| {
        let change = scope.spawn(|| put(&server, &root, ann.id(), json!({"role": "user"})));
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        crate::harness::eventually(|| (server.database.value::<i64>(waits) == 1).then_some(()));
        login.commit().expect("a commit");
        change.join().expect("no panic").expect(200);
    });
    let live = format!(
        "SELECT count(*) FROM sessions WHERE ended_at IS NULL AND user_id = '{}'",
        ann.id()
    );
    assert_eq!(server.database.value::<i64>(&live), 0);
}

/// Ann, Bob and Cleo, made in this order, a day apart, and root after them.
fn people(server: &Server) -> Tokens {
    let root = server.sign_up_admin("root");
    for (day, username, email, name, role, is_active) in [
        (1, "ann", "Ann@one.example.com", "Zoe 100%", "user", true),
        (2, "bob", "bob_x@two.example.com", "adam_1", "user", false),
        (3, "cleo", "cleo@two.example.com", "Adam\\2", "admin", true),
    ] {
        server.database.run(&format!(
            "INSERT INTO users (id, username, email, name, role, is_active, password_hash, created_at)
             VALUES (gen_random_uuid(), '{username}', '{email}', '{name}', '{role}', {is_active}, '-', '2026-01-0{day}T00:00:00Z')"
        ));
    }
    root
}

fn usernames(answer: &Answer, field: &str) -> Vec<String> {
    let body = answer.json();
    let users = body[field].as_array().expect("a list");
    users.iter().map(|user| user["username"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn users_are_filtered_and_sorted() {
    let server = Server::start(&[]);
    let root = people(&server);
    for (query, expected) in [
        ("", "root cleo bob ann"),
        ("sort_order=asc", "ann bob cleo root"),
        ("sort_by=created_at", "root cleo bob ann"),
        ("sort_by=email&sort_order=asc", "ann bob cleo root"),
        ("sort_by=email&sort_order=desc", "root cleo bob ann"),
        // Root has no name, and comes last.
        ("sort_by=name&sort_order=asc", "cleo bob ann root"),
        ("sort_by=name", "root ann bob cleo"),
        ("email=TWO.example", "cleo bob"),
        ("email=", "root cleo bob ann"),
        ("email=_", "bob"),
        ("email=%25", ""),
        ("email=nobody", ""),
        ("name=ADAM", "cleo bob"),
        ("name=%25", "ann"),
        ("name=_", "bob"),
        ("name=%5C", "cleo"),
        ("name=m_", "bob"),
        ("role=admin", "root cleo"),
        ("role=user&is_active=true", "ann"),
        ("is_active=false", "bob"),
        ("is_active=0", "bob"),
        ("created_after=2026-01-02T00:00:00Z", "root cleo bob"),
        ("created_after=2026-01-02T00:00:00.000001Z", "root cleo"),
        ("created_before=2026-01-02T00:00:00Z", "bob ann"),
        ("created_before=2026-01-02t02:00:00+02:00", "bob ann"),
        ("created_before=2026-01-02T02:00:00%2B02:00", "bob ann"),
        ("created_before=2026-01-01T23:59:59.999999Z", "ann"),
        (
            "created_after=2026-01-01%2000:00:00Z&created_before=2026-01-02%2012:00:00-01:00",
            "bob ann",
        ),
        ("created_after=2026-01-03T00:00:00Z&created_before=2026-01-01T00:00:00Z", ""),
        (
            "email=two&name=adam&role=admin&is_active=true&created_after=2026-01-01T00:00:00Z&sort_by=name",
            "cleo",
        ),
    ] {
        let answer = server.get(&format!("/users?{query}"), &root.access).expect(200);
        assert_eq!(usernames(&answer, "users").join(" "), expected, "{query}");
        let total = expected.split_whitespace().count();
        assert_eq!(answer.json()["total"], total, "{query}");
    }
}

#[test]
fn offset_and_limit_cut_the_list_and_total_stays() {
    let server = Server::start(&[]);
    let root = people(&server);
    for (query, expected, limit, offset) in [
        ("", "root cleo bob ann", 20, 0_i64),
        ("limit=2", "root cleo", 2, 0),
        ("limit=2&offset=1", "cleo bob", 2, 1),
        ("limit=100&offset=3", "ann", 100, 3),
        ("offset=4", "", 20, 4),
        ("offset=9223372036854775807", "", 20, i64::MAX),
    ] {
        let answer = server.get(&format!("/users?{query}"), &root.access).expect(200);
        assert_eq!(usernames(&answer, "users").join(" "), expected, "{query}");
        let body = answer.json();
        assert_eq!(
            (&body["total"], &body["limit"], &body["offset"]),
            (&json!(4), &json!(limit), &json!(offset)),
            "{query}"
        );
    }
    for (query, message) in [
        ("limit=0", "Limit must be between 1 and 100"),
        ("limit=-1", "Limit must be between 1 and 100"),
        ("limit=101", "Limit must be between 1 and 100"),
        ("limit=1000000000000000000", "Limit must be between 1 and 100"),
        ("offset=-1", "Offset must be >= 0"),
        ("offset=-1&limit=0", "Offset must be >= 0"),
    ] {
        server.get(&format!("/users?{query}"), &root.access).refused(400, message);
    }
    for (query, faults) in [
        ("limit=abc", vec![("query.limit", "int_parsing")]),
        ("limit=", vec![("query.limit", "int_parsing")]),
        ("offset=1.5", vec![("query.offset", "int_parsing")]),
        ("offset=9223372036854775808", vec![("query.offset", "int_parsing")]),
        ("sort_by=password_hash", vec![("query.sort_by", "enum")]),
        ("sort_by=id;drop", vec![("query.sort_by", "enum")]),
        ("sort_order=up&role=root", vec![("query.sort_order", "enum"), ("query.role", "enum")]),
        ("is_active=maybe", vec![("query.is_active", "bool_type")]),
        (
            "created_after=yesterday&created_before=",
            vec![
                ("query.created_after", "datetime_parsing"),
                ("query.created_before", "datetime_parsing"),
            ],
        ),
        ("created_after=2026-01-01", vec![("query.created_after", "datetime_parsing")]),
        (
            &*format!("email=%00&name={}", "a".repeat(256)),
            vec![("query.email", "value_error"), ("query.name", "string_too_long")],
        ),
    ] {
        server.get(&format!("/users?{query}"), &root.access).invalid(&faults);
    }
}

#[test]
fn ties_are_in_the_order_of_ids_and_pages_neither_overlap_nor_miss() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    server.database.run(
        "INSERT INTO users (id, username, email, name, password_hash, created_at)
         SELECT gen_random_uuid(), 'u' || i, 'u' || i || '@example.com', 'Same', '-', '2026-01-01' FROM generate_series(1, 50) i",
    );
    for sort in ["created_at", "name"] {
        for order in ["asc", "desc"] {
            let mut ids = Vec::new();
            for page in 0..9 {
                let path = format!(
                    "/users?name=same&sort_by={sort}&sort_order={order}&limit=6&offset={}",
                    page * 6
                );
                let body = server.get(&path, &root.access).expect(200).json();
                let users = body["users"].as_array().expect("a list").clone();
                ids.extend(users.iter().map(|user| user["id"].as_str().expect("an id").to_owned()));
            }
            assert_eq!(ids.len(), 50);
            assert!(ids.is_sorted_by(|a, b| a < b), "{sort} {order}");
        }
    }
}

#[test]
fn the_admin_list_is_a_page_with_stats() {
    let server = Server::start(&[]);
    let root = people(&server);
    for (query, expected, total) in [
        ("", "root cleo bob ann", 4),
        ("size=2", "root cleo", 4),
        ("size=2&page=2", "bob ann", 4),
        ("page=3&size=2", "", 4),
        ("page=9223372036854775807&size=100", "", 4),
        ("search=BOB", "bob", 1),
        ("search=two.example", "cleo bob", 2),
        ("search=_", "bob", 1),
        ("search=adam", "", 0),
        ("role=admin", "root cleo", 2),
        ("active=false", "bob", 1),
        ("active=true&role=user&search=a", "ann", 1),
    ] {
        let answer = server.get(&format!("/admin/users?{query}"), &root.access).expect(200);
        assert_eq!(usernames(&answer, "items").join(" "), expected, "{query}");
        let body = answer.json();
        let size = body["size"].as_i64().expect("a size");
        assert_eq!(body["total"], total, "{query}");
        assert_eq!(body["pages"], (total + size - 1) / size, "{query}");
        for item in body["items"].as_array().expect("a list") {
            assert_eq!(item["stats"], json!({"total_uploads": 0, "total_storage_used": 0}));
            assert!(item.get("password_hash").is_none());
        }
    }
    for (query, kind) in [
        ("page=0", "value_error"),
        ("page=-1", "value_error"),
        ("page=x", "int_parsing"),
        ("page=9223372036854775808", "int_parsing"),
        ("size=0", "value_error"),
        ("size=101", "value_error"),
        ("size=1000000000000000000", "value_error"),
        ("role=none", "enum"),
        ("active=2", "bool_type"),
        ("search=%00", "value_error"),
    ] {
        let field = format!("query.{}", query.split('=').next().expect("a name"));
        server.get(&format!("/admin/users?{query}"), &root.access).invalid(&[(&field, kind)]);
    }
}

#[test]
fn statistics_count_this_month_and_no_deleted_users() {
    let server = Server::start(&[("CLOAKROOM_STORAGE_QUOTA", "3000")]);
    let root = people(&server);
    let ann = server.database.value::<String>("SELECT id::text FROM users WHERE username = 'ann'");
    server.database.run(&format!(
        "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash, upload_date)
         VALUES (gen_random_uuid(), '{ann}', 'f', 'f', 'text/plain', 700, 'a', 'h', date_trunc('month', now(), 'UTC')),
                (gen_random_uuid(), '{ann}', 'f', 'f', 'text/plain', 300, 'b', 'h', date_trunc('month', now(), 'UTC') - interval '1 microsecond');
         UPDATE users SET created_at = date_trunc('month', now(), 'UTC') - interval '1 microsecond' WHERE username = 'ann';
         UPDATE users SET created_at = date_trunc('month', now(), 'UTC') WHERE username = 'bob';
         UPDATE users SET created_at = '2020-01-01' WHERE username = 'cleo'"
    ));
    let stats = || server.get("/admin/stats", &root.access).expect(200).json();
    assert_eq!(
        stats(),
        json!({
            "users": {"total": 4, "active": 3, "new_this_month": 2},
            "files": {"total": 2, "total_size": 1000, "uploads_this_month": 1},
            "storage": {"used": 1000, "quota": 3000, "usage_percentage": 33.33},
        })
    );
    delete(&server, &root, &ann).expect(204);
    assert_eq!(
        stats(),
        json!({
            "users": {"total": 3, "active": 2, "new_this_month": 2},
            "files": {"total": 0, "total_size": 0, "uploads_this_month": 0},
            "storage": {"used": 0, "quota": 3000, "usage_percentage": 0.0},
        })
    );
}

#[test]
fn lists_work_where_the_search_extension_is_forbidden() {
    let database = crate::harness::Database::create();
    database.run("CREATE ROLE cloakroom_plain LOGIN PASSWORD 'plain'");
    let name = database.url.rsplit('/').next().expect("a name").to_owned();
    // May make tables, but no extensions: not the owner of the database.
    database.run(&format!("GRANT USAGE, CREATE ON SCHEMA public TO cloakroom_plain; REVOKE CREATE ON DATABASE {name} FROM PUBLIC"));
    let address = database.url.split('@').nth(1).expect("an address").to_owned();
    let url = format!("postgres://cloakroom_plain:plain@{address}");
    {
        let server = Server::start_on(&database, &[("CLOAKROOM_DATABASE_URL", &url)]);
        let root = people(&server);
        let answer = server.get("/users?email=two", &root.access).expect(200);
        assert_eq!(usernames(&answer, "users"), ["cleo", "bob"]);
        assert_eq!(
            database.value::<i64>("SELECT count(*) FROM pg_extension WHERE extname = 'pg_trgm'"),
            0
        );
    }
    database.run("DROP OWNED BY cloakroom_plain; DROP ROLE cloakroom_plain");
}

#[test]
fn with_the_extension_searches_have_their_index() {
    let server = Server::start(&[]);
    assert_eq!(
        server
            .database
            .value::<i64>("SELECT count(*) FROM pg_indexes WHERE indexname = 'users_search'"),
        1
    );
}
