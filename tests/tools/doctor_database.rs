//! `cloakroom doctor` and what is wrong with a database.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};

use crate::harness::*;

#[test]
fn a_database_that_cannot_be_used_is_a_fault_with_advice_and_ends_nothing() {
    let (database, data) = stopped_service("ann");
    let proxy = DatabaseProxy::start(&database.url);
    proxy.hold(b"");
    let (server, _) = database.url.rsplit_once('/').expect("a URL");
    let missing = format!("{server}/nothing_here");
    let (user, address) = database.url.rsplit_once('@').expect("a user");
    let wrong_password =
        format!("{}:s3cret@{address}", user.rsplit_once(':').expect("a password").0);
    let begin = Instant::now();
    for (url, fault, advice) in [
        (NOWHERE, "no connection to the database at 127.0.0.1:1: ", "Check the host and the port"),
        (&missing, "nothing_here", "Create the database"),
        (&wrong_password, "password authentication failed", "Check the user and the password"),
        (&proxy.url, "no connection to the database at 127.0.0.1:", "Check the host and the port"),
        (
            "postgres://nowhere.invalid/x",
            "no connection to the database at nowhere.invalid:5432",
            "Check the host",
        ),
    ] {
        let report = doctor(url, &data, &[]);
        expect_finding(&report, "fault   database: ", fault);
        expect_finding(&report, "        ", advice);
        expect_finding(&report, "ok      data directory: ", "");
    }
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
    let ((database, data), socket) = (stopped_service("ann"), Directory::create());
    let url = over_unix_socket(&database.url, &socket);
    expect_finding(&doctor(&url, &data, &[]), "ok      database: ", "PostgreSQL ");
    let _held = database.begin("LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE");
    let begin = Instant::now();
    let report = doctor(&url, &data, &[]);
    expect_finding(&report, "fault   database: ", "no answer in time");
    expect_finding(&report, "ok      data directory: ", "");
    assert!(begin.elapsed() < Duration::from_secs(40), "{:?}", begin.elapsed());
}

#[test]
fn an_older_schema_is_a_warning_and_stays_and_a_newer_one_a_fault() {
    let (database, data) = (Database::create_of_schema_23(), Directory::create());
    let report = doctor(&database.url, &data, &[]);
    expect_finding(&report, "warning schema: version 23, and this program makes version ", "");
    expect_finding(&report, "ok      installation id: not compared", "");
    assert_eq!(database.count("refinery_schema_history"), 23);
    let (database, data) = stopped_service("ann");
    database.run("INSERT INTO refinery_schema_history (version, name) VALUES (999, 'later')");
    let report = doctor(&database.url, &data, &[]);
    expect_finding(&report, "fault   schema: ", "schema version 999");
    expect_finding(&report, "ok      installation id: ", "");
}

/// Puts a function before PostgreSQL's own for every new connection to the database.
fn replace_function(database: &Database, function: &str) {
    database.run(&format!("CREATE FUNCTION public.{function}"));
    database
        .run(&format!("ALTER DATABASE {} SET search_path = public, pg_catalog", database.name()));
}

#[test]
fn clocks_that_differ_are_a_warning_and_from_half_a_minute_on_a_fault() {
    let data = Directory::create();
    for (difference, kind, part) in [
        ("10 seconds", "warning ", " ahead of this system's"),
        ("-10 seconds", "warning ", " behind this system's"),
        ("1 hour", "fault   ", "ahead of"),
    ] {
        let database = Database::create();
        replace_function(
            &database,
            &format!(
                "clock_timestamp() RETURNS timestamptz LANGUAGE sql
                 AS $$ SELECT pg_catalog.clock_timestamp() + interval '{difference}' $$"
            ),
        );
        let report = doctor(&database.url, &data, &[]);
        expect_finding(&report, &format!("{kind}database clock: "), part);
        expect_finding(&report, "        Synchronise the clocks", "");
    }
}

#[test]
fn versions_that_are_not_tested_are_a_warning_and_those_that_cannot_work_a_fault() {
    let data = Directory::create();
    for (version, kind) in
        [("14.9", "warning "), ("12.1", "fault   "), ("15.0", "ok      "), ("16beta1", "warning ")]
    {
        let database = Database::create();
        replace_function(
            &database,
            &format!(
                "current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT
                 CASE $1 WHEN 'server_version' THEN '{version} (Debian)' ELSE pg_catalog.current_setting($1) END $$"
            ),
        );
        let report = doctor(&database.url, &data, &[]);
        expect_finding(&report, &format!("{kind}database: PostgreSQL {version} at "), "");
    }
}

#[test]
fn what_the_database_lacks_is_a_warning() {
    let (database, data) = stopped_service("ann");
    database.run("DROP EXTENSION pg_trgm CASCADE");
    // A host that is not known to be this one.
    let url = database.url.replace("127.0.0.1", "127.1");
    let report = doctor(&url, &data, &[("CLOAKROOM_DATABASE_POOL_SIZE", "5000")]);
    expect_finding(&report, "warning extension pg_trgm: not installed", "");
    expect_finding(&report, "        ", "CREATE EXTENSION pg_trgm");
    expect_finding(
        &report,
        "warning database connection: not encrypted, and leaves this system",
        "",
    );
    expect_finding(&report, "warning database connections: ", "opens up to 5000");
    database.run("CREATE EXTENSION pg_trgm; CREATE EXTENSION amcheck");
    let report = doctor(&database.url, &data, &[]);
    expect_finding(
        &report,
        "warning extension pg_trgm: the index listed_users_search is missing",
        "",
    );
    expect_finding(&report, "ok      extension amcheck: 1", "");
    database
        .run(&format!("ALTER DATABASE {} SET default_transaction_read_only = on", database.name()));
    expect_finding(
        &doctor(&database.url, &data, &[]),
        "fault   database: transactions are read-only",
        "",
    );
}

#[test]
fn a_user_who_may_not_read_the_tables_is_a_fault() {
    let (database, data) = stopped_service("ann");
    let role = format!("{}_reader", database.name());
    database.run(&format!("CREATE ROLE {role} LOGIN PASSWORD 's3cret'"));
    let (_, address) = database.url.rsplit_once('@').expect("a URL");
    let report = doctor(&format!("postgres://{role}:s3cret@{address}"), &data, &[]);
    database.run(&format!("DROP ROLE {role}"));
    expect_finding(&report, "fault   database: ", "permission denied");
}

/// Runs `work` while a program receives the log of the server, as a standby does.
fn with_receiver<T>(cluster: &Cluster, work: impl FnOnce() -> T) -> T {
    let log = Directory::create();
    let url = format!("{}?application_name=receiver", cluster.url);
    let mut receiver = Command::new("pg_receivewal")
        .args(["--no-password", "--dbname", &url, "--directory"])
        .arg(log.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("pg_receivewal");
    let mut client = Client::connect(&cluster.url, NoTls).expect("a connection");
    let streams = "SELECT FROM pg_stat_replication WHERE state = 'streaming'";
    wait_until(|| !client.query(streams, &[]).expect("rows").is_empty());
    let result = work();
    receiver.kill().and_then(|()| receiver.wait()).expect("a child");
    result
}

#[test]
fn tls_is_shown_with_whether_the_certificate_is_verified() {
    let cluster = Cluster::start("doctor-tls");
    let database = Database::create_on(&cluster.url);
    let (files, data) = (Directory::create(), Directory::create());
    cluster.stop();
    cluster.start_with_certificate(&files);
    let report = doctor(&database.url, &data, &[]);
    expect_finding(
        &report,
        "ok      database connection: TLSv1.",
        "CLOAKROOM_DATABASE_CA is not set",
    );
    let authority = files.join("server.crt").display().to_string();
    let report = doctor(&database.url, &data, &[("CLOAKROOM_DATABASE_CA", &authority)]);
    expect_finding(&report, "ok      database connection: TLSv1.", "with a verified certificate");
    certificate(&files);
    let report = doctor(&database.url, &data, &[("CLOAKROOM_DATABASE_CA", &authority)]);
    expect_finding(&report, "fault   database: no connection", "certificate");
    expect_finding(&report, "        The server's certificate must be valid for the host", "");
}

#[test]
fn a_standby_is_a_fault_and_so_are_commits_that_wait_for_a_missing_one() {
    let cluster = Cluster::start("doctor");
    let api = cluster.serve(&[]);
    let (database, data) = (api.database.clone(), api.data.clone());
    drop(api);
    database.run("SELECT pg_create_physical_replication_slot('gone', true)");
    cluster.stop();
    cluster.start_with("-c max_connections=10 -c synchronous_standby_names=other");
    let waiting = doctor(&database.url, &data, &[]);
    cluster.stop();
    cluster.start_again();
    let reader = format!("{}_reader", database.name());
    database.run(&format!("CREATE ROLE {reader} LOGIN PASSWORD 's3cret'"));
    let (streaming, invisible) = with_receiver(&cluster, || {
        let (_, address) = database.url.rsplit_once('@').expect("a URL");
        let invisible = doctor(&format!("postgres://{reader}:s3cret@{address}"), &data, &[]);
        (doctor(&database.url, &data, &[]), invisible)
    });
    cluster.stop();
    let signal = cluster.directory.join("cluster/standby.signal");
    fs::write(&signal, "").expect("a file");
    let owner = fs::metadata(cluster.directory.join("cluster")).expect("a directory");
    chown(&signal, Some(owner.uid()), Some(owner.gid())).expect("its owner");
    cluster.start_again();
    let standby = doctor(&database.url, &data, &[]);
    let url = format!("{}?target_session_attrs=read-write", database.url);
    let no_primary = doctor(&url, &data, &[]);
    cluster.stop();
    expect_finding(
        &waiting,
        "fault   replication: commits wait for other",
        "0 of these are connected",
    );
    expect_finding(&waiting, "warning replication: 1 slots without a standby", "");
    expect_finding(&waiting, "warning database connections: 7 allowed", "");
    expect_finding(&waiting, "warning database durability: fsync off", "");
    expect_finding(&streaming, "ok      replication: standby receiver: streaming, async", "");
    expect_finding(
        &invisible,
        "warning replication: standby receiver is connected; its state may not be",
        "",
    );
    expect_finding(&invisible, "        GRANT pg_monitor TO ", "");
    expect_finding(&standby, "fault   database: the server at ", "is a standby");
    expect_finding(&standby, "        ", "target_session_attrs=read-write");
    expect_finding(&no_primary, "fault   database: no connection", "");
    expect_finding(
        &no_primary,
        "        target_session_attrs asks for a server that takes writes",
        "",
    );
}
