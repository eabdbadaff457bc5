//! CSV exports: who may have them, what is in them, and what happens when they fail.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

const EXPORTS: [&str; 3] = ["/users/export", "/users/export-full", "/users/exports/csv"];
const PROBES: [&str; 2] = ["/users/export-alive", "/users/export-simple"];
pub const HEADER: &str = "id,email,name,created_at,updated_at,is_active,role,username,last_login,\
                      total_uploads,total_storage_used";

/// Inserts the accounts `u1@example.com` and so on, three a second, with names of `name_length` characters.
pub fn insert_users(api: &Server, accounts: u32, name_length: u32) {
    api.database.run(&format!(
        "INSERT INTO users (id, username, email, email_key, name, password_hash, created_at)
         SELECT gen_random_uuid(), 'u' || i, 'u' || i || '@example.com', 'u' || i || '@example.com',
                repeat('x', {name_length}), '-', now() - make_interval(secs => i / 3)
         FROM generate_series(1, {accounts}) i"
    ));
}

/// What a list shows is what an export has, whatever the filters; in `email`, only exports have wildcards.
#[test]
fn exports_take_the_filters_of_lists() {
    let (api, [root, ann]) = Server::with_users(&[], ["root", "ann"]);
    insert_users(&api, 30, 5);
    api.database.run(
        "UPDATE users SET is_active = false, name = 'Karla' || username WHERE username IN ('u3', 'u7', 'u13');
         UPDATE users SET created_at = '2026-01-01Z' WHERE username IN ('u8', 'u9')",
    );
    let ids = format!("ids={},{}", root.id(), ann.id());
    for filter in [
        "name=karla",
        "name=karla&is_active=false",
        "active=true&search=u1",
        "text=KARLAU1",
        "role=admin",
        "created_before=2026-01-02T00:00:00Z",
        "created_after=2026-01-02T00:00:00Z&email=u2",
        "search=_",
        &ids,
    ] {
        let listed = api.list_users(&root, &format!("{filter}&limit=100&sort_order=asc"));
        let listed = listed.case(filter).expect(200).names("users", "email");
        for path in ["/users/export", "/users/exports/csv"] {
            let answer = api.get(&format!("{path}?{filter}"), &root).case(filter).expect(200);
            let rows = csv_rows(HEADER, &answer.bytes);
            let found: Vec<_> = rows.iter().map(|row| row[1].clone()).collect();
            assert_eq!(found, listed, "{filter}");
        }
        let all = api.get(&format!("/users/export-full?{filter}"), &root).expect(200);
        assert_eq!(csv_rows(HEADER, &all.bytes).len(), 32, "{filter}");
    }
    for (filter, field) in [
        ("role=owner", "query.role"),
        ("is_active=perhaps", "query.is_active"),
        ("ids=x", "query.ids"),
        ("created_after=yesterday", "query.created_after"),
        ("active=true&is_active=false", "query.active"),
    ] {
        let problems = api.export(&root, filter).expect(422).problems();
        assert_eq!(problems.len(), 1, "{filter}");
        assert_eq!(problems[0].0, field, "{filter}");
    }
}

#[test]
fn an_export_holds_every_user_as_a_csv_reader_reads_it() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    // Cells that a spreadsheet would take for a formula begin with an apostrophe: `http/csv.rs` has all of them.
    let names = [
        ("a", "plain", "plain"),
        ("b", "Comma, \"quote\"", "Comma, \"quote\""),
        ("d", "=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
        ("h", "J\u{e9}r\u{f4}me \u{1f600}", "J\u{e9}r\u{f4}me \u{1f600}"),
        ("i", "", ""),
        ("n", "two\r\n=lines", "'two\r\n'=lines"),
    ];
    for (email, name, _) in names {
        let (email, is_active) = (format!("{email}@example.com"), email != "i");
        // Some of the names only older releases have stored.
        let sql = "INSERT INTO users (id, email, email_key, name, is_active, password_hash)
                   VALUES (gen_random_uuid(), $1, lower($1), $2, $3, '-')";
        api.database.client().execute(sql, &[&email, &name, &is_active]).expect("a user");
    }
    let today = || api.database.value::<String>("SELECT (now() AT TIME ZONE 'UTC')::date::text");
    for path in ["/users/export", "/users/export-full", "/users/exports/csv/"] {
        let (before, answer, after) = (today(), api.get(path, &root).expect(200), today());
        assert_eq!(answer.header("Content-Type"), "text/csv; charset=utf-8");
        let named = [before, after].map(|day| format!("attachment; filename=users-{day}.csv"));
        assert!(named.iter().any(|name| name == answer.header("Content-Disposition")));
        let found = csv_rows(HEADER, &answer.bytes);
        assert_eq!(found.len(), 7, "{path}");
        assert_eq!(found[0][0], root.id());
        for (row, (email, _, name)) in found[1..].iter().zip(names) {
            let (email, is_active) = (format!("{email}@example.com"), (email != "i").to_string());
            assert_eq!(row[1..3], [&email, name]);
            assert_eq!(row[5..], [&is_active, "user", "", "", "0", "0"]);
        }
        let times = json!({"created_at": found[1][3], "updated_at": found[1][4]});
        api.show_user(&root, &found[1][0]).expect(200).has(times);
        let body = answer.text();
        assert!(body.starts_with(&format!("{HEADER}\r\n")) && body.ends_with("\r\n"));
    }
}

#[test]
fn a_byte_order_mark_comes_first_where_it_is_asked_for() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    let mark: &[u8] = b"\xef\xbb\xbf";
    for path in EXPORTS.into_iter().chain(has_extras().then_some("/admin/audit/export")) {
        let get = |query: &str| api.get(&format!("{path}?{query}"), &root);
        // Exports are events of the audit log themselves.
        let begin = |answer: Answer| answer.bytes[..40].to_vec();
        let plain = begin(get("").expect(200));
        assert!(plain.starts_with(b"id,"), "{path}");
        for (value, has_mark) in [
            ("true", true),
            ("1", true),
            ("On", true),
            ("YES", true),
            ("false", false),
            ("", false),
        ] {
            let answer = get(&format!("bom={value}")).case(value).expect(200);
            assert_eq!(answer.header("Content-Type"), "text/csv; charset=utf-8");
            let expected = if has_mark { [mark, &plain].concat() } else { plain.clone() };
            assert_eq!(begin(answer), expected[..40], "{path} {value}");
        }
        for value in ["2", "utf-8", "%00"] {
            get(&format!("bom={value}")).invalid(&[("query.bom", "bool_type")]);
        }
        let head = api.request("HEAD", &format!("{path}?bom=true")).by(&root).send().expect(200);
        assert_eq!(head.bytes, b"");
    }
    // Once, however many batches follow.
    insert_users(&api, 2_500, 10);
    let all = api.get("/users/export?bom=true", &root).expect(200);
    assert_eq!(memchr::memmem::find_iter(&all.bytes, mark).count(), 1);
    assert_eq!(csv_rows(HEADER, &all.bytes[mark.len()..]).len(), 2_501);
}

#[test]
fn the_one_format_is_known_in_any_case() {
    let (api, [root]) = Server::with_users(&[], ["root"]);
    for path in ["/users/export", "/users/exports/csv"] {
        for format in ["csv", "CSV", "Csv"] {
            api.get(&format!("{path}?format={format}"), &root).expect(200);
        }
        for format in ["", "pdf", "csv%20", "c%C5%BFv"] {
            let answer = api.get(&format!("{path}?format={format}"), &root);
            answer.invalid(&[("query.format", "enum")]);
        }
    }
}

#[test]
fn the_e_mail_filter_is_part_of_the_address_where_star_and_percent_stand_for_any_run() {
    let api = Server::start(&[]);
    for name in ["ann", "anna", "bob"] {
        api.sign_up(name);
    }
    api.database.run("UPDATE users SET email = '100%_' || email WHERE username = 'bob'");
    for (filter, expected) in [
        ("ann", "ann anna"),
        ("ANNA", "anna"),
        ("a*a@", "anna"),
        ("*", "ann anna bob"),
        ("", "ann anna bob"),
        ("%25", "ann anna bob"),
        ("a%25a@", "anna"),
        ("_", "bob"),
        ("100%25b", "bob"),
        ("%25_b", "bob"),
        ("a_n", ""),
        ("%5C", ""),
        ("nobody", ""),
    ] {
        for path in ["/users/export", "/users/exports/csv"] {
            let answer = api.get(&format!("{path}?email={filter}&format=csv"), Anonymous);
            let rows = csv_rows(HEADER, &answer.expect(200).bytes);
            let names: Vec<_> = rows.iter().map(|row| row[7].as_str()).collect();
            assert_eq!(names.join(" "), expected, "{path} {filter}");
        }
    }
    let (format, email) = (("query.format", "enum"), ("query.email", "value_error"));
    api.export(Anonymous, "format=xlsx").invalid(&[format]);
    api.export(Anonymous, "format=&email=%00").invalid(&[format, email]);
}

#[test]
fn the_probes_answer_their_constants() {
    let api = Server::start(&[]);
    let probe = |path: &str| api.get(path, Anonymous).expect(200).json();
    assert_eq!(probe("/users/export-alive"), json!({"status": "users export alive"}));
    assert_eq!(probe("/users/export-simple"), json!({"users": "export simple status"}));
}

/// Settings, headers of the request, and the status and message of the refusal, if it is one. A header value `user` or
/// `admin` stands for the token of an account with this role.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], Option<(u16, &'a str)>);

#[test]
fn all_exports_share_one_access_check() {
    const KEY: (&str, &str) = ("CLOAKROOM_API_KEY_ENABLED", "true");
    const KEYS: (&str, &str) = ("CLOAKROOM_API_KEY", "old-key, new-key");
    const ADMIN: (&str, &str) = ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true");
    const ANYONE: (&str, &str) = ("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "true");
    const SCOPE: (&str, &str) = ("CLOAKROOM_API_KEY_SCOPE", "all");
    let user = ("Authorization", "user");
    let admin = ("Authorization", "admin");
    let good = ("X-API-Key", "new-key");
    let required = Some((401, "Authentication required"));
    let bad_format = Some((401, "Invalid authorization header format"));
    let no_key = Some((401, "API key required for export endpoints"));
    let cases: &[Case] = &[
        (&[], &[], None),
        (&[], &[user], None),
        (&[], &[("X-Forwarded-For", "192.0.2.1")], required),
        (&[], &[("Forwarded", "for=192.0.2.1")], required),
        (&[], &[user, ("X-Forwarded-For", "192.0.2.1")], None),
        (&[], &[("Authorization", "Bearer forged")], Some((401, "Invalid token"))),
        (&[], &[("Authorization", "Basic YTpi")], Some((401, "Invalid authentication scheme"))),
        (&[], &[("Authorization", "Bearer")], bad_format),
        (&[], &[("Authorization", "Bearer a b")], bad_format),
        (&[ANYONE], &[("X-Forwarded-For", "192.0.2.1")], None),
        (&[ANYONE], &[("Authorization", "Bearer forged")], Some((401, "Invalid token"))),
        (&[KEY, KEYS], &[], required),
        (&[KEY, KEYS], &[good], required),
        (&[KEY, KEYS, ANYONE], &[good], required),
        (&[KEY, KEYS], &[user], no_key),
        (&[KEY, KEYS, SCOPE], &[user], no_key),
        (&[KEY, KEYS], &[user, ("X-API-Key", "")], no_key),
        (&[KEY, KEYS], &[user, ("X-API-Key", "wrong")], Some((401, "Invalid API key"))),
        (&[KEY, KEYS], &[user, ("X-API-Key", "old-key, new-key")], Some((401, "Invalid API key"))),
        (&[KEY, KEYS], &[user, good], None),
        (&[KEY, KEYS], &[user, ("X-API-Key", "old-key")], None),
        (&[KEY], &[], required),
        (&[KEY], &[user], Some((500, "API key validation misconfigured"))),
        (&[KEY], &[user, good], Some((500, "API key validation misconfigured"))),
        (&[KEYS], &[], None),
        (&[ADMIN], &[], required),
        (&PRODUCTION, &[], required),
        (&[ADMIN, ANYONE], &[], required),
        (&[ADMIN], &[user], Some((403, "Admin privileges required."))),
        (&[ADMIN], &[admin], None),
        (&[ADMIN, KEY, KEYS], &[user], no_key),
        (&[ADMIN, KEY, KEYS], &[user, good], Some((403, "Admin privileges required."))),
        (&[ADMIN, KEY, KEYS], &[admin, good], None),
    ];
    for (settings, headers, refusal) in cases {
        let api = Server::start(settings);
        // A row instead of a registration, which would need the key, too, where the key's scope is everything.
        api.database.run(
            "INSERT INTO users (id, email, email_key, password_hash)
             VALUES (gen_random_uuid(), 'ann@example.com', 'ann@example.com', '-')",
        );
        let id = api.database.value::<String>("SELECT id::text FROM users");
        let token =
            |role| sign(json!({"sub": id, "role": role, "exp": FAR_FUTURE, "iat": 1_800_000_000}));
        for path in EXPORTS.iter().chain(&PROBES) {
            let mut request = api.request("GET", path);
            for (name, value) in *headers {
                request = match *value {
                    "user" | "admin" => request.by(token(value)),
                    value => request.header(name, value),
                };
            }
            let answer = request.send().case(format_args!("{settings:?} {headers:?}"));
            match refusal {
                None => answer.expect(200),
                Some((status, message)) => answer.refused(*status, message),
            };
        }
    }
}

#[test]
fn an_export_of_more_rows_than_allowed_is_refused() {
    let api = Server::start(&[("CLOAKROOM_EXPORT_MAX_ROWS", "3")]);
    insert_users(&api, 4, 1);
    for path in EXPORTS {
        api.get(path, Anonymous).refused(413, "Export too large");
    }
    let answer = api.export(Anonymous, "email=u1").expect(200);
    assert_eq!(csv_rows(HEADER, &answer.bytes).len(), 1);
    api.database.run("UPDATE users SET is_deleted = true WHERE username = 'u4'");
    let answer = api.export_full(Anonymous).expect(200);
    assert_eq!(csv_rows(HEADER, &answer.bytes).len(), 3);
}

#[test]
fn an_export_may_take_longer_to_begin_than_an_ordinary_request() {
    let api = Server::start(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3")]);
    let lock = api.database.begin("LOCK TABLE users IN ACCESS EXCLUSIVE MODE");
    thread::scope(|scope| {
        let export = scope.spawn(|| api.export(Anonymous, ""));
        // Ordinary requests wait for the same lock, and give up.
        api.login("ann", PASSWORD).refused(504, "Request timed out");
        api.login("ann", PASSWORD).refused(504, "Request timed out");
        lock.roll_back();
        export.join().expect("no panic").expect(200);
    });
}

#[test]
fn exports_hold_at_most_two_connections_and_the_others_wait() {
    let settings =
        [("CLOAKROOM_DATABASE_POOL_SIZE", "5"), ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "40")];
    let (api, [root]) = Server::with_users(&settings, ["root"]);
    let lock = Mutex::new(Some(api.database.begin("LOCK TABLE users")));
    let reading = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                   AND query LIKE '% of an export%'";
    thread::scope(|scope| {
        let exports: Vec<_> =
            (0..8).map(|_| scope.spawn(|| api.export(Anonymous, "format=csv"))).collect();
        wait_until(|| api.database.count(reading) == 2);
        // The background threads wait for the table with one or two, and the last one is free for everybody else.
        for _ in 0..20 {
            api.request_reset("nobody@example.com").expect(200);
        }
        assert_eq!(api.database.count(reading), 2);
        lock.lock().expect("a lock").take().expect("a transaction").roll_back();
        for export in exports {
            let answer = export.join().expect("no panic").expect(200);
            assert_eq!(csv_rows(HEADER, &answer.bytes)[0][0], root.id());
        }
    });
}

#[test]
fn an_export_that_waits_too_long_for_the_database_or_for_others_is_a_timeout() {
    let settings =
        [("CLOAKROOM_EXPORT_TIMEOUT_SECONDS", "3"), ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "40")];
    let api = Server::start(&settings);
    let lock = api.database.begin("LOCK TABLE users");
    let begin = Instant::now();
    for answer in parallel(6, |_| api.export(Anonymous, "")) {
        answer.refused(504, "Request timed out");
    }
    assert!(begin.elapsed() < Duration::from_secs(20));
    lock.roll_back();
    api.export(Anonymous, "").expect(200);
}

#[test]
fn a_client_that_does_not_read_holds_no_database_connection() {
    let settings =
        [("CLOAKROOM_DATABASE_POOL_SIZE", "1"), ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "5")];
    let api = Server::start(&settings);
    // More than the buffers between the server and its client hold.
    insert_users(&api, 10_000, 5000);
    let mut export = api.begin_reading("GET /api/v1/users/export-full HTTP/1.0", Anonymous);
    let ann = api.sign_up("ann");
    api.profile(&ann).expect(200);
    // The export continues on a new connection after its last one has ended.
    api.database.end_connections("application_name = 'cloakroom'");
    // Ann registered while it ran, so she may be in it.
    assert!((10_000..=10_001).contains(&csv_rows(HEADER, &export.rest()).len()));
}

#[test]
fn an_export_that_fails_after_it_began_never_looks_complete() {
    let api = Server::start(&[]);
    insert_users(&api, 10_000, 5000);
    let mut export = api.begin_reading("GET /api/v1/users/export-full HTTP/1.1", Anonymous);
    api.database.run("ALTER TABLE users RENAME TO users_gone");
    // The server may reset the connection, which is no regular end of a response either.
    assert!(!export.rest().ends_with(b"0\r\n\r\n"), "it looks complete");
    api.logged("an export broke off");
    api.database.run("ALTER TABLE users_gone RENAME TO users");
    let answer = eventually(|| api.request("GET", "/users/export?email=u17").try_send().ok());
    assert_eq!(csv_rows(HEADER, &answer.expect(200).bytes).len(), 111);
}
