//! A database that restarts, is down or slow, refuses, or is reached over TLS. `outage.rs` has the tests under load.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

#[test]
fn a_restart_of_the_database_fails_no_request_that_comes_after() {
    let cluster = Cluster::start("restart");
    let api = cluster.serve(&[("CLOAKROOM_DATABASE_POOL_SIZE", "8")]);
    let ann = api.sign_up("ann");
    // Enough requests at once to use every connection of the pool.
    let use_all_connections = || {
        for answer in parallel(16, |_| api.me(&ann)) {
            answer.expect(200);
        }
    };
    for round in 0..3 {
        use_all_connections();
        cluster.stop();
        cluster.start_again();
        // The first request writes. A write is not repeated on another connection, so it must not get a dead one.
        api.request_reset("ann@example.com").expect(200);
        api.update_me(&ann, json!({"name": format!("Ann {round}")})).expect(200);
        use_all_connections();
    }
}

#[test]
fn a_database_that_is_down_is_a_503_until_it_is_back() {
    let cluster = Cluster::start("down");
    let api = cluster.serve(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")]);
    let ann = api.sign_up("ann");
    cluster.stop();
    let requests: [&dyn Fn() -> Answer; 3] =
        [&|| api.me(&ann), &|| api.readyz(), &|| api.login("ann", PASSWORD)];
    let times = requests.map(|send| {
        let begin = Instant::now();
        let answer = send().refused(503, "Service temporarily unavailable");
        let reason = json!({"error_code": "SERVICE_UNAVAILABLE", "reason": "UNAVAILABLE"});
        assert!(answer.has(reason).header("Retry-After").parse::<u64>().unwrap() >= 1);
        begin.elapsed()
    });
    // With the default timeout of 5 seconds each would take longer than the median may, even on an idle machine.
    assert!(median(times.to_vec()) < Duration::from_secs(4), "{times:?}");
    assert!(times.iter().all(|time| *time < Duration::from_secs(20)), "{times:?}");
    api.healthz().expect(200);
    cluster.start_again();
    wait_until(|| api.readyz().status == 200);
    api.me(&ann).expect(200);
    assert!(!api.log().contains("panic"), "{}", api.log());
}

#[test]
fn a_killed_backend_fails_no_read() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_DATABASE_POOL_SIZE", "2")], ["ann"]);
    let token = has_extras().then(|| api.new_token(&ann, false));
    for sender in [&ann.access].into_iter().chain(&token) {
        for _ in 0..10 {
            api.me(sender).expect(200);
            api.database.end_connections("true");
            api.me(sender).expect(200);
        }
    }
}

#[test]
fn a_slow_statement_is_a_504_and_a_full_pool_a_503() {
    let settings =
        [("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "3"), ("CLOAKROOM_DATABASE_POOL_SIZE", "2")];
    let (api, [ann]) = Server::with_users(&settings, ["ann"]);
    let lock = api.database.begin("LOCK TABLE users");
    let answers = parallel(8, |_| api.me(&ann));
    assert!(answers.iter().any(|answer| answer.status == 504), "{answers:?}");
    for answer in answers {
        match answer.status {
            504 => answer.refused(504, "Request timed out").has(json!({"reason": "TIMED_OUT"})),
            _ => answer.refused(503, "Service temporarily unavailable"),
        };
    }
    lock.roll_back();
    api.me(&ann).expect(200);
}

#[test]
fn a_statement_whose_result_type_a_migration_changed_is_prepared_anew() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_DATABASE_POOL_SIZE", "1")], ["ann"]);
    let file = api.new_file(&ann, "a.txt", "a");
    let use_all = |name: &str| {
        let change = json!({"filename": name});
        api.update_file(&ann, &file, change).expect(200).has(json!({"filename": name}));
        api.show_file(&ann, &file).expect(200).has(json!({"filename": name}));
        assert_eq!(api.list_files(&ann, "").expect(200).names("items", "filename"), [name]);
        api.me(&ann).expect(200);
        api.refresh(&api.sign_in("ann").refresh).expect(200);
    };
    use_all("before.txt");
    api.database.run("ALTER TABLE files ALTER COLUMN filename TYPE text");
    use_all("after.txt");
    api.database.run("ALTER TABLE users ALTER COLUMN permissions TYPE varchar(100)[]");
    use_all("later.txt");
    assert_eq!(api.database.count("users WHERE username = 'ann'"), 1);
}

/// When the ping last began on the pool's only connection; nothing where that ran something else since.
fn ping_began(api: &Server) -> Option<String> {
    let mut client = api.database.client();
    let rows = client.query(
        "SELECT query_start::text FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'cloakroom' AND query LIKE '%is_read_only%'
           AND pid <> pg_backend_pid()",
        &[],
    );
    rows.expect("rows").first().map(|row| row.get(0))
}

#[test]
fn readyz_asks_the_database_at_most_once_a_second() {
    let api = Server::start(&[("CLOAKROOM_DATABASE_POOL_SIZE", "1")]);
    api.readyz().expect(200);
    let first = eventually(|| {
        api.readyz().expect(200);
        ping_began(&api)
    });
    let begin = Instant::now();
    let mut seen: Vec<_> = (0..50)
        .filter_map(|_| {
            api.readyz().expect(200);
            ping_began(&api)
        })
        .collect();
    seen.dedup();
    let limit = begin.elapsed().as_secs() as usize + 2;
    assert!(seen.len() <= limit, "{} pings where {limit} are allowed", seen.len());
    wait_until(|| {
        api.readyz().expect(200);
        ping_began(&api).is_some_and(|last| last > first)
    });
}

#[test]
fn while_readyz_waits_for_the_database_the_others_get_the_last_answer() {
    let settings =
        [("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "60"), ("CLOAKROOM_DATABASE_POOL_SIZE", "1")];
    let api = Server::start(&settings);
    let lock = api.database.begin("LOCK TABLE password_reset_requests");
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| api.request_reset("ann@example.com").expect(200));
        // The pool's only connection is in use now.
        api.database.wait_for_blocked_statement();
        for _ in 0..20 {
            scope.spawn(|| {
                api.readyz().expect(200);
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        wait_until(|| done.load(Ordering::Relaxed) == 19);
        lock.roll_back();
    });
    assert_eq!(done.into_inner(), 20);
}

#[test]
fn a_database_that_refuses_ends_the_start_at_once() {
    let database = Database::create();
    let (server, _) = database.url.rsplit_once('/').unwrap();
    let begin = Instant::now();
    let text = run(&format!("{server}/no_such_database"), &["serve"], &[]).exits(1).err();
    assert!(text.contains("no_such_database") && text.contains("does not exist"), "{text}");
    // A server that does not answer would be retried for 30 seconds.
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_database_that_comes_late_is_waited_for() {
    let cluster = Cluster::start("late");
    let (database, data) = (Database::create_on(&cluster.url), Directory::create());
    cluster.stop();
    let mut command = command(&database.url, &data, &[]);
    let mut process = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut log = BufReader::new(process.stderr.take().expect("stderr")).lines();
    let mut until = |text: &str| {
        let found = log.by_ref().map_while(Result::ok).any(|line| line.contains(text));
        assert!(found, "it ended before {text}");
    };
    until(&format!("WARN  waiting for the database at {}: ", cluster.address()));
    cluster.start_again();
    until("listening on http://");
    process.kill().expect("the server ends");
    process.wait().expect("the server ended");
}

#[test]
fn a_database_that_never_comes_is_named_every_ten_seconds_until_the_start_fails() {
    let secret = "postgres://ann:s3cret";
    let (one, two) = (format!("{secret}@127.0.0.1:1/x"), format!("{secret}@[::1]:1,127.0.0.1:2/x"));
    let (refused, no_file) =
        ("Connection refused (os error 111)", "No such file or directory (os error 2)");
    let socket = "host=/nowhere port=7 user=ann password=s3cret";
    let cases = [
        (&*one, "127.0.0.1:1", refused),
        (&*two, "[::1]:1, 127.0.0.1:2", refused),
        (socket, "/nowhere/.s.PGSQL.7", no_file),
        ("hostaddr=127.0.0.1 port=1 user=ann", "127.0.0.1:1", refused),
    ];
    parallel(cases.len(), |n| {
        let (url, server, reason) = cases[n];
        let text = run(url, &["serve"], &[]).exits(1).err();
        let reason = format!("error connecting to server: {reason}");
        let mut lines: Vec<_> = text.lines().collect();
        let end = format!("cloakroom: the database at {server} did not answer for 30 s: {reason}");
        assert_eq!(lines.pop(), Some(&*end));
        assert_eq!(lines.len(), 3, "{text}");
        for line in lines {
            let (_, message) = line.split_once(" WARN  ").expect("a warning");
            assert_eq!(message, format!("waiting for the database at {server}: {reason}"));
        }
    });
}

#[test]
fn tls_to_the_database_is_used_and_verified_as_configured() {
    let cluster = Cluster::start("tls");
    let database = Database::create_on(&cluster.url);
    let (files, other_files) = (Directory::create(), Directory::create());
    cluster.stop();
    cluster.start_with_certificate(&files);
    certificate(&other_files);
    let own = files.join("server.crt").display().to_string();
    let other = other_files.join("server.crt").display().to_string();
    let url = |mode: &str| format!("{}?sslmode={mode}", database.url);
    let unknown = [("CLOAKROOM_DATABASE_CA", &*other)];
    let text = run(&url("require"), &["migrate"], &unknown).exits(1).err();
    assert!(text.contains("certificate"), "{text}");
    for (mode, authority, encrypted) in [
        ("disable", "", false),
        ("prefer", "", true),
        ("require", "", true),
        ("require", &*own, true),
        ("prefer", &*own, true),
    ] {
        let url = url(mode);
        let settings = [("CLOAKROOM_DATABASE_URL", &*url), ("CLOAKROOM_DATABASE_CA", authority)];
        // Those of the former one end a little later than it does.
        wait_until(|| database.connections("application_name = 'cloakroom'") == 0);
        let api = Server::start_on(&database, &settings);
        api.sign_up(&format!("u{}", api.pid()));
        let found: bool = database.value(
            "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
             WHERE application_name = 'cloakroom' AND datname = current_database()",
        );
        assert_eq!(found, encrypted, "{mode} {authority}");
    }
}

#[test]
fn tls_that_is_required_but_not_offered_is_an_error() {
    let url = format!("{}?sslmode=require", Database::create().url);
    let text = run(&url, &["migrate"], &[]).exits(1).err();
    assert!(text.contains("does not offer TLS"), "{text}");
}
