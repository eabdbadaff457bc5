//! `cloakroom doctor`: what it finds, that it goes on where something is wrong, and that it changes nothing.

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

/// The user `nobody` of Debian.
const NOBODY: u32 = 65_534;

/// Runs it to its end with these settings, and checks its report.
#[track_caller]
fn doctor(database_url: &str, data: &Directory, settings: &[(&str, &str)]) -> Report {
    report_of(&run_in(data, database_url, &["doctor"], settings))
}

struct Report(String);

impl Report {
    /// Expects a line that begins with the word and the subject of a finding, and contains `part`.
    #[track_caller]
    fn has(self, word: &str, subject: &str, part: &str) -> Report {
        let beginning = format!("{word:<8}{subject}: ");
        let is_it = |line: &str| line.starts_with(&beginning) && line.contains(part);
        assert!(self.0.lines().any(is_it), "no {beginning}... {part} in {}", self.0);
        self
    }
}

/// What holds for all reports: the last line has the sum of the findings, the status is 1 exactly if there are faults,
/// each subject is looked at, and no secret is shown.
#[track_caller]
fn report_of(output: &Output) -> Report {
    let report = output.out();
    let [faults, warnings] = ["fault", "warning"].map(|word| findings_of(output, word).len());
    let word = |n: usize, noun: &str| match n {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{n} {noun}s"),
    };
    let sum = format!("{}, {}.", word(faults, "fault"), word(warnings, "warning"));
    assert_eq!(report.lines().last(), Some(&*sum), "{report}");
    assert_eq!(output.status.code(), Some(i32::from(faults > 0)), "{report}{}", output.err());
    for subject in ["settings: ", "database: ", "contents: ", "mail: "] {
        let mut subjects = report.lines().filter_map(|line| line.get(8..));
        assert!(subjects.any(|it| it.starts_with(subject)), "{subject}: {report}");
    }
    for secret in [SECRET, "s3cret", "cGFzc3dvcmQ"] {
        assert!(!report.contains(secret) && !output.err().contains(secret), "{report}");
    }
    Report(report)
}

/// A stopped service with a file.
fn stopped_service() -> Installation {
    Installation::after(|api| api.new_file(api.sign_up("ann"), "a.txt", "text")).0
}

#[test]
fn a_healthy_service_has_no_findings_and_nothing_is_changed() {
    let Installation { database, data } = stopped_service();
    let writes = "pg_stat_user_tables WHERE n_tup_ins + n_tup_upd + n_tup_del > 0";
    let names = || listing(data.path()).into_keys().collect::<Vec<_>>();
    // A connection counts what it has written when it ends.
    wait_until(|| database.connections("application_name = 'cloakroom'") == 0);
    let before = (names(), database.count(writes));
    let version: String =
        database.value("SELECT split_part(current_setting('server_version'), ' ', 1)");
    let id: String = database.value("SELECT id::text FROM installation");
    let report = doctor(&database.url, &data, &[]).has("ok", "schema", "");
    let report = report.has("ok", "database", &format!("PostgreSQL {version} at 127.0.0.1:"));
    let Report(report) = report.has("ok", "installation id", &id);
    // This machine may have little room, which is followed by a line of advice.
    let is_bad = |line: &&str| {
        !line.starts_with("ok ") && !line.starts_with(' ') && !line[8..].starts_with("disk: ")
    };
    let lines: Vec<_> = report.lines().filter(is_bad).collect();
    assert_eq!(lines.first(), lines.last(), "only the sum: {report}");
    assert!(report.contains(" disk: "), "{report}");
    assert_eq!((names(), database.count(writes)), before);
    // Beside a service that runs.
    let api = Server::start(&[]);
    let report = report_of(&api.run_beside(&["doctor"]));
    report.has("ok", "schema", "").has("warning", "accounts", "there are none");
}

#[test]
fn wrong_settings_are_faults_and_the_rest_is_still_looked_at() {
    let Installation { database, data } = stopped_service();
    let wrong = [
        ("CLOAKROOM_TRASH_DAYS", "x"),
        ("CLOAKROOM_SMTP_URL", "http://ann:s3cret@mail.example.com"),
        ("CLOAKROOM_JWT_SECRET", "s3cret"),
        ("CLOAKROOM_LISTN", "a\nfault   b\u{1b}[31m"),
        ("CLOAKROOM_API_KEY_ENABLED", "true"),
    ];
    let report = doctor(&database.url, &data, &wrong)
        .has("fault", "settings", "CLOAKROOM_TRASH_DAYS holds \"x\"")
        .has("fault", "settings", "CLOAKROOM_SMTP_URL holds \"(not shown)\"")
        .has("fault", "settings", "CLOAKROOM_JWT_SECRET holds 6 bytes")
        .has("fault", "settings", "CLOAKROOM_API_KEY holds no key")
        .has("warning", "settings", "CLOAKROOM_LISTN is no setting")
        .has("ok", "schema", "")
        .has("ok", "installation id", "");
    assert!(!report.0.contains('\u{1b}'), "{}", report.0);
    for (url, fault) in [
        ("mysql://cloakroom:s3cret@localhost/x", "CLOAKROOM_DATABASE_URL is no PostgreSQL URL"),
        ("host=localhost password=s3cret port=x", "CLOAKROOM_DATABASE_URL has an invalid value"),
        ("", "CLOAKROOM_DATABASE_URL is not set"),
    ] {
        let misspelt = [("CLOAKROOM_DATABASE_URI", "postgres://x:s3cret@y/z")];
        let report = doctor(url, &data, &misspelt).has("fault", "settings", fault);
        report.has("warning", "database", "not looked at").has("ok", "contents", "");
    }
    doctor(&database.url, &data, &[("CLOAKROOM_ENV", "production")])
        .has("fault", "settings", "CLOAKROOM_SMTP_URL is not set")
        .has("warning", "settings", "CLOAKROOM_RATE_LIMIT_ENABLED is false");
}

#[test]
fn a_first_start_that_is_still_to_come_is_described_and_not_anticipated() {
    let (database, data) = (Database::create(), Directory::create());
    let settings = [("CLOAKROOM_DATA_DIR", "new"), ("CLOAKROOM_JWT_SECRET", "")];
    let report = doctor(&database.url, &data, &settings);
    let report = report.has("warning", "schema", "the database is empty");
    report.has("warning", "contents", "does not exist");
    assert_eq!(database.count("pg_tables WHERE schemaname = 'public'"), 0);
    assert_eq!(listing(data.path()).len(), 1);
    // Somebody else's is not empty, and no schema is made in it.
    database.run("CREATE TABLE users (id int)");
    let report = doctor(&database.url, &data, &settings);
    report.has("warning", "schema", "tables of another program, such as public.users");
    let refused = run_in(&data, &database.url, &["migrate"], &[]).exits(1);
    refused.reports("the database is not empty: ERROR: relation \"users\" already exists");
}

#[test]
fn a_data_directory_that_cannot_be_used_is_a_fault() {
    let Installation { database, data } = stopped_service();
    fs::write(data.join("file"), "x").expect("a file");
    for (value, fault) in [("file", "is a file"), ("missing", "does not exist")] {
        let settings = [("CLOAKROOM_DATA_DIR", value)];
        doctor(&database.url, &data, &settings).has("fault", "contents", fault);
    }
    fs::create_dir(data.join("restore.partial")).expect("a directory");
    doctor(&database.url, &data, &[]).has("fault", "contents", "restore.partial");
    fs::remove_dir(data.join("restore.partial")).expect("removed");
    fs::rename(data.join("files"), data.join("away")).expect("renamed");
    doctor(&database.url, &data, &[]).has("fault", "contents", "files does not exist");
    assert!(!data.join("files").exists());
    fs::rename(data.join("away"), data.join("files")).expect("renamed back");
    // A limit on the size of files makes writes fail as on a full disk. The output goes to a pipe.
    let mut command = command(&database.url, &data, &[]);
    command.arg("doctor");
    let output = within_shell("ulimit -f 0", command).output().expect("the shell runs");
    let report = report_of(&output).has("fault", "contents", "is not writable: File too large");
    report.has("ok", "schema", "");
}

#[test]
fn a_directory_in_which_the_user_may_not_write_is_named_with_the_user() {
    // Root may write anywhere, so it becomes another user, who must be able to run the binary.
    let Installation { database, data } = stopped_service();
    fs::set_permissions(data.path(), Permissions::from_mode(0o755)).expect("a mode");
    let binary = data.join("cloakroom");
    fs::copy(BINARY, &binary).expect("a copy");
    fs::create_dir(data.join("ro")).expect("a directory");
    fs::set_permissions(data.join("ro"), Permissions::from_mode(0o555)).expect("a mode");
    let mut command = command_at(&binary, &database.url, &data, &[("CLOAKROOM_DATA_DIR", "ro")]);
    command.arg("doctor");
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let report = report_of(&command.output().expect("the binary runs"));
    report.has("fault", "contents", "ro is not writable by user ");
}

#[test]
fn the_mail_server_is_asked_as_far_as_a_message_and_sent_none() {
    let Installation { database, data } = stopped_service();
    let options = SmtpOptions { user: Some(("ann", "s3cret-word")), ..SmtpOptions::default() };
    let mail = SmtpServer::start(options);
    let open = SmtpServer::start(SmtpOptions::default());
    let expect = |url: &str, word: &str, part: &str| {
        doctor(&database.url, &data, &mail_settings(url)).has(word, "mail", part);
    };
    let url = mail.url();
    expect(&url, "ok", &format!("smtp://(not shown)@localhost:{} ", mail.port.address.port()));
    let counts = [SmtpStep::Auth, SmtpStep::Quit, SmtpStep::Mail].map(|step| mail.count(step));
    assert_eq!((counts, mail.received().len()), ([1, 1, 0], 0));
    expect(&mail.url_with(Some(("ann", "s3cret-other"))), "fault", "AUTH: 535");
    expect("none", "ok", "none");
    // A host that is not known to be this one.
    expect(&format!("smtp://127.1:{}", open.port.address.port()), "warning", "no encryption");
    mail.misbehave(SmtpStep::Ehlo, Misbehaviour::Hang);
    expect(&url, "fault", "EHLO: no answer in time");
    mail.port.close();
    expect(&url, "fault", "connecting: Connection refused");
    let report = doctor(&database.url, &data, &[("CLOAKROOM_SMTP_URL", &url)]);
    report.has("warning", "settings", "CLOAKROOM_MAIL_FROM");
}

#[test]
fn a_database_that_cannot_be_used_is_a_fault_and_ends_nothing() {
    let Installation { database, data } = stopped_service();
    let proxy = DatabaseProxy::start(&database.url);
    proxy.hold(b"");
    let (server, _) = database.url.rsplit_once('/').expect("a URL");
    let missing = format!("{server}/nothing_here");
    let (user, address) = database.url.rsplit_once('@').expect("a user");
    let (user, _) = user.rsplit_once(':').expect("a password");
    let wrong_password = format!("{user}:s3cret@{address}");
    let reader = format!("{}_reader", database.name());
    database.run(&format!("CREATE ROLE {reader} LOGIN PASSWORD 's3cret'"));
    let begin = Instant::now();
    for (url, subject, fault) in [
        (NOWHERE, "database", "127.0.0.1:1: "),
        (&missing, "database", "nothing_here"),
        (&wrong_password, "database", "password authentication failed"),
        (&proxy.url, "database", "127.0.0.1:"),
        ("postgres://nowhere.invalid/x", "database", "nowhere.invalid:5432"),
        (&format!("postgres://{reader}:s3cret@{address}"), "database", &reader),
        (&format!("postgres://{reader}:s3cret@{address}"), "schema", "permission denied"),
    ] {
        doctor(url, &data, &[]).has("fault", subject, fault).has("ok", "contents", "");
    }
    database.run(&format!("DROP ROLE {reader}"));
    assert!(begin.elapsed() < Duration::from_secs(100), "{:?}", begin.elapsed());
}

/// A URL of the same database over a Unix socket in this directory. Its connections are passed on to the server's port.
fn over_unix_socket(url: &str, directory: &Directory) -> String {
    let (user, rest) = url.split_once('@').expect("a user");
    let (server, name) = rest.split_once('/').expect("a database");
    let server = server.to_owned();
    let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).expect("a socket");
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut database = TcpStream::connect(&server).expect("the server");
            let mut from_client = client.try_clone().expect("the socket");
            let mut to_database = database.try_clone().expect("the socket");
            thread::spawn(move || io::copy(&mut from_client, &mut to_database));
            thread::spawn(move || io::copy(&mut database, &mut client));
        }
    });
    format!("{user}@/{name}?host={}", directory.path().display())
}

#[test]
fn a_database_that_answers_no_more_over_a_unix_socket_hides_nothing_else() {
    let (Installation { database, data }, socket) = (stopped_service(), Directory::create());
    let url = over_unix_socket(&database.url, &socket);
    doctor(&url, &data, &[]).has("ok", "database", "PostgreSQL ");
    let _held = database.begin("LOCK TABLE refinery_schema_history IN ACCESS EXCLUSIVE MODE");
    let begin = Instant::now();
    let report = doctor(&url, &data, &[]).has("fault", "database", "no answer in time");
    report.has("ok", "contents", "");
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
}

#[test]
fn the_schema_and_the_server_are_judged() {
    let ((outdated, version, newest), data) = (Database::create_outdated(), Directory::create());
    let fault = format!(
        "schema version {version}, which was never released, and this program upgrades from {newest} on: "
    );
    doctor(&outdated.url, &data, &[]).has("fault", "schema", &fault);
    let Installation { database, data } = stopped_service();
    let alter = |setting: &str| {
        database.run(&format!("ALTER DATABASE {} SET {setting}", database.name()));
    };
    database.run("INSERT INTO refinery_schema_history (version, name) VALUES (999, 'later')");
    doctor(&database.url, &data, &[]).has("fault", "schema", "schema version 999");
    // A function before PostgreSQL's own, for every new connection.
    database.run(
        "CREATE FUNCTION public.current_setting(text) RETURNS text LANGUAGE sql AS $$
         SELECT CASE $1 WHEN 'server_version' THEN '13.1' ELSE pg_catalog.current_setting($1) END $$",
    );
    alter("search_path = public, pg_catalog");
    doctor(&database.url, &data, &[]).has("fault", "database", "PostgreSQL 13.1 at ");
    alter("default_transaction_read_only = on");
    doctor(&database.url, &data, &[]).has("fault", "database", "takes no changes");
}

#[test]
fn a_standby_and_a_certificate_of_a_stranger_are_faults() {
    let cluster = Cluster::start("doctor");
    let api = cluster.serve(&[]);
    let (database, data, files) = (api.database.clone(), api.data.clone(), Directory::create());
    drop(api);
    cluster.stop();
    cluster.start_with_certificate(&files);
    let authority = files.join("server.crt").display().to_string();
    let settings = [("CLOAKROOM_DATABASE_CA", &*authority)];
    doctor(&database.url, &data, &settings).has("ok", "database", "");
    certificate(&files);
    doctor(&database.url, &data, &settings).has("fault", "database", "certificate");
    cluster.stop();
    cluster.start_as_standby();
    let standby = doctor(&database.url, &data, &[]);
    let url = format!("{}?target_session_attrs=read-write", database.url);
    let no_primary = doctor(&url, &data, &[]);
    cluster.stop();
    standby.has("fault", "database", "is a standby");
    no_primary.has("fault", "database", "");
}

#[test]
fn a_disk_of_the_database_without_room_for_a_new_page_is_a_fault() {
    let cluster = Cluster::start("doctor-disk");
    let api = cluster.serve(&[]);
    let (database, data) = (api.database.clone(), api.data.clone());
    drop(api);
    doctor(&database.url, &data, &[]).has("ok", "database", "takes changes of the role");
    assert_eq!(database.count("pg_class WHERE relname = 'cloakroom_page'"), 0);
    // Pages that are there can be changed, and no file can be made, as on a full disk.
    let number: i64 =
        database.value("SELECT oid::bigint FROM pg_database WHERE datname = current_database()");
    let files = cluster.directory.join(format!("cluster/base/{number}"));
    fs::set_permissions(&files, Permissions::from_mode(0o500)).expect("a mode");
    database.run("UPDATE users SET updated_at = now()");
    let report = doctor(&database.url, &data, &[]);
    fs::set_permissions(&files, Permissions::from_mode(0o700)).expect("a mode");
    report.has("fault", "database", "takes no changes: ").has("ok", "schema", "");
}

#[test]
fn the_service_is_asked_where_the_setting_names_a_port() {
    let api = Server::start(&[]);
    let listens = |at: &str| doctor(&api.database.url, &api.data, &[("CLOAKROOM_LISTEN", at)]);
    let own = &api.address;
    listens(own).has("ok", "service", &format!("{own} is ready"));
    let (_, port) = own.rsplit_once(':').expect("a port");
    listens(&format!("0.0.0.0:{port}")).has("ok", "service", "is ready");
    fs::rename(api.data.join("tmp"), api.data.join("away")).expect("renamed");
    wait_until(|| api.readyz().text().contains("degraded"));
    listens(own).has("fault", "service", "DATA_DIRECTORY_REFUSES_CONTENTS");
    fs::rename(api.data.join("away"), api.data.join("tmp")).expect("renamed back");
    // Something else: it says nothing that the service says, closes at once, or does not answer.
    for answer in [Some("HTTP/1.1 200 OK\r\n\r\n<p>hello"), Some(""), None] {
        let other = Port::open(move |mut client| {
            if let Some(text) = answer {
                let _ = client.read(&mut [0; 1000]);
                let _ = client.write_all(text.as_bytes());
                let _ = client.shutdown(Shutdown::Both);
            }
        });
        let at = other.address.to_string();
        listens(&at).has("fault", "service", "does not answer, or something else listens");
        other.close();
        listens(&at).has("warning", "service", "nothing listens there");
    }
}
