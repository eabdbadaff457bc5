//! PostgreSQL's own programs, which `backup` and `restore` run: they connect as the service does, and nobody else reads
//! their settings.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::harness::*;

/// What the process of one of the programs shows: its arguments, and its environment.
fn process_of(program: &str, database: &Database) -> (String, String) {
    let sql = format!(
        "SELECT client_port FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = '{program}'"
    );
    let port: i32 = database.value(&sql);
    assert!(port > 0, "it is connected by TCP");
    let name = database.name();
    let processes = fs::read_dir("/proc").expect("/proc").filter_map(|entry| {
        let path = entry.ok()?.path();
        let read = |name| fs::read_to_string(path.join(name)).ok();
        Some((read("cmdline")?, read("environ")?))
    });
    let mut own = processes.filter(|(arguments, environment)| {
        arguments.contains(program) && environment.contains(&format!("PGDATABASE={name}\0"))
    });
    own.next().expect("the program runs")
}

/// Asserts that a process has the password in its environment only, and nothing there that is not its business.
#[track_caller]
fn shows_nothing((arguments, environment): (String, String), password: &str) {
    assert!(!arguments.contains(password) && !arguments.contains("127.0.0.1"), "{arguments}");
    assert!(environment.contains(&format!("PGPASSWORD={password}\0")));
    assert!(!environment.contains("CLOAKROOM") && !environment.contains(SECRET));
    assert!(!environment.contains("PGSERVICE") && !environment.contains("PGUSER=nobody"));
}

#[test]
fn they_use_the_tls_and_the_servers_of_the_settings_and_hide_the_password() {
    let cluster = Cluster::start("programs");
    let database = Database::create_on(&cluster.url);
    let files = Directory::create();
    cluster.stop();
    cluster.start_with_certificate(&files);
    let ca = files.join("server.crt").display().to_string();
    let api = Server::start_on(&database, &[]);
    api.new_file(api.sign_up("ann"), "a.txt", "content");
    let backups = Backups::create();
    let parts: Vec<_> = database.url.split(['/', ':', '@']).collect();
    let [_, _, _, user, password, _, port, name] = parts[..] else { panic!("{parts:?}") };
    let of_two = format!(
        "host=127.0.0.1,127.0.0.1 port=1,{port} user={user} password={password} dbname={name} \
         target_session_attrs=read-write sslmode=require"
    );
    for (url, ca, encrypted) in [
        (format!("{}?sslmode=disable", database.url), "", false),
        (format!("{}?sslmode=require", database.url), "", true),
        (database.url.clone(), &*ca, true),
        (of_two.clone(), &*ca, true),
        (of_two, "", true),
    ] {
        let settings = [
            ("CLOAKROOM_DATABASE_CA", ca),
            ("CLOAKROOM_DATABASE_URL", &url),
            // Those of the caller do not count.
            ("PGUSER", "nobody"),
            ("PGHOST", "/nowhere"),
            ("PGSERVICE", "none"),
            ("PGOPTIONS", "-c nonsense=on"),
        ];
        let held = backups.begin_with(&api, &settings);
        let found: bool = database.value(
            "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
             WHERE application_name = 'pg_dump' AND datname = current_database()",
        );
        assert_eq!(found, encrypted, "{url} {ca}");
        shows_nothing(process_of("pg_dump", &database), password);
        held.end().exits(0);
        wait_until(|| database.connections("application_name = 'pg_dump'") == 0);
    }
    // The same for the other program.
    let target = Installation::on(&Database::create_on(&cluster.url));
    let backup = backups.whole().pop().expect("a backup");
    let table = target.database.begin("CREATE TABLE users ()");
    let process = target.begin(&backup);
    target.database.wait_for_blocked_statement();
    shows_nothing(process_of("pg_restore", &target.database), password);
    table.roll_back();
    process.wait_with_output().expect("it ends").exits(0);
}

#[test]
fn one_of_another_version_in_the_path_is_passed_over() {
    let (api, backups, programs) = (Server::start(&[]), Backups::create(), Directory::create());
    let marker = programs.join("used");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'pg_dump (PostgreSQL) 9.6.24' || touch '{}'\n",
        marker.display()
    );
    let program = programs.join("pg_dump");
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    let path = format!("{}:/usr/bin:/bin", programs.path().display());
    run_in(&api.data, &api.database.url, &backups.arguments(), &[("PATH", &path)]).exits(0);
    assert!(!marker.exists());
}
