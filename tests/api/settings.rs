//! Settings and the command line.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::sync::Arc;

use serde_json::json;

use crate::harness::{Database, Directory, PASSWORD, Server, command, parallel, run};

/// A database that is never asked.
const NOWHERE: &str = "postgres://cloakroom:s3cret@127.0.0.1:1/cloakroom";

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_bad_setting_is_reported_at_once_and_nothing_starts() {
    let bad = [
        ("CLOAKROOM_ENV", "prod"),
        ("CLOAKROOM_LISTEN", "8000"),
        ("CLOAKROOM_DATABASE_POOL_SIZE", "0"),
        ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "-1"),
        ("CLOAKROOM_HTTP_SERVER", "apache"),
        ("CLOAKROOM_WORKERS", "many"),
        ("CLOAKROOM_JWT_ALGORITHM", "none"),
        ("ACCESS_TOKEN_EXPIRE_MINUTES", "1.5"),
        ("CLOAKROOM_REFRESH_TOKEN_EXPIRE_DAYS", "0"),
        ("CLOAKROOM_REFRESH_REUSE_SECONDS", "x"),
        ("CLOAKROOM_PASSWORD_RESET_EXPIRE_MINUTES", "99999999999"),
        ("CLOAKROOM_SCRYPT", "14,8"),
        ("CLOAKROOM_AUTH_ENABLED", "maybe"),
        ("CLOAKROOM_MAX_UPLOAD_SIZE", "10MB"),
        ("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "image/png,jpeg"),
        ("CLOAKROOM_STORAGE_QUOTA", "0"),
        ("CLOAKROOM_USER_STORAGE_QUOTA", "99999999999999999999"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "2"),
        ("CLOAKROOM_RATE_LIMIT_AUTH", "0"),
        ("CLOAKROOM_RATE_LIMIT_UPLOAD", "-1"),
        ("CLOAKROOM_RATE_LIMIT_GENERAL", "0"),
        ("CLOAKROOM_TRUSTED_PROXIES", "10.0.0.0/33"),
        ("CLOAKROOM_CORS_ORIGINS", "example.com"),
        ("CLOAKROOM_ERROR_FORMAT", "xml"),
        ("CLOAKROOM_LOG", "loud"),
        ("CLOAKROOM_LOG_FORMAT", "xml"),
    ];
    let output =
        run(NOWHERE, &["serve"], &[&bad[..], &[("CLOAKROOM_DATABASE_URL", "mysql://x")]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("CLOAKROOM_DATABASE_URL is no PostgreSQL URL"));
    for (name, value) in bad {
        let line = stderr(&output).lines().find(|line| line.contains(name)).map(str::to_owned);
        let line = line.unwrap_or_else(|| panic!("no {name} in {}", stderr(&output)));
        assert!(line.contains(value) && line.contains("allowed"), "{line}");
    }
}

#[test]
fn bad_secrets_are_named_and_not_shown() {
    for (name, value, held) in [
        ("CLOAKROOM_JWT_SECRET", "short-s3cret", "12 bytes"),
        (
            "CLOAKROOM_DATABASE_URL",
            "mysql://cloakroom:s3cret@localhost/x",
            "CLOAKROOM_DATABASE_URL",
        ),
        (
            "CLOAKROOM_DATABASE_URL",
            "host=localhost password=s3cret port=x",
            "CLOAKROOM_DATABASE_URL",
        ),
        ("CLOAKROOM_DATABASE_URL", "", "not set"),
    ] {
        let output = run(NOWHERE, &["serve"], &[(name, value)]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(
            stderr(&output).contains(name) && stderr(&output).contains(held),
            "{}",
            stderr(&output)
        );
        assert!(!stderr(&output).contains("s3cret"), "{}", stderr(&output));
    }
    for (algorithm, length, accepted) in [
        ("HS256", 31, false),
        ("HS256", 32, true),
        ("HS384", 47, false),
        ("HS384", 48, true),
        ("HS512", 63, false),
        ("HS512", 64, true),
    ] {
        let secret = "x".repeat(length);
        let settings =
            [("CLOAKROOM_JWT_ALGORITHM", algorithm), ("CLOAKROOM_JWT_SECRET", secret.as_str())];
        let output = run(NOWHERE, &["config"], &settings);
        assert_eq!(output.status.success(), accepted, "{algorithm} {length}");
    }
}

#[test]
fn config_prints_effective_values_with_secrets_masked() {
    let settings = [
        ("CLOAKROOM_RATE_LIMIT_AUTH", "7"),
        ("ACCESS_TOKEN_EXPIRE_MINUTES", "15"),
        ("CLOAKROOM_ENV", ""),
    ];
    let output = run(NOWHERE, &["config"], &settings);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for line in [
        "CLOAKROOM_ENV=development",
        "CLOAKROOM_RATE_LIMIT_AUTH=7",
        "CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES=15",
        "CLOAKROOM_REFRESH_TOKEN_EXPIRE_DAYS=7",
        "CLOAKROOM_DATABASE_URL=(set, not shown)",
        "CLOAKROOM_JWT_SECRET=(set, not shown)",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
    assert!(!text.contains("s3cret") && !text.contains(crate::harness::SECRET), "{text}");
}

#[test]
fn the_builtin_server_is_the_default_and_still_known_by_its_former_name() {
    let name = "CLOAKROOM_HTTP_SERVER";
    for (value, shown) in
        [("", "builtin"), ("builtin", "builtin"), ("front", "builtin"), ("rouille", "rouille")]
    {
        let output = run(NOWHERE, &["config"], &[(name, value)]);
        assert!(output.status.success(), "{}", stderr(&output));
        let line = format!("{name}={shown}");
        assert!(stdout(&output).lines().any(|found| found == line), "{}", stdout(&output));
    }
    let refused = stderr(&run(NOWHERE, &["config"], &[(name, "Front")]));
    assert!(
        refused.contains("CLOAKROOM_HTTP_SERVER holds \"Front\"; allowed: builtin, rouille\n"),
        "{refused}"
    );
}

#[test]
fn a_misspelt_setting_and_an_open_address_are_warned_about() {
    let server = Server::start(&[
        ("CLOAKROOM_RATE_LIMIT_AUHT", "7"),
        ("CLOAKROOM_LISTEN", "0.0.0.0:0"),
        ("CLOAKROOM_AUTH_ENABLED", "false"),
    ]);
    let log = server.log();
    assert!(
        log.contains(
            "CLOAKROOM_RATE_LIMIT_AUHT is no setting; did you mean CLOAKROOM_RATE_LIMIT_AUTH?"
        ),
        "{log}"
    );
    assert!(log.contains("listening on 0.0.0.0:0 in development"), "{log}");
    assert!(log.contains("ANYONE WHO REACHES IT IS AN ADMIN"), "{log}");
    let quiet = Server::start(&[]);
    assert!(!quiet.log().contains("WARN") && !quiet.log().contains("ERROR"), "{}", quiet.log());
}

#[test]
fn the_development_secret_is_made_once_and_kept_private() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let unset = [("CLOAKROOM_JWT_SECRET", "")];
    let servers = parallel(4, |_| Server::start_with(&database, &data, &unset));
    let path = data.0.join("jwt-secret");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let secret = std::fs::read_to_string(&path).unwrap();
    assert!(secret.len() == 128 && secret.bytes().all(|b| b.is_ascii_hexdigit()), "{secret}");
    assert_eq!(
        std::fs::read_dir(&data.0)
            .unwrap()
            .filter(|f| f.as_ref().unwrap().path().is_file())
            .count(),
        1
    );
    let ann = servers[0].sign_up("ann");
    for server in &servers {
        server.get("/auth/me", &ann.access).expect(200);
    }
    drop(servers);
    let again = Server::start_with(&database, &data, &unset);
    again.get("/auth/me", &ann.access).expect(200);
    drop(again);
    std::fs::write(&path, "short").unwrap();
    let output = command(&database.url, &data.0, &unset).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("jwt-secret") && !stderr(&output).contains("short"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn several_processes_may_start_at_once_on_an_empty_database() {
    let database = Database::create();
    let servers = parallel(5, |_| Server::start_on(&database, &[]));
    let ann = servers[0].sign_up("ann");
    for server in &servers {
        server.get("/auth/me", &ann.access).expect(200);
    }
    let applied =
        servers.iter().filter(|server| server.log().contains("V1__accounts applied")).count();
    assert_eq!(applied, 1);
}

#[test]
fn migrate_may_be_run_again() {
    let database = Database::create();
    for _ in 0..2 {
        let output = run(&database.url, &["migrate"], &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stdout(&output), "The database is up to date.\n");
    }
}

#[test]
fn a_newer_schema_is_refused_with_both_versions() {
    let database = Database::create();
    assert!(run(&database.url, &["migrate"], &[]).status.success());
    let newest: i32 = database.value("SELECT max(version) FROM refinery_schema_history");
    database.run(
        "INSERT INTO refinery_schema_history (version, name, applied_on, checksum)
         SELECT 999, 'later', applied_on, checksum FROM refinery_schema_history LIMIT 1",
    );
    for arguments in [["serve"], ["migrate"]] {
        let output = run(&database.url, &arguments, &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("999"), "{}", stderr(&output));
        assert!(stderr(&output).contains(&format!("up to {newest}")), "{}", stderr(&output));
    }
}

#[test]
fn create_admin_makes_an_admin_or_makes_an_account_one() {
    let server = Server::start(&[]);
    let create = |arguments: &[&str], password: &str| {
        run(
            &server.database.url,
            &[&["create-admin"], arguments].concat(),
            &[("CLOAKROOM_ADMIN_PASSWORD", password)],
        )
    };
    let output = create(&["--email", "root@example.com", "--username", "root"], "battery staple");
    assert!(output.status.success(), "{}", stderr(&output));
    let login = |name: &str, password: &str| {
        server.post("/auth/login", json!({"username": name, "password": password}))
    };
    assert_eq!(login("root", "battery staple").expect(200).tokens().user["role"], "admin");
    assert!(!stdout(&output).contains("battery") && !stderr(&output).contains("battery"));
    // An existing account keeps its username; its sessions end; it is switched on.
    let ann = server.sign_up("ann");
    server.database.run("UPDATE users SET is_active = false WHERE username = 'ann'");
    let output = create(&["--email", "ANN@example.com", "--username", "other"], "battery staple");
    assert!(output.status.success() && stdout(&output).contains("username: ann"), "{output:?}");
    server.get("/auth/me", &ann.access).refused(401, "Invalid token");
    login("ann", PASSWORD).expect(401);
    assert_eq!(login("ann", "battery staple").expect(200).tokens().user["role"], "admin");
    // Errors.
    for (arguments, password, code, text) in [
        (
            vec!["--email", "new@example.com", "--username", "ANN"],
            "battery staple",
            1,
            "Username already exists",
        ),
        (vec!["--email", "nonsense"], "battery staple", 1, "Invalid e-mail address"),
        (vec!["--email", "new@example.com", "--username", "a b"], "battery staple", 1, "username"),
        (
            vec!["--email", "new@example.com"],
            "short",
            1,
            "Password must be at least 8 characters long",
        ),
        (vec!["--email", "new@example.com"], "", 1, "Password must be at least 8 characters long"),
        (vec![], "battery staple", 2, "--email"),
    ] {
        let output = create(&arguments, password);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
    }
    assert_eq!(server.database.value::<i64>("SELECT count(*) FROM users"), 2);
}

#[test]
fn create_admin_reads_the_first_line_of_standard_input() {
    let (database, data) = (Database::create(), Directory::create());
    let input = data.0.join("input");
    std::fs::write(&input, " battery staple \r\nanother line\n").unwrap();
    let output = command(&database.url, &data.0, &[])
        .args(["create-admin", "--email", "root@example.com"])
        .stdin(std::fs::File::open(&input).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let server = Server::start_on(&database, &[]);
    let body = json!({"email": "root@example.com", "password": " battery staple "});
    server.post("/auth/login", body).expect(200);
}

#[test]
fn help_and_version_are_there() {
    let help = run(NOWHERE, &["--help"], &[]);
    assert!(help.status.success());
    for command in ["serve", "migrate", "config", "create-admin"] {
        assert!(stdout(&help).contains(command), "{}", stdout(&help));
    }
    assert_eq!(
        stdout(&run(NOWHERE, &["--version"], &[])),
        format!("cloakroom {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(run(NOWHERE, &["nonsense"], &[]).status.code(), Some(2));
}

#[test]
fn a_taken_port_is_told_in_one_line() {
    let server = Server::start(&[]);
    let output = run(&server.database.url, &["serve"], &[("CLOAKROOM_LISTEN", &server.address)]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains(&format!("cannot listen on {}", server.address)),
        "{}",
        stderr(&output)
    );
}
