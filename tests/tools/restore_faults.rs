//! Restorations that are interrupted or fail: the target is as it was, or marked as unusable.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::harness::*;

/// A backup of three files of the user `ann`.
fn backup_of_three(backups: &Backups) -> PathBuf {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    (0..3).for_each(|n| drop(api.new_file(&ann, "a.txt", &format!("content {n}"))));
    backups.make(&api).0
}

/// Kills a process that restores, as `kill -9` does, and waits until the server has noticed that it is gone.
fn kill(mut process: Child, target: &Installation) {
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    let lock = "pg_locks WHERE locktype = 'advisory' AND granted AND objid = hashtext('cloakroom: restore')::oid
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    wait_until(|| target.database.count(lock) == 0);
}

/// Asserts that no command uses the data directory, and that each says why.
#[track_caller]
fn is_marked(target: &Installation) {
    let before = target.entries();
    let commands: [&[&str]; 5] = [
        &["serve"],
        &["gc"],
        &["check", "--repair"],
        &["backup", "."],
        &["adopt-data-dir", "none"],
    ];
    for arguments in commands {
        let output = target.run(arguments, &[]).exits(1);
        let said = output.out() + &output.err();
        assert!(said.contains("it holds restore.partial, because `cloakroom restore` "), "{said}");
    }
    assert_eq!(target.entries(), before);
}

/// Asserts that a backup with `count` files is restored into a new database and the same data directory.
#[track_caller]
fn is_restored_anew(target: Installation, backup: &Path, count: usize) {
    let refused = target.restore(backup).exits(1).reports("is not empty");
    refused.reports("one that an interrupted restore has left is removed first (dropdb)");
    finishes(Installation { database: Database::create(), data: target.data }, backup, count);
}

/// Asserts that a backup with `count` files is restored.
#[track_caller]
fn finishes(target: Installation, backup: &Path, count: usize) {
    target.restore(backup).exits(0);
    assert_eq!(target.entries(), ["files", "installation-id"]);
    let restored = target.serve();
    let found = (entries(target.data.join("files")).len(), target.database.count("files"));
    assert_eq!(found, (count, count as i64));
    restored.collect_garbage();
}

#[test]
fn kill_9_leaves_a_mark_and_the_next_restoration_begins_anew() {
    const COUNT: usize = 2000;
    let (api, backups) = (Server::start(&[]), Backups::create());
    fill(&api, COUNT);
    let (backup, _) = backups.make(&api);
    // While contents are copied.
    let target = Installation::empty();
    let process = target.begin(&backup);
    let first = || fs::read_dir(target.data.join("restore.partial")).ok()?.next();
    eventually(first).expect("an entry");
    kill(process, &target);
    assert_eq!(target.tables(), 0);
    is_marked(&target);
    // One that is no content of the backup must not stay either.
    fs::write(target.data.join("restore.partial/other"), "").expect("written");
    finishes(target, &backup, COUNT);
    let vacuum = "LOCK TABLE sign_in_networks IN SHARE MODE";
    // What it waits for, and then, and whether the database is filled nevertheless.
    for (statement, then, is_filled) in [
        // Another table of this name has to wait until this one is committed.
        ("CREATE TABLE users ()", None, false),
        // The same with an index, which pg_restore makes when it has read the whole dump: then it goes on alone.
        ("CREATE TABLE users_admins ()", None, true),
        // The lock under which migrations are applied.
        ("SELECT pg_advisory_xact_lock(7164223571444789103)", None, true),
        ("SELECT pg_advisory_xact_lock(7164223571444789103)", Some(vacuum), true),
    ] {
        let target = Installation::empty();
        let mut held = target.database.begin(statement);
        let process = target.begin(&backup);
        target.database.wait_for_blocked_statement();
        if let Some(then) = then {
            let before = std::mem::replace(&mut held, target.database.begin(then));
            before.roll_back();
            let blocked = "wait_event_type = 'Lock' AND query LIKE '%VACUUM (ANALYZE)%'";
            wait_until(|| target.database.connections(blocked) == 1);
        }
        kill(process, &target);
        held.roll_back();
        wait_until(|| target.database.connections("application_name = 'pg_restore'") == 0);
        assert_eq!(target.tables() > 0, is_filled, "{statement}");
        assert_eq!(target.entries(), ["restore.lock", "restore.partial"]);
        is_marked(&target);
        let finish = if is_filled { is_restored_anew } else { finishes };
        finish(target, &backup, COUNT);
    }
}

#[test]
fn an_id_that_an_interrupted_restoration_has_made_does_not_hinder_the_next_one() {
    let backups = Backups::create();
    let backup = backup_of_three(&backups);
    let target = Installation::empty();
    // As it is left between the last two steps.
    fs::create_dir(target.data.join("restore.partial")).expect("made");
    fs::write(target.data.join("installation-id"), UNKNOWN_ID).expect("written");
    is_marked(&target);
    finishes(target, &backup, 3);
}

#[test]
fn of_two_restorations_into_one_database_or_one_directory_the_second_is_refused() {
    let backups = Backups::create();
    let backup = backup_of_three(&backups);
    let target = Installation::empty();
    let table = target.database.begin("CREATE TABLE users ()");
    let process = target.begin(&backup);
    target.database.wait_for_blocked_statement();
    let same_database = Installation::on(&target.database);
    let refusal = "another `cloakroom restore` is writing to ";
    same_database.restore(&backup).exits(1).reports(&format!("{refusal}the database at "));
    assert_eq!(same_database.entries(), Vec::<String>::new());
    let same_directory = Installation { database: Database::create(), data: target.data.clone() };
    same_directory.restore(&backup).exits(1).reports(&format!("{refusal}it"));
    assert_eq!(same_directory.tables(), 0);
    table.roll_back();
    process.wait_with_output().expect("it ends").exits(0);
    assert_eq!(target.entries(), ["files", "installation-id"]);
    target.serve().sign_in("ann");
}

#[test]
fn a_database_that_fails_meanwhile_or_a_full_disk_leaves_the_target_as_it_was() {
    let (api, backups) = (Server::start(&[]), Backups::create());
    api.new_file(api.sign_up("ann"), "a.txt", &"x".repeat(5000));
    let (backup, _) = backups.make(&api);
    let target = Installation::empty();
    let table = target.database.begin("CREATE TABLE users ()");
    let process = target.begin(&backup);
    target.database.wait_for_blocked_statement();
    target.database.end_connections("application_name = 'pg_restore'");
    let output = process.wait_with_output().expect("it ends").exits(1);
    let output = output.reports("terminating connection due to administrator command");
    assert!(output.err().ends_with("Nothing was restored.\n"), "{}", output.err());
    table.roll_back();
    target.is_untouched();
    // Files of this process may have 1 KiB.
    let mut limited = within_shell("ulimit -f 1", target.command(&backup, &[]));
    limited.output().expect("bash runs").exits(1).reports("restore.partial: File too large");
    target.is_untouched();
    target.restore(&backup).exits(0);
}
