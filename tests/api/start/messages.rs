//! What a start says: about itself, and about what keeps it from starting.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::Arc;

use crate::harness::*;

/// The user `nobody` of Debian.
const NOBODY: u32 = 65_534;

/// The only line that a command wrote to standard error.
#[track_caller]
fn only_line(text: &str) -> &str {
    let mut lines = text.lines();
    let line = lines.next().unwrap_or_default();
    assert_eq!(lines.next(), None, "{text}");
    line
}

#[test]
fn a_start_is_one_line_with_versions_data_directory_and_address() {
    let (database, data) = (Database::create_migrated(), Arc::new(Directory::create()));
    let postgres: String = database.value("SHOW server_version");
    let postgres = postgres.split(' ').next().expect("a version");
    let directory = data.path().canonicalize().expect("a path");
    for server in ["builtin", "rouille"] {
        // A relative path is shown as what it stands for.
        let settings = [("CLOAKROOM_DATA_DIR", "."), ("CLOAKROOM_HTTP_SERVER", server)];
        let api = Server::start_with(&database, &data, &settings);
        let log = api.log();
        let (_, message) = only_line(&log).split_once(" INFO  ").expect("a level");
        assert_eq!(
            message,
            format!(
                "cloakroom {} with PostgreSQL {postgres} and data in {}, listening on http://{}",
                env!("CARGO_PKG_VERSION"),
                directory.display(),
                api.address
            )
        );
    }
}

#[test]
fn a_data_directory_that_cannot_be_used_is_named_before_the_database_is_asked() {
    let data = Directory::create();
    fs::write(data.join("file"), "x").expect("a file");
    for room in ["files", "tmp", "trash"] {
        let directory = data.join(format!("with-{room}"));
        fs::create_dir(&directory).expect("a directory");
        fs::write(directory.join(room), "x").expect("a file");
    }
    let cases = [
        ("file", " is a file, not a directory"),
        ("with-files", ": with-files/files is a file, not a directory"),
        ("with-tmp", ": with-tmp/tmp is a file, not a directory"),
        ("with-trash", ": with-trash/trash is a file, not a directory"),
    ];
    for command_name in [&["serve"][..], &["gc"], &["adopt-data-dir", "none"]] {
        for (value, fault) in cases {
            let mut command = command(NOWHERE, &data, &[("CLOAKROOM_DATA_DIR", value)]);
            let text = command.args(command_name).output().expect("the binary runs").exits(1).err();
            assert_eq!(only_line(&text), format!("cloakroom: CLOAKROOM_DATA_DIR={value}{fault}"));
        }
    }
    let below_a_file = [("CLOAKROOM_DATA_DIR", "file/data")];
    let text = command(NOWHERE, &data, &below_a_file).output().expect("it runs").exits(1).err();
    let beginning = "cloakroom: CLOAKROOM_DATA_DIR=file/data cannot be made by user ";
    let line = only_line(&text);
    assert!(
        line.starts_with(beginning) && line.ends_with(": Not a directory (os error 20)"),
        "{line}"
    );
}

#[test]
fn a_data_directory_that_is_not_writable_is_named_with_the_user() {
    let data = Directory::create();
    // Root may write anywhere, so it becomes another user, who must be able to run the binary.
    let is_root = rustix::process::geteuid().is_root();
    let binary = data.join("cloakroom");
    fs::copy(BINARY, &binary).expect("a copy");
    let users = fs::read_to_string("/etc/passwd").expect("users");
    let user_id = if is_root { NOBODY } else { rustix::process::geteuid().as_raw() };
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(&user_id.to_string()));
    let user = line.map_or(user_id.to_string(), |line| line.split(':').next().unwrap().to_owned());
    let make = |path: &str, mode: u32| {
        fs::create_dir(data.join(path)).expect("a directory");
        let owner = is_root.then_some(user_id);
        chown(data.join(path), owner, owner).expect("its owner");
        fs::set_permissions(data.join(path), Permissions::from_mode(mode)).expect("its mode");
    };
    for (path, mode) in [("ro", 0o500), ("half", 0o700), ("half/files", 0o700), ("half/tmp", 0o500)]
    {
        make(path, mode);
    }
    for (value, fault) in [
        ("ro", format!("CLOAKROOM_DATA_DIR=ro is not writable by user {user}")),
        ("half", format!("CLOAKROOM_DATA_DIR=half: half/tmp is not writable by user {user}")),
        (
            "ro/data",
            format!(
                "CLOAKROOM_DATA_DIR=ro/data cannot be made by user {user}: Permission denied (os error 13)"
            ),
        ),
    ] {
        let settings = [("CLOAKROOM_DATA_DIR", value)];
        let mut command = command_at(Path::new(&binary), NOWHERE, &data, &settings);
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        let text = command.output().expect("the binary runs").exits(1).err();
        assert_eq!(only_line(&text), format!("cloakroom: {fault}"));
    }
}

#[test]
fn authentication_that_is_off_is_warned_about() {
    let log = Server::start(&[("CLOAKROOM_AUTH_ENABLED", "false")]).log();
    let warnings: Vec<_> = log.lines().filter_map(|line| line.split_once(" WARN  ")).collect();
    let expected = "CLOAKROOM_AUTH_ENABLED is false: every request is an administrator";
    assert!(matches!(warnings[..], [(_, message)] if message == expected), "{log}");
}

/// The lines about the settings with which a command refuses to start.
fn faults(command: &str, settings: &[(&str, &str)]) -> Vec<String> {
    let text = run(NOWHERE, &[command], settings).exits(2).err();
    let mut lines = text.lines().map(str::to_owned);
    assert_eq!(lines.next().as_deref(), Some("cloakroom cannot start with these settings:"));
    lines.map(|line| line.strip_prefix("  ").expect("an indent").to_owned()).collect()
}

/// What is allowed as the connection string of the database.
const DATABASE_URLS: &str = "a PostgreSQL URL, such as postgres://user:password@host/database, or key/value text, \
                             such as host=localhost dbname=cloakroom";

#[test]
fn a_bad_connection_string_is_named_by_the_variable_that_holds_it_with_what_is_allowed() {
    let verified = "the server's certificate is verified where CLOAKROOM_DATABASE_CA names a PEM file with its \
                    authority";
    for name in ["CLOAKROOM_DATABASE_URL", "DATABASE_URL"] {
        for (value, fault) in [
            ("nonsense", "is no PostgreSQL URL or key/value text"),
            ("postgres://a:s3cret@b@c/x", "has more than one @"),
            ("dbname=x", "names no host"),
            ("host='a b' password=s3cret", "names a host that cannot be one"),
            ("postgres://h/x?sslrootcert=/ca.pem", "such as sslrootcert, in whose place there is"),
            ("host=h port=x", "invalid value for option `port`"),
        ] {
            let lines = faults("serve", &[("CLOAKROOM_DATABASE_URL", ""), (name, value)]);
            let [line] = &lines[..] else { panic!("{value}: {lines:?}") };
            assert!(line.starts_with(&format!("{name} ")) && line.contains(fault), "{line}");
            assert!(line.ends_with(&format!("; allowed: {DATABASE_URLS}")), "{line}");
            assert!(!line.contains("s3cret"), "{line}");
        }
        for mode in ["verify-full", "verify-ca", "allow"] {
            let url = format!("postgres://ann:s3cret@h/x?sslmode={mode}");
            let expected = format!(
                "{name} holds sslmode={mode}; allowed: sslmode disable, prefer or require; {verified}"
            );
            let settings = [("CLOAKROOM_DATABASE_URL", ""), (name, &*url)];
            assert_eq!(faults("config", &settings), [expected]);
        }
        let settings =
            [("CLOAKROOM_DATABASE_URL", ""), (name, "host=h target_session_attrs=s3cret")];
        let expected = format!(
            "{name} holds an unknown target_session_attrs; allowed: target_session_attrs any, read-write or read-only"
        );
        assert_eq!(faults("config", &settings), [expected]);
        let settings = [("CLOAKROOM_DATABASE_URL", ""), (name, "host=h sslmode=s3cret")];
        let expected = format!(
            "{name} holds an unknown sslmode; allowed: sslmode disable, prefer or require; {verified}"
        );
        assert_eq!(faults("config", &settings), [expected]);
    }
}

#[test]
fn a_bad_authority_of_the_database_is_named_with_the_file_and_what_is_allowed() {
    let data = Directory::create();
    let file = |name: &str, text: &str| {
        fs::write(data.join(name), text).expect("a file");
        data.join(name).display().to_string()
    };
    let allowed =
        "allowed: a PEM file with the certificates of the authorities that sign the server's";
    for (path, fault) in [
        ("/no/such/file".to_owned(), "No such file"),
        (file("empty", ""), "no certificate in it"),
        (file("text", "x"), "no certificate in it"),
    ] {
        let lines = faults("serve", &[("CLOAKROOM_DATABASE_CA", &path)]);
        let [line] = &lines[..] else { panic!("{path}: {lines:?}") };
        assert!(line.starts_with(&format!("CLOAKROOM_DATABASE_CA holds \"{path}\": ")), "{line}");
        assert!(line.contains(fault) && line.ends_with(allowed), "{line}");
    }
    // A Unix socket has no TLS, so none may be asked for.
    let socket = |rest: &str, settings: &[(&str, &str)]| {
        let url = format!("host=/run/postgresql{rest}");
        faults("serve", &[&[("CLOAKROOM_DATABASE_URL", url.as_str())], settings].concat())
    };
    let beginning = "CLOAKROOM_DATABASE_URL names a Unix socket, which has no TLS, and";
    let authority = CertificateAuthority::create();
    let ca = authority.file();
    assert_eq!(
        socket("", &[("CLOAKROOM_DATABASE_CA", &ca)]),
        [format!(
            "{beginning} CLOAKROOM_DATABASE_CA is set; allowed: the name or address of a host, or no \
             CLOAKROOM_DATABASE_CA"
        )]
    );
    assert_eq!(
        socket(" sslmode=require", &[]),
        [format!(
            "{beginning} sslmode is require; allowed: the name or address of a host, or sslmode disable or prefer"
        )]
    );
}

#[test]
fn the_url_of_another_kind_of_database_is_told_to_be_none_of_postgresql() {
    let cases = [
        ("CLOAKROOM_DATABASE_URL", "mysql://ann:s3cret@db/x", "mysql"),
        ("DATABASE_URL", "sqlite://data.db", "sqlite"),
    ];
    for (name, url, scheme) in cases {
        let settings = [("CLOAKROOM_DATABASE_URL", ""), (name, url)];
        let expected = format!(
            "{name} is no PostgreSQL URL: it begins with {scheme}://; allowed: {DATABASE_URLS}"
        );
        assert_eq!(faults("serve", &settings), [expected]);
    }
    for good in ["postgresql://127.0.0.1:1/x", "host=127.0.0.1 port=1 password=a://b"] {
        run(good, &["config"], &[]).exits(0);
    }
}

#[test]
fn a_misspelt_name_is_named_where_the_start_fails_for_it() {
    let secret = ("CLOAKROOM_JWT_SECERT", SECRET);
    let production = [
        ("CLOAKROOM_ENV", "production"),
        ("CLOAKROOM_SMTP_URL", "none"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
        ("CLOAKROOM_SCRYPT", ""),
        ("CLOAKROOM_JWT_SECRET", ""),
        secret,
    ];
    let expected = "CLOAKROOM_JWT_SECRET is not set (CLOAKROOM_JWT_SECERT looks like it); in production use a random \
                    text of at least 32 bytes, 10 of them different, the same for every process";
    for command in ["serve", "config"] {
        assert_eq!(faults(command, &production), [expected]);
    }
    let settings = [("CLOAKROOM_DATABASE_URL", ""), ("CLOAKROOM_DATABSE_URL", NOWHERE)];
    let expected = format!(
        "CLOAKROOM_DATABASE_URL is not set (CLOAKROOM_DATABSE_URL looks like it); allowed: {DATABASE_URLS}"
    );
    for command in ["serve", "migrate"] {
        assert_eq!(faults(command, &settings), [expected.as_str()]);
    }
    // One that explains no fault is a line of its own.
    let settings = [("CLOAKROOM_LISTEN", "x"), ("CLOAKROOM_RATE_LIMIT_AUHT", "7")];
    let lines = faults("serve", &settings);
    let hint = "CLOAKROOM_RATE_LIMIT_AUHT is no setting; did you mean CLOAKROOM_RATE_LIMIT_AUTH?";
    assert!(lines.len() == 2 && lines[1] == hint, "{lines:?}");
}

#[test]
fn a_pattern_among_the_upload_types_is_warned_about_because_no_file_has_that_type() {
    let start = |types| Server::start(&[("CLOAKROOM_ALLOWED_UPLOAD_TYPES", types)]).log();
    let log = start("image/*,text/plain,*/*");
    let warning = log.lines().find(|line| line.contains("WARN")).expect("a warning");
    assert!(warning.contains("CLOAKROOM_ALLOWED_UPLOAD_TYPES holds image/*, */*:"), "{warning}");
    let log = start("image/png,text/plain");
    assert!(!log.contains("WARN"), "{log}");
}
