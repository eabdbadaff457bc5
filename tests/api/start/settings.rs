//! Settings: what is refused, shown and warned about, and the secret that is made in development.

use std::sync::Arc;

use crate::harness::*;

#[test]
fn every_bad_setting_is_reported_at_once_and_nothing_starts() {
    let bad = [
        ("CLOAKROOM_ENV", "prod"),
        ("CLOAKROOM_LISTEN", "8000"),
        ("CLOAKROOM_DATABASE_POOL_SIZE", "0"),
        ("CLOAKROOM_BODY_MEMORY", "4095K"),
        ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "-1"),
        ("CLOAKROOM_HTTP_SERVER", "apache"),
        ("CLOAKROOM_DOCS", "false"),
        ("CLOAKROOM_WORKERS", "many"),
        ("CLOAKROOM_MAX_CONNECTIONS_PER_ADDRESS", "0"),
        ("CLOAKROOM_JWT_ALGORITHM", "none"),
        ("ACCESS_TOKEN_EXPIRE_MINUTES", "1.5"),
        ("CLOAKROOM_REFRESH_TOKEN_EXPIRE_DAYS", "0"),
        ("CLOAKROOM_SESSION_MAX_DAYS", "3651"),
        ("CLOAKROOM_REFRESH_REUSE_SECONDS", "x"),
        ("CLOAKROOM_PASSWORD_RESET_EXPIRE_MINUTES", "99999999999"),
        ("CLOAKROOM_SCRYPT", "14,8"),
        ("CLOAKROOM_AUTH_ENABLED", "maybe"),
        ("CLOAKROOM_EMAIL_CHANGE_REQUIRES_PASSWORD", "maybe"),
        ("CLOAKROOM_MAX_UPLOAD_SIZE", "10MB"),
        ("CLOAKROOM_ALLOWED_UPLOAD_TYPES", "image/png,jpeg"),
        ("CLOAKROOM_STORAGE_QUOTA", "0"),
        ("CLOAKROOM_USER_STORAGE_QUOTA", "99999999999999999999"),
        ("CLOAKROOM_USER_FILE_QUOTA", "0"),
        ("CLOAKROOM_TRASH_DAYS", "-1"),
        ("CLOAKROOM_RATE_LIMIT_ENABLED", "2"),
        ("CLOAKROOM_RATE_LIMIT_AUTH", "0"),
        ("CLOAKROOM_RATE_LIMIT_UPLOAD", "-1"),
        ("CLOAKROOM_RATE_LIMIT_GENERAL", "0"),
        ("CLOAKROOM_TRUSTED_PROXIES", "10.0.0.0/33"),
        ("CLOAKROOM_CORS_ORIGINS", "https://app.example.com,null"),
        ("CLOAKROOM_LOGOUT_STATUS", "202"),
        ("CLOAKROOM_ERROR_FORMAT", "xml"),
        ("CLOAKROOM_LOG", "loud"),
        ("CLOAKROOM_LOG_FORMAT", "xml"),
        ("CLOAKROOM_API_KEY_SCOPE", "some"),
        ("CLOAKROOM_EXPORT_MAX_ROWS", "0"),
        ("CLOAKROOM_EXPORT_TIMEOUT_SECONDS", "soon"),
        ("CLOAKROOM_RATE_LIMIT_ADMIN", "-1"),
        ("CLOAKROOM_RATE_LIMIT_ADDRESS", "-1"),
        ("CLOAKROOM_REGISTRATION", "closed"),
        ("CLOAKROOM_REGISTRATIONS_PER_DAY", "few"),
        ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "maybe"),
        ("CLOAKROOM_MAIL_FROM", "nobody"),
        ("CLOAKROOM_PASSWORD_RESET_URL", "https://example.com/reset"),
        ("CLOAKROOM_PUBLIC_URL", "https://files.example.com/cloakroom"),
    ];
    let settings = [&bad[..], &[("CLOAKROOM_DATABASE_URL", "mysql://x")]].concat();
    let output = run(NOWHERE, &["serve"], &settings).exits(2);
    let text = output.reports("CLOAKROOM_DATABASE_URL is no PostgreSQL URL").err();
    for (name, value) in bad {
        let is_it = |line: &str| [name, value, "allowed"].iter().all(|part| line.contains(part));
        assert!(text.lines().any(is_it), "{name}: {text}");
    }
    for list in ["any,image/png", "*/*,image/png", "*/png", "image/p*", "image/*x", "*", ","] {
        run(NOWHERE, &["config"], &[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", list)]).exits(2);
    }
    let size = run(NOWHERE, &["config"], &[("CLOAKROOM_STORAGE_QUOTA", "10GB")]).exits(2);
    size.reports("CLOAKROOM_STORAGE_QUOTA holds")
        .reports("such as 10M (10 MiB, 10 x 1024 x 1024 bytes)");
}

/// A build without a client of a store says which one has it.
#[test]
#[cfg(not(feature = "s3"))]
fn a_store_is_refused_with_the_feature_that_it_needs() {
    let url = ("CLOAKROOM_STORAGE_URL", "s3://files?endpoint=https://h&region=r");
    let text = run(NOWHERE, &["serve"], &[url]).exits(2).err();
    assert!(text.contains(url.0) && text.contains("the cargo feature s3 adds it"), "{text}");
}

/// A build without sign-in by OpenID Connect says which one has it; the core build takes none of its settings.
#[test]
#[cfg(not(feature = "oidc"))]
fn a_provider_is_refused_with_the_feature_that_it_needs() {
    let issuer = ("CLOAKROOM_OIDC_ISSUER", "https://login.example.com");
    run(NOWHERE, &["serve"], &[issuer]).exits(2).reports("the cargo feature oidc adds it");
    let others = ["CLIENT_ID", "CLIENT_SECRET", "NAME", "REGISTRATION", "SESSION_HOURS"];
    for name in others.map(|name| format!("CLOAKROOM_OIDC_{name}")) {
        let value = if name.ends_with("REGISTRATION") { "off" } else { "1" };
        let status = if cfg!(feature = "extras") { 0 } else { 2 };
        run(NOWHERE, &["config"], &[(&name, value)]).exits(status);
    }
}

/// The core build does not start as if it had what it is asked for.
#[test]
#[cfg(not(feature = "extras"))]
fn the_core_build_refuses_settings_of_what_it_has_not() {
    for (name, value) in [
        ("CLOAKROOM_EMAIL_CONFIRMATION", "required"),
        ("CLOAKROOM_ADMIN_SECOND_FACTOR", "required"),
        ("CLOAKROOM_REFUSED_PASSWORDS", "/none"),
        ("CLOAKROOM_CONSOLE", "on"),
        ("CLOAKROOM_PUBLIC_LIST", "on"),
    ] {
        let text = run(NOWHERE, &["config"], &[(name, value)]).exits(2).err();
        assert!(text.contains(name) && text.contains("this is the core build"), "{text}");
    }
}

/// What is wrong with the settings of the database and with secrets is one line, which names the variable that holds it
/// and what is allowed, and shows no secret.
#[test]
fn bad_secrets_are_named_and_not_shown() {
    let database = "CLOAKROOM_DATABASE_URL";
    for (name, value, problem) in [
        ("CLOAKROOM_JWT_SECRET", "short-s3cret", "holds 12 bytes; allowed: at least 32 for HS256"),
        ("CLOAKROOM_JWT_OLD_SECRETS", "short-s3cret", "holds 12 bytes; allowed: at least 32"),
        ("CLOAKROOM_SEAL_KEYS", "short-s3cret", "holds a key of 12 bytes; allowed: at least 32"),
        ("CLOAKROOM_SMTP_URL", "http://ann:s3cret@mail.example.com", "allowed: none, smtp://host"),
        ("CLOAKROOM_STORAGE_URL", "s3://s3cret@x", "allowed: s3://BUCKET/PREFIX?endpoint"),
        (database, "", "is not set; allowed: a PostgreSQL URL"),
        (database, "mysql://ann:s3cret@db/x", "no PostgreSQL URL: it begins with mysql://"),
        ("DATABASE_URL", "sqlite://s3cret.db", "is no PostgreSQL URL: it begins with sqlite://"),
        ("DATABASE_URL", "s3cret", "; allowed: a PostgreSQL URL"),
        (database, "postgres://a:s3@s3cret@c/x", "has more than one @: in a user, a password"),
        (database, "postgres://a:s3@s3cr et/x", "names a host that cannot be one"),
        (database, "host=h password=s3 s3cret", "it cannot be read, or has an option"),
        (database, "postgres:///s3cret", "names no host"),
        (database, "dbname=x password=s3cret", "; allowed: a PostgreSQL URL"),
        (database, "host=h password=s3cret port=x", "; allowed: a PostgreSQL URL"),
        (database, "postgres://h/x?sslmode=verify-full", "sslmode disable, prefer or require; the"),
        (database, "host=h sslmode=s3cret", "allowed: sslmode disable, prefer or require"),
        (database, "host=h target_session_attrs=s3cret", "allowed: target_session_attrs any,"),
        (database, "host=/run/postgresql sslmode=require", "names a Unix socket, which has no TLS"),
        ("CLOAKROOM_DATABASE_CA", "/no/such/file", "allowed: a PEM file with the certificates"),
    ] {
        let no_other = if name == "DATABASE_URL" { (database, "") } else { (name, value) };
        let text = run(NOWHERE, &["serve"], &[no_other, (name, value)]).exits(2).err();
        let [_, line] = &text.lines().collect::<Vec<_>>()[..] else { panic!("{value}: {text}") };
        assert!(line.contains(name) && line.contains(problem), "{value}: {line}");
        assert!(!text.contains("s3cret"), "{text}");
    }
    for good in [
        "postgresql://127.0.0.1:1/x",
        "host=127.0.0.1 port=1 password=a://b",
        "postgres://a%40b:c%40d@[::1]:1/x",
        "postgres://[fe80::1%25eth0],db_1.example/x",
    ] {
        run(good, &["config"], &[]).exits(0);
    }
}

/// The signature's key is at least as long as the hash (RFC 7518, 3.2).
#[test]
fn secrets_must_be_as_long_as_their_algorithm_demands() {
    let (sealing, issuer) = ("CLOAKROOM_SEAL_KEYS", "CLOAKROOM_JWT_ISSUER");
    let config = |settings: &[(&str, &str)]| run(NOWHERE, &["config"], settings);
    for (algorithm, least) in [("HS256", 32), ("HS384", 48), ("HS512", 64)] {
        for (length, status) in [(least - 1, 2), (least, 0)] {
            let secret = "x".repeat(length);
            for name in ["CLOAKROOM_JWT_SECRET", "CLOAKROOM_JWT_OLD_SECRETS", sealing] {
                if name != sealing || algorithm == "HS256" {
                    let output = config(&[("CLOAKROOM_JWT_ALGORITHM", algorithm), (name, &secret)]);
                    assert!(!output.exits(status).err().contains("xx"), "{name}");
                }
            }
        }
    }
    config(&[(issuer, &"x".repeat(255))]).exits(0);
    assert!(config(&[(issuer, &"x".repeat(256))]).exits(2).err().contains(issuer));
}

/// Expects each of these lines in the output of `cloakroom config` with these settings, and no secret. Returns what it
/// wrote to standard error.
fn expect_config(settings: &[(&str, &str)], lines: &[&str]) -> String {
    let output = run(NOWHERE, &["config"], settings).exits(0);
    let text = output.out();
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "{line} is not in {text}");
    }
    let all = text + &output.err();
    assert!(!all.contains("s3cret") && !all.contains(SECRET), "{all}");
    output.err()
}

#[test]
fn config_prints_effective_values_without_secrets() {
    let settings = [
        ("CLOAKROOM_RATE_LIMIT_AUTH", "7"),
        ("ACCESS_TOKEN_EXPIRE_MINUTES", "15"),
        ("CLOAKROOM_ENV", ""),
        ("CLOAKROOM_USER_STORAGE_QUOTA", "2 GiB"),
        ("CLOAKROOM_LISTN", ""),
        ("CLOAKROOM_RATE_LIMIT_AUHT", "7"),
    ];
    let lines = [
        "CLOAKROOM_ENV=development",
        "CLOAKROOM_HTTP_SERVER=builtin",
        "CLOAKROOM_LOGOUT_STATUS=204",
        "CLOAKROOM_USER_STORAGE_QUOTA=2147483648",
        "CLOAKROOM_RATE_LIMIT_AUTH=7",
        "CLOAKROOM_ACCESS_TOKEN_EXPIRE_MINUTES=15",
        "CLOAKROOM_DATABASE_URL=(set, not shown)",
        "CLOAKROOM_JWT_SECRET=(set, not shown)",
    ];
    let expected = "cloakroom: CLOAKROOM_LISTN is no setting; did you mean CLOAKROOM_LISTEN?\n\
                    cloakroom: CLOAKROOM_RATE_LIMIT_AUHT is no setting; did you mean CLOAKROOM_RATE_LIMIT_AUTH?\n";
    assert_eq!(expect_config(&settings, &lines), expected);
    let mail = mail_settings("smtps://ann:s3cret@mail.example.com:465");
    let two = "s3cret-1-0123456789-abcdefghijklm,s3cret-2-0123456789-abcdefghijklm";
    let names = ["CLOAKROOM_API_KEY", "CLOAKROOM_JWT_OLD_SECRETS", "CLOAKROOM_SEAL_KEYS"];
    let keys = names.map(|name| (name, two));
    let lines = [
        "CLOAKROOM_ENV=production",
        "CLOAKROOM_API_KEY=(2 set, not shown)",
        "CLOAKROOM_JWT_OLD_SECRETS=(2 set, not shown)",
        "CLOAKROOM_SEAL_KEYS=(2 set, not shown)",
        "CLOAKROOM_EXPORT_REQUIRE_ADMIN=true",
        "CLOAKROOM_SMTP_URL=smtps://(not shown)@mail.example.com:465",
        "CLOAKROOM_MAIL_FROM=Cloakroom <noreply@example.org>",
    ];
    expect_config(&[&PRODUCTION[..], &mail, &keys].concat(), &lines);
}

#[test]
fn what_is_probably_not_intended_is_warned_about() {
    let api = Server::start(&[
        ("CLOAKROOM_RATE_LIMIT_AUHT", "7"),
        ("CLOAKROOM_LISTEN", "0.0.0.0:0"),
        ("CLOAKROOM_AUTH_ENABLED", "false"),
    ]);
    let log = api.log();
    for warning in [
        "CLOAKROOM_RATE_LIMIT_AUHT is no setting; did you mean CLOAKROOM_RATE_LIMIT_AUTH?",
        "listening on 0.0.0.0:0 in development",
        "ANYONE WHO REACHES IT IS AN ADMIN",
    ] {
        assert!(log.contains(warning), "{warning} is not in {log}");
    }
    let rouille = ("CLOAKROOM_HTTP_SERVER", "rouille");
    let api = Server::start(&[rouille, ("CLOAKROOM_BODY_MEMORY", "8M")]);
    assert!(api.log().contains("CLOAKROOM_BODY_MEMORY has no effect"), "{}", api.log());
    let quiet = Server::start(&[]).log();
    assert!(!quiet.contains("WARN") && !quiet.contains("ERROR"), "{quiet}");
    // One that keeps a start from succeeding, where another name looks like it.
    let misspelt = [("CLOAKROOM_DATABASE_URL", ""), ("CLOAKROOM_DATABSE_URL", NOWHERE)];
    for command in ["serve", "migrate"] {
        let output = run("", &[command], &misspelt).exits(2);
        let text = output.reports("CLOAKROOM_DATABASE_URL is not set").err();
        let hint = "CLOAKROOM_DATABSE_URL is no setting; did you mean CLOAKROOM_DATABASE_URL?\n";
        assert!(text.ends_with(hint), "{text}");
    }
}

#[test]
#[cfg(feature = "extras")]
fn a_file_of_refused_passwords_that_cannot_be_read_is_reported_with_the_others() {
    let settings = [("CLOAKROOM_REFUSED_PASSWORDS", "/nowhere"), ("CLOAKROOM_STOP_SECONDS", "0")];
    for command in ["config", "serve"] {
        let output = run(NOWHERE, &[command], &settings).exits(2).reports("CLOAKROOM_STOP_SECONDS");
        output.reports("CLOAKROOM_REFUSED_PASSWORDS: /nowhere: No such file");
        let alone = run(NOWHERE, &[command], &settings[..1]).exits(2);
        alone.reports("CLOAKROOM_REFUSED_PASSWORDS: /nowhere: No such file");
    }
}

#[test]
fn a_data_directory_that_cannot_be_used_is_named_before_the_database_is_asked() {
    let data = Directory::create();
    std::fs::write(data.join("file"), "x").expect("a file");
    let tools = if cfg!(feature = "tools") { 2 } else { 0 };
    for arguments in [&["serve"][..], &["gc"], &["adopt-data-dir", "none"]].iter().take(1 + tools) {
        let output = run_in(&data, NOWHERE, arguments, &[("CLOAKROOM_DATA_DIR", "file")]).exits(1);
        let expected = "cloakroom: CLOAKROOM_DATA_DIR=file is a file, not a directory\n";
        assert_eq!(output.err(), expected);
    }
}

#[test]
fn the_development_secret_is_made_once_and_kept_private() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let unset = [("CLOAKROOM_JWT_SECRET", "")];
    let servers = parallel(4, |_| Server::start_with(&database, &data, &unset));
    let path = data.join("jwt-secret");
    assert_eq!(mode(&path), 0o600);
    let secret = std::fs::read_to_string(&path).unwrap();
    assert!(secret.len() == 128 && secret.bytes().all(|b| b.is_ascii_hexdigit()), "{secret}");
    let files: Vec<_> = entries(data.path()).into_iter().filter(|path| path.is_file()).collect();
    let expected = ["installation-id", "jwt-secret"].map(|name| data.join(name));
    assert_eq!(files, expected, "no temporary file is left");
    let ann = servers[0].sign_up("ann");
    for api in &servers {
        api.me(&ann).expect(200);
    }
    drop(servers);
    Server::start_with(&database, &data, &unset).me(&ann).expect(200);
    std::fs::write(&path, "short").unwrap();
    let text = command(&database.url, &data, &unset).output().unwrap().exits(1).err();
    assert!(text.contains("jwt-secret") && !text.contains("short"), "{text}");
}
