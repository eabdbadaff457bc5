//! A database that restarts, hangs, is slow, or is reached over TLS.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Database, Directory, PASSWORD, Server, command, eventually, parallel, run};

/// A PostgreSQL of the test's own, made by the project's script.
pub struct Cluster {
    directory: PathBuf,
    pub url: String,
}

impl Cluster {
    pub fn start(name: &str, options: &str) -> Cluster {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let directory = root.join(format!("postgres-{name}"));
        Cluster::script("remove", &directory, "");
        let options = format!("-c fsync=off -c max_connections=50 {options}");
        let url = Cluster::script("start", &directory, &options);
        Cluster { directory, url }
    }

    fn script(command: &str, directory: &Path, options: &str) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/postgres");
        let output = Command::new(script)
            .arg(command)
            .arg(directory)
            .env("CLOAKROOM_PG_OPTIONS", options)
            .output()
            .expect("scripts/postgres runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    }

    pub fn stop(&self) {
        Cluster::script("stop", &self.directory, "");
    }

    pub fn start_again(&self) {
        let url = Cluster::script("start", &self.directory, "-c fsync=off -c max_connections=50");
        assert_eq!(url, self.url);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        Cluster::script("remove", &self.directory, "");
    }
}

#[test]
fn a_restart_of_the_database_fails_no_request_that_comes_after() {
    let cluster = Cluster::start("restart", "");
    let server = Server::start_on(
        &Database::create_on(&cluster.url),
        &[("CLOAKROOM_DATABASE_POOL_SIZE", "8")],
    );
    let ann = server.sign_up("ann");
    for round in 0..3 {
        // Every connection of the pool is in use just before.
        for answer in parallel(16, |_| server.get("/auth/me", &ann.access)) {
            answer.expect(200);
        }
        cluster.stop();
        cluster.start_again();
        // First one that only writes: writes are not repeated, so it must not meet a dead connection.
        server
            .post("/auth/request-password-reset", json!({"email": "ann@example.com"}))
            .expect(200);
        let name = json!({"name": format!("Ann {round}")});
        server.api("PUT", "/users/me").bearer(&ann.access).json(name).send().expect(200);
        for answer in parallel(16, |_| server.get("/auth/me", &ann.access)) {
            answer.expect(200);
        }
    }
}

#[test]
fn a_database_that_is_down_is_a_503_until_it_is_back() {
    let cluster = Cluster::start("down", "");
    let settings = [("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")];
    let server = Server::start_on(&Database::create_on(&cluster.url), &settings);
    let ann = server.sign_up("ann");
    cluster.stop();
    for (method, path) in
        [("GET", "/api/v1/auth/me"), ("GET", "/readyz"), ("POST", "/api/v1/auth/login")]
    {
        let begin = Instant::now();
        let body = json!({"username": "ann", "password": PASSWORD});
        let answer = server.request(method, path).bearer(&ann.access).json(body).send();
        let answer = answer.refused(503, "Service temporarily unavailable");
        assert_eq!(answer.json()["error_code"], "SERVICE_UNAVAILABLE");
        assert!(answer.header("Retry-After").parse::<u64>().unwrap() >= 1);
        assert!(begin.elapsed() < Duration::from_secs(4), "{path}: {:?}", begin.elapsed());
    }
    server.request("GET", "/healthz").send().expect(200);
    cluster.start_again();
    eventually(|| (server.request("GET", "/readyz").send().status == 200).then_some(()));
    server.get("/auth/me", &ann.access).expect(200);
    assert!(!server.log().contains("panic"), "{}", server.log());
}

#[test]
fn a_killed_backend_fails_no_read() {
    let server = Server::start(&[("CLOAKROOM_DATABASE_POOL_SIZE", "2")]);
    let ann = server.sign_up("ann");
    let name = &server.database.url.rsplit('/').next().unwrap().to_owned();
    for _ in 0..20 {
        server.get("/auth/me", &ann.access).expect(200);
        server.database.run(&format!(
            "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity
             WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        ));
        server.get("/auth/me", &ann.access).expect(200);
    }
}

#[test]
fn a_slow_statement_is_a_504_and_a_full_pool_a_503() {
    let settings =
        [("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1"), ("CLOAKROOM_DATABASE_POOL_SIZE", "2")];
    let server = Server::start(&settings);
    let ann = server.sign_up("ann");
    let mut client = server.database.client();
    let mut blocker = client.transaction().unwrap();
    blocker.batch_execute("LOCK TABLE users").unwrap();
    let answers = parallel(8, |_| server.get("/auth/me", &ann.access));
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    for answer in answers {
        let slow = answer.status == 504;
        let message = if slow { "Request timed out" } else { "Service temporarily unavailable" };
        assert_eq!(answer.json()["detail"], message);
    }
    assert!(
        statuses.contains(&504) && statuses.iter().all(|status| [503, 504].contains(status)),
        "{statuses:?}"
    );
    drop(blocker);
    server.get("/auth/me", &ann.access).expect(200);
}

#[test]
fn a_database_that_refuses_ends_the_start_at_once() {
    let database = Database::create();
    let (server, _) = database.url.rsplit_once('/').unwrap();
    let begin = Instant::now();
    let output = run(&format!("{server}/no_such_database"), &["serve"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("no_such_database") && text.contains("does not exist"), "{text}");
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_database_that_comes_late_is_waited_for() {
    let cluster = Cluster::start("late", "");
    let (database, data) = (Database::create_on(&cluster.url), Directory::create());
    cluster.stop();
    let mut child = command(&database.url, &data.0, &[])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut log = BufReader::new(child.stderr.take().expect("stderr")).lines();
    let mut until = |text: &str| {
        log.by_ref()
            .map_while(Result::ok)
            .find(|line| line.contains(text))
            .unwrap_or_else(|| panic!("it ended before {text}"))
    };
    until("waiting for the database");
    cluster.start_again();
    until("listening on http://");
    child.kill().expect("the server ends");
    child.wait().expect("the server ended");
}

/// Makes a certificate for 127.0.0.1 and gives the options that let PostgreSQL use it.
fn certificate(directory: &Path, owner: Option<(u32, u32)>) -> String {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (directory.join("server.crt"), directory.join("server.key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    if let Some((user, group)) = owner {
        chown(&key, Some(user), Some(group)).unwrap();
    }
    format!("-c ssl=on -c ssl_cert_file={} -c ssl_key_file={}", cert.display(), key.display())
}

#[test]
fn tls_to_the_database_is_used_and_verified_as_asked() {
    let files = Directory::create();
    let cluster = Cluster::start("tls", "");
    let database = Database::create_on(&cluster.url);
    let owner = std::fs::metadata(&cluster.directory).unwrap();
    cluster.stop();
    Cluster::script(
        "start",
        &cluster.directory,
        &certificate(&files.0, Some((owner.uid(), owner.gid()))),
    );
    let other = Directory::create();
    certificate(&other.0, None);
    let ours = files.0.join("server.crt").display().to_string();
    let theirs = other.0.join("server.crt").display().to_string();
    let encrypted = |server: &Server| -> bool {
        server.sign_up(&format!("u{}", server.pid()));
        server.database.value(
            "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
             WHERE application_name = 'cloakroom' AND datname = current_database()",
        )
    };
    for (mode, authority, expected) in [
        ("disable", "", Some(false)),
        ("prefer", "", Some(true)),
        ("require", "", Some(true)),
        ("require", &*ours, Some(true)),
        ("prefer", &*ours, Some(true)),
        ("require", &*theirs, None),
    ] {
        let url = format!("{}?sslmode={mode}", database.url);
        let settings =
            [("CLOAKROOM_DATABASE_URL", url.as_str()), ("CLOAKROOM_DATABASE_CA", authority)];
        match expected {
            Some(expected) => {
                let server = Server::start_on(&database, &settings);
                assert_eq!(encrypted(&server), expected, "{mode} {authority}");
            }
            None => {
                let output = run(&url, &["migrate"], &settings);
                assert_eq!(output.status.code(), Some(1), "{mode} {authority}");
                let text = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(text.contains("certificate"), "{text}");
            }
        }
    }
    // A server without TLS.
    let plain = Database::create();
    let url = format!("{}?sslmode=require", plain.url);
    let output = run(&url, &["migrate"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("does not offer TLS"), "{output:?}");
    let missing = run(&plain.url, &["config"], &[("CLOAKROOM_DATABASE_CA", "/no/such/file")]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/no/such/file"));
}
