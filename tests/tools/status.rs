//! `cloakroom status`: what it says of an installation that is well, and in a night in which it is not.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::SystemTime;

use crate::harness::*;

/// Runs it with the settings of a service and these.
fn status_of(api: &Server, settings: &[(&str, &str)]) -> Output {
    let listen = [("CLOAKROOM_LISTEN", &*api.address)];
    let settings = [&listen[..], settings].concat();
    let mut command = command(&api.database.url, &api.data, &settings);
    command.arg("status").output().expect("it runs")
}

/// What it printed, as a screen: few lines, none of them a secret.
#[track_caller]
fn screen(output: Output, code: i32) -> String {
    let text = output.exits(code).out();
    assert!(text.lines().count() <= 24, "{text}");
    assert!(!text.contains(SECRET) && !text.contains("s3cret"), "{text}");
    text
}

/// The Unix time that a metric of a second ago may have.
fn now_in_seconds() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

#[test]
fn a_service_that_is_well_is_status_0_with_its_version_and_its_last_backup() {
    let api = Server::start(&[]);
    let user = api.sign_up("ann");
    api.new_file(&user, "a.txt", "text");
    let production = [
        ("CLOAKROOM_ENV", "production"),
        ("CLOAKROOM_SCRYPT", ""),
        ("CLOAKROOM_SMTP_URL", "none"),
        ("CLOAKROOM_EXPORT_REQUIRE_ADMIN", "true"),
    ];
    let text = screen(status_of(&api, &production), 0);
    let version = format!("service: version {} since 20", env!("CARGO_PKG_VERSION"));
    let url = format!(" at http://{}, ready", api.address);
    for (beginning, part) in [
        (&*format!("ok      {version}"), &*url),
        ("ok      database: PostgreSQL ", " answers"),
        ("warning last backup: ", "has made none of this data directory"),
        ("ok      outbox: messages that wait: 0", ""),
        ("warning setting: CLOAKROOM_RATE_LIMIT_ENABLED is false", ""),
    ] {
        expect_finding(&text, beginning, part);
    }
    assert!(text.contains(" disk: "), "{text}");
    assert_eq!(api.metric("cloakroom_last_backup_timestamp_seconds"), None);

    let backups = Backups::create();
    let (backup, _) = backups.make(&api);
    let text = screen(status_of(&api, &[]), 0);
    let path = backup.canonicalize().unwrap().display().to_string();
    expect_finding(&text, &format!("ok      last backup: {path} is whole, "), " s old");
    let at = api.metric("cloakroom_last_backup_timestamp_seconds").expect("a value");
    assert!(at <= now_in_seconds() && at > now_in_seconds() - 600.0, "{at}");
    assert_eq!(mode(&api.data.join("last-backup")), 0o600);
}

#[test]
fn a_backup_that_fails_leaves_the_mark_of_the_last_one_which_gets_old() {
    let api = Server::start(&[]);
    let (backups, elsewhere) = (Backups::create(), Directory::create());
    backups.make(&api);
    let mark = fs::read(api.data.join("last-backup")).expect("a mark");
    fs::write(elsewhere.join("file"), "x").expect("a file");
    let no_directory = elsewhere.join("file").display().to_string();
    api.run_beside(&["backup", &no_directory]).exits(1);
    assert_eq!(fs::read(api.data.join("last-backup")).expect("a mark"), mark);
    fs::write(api.data.join("last-backup"), "2026-01-02T03:04:05.000000Z /backups/a b\n").unwrap();
    let text = screen(status_of(&api, &[]), 0);
    expect_finding(&text, "warning last backup: /backups/a b is whole, ", " days old");
    let at = api.metric("cloakroom_last_backup_timestamp_seconds");
    assert_eq!(at, Some(1_767_323_045.0));
    // What it does not understand is no backup.
    for text in ["", "x", "2026-01-02T03:04:05Z", "yesterday /backups"] {
        fs::write(api.data.join("last-backup"), text).expect("a mark");
        assert_eq!(api.metric("cloakroom_last_backup_timestamp_seconds"), None, "{text}");
    }
}

#[test]
fn a_stopped_service_is_a_fault_and_for_doctor_a_warning() {
    let api = Server::start(&[]);
    let address = api.address.clone();
    let (database, data) = (api.database.clone(), api.data.clone());
    drop(api);
    let settings = [("CLOAKROOM_LISTEN", &*address)];
    let mut command = command(&database.url, &data, &settings);
    let text = screen(command.arg("status").output().expect("it runs"), 1);
    let refused = format!("service: nothing answers at http://{address}: Connection refused");
    expect_finding(&text, &format!("fault   {refused}"), "");
    expect_finding(&text, "ok      database: PostgreSQL ", "");
    expect_finding(&doctor(&database.url, &data, &settings), &format!("warning {refused}"), "");
}

#[test]
fn a_service_whose_version_is_hidden_or_that_listens_everywhere_is_found() {
    let api = Server::start(&[("CLOAKROOM_METRICS", "off"), ("CLOAKROOM_LISTEN", "0.0.0.0:0")]);
    let text = screen(status_of(&api, &[]), 0);
    let hidden = "ok      service: up (CLOAKROOM_METRICS hides the version) at http://127.0.0.1:";
    expect_finding(&text, hidden, ", ready");
    let text = screen(api.run_beside(&["status"]), 0);
    expect_finding(&text, "warning service: not asked, because CLOAKROOM_LISTEN leaves", "");
}

#[test]
fn without_a_database_the_service_answers_and_both_are_faults() {
    let cluster = Cluster::start("status");
    let api = cluster.serve(&[]);
    screen(status_of(&api, &[]), 0);
    cluster.stop();
    wait_until(|| api.readyz().status == 503);
    let text = screen(status_of(&api, &[]), 1);
    expect_finding(&text, "fault   service: version ", "without a database");
    expect_finding(&text, "fault   database: no connection to the database at ", "");
    expect_finding(&text, "warning outbox: not looked at", "");
    cluster.start_again();
    wait_until(|| api.readyz().status == 200);
    screen(status_of(&api, &[]), 0);
}

#[test]
fn what_the_service_cannot_do_is_a_fault_also_where_a_command_could() {
    let api = Server::start(&[]);
    let (drafts, away) = (api.data.join("tmp"), api.data.join("away"));
    fs::rename(&drafts, &away).expect("renamed");
    wait_until(|| api.readyz().expect(200).json()["status"] == "degraded");
    let files = "is up, but its data directory takes no files";
    expect_finding(&screen(status_of(&api, &[]), 1), "fault   service: http://127.0.0.1:", files);
    let settings = [("CLOAKROOM_LISTEN", &*api.address)];
    fs::rename(&away, &drafts).expect("renamed back");
    // The service remembers its last attempt for some seconds, so doctor still hears of it.
    let report = doctor(&api.database.url, &api.data, &settings);
    expect_finding(&report, "fault   service: http://127.0.0.1:", files);
    expect_finding(&report, "ok      data directory: ", "can be read and written");
}

#[test]
fn a_reason_that_this_version_does_not_know_is_a_fault_too() {
    let api = Server::start(&[]);
    let newer = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = newer.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        for stream in newer.incoming() {
            let mut stream = stream.expect("a client");
            let request = BufReader::new(&stream).lines().map_while(Result::ok);
            request.take_while(|line| !line.is_empty()).for_each(drop);
            let body = r#"{"status":"degraded","reasons":["OF_ANOTHER_VERSION"]}"#;
            write!(stream, "HTTP/1.0 200 OK\r\n\r\n{body}").expect("an answer");
        }
    });
    let text = screen(status_of(&api, &[("CLOAKROOM_LISTEN", &*address)]), 1);
    expect_finding(&text, &format!("fault   service: http://{address} is up, but degraded"), "");
}

#[test]
fn a_wrong_setting_is_a_fault_and_the_rest_is_still_shown() {
    let api = Server::start(&[]);
    let text = screen(status_of(&api, &[("CLOAKROOM_TRASH_DAYS", "x")]), 1);
    expect_finding(&text, "fault   setting: CLOAKROOM_TRASH_DAYS holds \"x\"", "");
    expect_finding(&text, "ok      service: version ", "");
    let text = screen(status_of(&api, &[("CLOAKROOM_DATABASE_URL", "")]), 1);
    expect_finding(&text, "fault   setting: CLOAKROOM_DATABASE_URL is not set", "");
    expect_finding(&text, "warning database: not looked at", "");
}

/// A directory with a `systemctl` that prints this, for a host whose systemd has the package's units.
fn systemctl(text: &str) -> Directory {
    let directory = Directory::create();
    let program = directory.join("systemctl");
    fs::write(&program, format!("#!/bin/sh\ncat <<'END'\n{text}\nEND\n")).expect("a file");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("its mode");
    fs::write(directory.join("settings"), "").expect("a file");
    directory
}

/// The lines of `systemctl show` for a service in this state that may write to `/var/lib/cloakroom` and `/srv/a`.
fn units(service: &str, socket: &str, backup: &str) -> String {
    let sandbox =
        "ReadWritePaths=/srv/a\nStateDirectory=cloakroom\nProtectSystem=strict\nProtectHome=no";
    format!(
        "Id=cloakroom.service\nLoadState=loaded\n{service}\n{sandbox}\n\nId=cloakroom.socket\nLoadState=loaded\n\
         {socket}\n\nId=cloakroom-backup.service\nLoadState=loaded\nActiveState={backup}"
    )
}

/// Runs a command with the settings of the unit, and this in the place of systemd.
fn run_with_unit(
    api: &Server,
    arguments: &[&str],
    units: &str,
    settings: &[(&str, &str)],
) -> Output {
    let directory = systemctl(units);
    let path = format!("{}:/usr/bin:/bin", directory.path().display());
    let mut command =
        command(&api.database.url, &api.data, &[&[("PATH", &*path)], settings].concat());
    command.arg("--env-file").arg(directory.join("settings")).args(arguments);
    command.output().expect("it runs")
}

#[test]
fn what_systemd_knows_of_the_units_is_told() {
    let api = Server::start(&[]);
    let socket = format!("ActiveState=active\nListen={} (Stream)", api.address);
    let running = units("ActiveState=active\nStatusText=Listening", &socket, "inactive");
    let settings = [("CLOAKROOM_LISTEN", "127.0.0.1:1")];
    let text = screen(run_with_unit(&api, &["status"], &running, &settings), 0);
    expect_finding(&text, "ok      service: ", &format!("at http://{}, ready", api.address));

    let failed_backup = units("ActiveState=active\nStatusText=Listening", &socket, "failed");
    let text = screen(run_with_unit(&api, &["status"], &failed_backup, &settings), 1);
    expect_finding(
        &text,
        "fault   last backup: the last run of cloakroom-backup.service failed",
        "",
    );

    let state = "ActiveState=failed\nStatusText=CLOAKROOM_TRASH_DAYS holds \"x\"";
    let failed = units(state, "ActiveState=inactive", "inactive");
    let text = screen(run_with_unit(&api, &["status"], &failed, &settings), 1);
    let said = "cloakroom.service is failed: CLOAKROOM_TRASH_DAYS holds \"x\"";
    expect_finding(&text, "fault   service: nothing answers at http://127.0.0.1:1: ", said);
    let report = report_of(run_with_unit(&api, &["doctor"], &failed, &settings));
    expect_finding(&report, "fault   service: nothing answers", said);
}

#[test]
fn doctor_names_a_data_directory_that_the_sandbox_makes_read_only() {
    let api = Server::start(&[]);
    let inactive = units("ActiveState=inactive", "ActiveState=inactive", "inactive");
    let report = |path: &Path, units: &str| {
        let shown = path.display().to_string();
        let arguments = &["doctor"][..];
        let settings = [("CLOAKROOM_DATA_DIR", &*shown)];
        report_of(run_with_unit(&api, arguments, units, &settings))
    };
    let refusal = "data directory: cloakroom.service may not write to ";
    let directory = api.data.path();
    let text = report(directory, &inactive);
    expect_finding(&text, &format!("fault   {refusal}"), "ProtectSystem=strict");
    expect_finding(&text, "ok      data directory: ", "can be read and written");
    let allowed = inactive.replace("/srv/a", &format!("/srv/a {}", directory.display()));
    assert!(!report(directory, &allowed).contains(refusal));
    let open = inactive.replace("ProtectSystem=strict", "ProtectSystem=full");
    assert!(!report(directory, &open).contains(refusal));
    for path in ["/var/lib/cloakroom/missing", "/srv/a/missing"] {
        assert!(!report(Path::new(path), &inactive).contains(refusal), "{path}");
    }
    let hidden = open.replace("ProtectHome=no", "ProtectHome=yes");
    expect_finding(
        &report(Path::new("/home/missing"), &hidden),
        "fault   ",
        "ProtectHome= hides it",
    );
    let private = open.replace("ProtectHome=no", "ProtectHome=no\nPrivateTmp=yes");
    expect_finding(&report(Path::new("/tmp/missing"), &private), "fault   ", "PrivateTmp=");
}
