//! Backups while things break: the process is killed, contents rot, the disk is full, the database goes away. A backup
//! is whole, or its name says that it is not.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use rustix::process::Signal;

use crate::harness::*;

/// Asserts that an interrupted run has left only a backup that is not whole, and that the next run makes a whole one.
#[track_caller]
fn next_is_whole(api: &Server, backups: &Backups) {
    assert_eq!(backups.whole().len(), 0);
    let [partial] = &backups.partial()[..] else { panic!("{:?}", backups.partial()) };
    // Until the server has noticed that the process is gone.
    let locks = "pg_locks WHERE locktype = 'advisory'
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    wait_until(|| api.database.count(locks) == 0);
    let (_, printed) = backups.make(api);
    let removed = format!("removed {}, which was not whole\n", partial.display());
    assert!(printed.starts_with(&removed), "{printed}");
    assert!(printed.contains("0 linked"), "{printed}");
}

#[test]
fn a_signal_while_the_database_is_dumped_leaves_a_partial_backup_and_no_lock() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", "content");
    for (signal, status) in
        [(Signal::KILL, None), (Signal::TERM, Some(143)), (Signal::INT, Some(130))]
    {
        assert_eq!(backups.begin(&api).end_by(signal, &api), status);
        next_is_whole(&api, &backups);
        backups.whole().iter().for_each(|path| fs::remove_dir_all(path).expect("removed"));
    }
    api.delete_for_good(&ann, &file).expect(204);
    wait_until(|| api.data.contents().is_empty());
}

#[test]
fn kill_9_while_contents_are_copied_leaves_a_partial_backup_of_which_nothing_is_used() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let mut files = [(); 5].map(|()| api.new_file(&ann, "a.txt", "content"));
    files.sort();
    // Opening a named pipe waits for somebody who writes to it.
    let pipe = api.data.content(&files[3]);
    fs::remove_file(&pipe).expect("removed");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let mut command = command(&api.database.url, &api.data, &[]);
    let mut process = command.args(backups.arguments()).spawn().expect("the binary runs");
    let third = || Some(backups.partial().first()?.join("files").join(&files[2]));
    wait_until(|| third().is_some_and(|path| path.exists()));
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    fs::remove_file(&pipe).expect("removed");
    fs::write(&pipe, "content").expect("a content");
    next_is_whole(&api, &backups);
}

#[test]
fn contents_that_are_missing_or_damaged_are_named_and_the_backup_is_not_whole() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let mut files: Vec<String> =
        ["one", "two", "three", "four"].map(|text| api.new_file(&ann, text, text)).into();
    let whole = api.new_file(&ann, "whole", "five");
    let content = |n: usize| api.data.content(&files[n]);
    fs::remove_file(content(0)).expect("removed");
    fs::write(content(1), "twp").expect("changed");
    fs::write(content(2), "thre").expect("cut");
    fs::remove_file(content(3)).expect("removed");
    fs::create_dir(content(3)).expect("a directory");
    let output = api.run_beside(&backups.arguments()).exits(1);
    let faults = [
        "(\"one\", owner ann) is missing",
        "(\"two\", owner ann) has another SHA-256 than is recorded",
        "(\"three\", owner ann) has 4 bytes, not 5",
        "(\"four\", owner ann) is not a file",
    ];
    let lines = files.iter().zip(faults).map(|(id, fault)| format!("files/{id} {fault}\n"));
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    assert_eq!(output.out(), lines.concat());
    let [partial] = &backups.partial()[..] else { panic!("{:?}", backups.partial()) };
    let error = format!(
        "cloakroom: contents are missing or damaged, 4 in all: `cloakroom check --repair` brings back what the trash \
         or the last backup has; copy others from an earlier backup, or delete their files by `cloakroom check \
         --remove-lost ID ...`. {} is not whole\n",
        partial.display()
    );
    assert_eq!(output.err(), error);
    assert!(partial.join("files").join(&whole).exists(), "the others follow");
    // As the message says.
    fs::remove_dir(content(3)).expect("removed");
    fs::write(content(0), "one").expect("restored");
    files.drain(1..).for_each(|id| drop(api.delete_for_good(&ann, &id).expect(204)));
    let (_, printed) = backups.make(&api);
    assert!(printed.contains("2 files (7 bytes), 2 copied"), "{printed}");
}

#[test]
fn a_second_backup_at_the_same_time_is_refused_and_disturbs_nothing() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let (other, elsewhere) = (Server::start(&[]), Backups::create());
    let held = backups.begin(&api);
    let same_directory = format!("another backup is writing to {}", backups.path().display());
    let same_database = "another backup of this database, or a migration, is running";
    // That of another service in the same directory may not remove what is being written.
    for (service, directory, reason) in [
        (&api, &backups, &*same_directory),
        (&api, &elsewhere, same_database),
        (&other, &backups, &same_directory),
    ] {
        let output = service.run_beside(&directory.arguments()).exits(1);
        let refusal = format!("cloakroom: {reason}: nothing was done\n");
        assert_eq!((output.out(), output.err()), (String::new(), refusal));
    }
    elsewhere.make(&other);
    held.end().exits(0);
    assert_eq!((backups.whole().len(), backups.partial().len()), (1, 0));
    assert_eq!((elsewhere.whole().len(), elsewhere.partial().len()), (1, 0));
}

#[test]
fn a_connection_that_is_lost_fails_the_backup() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let held = backups.begin(&api);
    api.database
        .end_connections("state = 'idle in transaction' AND application_name = 'cloakroom'");
    held.end().exits(1).reports("cloakroom: the database at 127.0.0.1:");
    next_is_whole(&api, &backups);
}

#[test]
fn time_limits_of_the_server_do_not_end_a_backup() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let options = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]
        .map(|limit| format!("-c%20{limit}%3D200ms"))
        .join("%20");
    let url = format!("{}?options={options}", api.database.url);
    let held = backups.begin_with(&api, &[("CLOAKROOM_DATABASE_URL", &url)]);
    // The transaction of the backup has been idle for longer than the limit.
    let long_idle = "application_name = 'cloakroom' AND state = 'idle in transaction'
                     AND state_change < now() - interval '400 ms'";
    wait_until(|| api.database.connections(long_idle) == 1);
    held.end().exits(0);
}

#[test]
fn a_full_disk_is_one_line_that_names_the_file() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let file = api.new_file(&ann, "a.txt", &"x".repeat(400_000));
    // A limit on the size of files makes writes fail as on a full disk: of the dump, and of the content.
    for (kilobytes, name) in [(4, "database.dump"), (300, &*format!("files/{file}"))] {
        let mut command = command(&api.database.url, &api.data, &[]);
        command.args(backups.arguments());
        let limited = within_shell(&format!("ulimit -f {kilobytes}"), command).output();
        let output = limited.expect("the binary runs").exits(1);
        let [partial] = &backups.partial()[..] else { panic!("{:?}", backups.partial()) };
        let error =
            format!("cloakroom: {}: File too large (os error 27)\n", partial.join(name).display());
        assert!(output.err().ends_with(&error), "{}", output.err());
        assert_eq!(backups.whole().len(), 0);
    }
    let (_, printed) = backups.make(&api);
    assert!(printed.contains("1 copied"), "{printed}");
}

#[test]
fn a_missing_pg_dump_of_the_servers_version_is_one_line_that_says_what_to_install() {
    let api = Server::start(&[]);
    // A function of this name, found before PostgreSQL's own, makes it a server of another version.
    api.database.run(
        "CREATE SCHEMA later;
         CREATE FUNCTION later.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT '99.1 (Debian)' $$",
    );
    let options = "options=-c%20search_path%3Dlater,public,pg_catalog";
    let url = format!("{}?{options}", api.database.url);
    let error = run_in(&api.data, &url, &["backup", "backups"], &[]).exits(1).err();
    assert!(error.starts_with("cloakroom: pg_dump of PostgreSQL 99 is needed"), "{error}");
    assert!(error.ends_with("`apt-get install postgresql-client-99`\n"), "{error}");
    assert_eq!((error.lines().count(), api.data.join("backups").exists()), (1, false));
}

#[test]
fn what_is_no_complete_installation_is_refused_and_left_as_it_is() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let backups = Backups::create();
    let both = [&backups.arguments()[..], &["check"]];
    // What production would refuse at a start is none of their business.
    let settings = [("CLOAKROOM_ENV", "production"), ("CLOAKROOM_JWT_SECRET", "")];
    let refused = |commands: &[&[&str]], text: &str| {
        for arguments in commands {
            let output = run_in(&data, &database.url, arguments, &settings).exits(1);
            let said = output.out() + &output.err();
            assert!(said.contains(text), "{said}");
        }
        assert_eq!(backups.whole().len(), 0);
    };
    refused(&both, "CLOAKROOM_DATA_DIR=");
    assert!(entries(data.path()).is_empty());
    fs::create_dir(data.join("files")).expect("a directory");
    refused(&both, "the database has schema version 0, this program has version ");
    assert_eq!(database.count("pg_class WHERE relname = 'users'"), 0);
    run(&database.url, &["migrate"], &[]).exits(0);
    refused(&both[..1], "no installation id yet");
    assert!(!data.join("installation-id").exists());
    database.run("INSERT INTO refinery_schema_history (version, name) VALUES (999, 'x')");
    refused(&both, "the database has schema version 999");
    database.run("DELETE FROM refinery_schema_history WHERE version = 999");
    drop(Server::start_with(&database, &data, &[]));
    run_in(&data, &database.url, both[0], &settings).exits(0);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let api = Server::start(&[]);
    fs::write(api.data.join("a file"), "").expect("a file");
    api.run_beside(&["backup", "a file"]).exits(1).reports("a file");
}

#[test]
fn a_backup_that_does_not_fit_beside_five_percent_of_the_disk_is_not_begun() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    let ann = api.sign_up("ann");
    let (whole, _) = backups.make(&api);
    // More than any disk has.
    api.database.insert_files(ann.id(), &[8 << 50]);
    let former = backups.path().join("2020-01-02T03-04-05Z.partial");
    fs::create_dir(&former).expect("a directory");
    let output = api.run_beside(&backups.arguments()).exits(1);
    assert_eq!(output.out(), format!("removed {}, which was not whole\n", former.display()));
    let place = format!("the disk of {} has ", backups.path().display());
    let output = output.reports("cloakroom: the backup may take 8192.00 TiB, ").reports(&place);
    let error = output.err();
    assert!(error.ends_with("iB beside the 5 % that stay free: nothing was begun\n"), "{error}");
    assert_eq!((error.lines().count(), backups.partial().len()), (1, 0));
    // What the last backup holds takes no room.
    let id: String = api.database.value("SELECT id::text FROM files");
    fs::write(whole.join("files").join(id), "").expect("a file");
    api.run_beside(&backups.arguments()).exits(1).prints(" is missing");
    assert_eq!(backups.partial().len(), 1, "it was begun");
}
