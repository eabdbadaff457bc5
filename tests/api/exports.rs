//! CSV exports: who may have them, what is in them, and what happens when they fail.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Answer, PASSWORD, Server, eventually};

const PATHS: [&str; 5] = [
    "/users/export",
    "/users/export-full",
    "/users/exports/csv",
    "/users/export-alive",
    "/users/export-simple",
];
const HEADER: &str = "id,username,email,name,role,is_active,created_at,updated_at,last_login,total_uploads,total_storage_used";

/// The rows of an export without its header, as a CSV reader sees them.
fn rows(answer: &Answer) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().from_reader(answer.bytes.as_slice());
    assert_eq!(reader.headers().expect("a header").iter().collect::<Vec<_>>().join(","), HEADER);
    reader
        .records()
        .map(|record| record.expect("CSV").iter().map(str::to_owned).collect())
        .collect()
}

/// Accounts `u<n>@example.com` with names of `name_length` characters.
fn fill(server: &Server, accounts: u32, name_length: u32) {
    server.database.run(&format!(
        "INSERT INTO users (id, username, email, name, password_hash, created_at)
         SELECT gen_random_uuid(), 'u' || i, 'u' || i || '@example.com', repeat('x', {name_length}), '-',
                now() - make_interval(secs => i / 3)
         FROM generate_series(1, {accounts}) i"
    ));
}

#[test]
fn an_export_holds_every_user_as_a_csv_reader_reads_it() {
    let server = Server::start(&[]);
    let root = server.sign_up_admin("root");
    let names = [
        ("a", "plain", "plain"),
        ("b", "Comma, \"quote\"", "Comma, \"quote\""),
        ("c", "two\r\nlines", "two\r\nlines"),
        ("d", "=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
        ("e", "+1", "'+1"),
        ("f", "-1", "'-1"),
        ("g", "@sum", "'@sum"),
        ("h", "J\u{e9}r\u{f4}me \u{1f600}", "J\u{e9}r\u{f4}me \u{1f600}"),
        ("i", "", ""),
    ];
    for (email, name, _) in names {
        let email = format!("{email}@example.com");
        let body = json!({"email": email, "name": name, "password": PASSWORD, "is_active": email != "i@example.com"});
        server.api("POST", "/users").bearer(&root.access).json(body).send().expect(201);
    }
    for path in ["/users/export", "/users/export-full", "/users/exports/csv/"] {
        let answer = server.get(path, &root.access).expect(200);
        assert_eq!(answer.header("Content-Type"), "text/csv; charset=utf-8");
        let disposition = answer.header("Content-Disposition");
        let today =
            server.database.value::<String>("SELECT (now() AT TIME ZONE 'UTC')::date::text");
        assert_eq!(disposition, format!("attachment; filename=users-{today}.csv"));
        let found = rows(&answer);
        assert_eq!(found.len(), 10, "{path}");
        assert_eq!(found[0][0], root.id());
        for (row, (email, _, name)) in found[1..].iter().zip(names) {
            assert_eq!((&row[2], &row[3]), (&format!("{email}@example.com"), &name.to_owned()));
            assert_eq!(
                (&*row[1], &*row[4], &*row[8], &*row[9], &*row[10]),
                ("", "user", "", "0", "0")
            );
            assert_eq!(row[5], (email != "i").to_string());
        }
        let shown = server.get(&format!("/users/{}", found[1][0]), &root.access).expect(200).json();
        assert_eq!(json!(found[1][6]), shown["created_at"]);
        assert_eq!(json!(found[1][7]), shown["updated_at"]);
        let body = String::from_utf8(answer.bytes).expect("UTF-8");
        assert!(body.starts_with(&format!("{HEADER}\r\n")) && body.ends_with("\r\n"));
    }
}

#[test]
fn the_e_mail_filter_is_part_of_the_address_with_stars() {
    let server = Server::start(&[]);
    for name in ["ann", "anna", "bob"] {
        server.sign_up(name);
    }
    server.database.run("UPDATE users SET email = '100%_' || email WHERE username = 'bob'");
    for (filter, expected) in [
        ("ann", vec!["ann", "anna"]),
        ("ANNA", vec!["anna"]),
        ("a*a@", vec!["anna"]),
        ("*", vec!["ann", "anna", "bob"]),
        ("", vec!["ann", "anna", "bob"]),
        ("%25", vec!["bob"]),
        ("_", vec!["bob"]),
        ("%25_b", vec!["bob"]),
        ("a_n", vec![]),
        ("%5C", vec![]),
        ("nobody", vec![]),
    ] {
        for path in ["/users/export", "/users/exports/csv"] {
            let answer =
                server.api("GET", &format!("{path}?email={filter}&format=csv")).send().expect(200);
            let found: Vec<_> = rows(&answer).into_iter().map(|row| row[1].clone()).collect();
            assert_eq!(found, expected, "{path} {filter}");
        }
    }
    let refused = |query: &str| server.api("GET", &format!("/users/export?{query}")).send();
    refused("format=xlsx").invalid(&[("query.format", "enum")]);
    refused("format=&email=%00")
        .invalid(&[("query.format", "enum"), ("query.email", "value_error")]);
}

#[test]
fn the_probes_answer_their_constants() {
    let server = Server::start(&[]);
    let probe = |path: &str| server.api("GET", path).send().expect(200).json();
    assert_eq!(probe("/users/export-alive"), json!({"status": "users export alive"}));
    assert_eq!(probe("/users/export-simple"), json!({"users": "export simple status"}));
}

/// Settings, headers of the request, and the outcome: 200, or status and message.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], Result<u16, (u16, &'a str)>);

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
    let required = Err((401, "Authentication required"));
    let no_key = Err((401, "API key required for export endpoints"));
    let cases: &[Case] = &[
        (&[], &[], Ok(200)),
        (&[], &[user], Ok(200)),
        (&[], &[("X-Forwarded-For", "192.0.2.1")], required),
        (&[], &[("Forwarded", "for=192.0.2.1")], required),
        (&[], &[user, ("X-Forwarded-For", "192.0.2.1")], Ok(200)),
        (&[], &[("Authorization", "Bearer forged")], Err((401, "Invalid token"))),
        (&[], &[("Authorization", "Basic YTpi")], Err((401, "Invalid authentication scheme"))),
        (&[], &[("Authorization", "Bearer")], Err((401, "Invalid authorization header format"))),
        (
            &[],
            &[("Authorization", "Bearer a b")],
            Err((401, "Invalid authorization header format")),
        ),
        (&[ANYONE], &[("X-Forwarded-For", "192.0.2.1")], Ok(200)),
        (&[ANYONE], &[("Authorization", "Bearer forged")], Err((401, "Invalid token"))),
        (&[KEY, KEYS], &[], required),
        (&[KEY, KEYS], &[good], required),
        (&[KEY, KEYS, ANYONE], &[good], required),
        (&[KEY, KEYS], &[user], no_key),
        (&[KEY, KEYS, SCOPE], &[user], no_key),
        (&[KEY, KEYS], &[user, ("X-API-Key", "")], no_key),
        (&[KEY, KEYS], &[user, ("X-API-Key", "wrong")], Err((401, "Invalid API key"))),
        (&[KEY, KEYS], &[user, ("X-API-Key", "old-key, new-key")], Err((401, "Invalid API key"))),
        (&[KEY, KEYS], &[user, good], Ok(200)),
        (&[KEY, KEYS], &[user, ("X-API-Key", "old-key")], Ok(200)),
        (&[KEY], &[], required),
        (&[KEY], &[user], Err((500, "API key validation misconfigured"))),
        (&[KEY], &[user, good], Err((500, "API key validation misconfigured"))),
        (&[KEYS], &[], Ok(200)),
        (&[ADMIN], &[], required),
        (&[ADMIN, ANYONE], &[], required),
        (&[ADMIN], &[user], Err((403, "Admin privileges required."))),
        (&[ADMIN], &[admin], Ok(200)),
        (&[ADMIN, KEY, KEYS], &[user], no_key),
        (&[ADMIN, KEY, KEYS], &[user, good], Err((403, "Admin privileges required."))),
        (&[ADMIN, KEY, KEYS], &[admin, good], Ok(200)),
    ];
    for (settings, headers, outcome) in cases {
        let server = Server::start(settings);
        // Made by hand: registration asks for the key, too, where its scope is everything.
        server.database.run(
            "INSERT INTO users (id, email, password_hash) VALUES (gen_random_uuid(), 'ann@example.com', '-')",
        );
        let id = server.database.value::<String>("SELECT id::text FROM users");
        for path in PATHS {
            let mut request = server.api("GET", path);
            for (name, value) in *headers {
                request = match *value {
                    role @ ("user" | "admin") => request.bearer(&crate::tokens::sign(
                        json!({"sub": id, "role": role, "exp": 4_000_000_000_u64, "iat": 1_800_000_000}),
                    )),
                    value => request.header(name, value),
                };
            }
            let answer = request.send();
            match outcome {
                Ok(status) => drop(answer.expect(*status)),
                Err((status, message)) => drop(answer.refused(*status, message)),
            }
        }
    }
}

#[test]
fn in_production_exports_are_closed_to_strangers() {
    let server = Server::start(&[
        ("CLOAKROOM_ENV", "production"),
        ("CLOAKROOM_SMTP_URL", "none"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
    ]);
    for path in PATHS {
        server.api("GET", path).send().refused(401, "Authentication required");
    }
}

#[test]
fn an_export_of_more_rows_than_allowed_is_refused() {
    let server = Server::start(&[("CLOAKROOM_EXPORT_MAX_ROWS", "3")]);
    fill(&server, 4, 1);
    for path in ["/users/export", "/users/export-full", "/users/exports/csv"] {
        server.api("GET", path).send().refused(413, "Export too large");
    }
    let answer = server.api("GET", "/users/export?email=u1").send().expect(200);
    assert_eq!(rows(&answer).len(), 1);
    server.database.run("UPDATE users SET is_deleted = true WHERE username = 'u4'");
    let answer = server.api("GET", "/users/export-full").send().expect(200);
    assert_eq!(rows(&answer).len(), 3);
}

#[test]
fn an_export_that_cannot_begin_in_time_is_a_timeout() {
    let server = Server::start(&[
        ("CLOAKROOM_EXPORT_TIMEOUT_SECONDS", "1"),
        ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "30"),
    ]);
    let mut blocker = server.database.client();
    let mut transaction = blocker.transaction().expect("a transaction");
    transaction.batch_execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE").expect("a lock");
    let began = Instant::now();
    server.api("GET", "/users/export").send().refused(504, "Request timed out");
    assert!(began.elapsed() < Duration::from_secs(10));
    drop(transaction);
    server.api("GET", "/users/export").send().expect(200);
}

#[test]
fn an_export_may_take_longer_to_begin_than_an_ordinary_request() {
    let server = Server::start(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")]);
    let mut blocker = server.database.client();
    let mut transaction = blocker.transaction().expect("a transaction");
    transaction.batch_execute("LOCK TABLE users IN ACCESS EXCLUSIVE MODE").expect("a lock");
    std::thread::scope(|scope| {
        let export = scope.spawn(|| server.api("GET", "/users/export").send());
        // Ordinary requests give up at the same lock, on connections of their own.
        let body = json!({"username": "ann", "password": PASSWORD});
        server.post("/auth/login", body.clone()).refused(504, "Request timed out");
        server.post("/auth/login", body).refused(504, "Request timed out");
        drop(transaction);
        export.join().expect("no panic").expect(200);
    });
}

#[test]
fn every_user_appears_once_though_many_share_a_moment_and_others_come_and_go() {
    let server = Server::start(&[]);
    fill(&server, 9000, 10);
    server.database.run("UPDATE users SET created_at = '2026-01-01' WHERE username LIKE 'u1%'");
    let before = server.database.value::<i64>("SELECT count(*) FROM users");
    let answer = std::thread::scope(|scope| {
        let export = scope.spawn(|| server.api("GET", "/users/export-full").send());
        for i in 0..50 {
            server.database.run(&format!(
                "INSERT INTO users (id, email, password_hash) VALUES (gen_random_uuid(), 'new{i}@example.com', '-')"
            ));
        }
        export.join().expect("no panic").expect(200)
    });
    let rows = rows(&answer);
    let mut old: Vec<_> = rows.iter().filter(|row| !row[1].is_empty()).map(|row| &row[0]).collect();
    assert_eq!(old.len() as i64, before);
    old.sort();
    old.dedup();
    assert_eq!(old.len() as i64, before);
    assert!(rows.is_sorted_by_key(|row| (row[6].clone(), row[0].clone())));
}

/// Asks for an export and takes nothing but the first bytes of the answer.
fn begin(server: &Server) -> (TcpStream, Vec<u8>) {
    let mut stream = TcpStream::connect(&server.address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    stream
        .write_all(
            b"GET /api/v1/users/export-full HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        )
        .expect("sent");
    let mut first = vec![0; 4096];
    let n = stream.read(&mut first).expect("the first bytes");
    first.truncate(n);
    assert!(first.starts_with(b"HTTP/1.1 200"), "{:?}", String::from_utf8_lossy(&first));
    (stream, first)
}

/// The body of an answer in chunks, which must have its end (RFC 9112, 7.1).
fn unchunked(answer: &[u8]) -> Vec<u8> {
    let line = |from: usize| {
        let end = answer[from..].windows(2).position(|pair| pair == b"\r\n");
        from + end.expect("the end of a line")
    };
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (mut at, mut body) = (head.expect("a head") + 4, Vec::new());
    loop {
        let size = std::str::from_utf8(&answer[at..line(at)]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        at = line(at) + 2;
        if size == 0 {
            return body;
        }
        body.extend(&answer[at..at + size]);
        at += size + 2;
    }
}

#[test]
fn a_client_that_does_not_read_holds_no_connection() {
    let server = Server::start(&[
        ("CLOAKROOM_DATABASE_POOL_SIZE", "1"),
        ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "2"),
    ]);
    // More than the buffers between the two take.
    fill(&server, 10_000, 5000);
    let (mut stream, mut body) = begin(&server);
    let ann = server.sign_up("ann");
    server.get("/users/me", &ann.access).expect(200);
    // A killed backend is replaced, and the export goes on.
    server.database.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'cloakroom'",
    );
    stream.read_to_end(&mut body).expect("the rest");
    let answer = Answer { status: 200, headers: Default::default(), bytes: unchunked(&body) };
    // Ann came while it ran.
    assert!((10_000..=10_001).contains(&rows(&answer).len()));
}

#[test]
fn an_export_that_fails_on_its_way_never_looks_complete() {
    let server = Server::start(&[]);
    fill(&server, 10_000, 5000);
    let (mut stream, mut body) = begin(&server);
    server.database.run("ALTER TABLE users RENAME TO users_gone");
    // The connection may be reset: that, too, is no end of an answer.
    let _ = stream.read_to_end(&mut body);
    assert!(!body.ends_with(b"0\r\n\r\n"), "it looks complete");
    server.logged("an export broke off");
    server.database.run("ALTER TABLE users_gone RENAME TO users");
    let answer = eventually(|| server.api("GET", "/users/export?email=u17").try_send().ok());
    let found = rows(&answer.expect(200));
    assert_eq!(found.len(), 111);
    let _: Vec<Value> = found.into_iter().map(|row| json!(row)).collect();
}
