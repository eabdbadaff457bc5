//! The two lists of users, `/users` and `/admin/users`: filters, order, paging; and the statistics.

use crate::harness::*;

/// Inserts Ann, Bob and Cleo, made in this order, a day apart, and signs up root, an admin, as the newest.
fn people(api: &Server) -> Tokens {
    let root = api.sign_up_admin("root");
    for (day, username, email, name, role, is_active) in [
        (1, "ann", "Ann@one.example.com", "Zoe 100%", "user", true),
        (2, "bob", "bob_x@two.example.com", "adam_1", "user", false),
        (3, "cleo", "cleo@two.example.com", "Adam\\2", "admin", true),
    ] {
        api.database.run(&format!(
            "INSERT INTO users (id, username, email, email_key, name, role, is_active, password_hash, created_at)
             VALUES ('0000000{day}-0000-4000-8000-000000000000', '{username}', '{email}', lower('{email}'), '{name}',
                     '{role}', {is_active}, '-', '2026-01-0{day}T00:00:00Z')"
        ));
    }
    root
}

#[test]
fn both_lists_take_the_same_filters_and_orders() {
    let api = Server::start(&[]);
    let root = people(&api);
    api.database.run(
        "UPDATE users SET last_login = '2026-01-01' WHERE username = 'ann';
         UPDATE users SET total_storage_used = 7 WHERE username IN ('bob', 'cleo');
         UPDATE users SET total_storage_used = 1e12 WHERE username = 'ann'",
    );
    let two = "00000003-0000-4000-8000-000000000000,00000001-0000-4000-8000-000000000000";
    let two = format!("ids={two},{UNKNOWN_ID}");
    for (query, expected) in [
        ("", "root cleo bob ann"),
        ("sort_order=asc", "ann bob cleo root"),
        ("sort_by=created_at", "root cleo bob ann"),
        ("sort_by=email&sort_order=asc", "ann bob cleo root"),
        ("sort_by=email&sort_order=desc", "root cleo bob ann"),
        // Root has no name, and comes last in both orders.
        ("sort_by=name&sort_order=asc", "cleo bob ann root"),
        ("sort_by=name", "ann bob cleo root"),
        ("sort_by=name&limit=2&offset=2", "cleo root"),
        ("email=TWO.example", "cleo bob"),
        ("email=_", "bob"),
        ("email=%25", ""),
        ("email=nobody", ""),
        ("name=ADAM", "cleo bob"),
        ("name=%25", "ann"),
        ("name=_", "bob"),
        ("name=%5C", "cleo"),
        ("name=m_", "bob"),
        ("search=BOB", "bob"),
        ("search=two.example", "cleo bob"),
        ("search=_", "bob"),
        ("search=adam", ""),
        ("text=ADAM", "cleo bob"),
        ("text=TWO.example", "cleo bob"),
        ("text=cle", "cleo"),
        ("text=_", "bob"),
        ("text=%25", "ann"),
        ("text=", "root cleo bob ann"),
        // Root has no name, and is found by the others.
        ("text=roo", "root"),
        ("text=zoe&search=ann", "ann"),
        ("text=nobody", ""),
        ("ids=00000001-0000-4000-8000-000000000000", "ann"),
        (&two, "cleo ann"),
        ("ids=00000003-0000-4000-8000-000000000000&role=user", ""),
        ("ids=11111111-1111-4111-8111-111111111111", ""),
        ("ids=", "root cleo bob ann"),
        // Bob and Cleo have stored the same, and nobody has signed in as them.
        ("sort_by=total_storage_used&sort_order=asc", "root bob cleo ann"),
        ("sort_by=total_storage_used", "ann bob cleo root"),
        ("sort_by=last_login&sort_order=asc", "ann root bob cleo"),
        ("sort_by=last_login", "root ann bob cleo"),
        ("sort_by=last_login&limit=2&offset=1", "ann bob"),
        ("sort_by=last_login&text=adam", "bob cleo"),
        ("role=admin", "root cleo"),
        ("role=user&is_active=true", "ann"),
        ("is_active=false", "bob"),
        ("is_active=0", "bob"),
        ("active=FALSE", "bob"),
        ("active=false&is_active=0", "bob"),
        ("active=&is_active=false", "bob"),
        ("active=false&is_active=", "bob"),
        ("active=true&role=user&search=a", "ann"),
        // An empty filter is none: root has no name, and is found.
        ("email=&name=&search=&role=", "root cleo bob ann"),
        ("is_active=&active=&created_after=&created_before=", "root cleo bob ann"),
        ("name=&role=&is_active=&active=&created_after=&created_before=2026-01-02", "bob ann"),
        ("created_after=2026-01-02T00:00:00Z", "root cleo bob"),
        ("created_after=2026-01-02T00:00:00.000001Z", "root cleo"),
        ("created_before=2026-01-02T00:00:00Z", "bob ann"),
        ("created_before=2026-01-01T23:59:59.999999Z", "ann"),
        ("created_after=2026-01-01&created_before=2026-01-02", "bob ann"),
        ("created_after=2026-01-03T00:00:00Z&created_before=2026-01-01T00:00:00Z", ""),
        // A date alone is its midnight in UTC: `model/timestamp.rs` has all forms.
        ("created_after=2026-01-02", "root cleo bob"),
        ("created_before=2026-01-02", "bob ann"),
        ("created_after=0001-01-01&created_before=9999-12-31T23:59:59.999999", "root cleo bob ann"),
        (
            "email=two&name=adam&role=admin&active=true&created_after=2026-01-01&sort_by=name",
            "cleo",
        ),
    ] {
        for (path, items) in [("/users", "users"), ("/admin/users", "items")] {
            let body = api.get(&format!("{path}?{query}"), &root).case(query).expect(200).json();
            assert_eq!(names_of(&body[items], "username").join(" "), expected, "{path}?{query}");
            let total =
                if query.contains("limit") { 4 } else { expected.split_whitespace().count() };
            assert_eq!(body["total"], total, "{path}?{query}");
        }
    }
}

/// What each list answers besides its items, by the number of items: 45 accounts or files.
#[test]
fn every_list_takes_both_forms_of_paging_and_answers_in_its_own_envelope() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    api.database.insert_files(root.id(), &[1; 45]);
    api.database.run(
        "INSERT INTO users (id, username, email, email_key, password_hash)
         SELECT gen_random_uuid(), 'u' || i, 'u' || i || '@example.com', 'u' || i || '@example.com', '-'
         FROM generate_series(1, 44) i",
    );
    let max = i64::MAX;
    for (query, count, page, size, offset) in [
        (String::new(), 20, 1, 20, 0),
        ("page=3".into(), 5, 3, 20, 40),
        ("size=10".into(), 10, 1, 10, 0),
        ("page=2&size=30".into(), 15, 2, 30, 30),
        ("limit=10".into(), 10, 1, 10, 0),
        ("offset=40".into(), 5, 3, 20, 40),
        ("limit=10&offset=39".into(), 6, 4, 10, 39),
        ("limit=10&offset=40".into(), 5, 5, 10, 40),
        ("limit=100&offset=44".into(), 1, 1, 100, 44),
        (format!("page={max}&size=100"), 0, max, 100, max),
        (format!("limit=1&offset={max}"), 0, max, 1, max),
    ] {
        let answer = api.list_users(&root, &query).case(&query).expect(200);
        assert_eq!(answer.member_names(), ["limit", "offset", "total", "users"]);
        let body = answer.has(json!({"total": 45, "limit": size, "offset": offset})).json();
        let users = names_of(&body["users"], "id");
        assert_eq!(users.len(), count, "{query}");
        for path in ["/admin/users", "/uploads"] {
            let answer = api.get(&format!("{path}?{query}"), &root).expect(200);
            assert_eq!(answer.member_names(), ["items", "page", "pages", "size", "total"]);
            let pages = (45 + size - 1) / size;
            let expected = json!({"total": 45, "page": page, "size": size, "pages": pages});
            let body = answer.has(expected).json();
            let ids = names_of(&body["items"], "id");
            assert_eq!(ids.len(), count, "{path} {query}");
            for item in body["items"].as_array().expect("a list") {
                let used = if item["username"] == "root" { 45 } else { 0 };
                let stored =
                    ["total_uploads", "total_storage_used"].map(|name| &item["stats"][name]);
                assert!(path == "/uploads" || stored == [used, used], "{item}");
                assert!(item.get("password_hash").is_none(), "{item}");
            }
            assert!(path == "/uploads" || ids == users, "{path} {query}");
        }
    }
}

#[test]
fn limit_and_offset_out_of_range_are_400_in_every_list() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    for path in ["/users", "/admin/users", "/uploads"] {
        let list = |query: &str| api.get(&format!("{path}?{query}"), &root).case(query);
        for (query, message) in [
            ("limit=0", "Limit must be between 1 and 100"),
            ("limit=-1", "Limit must be between 1 and 100"),
            ("limit=101&offset=5", "Limit must be between 1 and 100"),
            ("limit=1000000000000000000", "Limit must be between 1 and 100"),
            ("offset=-1", "Offset must be >= 0"),
            ("offset=-1&limit=0", "Offset must be >= 0"),
        ] {
            list(query).refused(400, message);
        }
    }
}

#[test]
fn statistics_count_this_month_of_utc_and_no_deleted_users() {
    let database = Database::create_migrated();
    let zone = format!("ALTER DATABASE {} SET timezone = 'America/New_York'", database.name());
    database.run(&zone);
    let api = Server::start_on(&database, &[("CLOAKROOM_STORAGE_QUOTA", "3000")]);
    let root = people(&api);
    let ann = api.database.value::<String>("SELECT id::text FROM users WHERE username = 'ann'");
    let before_this_month = "date_trunc('month', now(), 'UTC') - interval '1 microsecond'";
    api.database.run(&format!(
        "INSERT INTO files (id, user_id, filename, original_filename, content_type, file_size, file_path, file_hash,
                            upload_date)
         VALUES (gen_random_uuid(), '{ann}', 'f', 'f', 'text/plain', 700, 'f', 'h', date_trunc('month', now(), 'UTC')),
                (gen_random_uuid(), '{ann}', 'f', 'f', 'text/plain', 300, 'f', 'h', {before_this_month});
         UPDATE users SET created_at = {before_this_month} WHERE username = 'ann';
         UPDATE users SET created_at = date_trunc('month', now(), 'UTC') WHERE username = 'bob';
         UPDATE users SET created_at = '2020-01-01' WHERE username = 'cleo'"
    ));
    let before = json!({
        "users": {"total": 4, "active": 3, "new_this_month": 2},
        "files": {"total": 2, "total_size": 1000, "uploads_this_month": 1},
        "storage": {"used": 1000, "quota": 3000, "usage_percentage": 33.33, "deleted": 0},
        "version": env!("CARGO_PKG_VERSION"),
    });
    assert_eq!(api.admin_stats(&root).expect(200).json(), before);
    api.delete_user(&root, &ann).expect(204);
    let after = json!({
        "users": {"total": 3, "active": 2, "new_this_month": 2},
        "files": {"total": 0, "total_size": 0, "uploads_this_month": 0},
        "storage": {"used": 0, "quota": 3000, "usage_percentage": 0.0, "deleted": 0},
        "version": env!("CARGO_PKG_VERSION"),
    });
    assert_eq!(api.admin_stats(&root).expect(200).json(), after);
}

#[test]
fn searches_have_an_index_and_work_without_where_the_trigram_extension_is_forbidden() {
    let index = "pg_indexes WHERE indexname = 'listed_users_search'";
    assert_eq!(Database::create_migrated().count(index), 1);
    let database = Database::create();
    // This role may make tables but no extension, because it does not own the database.
    let (name, role) = (database.name(), format!("{}_plain", database.name()));
    database.run(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'plain';
         GRANT USAGE, CREATE ON SCHEMA public TO {role};
         REVOKE CREATE ON DATABASE {name} FROM PUBLIC"
    ));
    let (_, address) = database.url.split_once('@').expect("an address");
    let url = format!("postgres://{role}:plain@{address}");
    {
        let api = Server::start_on(&database, &[("CLOAKROOM_DATABASE_URL", &url)]);
        let root = people(&api);
        let body = api.list_users(&root, "email=two").expect(200).json();
        assert_eq!(names_of(&body["users"], "username"), ["cleo", "bob"]);
        assert_eq!(database.count("pg_extension WHERE extname = 'pg_trgm'"), 0);
    }
    database.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}
