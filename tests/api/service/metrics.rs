//! What `/metrics` shows, to whom, and what of it is left when something does not answer.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::*;

#[test]
fn metrics_count_requests_by_endpoint() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.profile(&ann).expect(200);
    api.get("/users/me/", &ann).expect(200);
    api.get("/users/me/../x", &ann).expect(404);
    for n in 0..50 {
        api.request_at_root("GET", &format!("/nowhere/{n}")).send().expect(404);
    }
    // A background thread may have a connection at any moment.
    let metrics = eventually(|| {
        Some(api.metrics()).filter(|text| text.contains("\ncloakroom_pool_in_use 0\n"))
    });
    for line in [
        r#"cloakroom_requests_total{endpoint="GET /api/v1/users/me",status="200"} 2"#,
        r#"cloakroom_requests_total{endpoint="none",status="404"} 51"#,
        r#"cloakroom_request_duration_seconds_count{endpoint="POST /api/v1/auth/login"} 1"#,
        "cloakroom_requests_running 1",
        "cloakroom_hashes_waiting 0",
        "cloakroom_stored_bytes 0",
        "cloakroom_mail_waiting 0",
        "# EOF",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in {metrics}");
    }
}

#[test]
fn metrics_are_for_whom_the_setting_says() {
    for (setting, header, status) in [
        ("", None, 200),
        ("", Some("X-Forwarded-For"), 404),
        ("", Some("Forwarded"), 404),
        ("off", None, 404),
        ("any", Some("X-Forwarded-For"), 200),
    ] {
        let api = Server::start(&[("CLOAKROOM_METRICS", setting)]);
        let request = api.request_at_root("GET", "/metrics");
        let request = header.iter().fold(request, |r, name| r.header(name, "203.0.113.9"));
        let answer = request.send().case(format_args!("{setting} {header:?}")).expect(status);
        if status == 404 {
            answer.refused(404, "Not Found");
        }
    }
}

#[test]
fn metrics_tell_the_version_the_start_and_the_limits() {
    let before = now();
    let api = Server::start(&[
        ("CLOAKROOM_DATABASE_POOL_SIZE", "3"),
        ("CLOAKROOM_MAX_CONNECTIONS", "17"),
        ("CLOAKROOM_STORAGE_QUOTA", "12345"),
    ]);
    let started = api.metric("process_start_time_seconds").expect("a time");
    assert!((before as f64..=now() as f64 + 1.0).contains(&started), "{before} {started}");
    let build = format!("cloakroom_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(api.metric(&build), Some(1.0), "{}", api.metrics());
    assert_eq!(api.metric("cloakroom_pool_size"), Some(3.0));
    assert_eq!(api.metric("cloakroom_connections_max"), Some(17.0));
    assert_eq!(api.metric("cloakroom_storage_quota_bytes"), Some(12345.0));
    let rouille = Server::start(&[("CLOAKROOM_HTTP_SERVER", "rouille")]);
    assert_eq!(rouille.metric("cloakroom_connections_max"), Some(0.0));
}

#[test]
fn metrics_tell_what_is_stored_and_what_its_file_system_has_left() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    api.new_file(&ann, "a.txt", &"x".repeat(1000));
    assert_eq!(api.metric("cloakroom_stored_bytes"), Some(1000.0));
    // Blocks, bytes of a block, blocks that are available to this user, inodes, free inodes.
    let stat = || {
        let format = ["--file-system", "--format=%b %S %a %c %d"];
        let output = Command::new("stat").args(format).arg(api.data.path()).output();
        let text = String::from_utf8(output.expect("stat runs").stdout).expect("text");
        let numbers: Vec<f64> = text.split_whitespace().flat_map(str::parse).collect();
        <[f64; 5]>::try_from(numbers).expect("five numbers")
    };
    // Others write to the same file system, so what is free is the same only roughly, and not at every moment.
    wait_until(|| {
        let [blocks, block, available, inodes, free_inodes] = stat();
        let value = |name: &str| api.metric(&format!("cloakroom_filesystem_{name}")).expect("it");
        assert_eq!((value("size_bytes"), value("files")), (blocks * block, inodes));
        (value("avail_bytes") - available * block).abs() < 32e6
            && (value("files_free") - free_inodes).abs() < 1000.0
    });
}

#[test]
fn metrics_are_answered_in_time_while_the_database_hangs_and_leave_out_what_only_it_knows() {
    let database = Database::create();
    let proxy = DatabaseProxy::start(&database.url);
    let settings =
        [("CLOAKROOM_DATABASE_URL", &*proxy.url), ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "60")];
    let api = Server::start_on(&database, &settings);
    let from_database = ["stored_bytes", "mail_waiting", "mail_failed", "mail_oldest_seconds"];
    let present = || {
        let value = |name: &&&str| api.metric(&format!("cloakroom_{name}")).is_some();
        from_database.iter().filter(value).count()
    };
    assert_eq!((api.metric("cloakroom_database_up"), present()), (Some(1.0), 4));
    proxy.hold(b"");
    let begin = Instant::now();
    assert_eq!(api.metric("cloakroom_database_up"), Some(0.0));
    // Prometheus gives up after ten seconds.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_eq!(present(), 0);
    assert!(api.metric("cloakroom_filesystem_size_bytes").is_some());
    proxy.release();
    wait_until(|| api.metric("cloakroom_database_up") == Some(1.0));
    assert_eq!(present(), 4);
}
