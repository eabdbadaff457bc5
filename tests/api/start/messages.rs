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

#[test]
fn the_url_of_another_kind_of_database_is_told_to_be_none_of_postgresql() {
    let cases = [
        ("CLOAKROOM_DATABASE_URL", "mysql://ann:s3cret@db/x", "mysql"),
        ("DATABASE_URL", "sqlite://data.db", "sqlite"),
    ];
    for (name, url, scheme) in cases {
        let settings = [("CLOAKROOM_DATABASE_URL", ""), (name, url)];
        let expected = format!(
            "{name} is no PostgreSQL URL: it begins with {scheme}://; allowed: a PostgreSQL URL, such as \
             postgres://user:password@host/database"
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
    let expected = "CLOAKROOM_JWT_SECRET is not set (CLOAKROOM_JWT_SECERT looks like it); in production use a long \
                    random text, the same for every process";
    for command in ["serve", "config"] {
        assert_eq!(faults(command, &production), [expected]);
    }
    let settings = [("CLOAKROOM_DATABASE_URL", ""), ("CLOAKROOM_DATABSE_URL", NOWHERE)];
    let expected = "CLOAKROOM_DATABASE_URL is not set (CLOAKROOM_DATABSE_URL looks like it); allowed: a PostgreSQL \
                    URL, such as postgres://user:password@host/database";
    for command in ["serve", "migrate"] {
        assert_eq!(faults(command, &settings), [expected]);
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
