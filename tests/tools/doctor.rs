//! `cloakroom doctor`: what it finds, that it goes on where something is wrong, and that it changes nothing.
//! `doctor_database.rs` has what may be wrong with the database.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::harness::*;

/// The user `nobody` of Debian.
const NOBODY: u32 = 65_534;

/// What a database holds that a start could change.
fn schema_of(database: &Database) -> (i64, i64) {
    let tables = database.count("pg_class WHERE relnamespace = 'public'::regnamespace");
    (tables, database.count("pg_stat_user_tables WHERE n_tup_ins + n_tup_upd + n_tup_del > 0"))
}

#[test]
fn a_healthy_service_has_no_findings_and_nothing_is_changed() {
    let (database, data) = stopped_service("ann");
    let (files, schema) = (everything(data.path()), schema_of(&database));
    let report = doctor(&database.url, &data, &[("CLOAKROOM_STORAGE_QUOTA", "1000000")]);
    assert_eq!(lines_of(&report, "fault   "), [""; 0], "{report}");
    assert_eq!(lines_of(&report, "warning "), [""; 0], "{report}");
    let version: String =
        database.value("SELECT split_part(current_setting('server_version'), ' ', 1)");
    let id: String = database.value("SELECT id::text FROM installation");
    for (subject, part) in [
        ("database: PostgreSQL ", &*version),
        ("database: the server at ", "takes writes"),
        ("database clock: 0.", ""),
        ("database connection: ", "not encrypted, and does not leave this system"),
        ("database encoding: ", "UTF8"),
        ("database connections: ", "opens up to 8"),
        ("replication: ", "no standby"),
        ("extension pg_trgm: ", "listed_users_search"),
        ("extension amcheck: ", ""),
        ("schema: ", "that of this program"),
        ("data directory: ", "belongs to user"),
        ("data directory: ", "only its owner may read the files in it"),
        ("installation id: ", &id),
        ("limits: ", "open files"),
        ("limits: ", "threads"),
        ("mail: ", "CLOAKROOM_SMTP_URL is not set"),
        ("outbox: ", "messages that wait: 0; given up in the last 30 days: 0"),
    ] {
        expect_finding(&report, &format!("ok      {subject}"), part);
    }
    assert!(report.contains(" disk: ") && report.contains(" inodes: "), "{report}");
    assert_eq!((everything(data.path()), schema_of(&database)), (files, schema));
}

#[test]
fn it_may_be_run_beside_a_service_and_leaves_no_file() {
    let api = Server::start(&[]);
    let before = everything(api.data.path());
    report_of(api.run_beside(&["doctor"]));
    assert_eq!(everything(api.data.path()), before);
}

#[test]
fn settings_are_listed_with_their_source_and_defaults_on_request() {
    let (database, data) = stopped_service("ann");
    let settings = [
        ("CLOAKROOM_DATABASE_URL", ""),
        ("DATABASE_URL", &*database.url),
        ("RUST_LOG", "debug"),
        ("CLOAKROOM_JWT_ISSUER", "a\nfault   b\u{1b}[31m"),
        ("CLOAKROOM_SMTP_URL", "none"),
    ];
    let report = doctor("", &data, &settings);
    for line in [
        "CLOAKROOM_DATABASE_URL=(set, not shown) (from DATABASE_URL)",
        "CLOAKROOM_LOG=debug (from RUST_LOG)",
        "CLOAKROOM_SMTP_URL=none (set)",
        "CLOAKROOM_JWT_SECRET=(set, not shown) (set)",
        "CLOAKROOM_JWT_ISSUER=a fault   b [31m (set)",
    ] {
        assert!(
            lines_of(&report, "ok      setting: ").contains(&line),
            "{line} is not in {report}"
        );
    }
    assert!(!report.contains("CLOAKROOM_TRASH_DAYS"), "{report}");
    let mut command = command("", &data, &settings);
    let all = report_of(command.args(["doctor", "--all"]).output().expect("it runs"));
    expect_finding(&all, "ok      setting: CLOAKROOM_TRASH_DAYS=7 (default)", "");
    expect_finding(&all, "ok      setting: CLOAKROOM_LOG=debug (from RUST_LOG)", "");
    let shown = run(&database.url, &["config"], &[]).exits(0).out();
    assert_eq!(lines_of(&all, "ok      setting: ").len(), shown.lines().count(), "{all}");
}

#[test]
fn wrong_settings_are_faults_and_the_rest_is_still_looked_at() {
    let (database, data) = stopped_service("ann");
    let report = doctor(
        &database.url,
        &data,
        &[
            ("CLOAKROOM_TRASH_DAYS", "x"),
            ("CLOAKROOM_SMTP_URL", "http://ann:s3cret@mail.example.com"),
            ("CLOAKROOM_JWT_SECRET", "s3cret"),
            ("CLOAKROOM_LISTN", "x"),
            ("CLOAKROOM_API_KEY_ENABLED", "true"),
        ],
    );
    for (kind, part) in [
        ("fault   ", "CLOAKROOM_TRASH_DAYS holds \"x\"; allowed: a whole number"),
        ("fault   ", "CLOAKROOM_SMTP_URL holds \"(not shown)\""),
        ("fault   ", "CLOAKROOM_JWT_SECRET holds 6 bytes"),
        ("warning ", "CLOAKROOM_LISTN is no setting; did you mean CLOAKROOM_LISTEN?"),
        ("fault   ", "CLOAKROOM_API_KEY holds no key"),
    ] {
        expect_finding(&report, &format!("{kind}setting: "), part);
    }
    expect_finding(&report, "warning mail: not looked at", "CLOAKROOM_SMTP_URL is wrong");
    expect_finding(&report, "ok      schema: ", "");
    expect_finding(&report, "ok      installation id: ", "");
    for (url, fault) in [
        ("mysql://cloakroom:s3cret@localhost/x", "CLOAKROOM_DATABASE_URL is no PostgreSQL URL"),
        ("host=localhost password=s3cret port=x", "CLOAKROOM_DATABASE_URL is no PostgreSQL URL"),
        ("", "CLOAKROOM_DATABASE_URL is not set"),
    ] {
        let report = doctor(url, &data, &[("CLOAKROOM_DATABASE_URI", "postgres://x:s3cret@y/z")]);
        expect_finding(&report, "fault   setting: ", fault);
        expect_finding(&report, "warning database: not looked at", "");
        expect_finding(&report, "ok      installation id: not compared", "");
    }
}

#[test]
fn what_production_refuses_is_a_fault_there_and_a_warning_in_development_on_a_network() {
    let (database, data) = stopped_service("ann");
    let unsafe_settings =
        [("CLOAKROOM_JWT_SECRET", ""), ("CLOAKROOM_TEST_ENDPOINTS_ENABLED", "true")];
    let refused = ["CLOAKROOM_JWT_SECRET is not set", "CLOAKROOM_TEST_ENDPOINTS_ENABLED is true"];
    let with = |settings: &[(&str, &str)]| {
        doctor(&database.url, &data, &[&unsafe_settings[..], settings].concat())
    };
    let development = with(&[]);
    let production = with(&[("CLOAKROOM_ENV", "production")]);
    let network = with(&[("CLOAKROOM_LISTEN", "0.0.0.0:0"), ("CLOAKROOM_AUTH_ENABLED", "false")]);
    for text in refused {
        assert!(!development.contains(text), "{development}");
        expect_finding(&production, "fault   setting: ", text);
        expect_finding(&network, "warning setting: ", text);
    }
    expect_finding(&production, "warning setting: ", "CLOAKROOM_RATE_LIMIT_ENABLED is false");
    expect_finding(&network, "warning setting: ", "listening on 0.0.0.0:0 in development");
    expect_finding(&network, "fault   setting: ", "ANYONE WHO REACHES IT IS AN ADMIN");
}

#[test]
fn a_first_start_that_is_still_to_come_is_described_and_not_anticipated() {
    let (database, data) = (Database::create(), Directory::create());
    let settings = [("CLOAKROOM_DATA_DIR", "new"), ("CLOAKROOM_JWT_SECRET", "")];
    let report = doctor(&database.url, &data, &settings);
    expect_finding(&report, "warning schema: the database is empty", "");
    expect_finding(&report, "warning data directory: ", "/new: No such file or directory");
    assert_eq!(lines_of(&report, "fault   "), [""; 0], "{report}");
    assert_eq!((everything(data.path()).len(), schema_of(&database)), (0, (0, 0)));
}

#[test]
fn the_directory_of_another_database_is_a_fault_with_both_ids() {
    let ((one, _), (other, data)) = (stopped_service("ann"), stopped_service("bob"));
    let ids = [&one, &other].map(|it| it.value::<String>("SELECT id::text FROM installation"));
    let report = doctor(&one.url, &data, &[]);
    for id in &ids {
        expect_finding(&report, "fault   installation id: ", id);
    }
    expect_finding(&report, "fault   installation id: ", "cloakroom adopt-data-dir");
    fs::write(data.join("installation-id"), "nonsense").expect("written");
    expect_finding(&doctor(&other.url, &data, &[]), "fault   installation id: ", "holds no id");
    fs::remove_file(data.join("installation-id")).expect("removed");
    expect_finding(&doctor(&other.url, &data, &[]), "fault   installation id: ", "is none");
    fs::remove_dir_all(data.join("files")).expect("removed");
    let report = doctor(&other.url, &data, &[]);
    expect_finding(&report, "fault   data directory: ", "files does not exist");
    assert!(!data.join("files").exists() && !data.join("installation-id").exists());
}

#[test]
fn a_data_directory_that_cannot_be_used_is_a_fault() {
    let (database, data) = stopped_service("ann");
    fs::write(data.join("file"), "x").expect("a file");
    for (value, fault) in [
        ("file", "is a file, not a directory"),
        ("missing", "No such file or directory"),
        ("file/below", "Not a directory"),
    ] {
        let report = doctor(&database.url, &data, &[("CLOAKROOM_DATA_DIR", value)]);
        expect_finding(&report, "fault   data directory: ", fault);
    }
    assert!(!data.join("missing").exists());
    fs::create_dir(data.join("restore.partial")).expect("a directory");
    let report = doctor(&database.url, &data, &[]);
    expect_finding(&report, "fault   data directory: ", "restore.partial");
    fs::remove_dir(data.join("restore.partial")).expect("removed");
    fs::write(data.join("jwt-secret"), "s3cret").expect("a file");
    let report = doctor(&database.url, &data, &[("CLOAKROOM_JWT_SECRET", "")]);
    expect_finding(&report, "fault   data directory: ", "jwt-secret holds 6 bytes, too few");
    let other_device = Path::new("/dev/shm").join(database.name());
    fs::create_dir(&other_device).expect("a directory");
    fs::remove_dir(data.join("trash")).expect("removed");
    symlink(&other_device, data.join("trash")).expect("a link");
    fs::set_permissions(data.path(), Permissions::from_mode(0o755)).expect("a mode");
    let report = doctor(&database.url, &data, &[]);
    fs::remove_dir_all(&other_device).expect("removed");
    expect_finding(
        &report,
        "fault   data directory: files, tmp and trash are on different file systems",
        "",
    );
    expect_finding(&report, "warning data directory: other users have rights to ", "");
    expect_finding(&report, "        chmod go= ", "");
}

#[test]
fn a_directory_of_another_user_and_one_that_is_not_writable_are_named_with_the_user() {
    // Root may write anywhere, so it becomes another user, who must be able to run the binary.
    let is_root = rustix::process::geteuid().is_root();
    let (database, data) = stopped_service("ann");
    fs::set_permissions(data.path(), Permissions::from_mode(0o755)).expect("a mode");
    let binary = data.join("cloakroom");
    fs::copy(BINARY, &binary).expect("a copy");
    fs::create_dir(data.join("ro")).expect("a directory");
    fs::set_permissions(data.join("ro"), Permissions::from_mode(0o555)).expect("a mode");
    let mut command = command_at(&binary, &database.url, &data, &[("CLOAKROOM_DATA_DIR", "ro")]);
    command.arg("doctor");
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    let report = report_of(command.output().expect("the binary runs"));
    expect_finding(&report, "fault   data directory: ro is not writable by user ", "");
    // Anyone may write to the other one.
    let (directory, owner) = if is_root { ("ro", "nobody") } else { ("/tmp", "root") };
    if is_root {
        chown(data.join("ro"), Some(NOBODY), None).expect("its owner");
    }
    let report = doctor(&database.url, &data, &[("CLOAKROOM_DATA_DIR", directory)]);
    let part = format!("belongs to user {owner}, who is not the one who runs this");
    expect_finding(&report, "warning data directory: ", &part);
}

#[test]
fn a_quota_without_room_on_the_disk_is_a_warning() {
    let (database, data) = stopped_service("ann");
    let quota = [("CLOAKROOM_STORAGE_QUOTA", "1000000000000000000")];
    let report = doctor(&database.url, &data, &quota);
    assert!(report.contains("warning disk: ") || report.contains("fault   disk: "), "{report}");
    let is_nearly_full = !report.contains("CLOAKROOM_STORAGE_QUOTA lets users store");
    assert!(!is_nearly_full || report.contains("ree room"), "{report}");
}

#[test]
fn a_directory_to_which_nothing_can_be_written_is_a_fault() {
    let (database, data) = stopped_service("ann");
    let mut doctor = command(&database.url, &data, &[]);
    doctor.arg("doctor");
    // A limit on the size of files makes writes fail as on a full disk. The output goes to a pipe.
    let report = report_of(within_shell("ulimit -f 0", doctor).output().expect("the shell runs"));
    expect_finding(&report, "fault   data directory: ", "is not writable: File too large");
    expect_finding(&report, "ok      schema: ", "");
}

#[test]
fn limits_that_are_too_low_for_the_settings_are_warnings() {
    let (database, data) = stopped_service("ann");
    let report_within = |line: &str, settings: &[(&str, &str)]| {
        let mut doctor = command(&database.url, &data, settings);
        doctor.arg("doctor");
        report_of(within_shell(line, doctor).output().expect("the shell runs"))
    };
    // Three files for each connection, four for each of ten to the database, and twenty others.
    let pool = ("CLOAKROOM_DATABASE_POOL_SIZE", "10");
    let report = report_within("ulimit -n 360 && ulimit -u 200", &[pool]);
    expect_finding(&report, "warning limits: 360 open files", "room for 100 connections");
    expect_finding(&report, "        CLOAKROOM_MAX_CONNECTIONS is 1024", "");
    let fewer = [pool, ("CLOAKROOM_MAX_CONNECTIONS", "100")];
    let report = report_within("ulimit -n 360 && ulimit -u 100", &fewer);
    expect_finding(&report, "ok      limits: 360 open files", "room for 100 connections");
    expect_finding(&report, "warning limits: 100 threads, 132 are needed", "");
}

#[test]
fn the_mail_server_is_asked_as_far_as_a_message_and_sent_none() {
    let (database, data) = stopped_service("ann");
    let options = SmtpOptions { user: Some(("ann", "s3cret-word")), ..SmtpOptions::default() };
    let mail = SmtpServer::start(options);
    let report_with = |url: &str| doctor(&database.url, &data, &mail_settings(url));
    let report = report_with(&mail.url());
    let shown = format!(
        "mail: smtp://(not shown)@localhost:{} answers, takes the user",
        mail.address.port()
    );
    expect_finding(&report, &format!("ok      {shown}"), "");
    let counts = [SmtpStep::Auth, SmtpStep::Quit, SmtpStep::Mail].map(|step| mail.count(step));
    assert_eq!((counts, mail.received().len()), ([1, 1, 0], 0));
    let report = report_with(&mail.url_with(Some(("ann", "s3cret-other"))));
    expect_finding(&report, "fault   mail: ", "AUTH: 535");
    expect_finding(&report, "        Check the user and the password in CLOAKROOM_SMTP_URL", "");
    mail.misbehave(SmtpStep::Ehlo, Misbehaviour::Hang);
    let begin = Instant::now();
    let report = report_with(&mail.url());
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    expect_finding(&report, "fault   mail: ", "EHLO: no answer in time");
    let url = mail.url();
    mail.stop();
    let report = report_with(&url);
    expect_finding(&report, "fault   mail: ", "connecting: Connection refused");
    expect_finding(&report, "        Check the host and the port in CLOAKROOM_SMTP_URL", "");
    expect_finding(
        &report_with("none"),
        "ok      mail: CLOAKROOM_SMTP_URL holds the word none",
        "",
    );
    // A host that is not known to be this one.
    let open = SmtpServer::start(SmtpOptions::default());
    let report = report_with(&format!("smtp://127.1:{}", open.address.port()));
    expect_finding(&report, "warning mail: smtp://127.1:", "offers no encryption");
    let incomplete = [("CLOAKROOM_SMTP_URL", &*url)];
    let report = doctor(&database.url, &data, &incomplete);
    expect_finding(
        &report,
        "warning setting: CLOAKROOM_SMTP_URL is set, but CLOAKROOM_MAIL_FROM",
        "",
    );
}

#[test]
fn mail_that_has_waited_long_is_a_warning() {
    let (database, data) = stopped_service("ann");
    database.run(
        "INSERT INTO password_reset_requests (email, requested_at)
         VALUES ('secret.person@example.com', now() - interval '2 hours')",
    );
    let report = doctor(&database.url, &data, &[]);
    expect_finding(&report, "warning outbox: messages that wait: 1, the oldest for 72", "");
    assert!(!report.contains("secret.person"), "{report}");
}
