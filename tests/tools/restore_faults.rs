//! Restoring what is damaged, and restorations that are interrupted: the target is as it was, or marked as unusable.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::json;

use crate::harness::*;

/// A backup of the user `ann` with files that hold `content 0` and so on, and their ids in order.
fn backup_of(backups: &Backups, count: usize) -> (PathBuf, Vec<String>) {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    for n in 0..count {
        api.new_file(&ann, "a.txt", &format!("content {n}"));
    }
    let (backup, _) = backups.make(&api);
    let ids = names_of(&manifest(&backup)["contents"], "id");
    (backup, ids)
}

#[test]
fn damaged_contents_are_named_and_nothing_is_restored_unless_they_are_to_be_skipped() {
    let backups = Backups::create();
    let (backup, ids) = backup_of(&backups, 5);
    let content = |n: usize| backup.join("files").join(&ids[n]);
    let text = fs::read_to_string(content(0)).expect("a content");
    fs::write(content(0), text.replace("content", "kontent")).expect("changed");
    fs::remove_file(content(1)).expect("removed");
    fs::write(content(2), "content").expect("cut");
    fs::write(backup.join("files/other"), "").expect("written");
    let target = Target::create();
    let output = target.restore(&backup).exits(1);
    let lines = [
        format!("files/{} has another SHA-256 than is recorded", ids[0]),
        format!("files/{} is missing", ids[1]),
        format!("files/{} has 7 bytes, not 9", ids[2]),
        "files/other is not in the manifest".to_owned(),
    ];
    assert_eq!(output.out().lines().collect::<Vec<_>>(), lines);
    assert!(
        output.err().contains("contents: 3") && output.err().contains("nothing was changed"),
        "{}",
        output.err()
    );
    target.is_untouched();
    let output = target.command(&backup, &["--skip-damaged"]).output().expect("it runs").exits(0);
    let summary = "manifest: 1 user, 5 files, 45 bytes\n\
                   damaged:  3 files, 27 bytes, not restored\n\
                   database: 1 user, 2 files, 18 bytes\n\
                   contents: 2 files, 18 bytes\n";
    assert!(output.out().contains(summary), "{}", output.out());
    let restored = target.serve();
    let ann = restored.sign_in("ann");
    let mut left = names_of(&restored.list_files(&ann, "").json()["items"], "id");
    left.sort();
    assert_eq!(left, ids[3..]);
    assert_eq!(restored.file_stats(&ann), (2, 18));
    assert_eq!(target.database.value::<i64>("SELECT sum(used)::bigint FROM storage_shards"), 18);
    for (id, status) in ids.iter().zip([404, 404, 404, 200, 200]) {
        restored.download(&ann, id).expect(status);
    }
    let root = restored.sign_up_admin("root");
    let events = restored.all_events(&root, "action=file.delete");
    assert_eq!(events.len(), 3, "{events:?}");
    for event in events {
        assert_eq!(event["details"], json!({"reason": "damaged in the backup"}));
    }
}

#[test]
fn a_damaged_dump_or_manifest_and_a_partial_backup_cannot_be_skipped() {
    let backups = Backups::create();
    let (backup, _) = backup_of(&backups, 1);
    let target = Target::create();
    let refused = |backup: &Path, message: &str| {
        for arguments in [&[][..], &["--skip-damaged"]] {
            let output = target.command(backup, arguments).output().expect("it runs").exits(1);
            let text = output.out() + &output.err();
            assert!(text.contains(message), "{text}");
            target.is_untouched();
        }
    };
    let with_change = |name: &str, change: &dyn Fn(&mut Vec<u8>), message: &str| {
        let whole = fs::read(backup.join(name)).expect("a file");
        let mut changed = whole.clone();
        change(&mut changed);
        fs::write(backup.join(name), changed).expect("changed");
        refused(&backup, message);
        fs::write(backup.join(name), whole).expect("as it was");
    };
    let middle = |bytes: &mut Vec<u8>| {
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
    };
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 1);
    with_change("database.dump", &middle, "database.dump has another SHA-256 than is recorded");
    with_change("database.dump", &cut, "database.dump has ");
    with_change("database.dump", &middle, "without its dump it cannot be restored");
    with_change("manifest.json", &middle, "manifest.json: it was changed");
    with_change("manifest.json", &cut, "manifest.json: it was cut short or changed");
    with_change("manifest.json", &Vec::clear, "manifest.json: it was cut short or changed");
    let partial = backup.with_extension("partial");
    fs::rename(&backup, &partial).expect("renamed");
    refused(&partial, ".partial is not whole");
    fs::rename(&partial, &backup).expect("renamed");
    // A dump that PostgreSQL cannot read, though it is the one of the manifest.
    fs::write(backup.join("database.dump"), "no dump").expect("written");
    adopt_dump(&backup, 9);
    refused(&backup, "pg_restore failed (exit status: 1): error: ");
    refused(&backup, "Nothing was restored.");
}

/// Kills a process that restores, as `kill -9` does, and waits until the server has noticed that it is gone.
fn kill(mut process: Child, target: &Target) {
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    let lock = "pg_locks WHERE locktype = 'advisory' AND granted AND objid = hashtext('cloakroom: restore')::oid
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    wait_until(|| target.database.count(lock) == 0);
}

/// Asserts that no command uses the data directory, and that each says why.
#[track_caller]
fn is_marked(target: &Target) {
    let before = target.entries();
    for arguments in [&["serve"][..], &["gc"], &["backup", "."], &["adopt-data-dir", "none"]] {
        let error = target.run(arguments).exits(1).err();
        assert!(
            error.contains("it holds restore.partial, because `cloakroom restore` "),
            "{error}"
        );
    }
    assert_eq!(target.entries(), before);
}

/// Asserts that a backup with `count` files is restored into a new database and the same data directory.
#[track_caller]
fn is_restored_anew(target: Target, backup: &Path, count: usize) {
    let error = target.restore(backup).exits(1).err();
    let advice = "one that an interrupted restore has left is removed first (dropdb)";
    assert!(error.contains("is not empty") && error.contains(advice), "{error}");
    is_marked(&target);
    finishes(Target { database: Database::create(), data: target.data }, backup, count);
}

/// Asserts that a backup with `count` files is restored.
#[track_caller]
fn finishes(target: Target, backup: &Path, count: usize) {
    target.restore(backup).exits(0);
    assert_eq!(target.entries(), ["files", "installation-id"]);
    let restored = target.serve();
    assert_eq!(fs::read_dir(target.data.join("files")).expect("files").count(), count);
    assert_eq!(target.database.count("files"), count as i64);
    restored.collect_garbage();
}

#[test]
fn kill_9_while_contents_are_copied_leaves_a_mark_and_the_next_restoration_begins_anew() {
    const COUNT: usize = 2000;
    let (api, backups) = (Server::start(&[]), Backups::create());
    fill(&api, COUNT);
    let (backup, _) = backups.make(&api);
    let target = Target::create();
    let process = target.begin(&backup);
    let first = || fs::read_dir(target.data.join("restore.partial")).ok()?.next();
    eventually(first).expect("an entry");
    kill(process, &target);
    assert_eq!(target.tables(), 0);
    is_marked(&target);
    // One that is no content of the backup must not stay either.
    fs::write(target.data.join("restore.partial/other"), "").expect("written");
    finishes(target, &backup, COUNT);
}

#[test]
fn kill_9_while_the_database_is_restored_leaves_it_empty_and_the_next_restoration_begins_anew() {
    const COUNT: usize = 2000;
    let (api, backups) = (Server::start(&[]), Backups::create());
    fill(&api, COUNT);
    let (backup, _) = backups.make(&api);
    let target = Target::create();
    // Nobody sees the table before it is committed, but another one of its name has to wait for that.
    let table = target.database.begin("CREATE TABLE users ()");
    let process = target.begin(&backup);
    target.database.wait_for_blocked_statement();
    kill(process, &target);
    is_marked(&target);
    table.roll_back();
    let running =
        "pg_stat_activity WHERE datname = current_database() AND application_name = 'pg_restore'";
    wait_until(|| target.database.count(running) == 0);
    assert_eq!(target.tables(), 0);
    finishes(target, &backup, COUNT);
}

#[test]
fn kill_9_ends_pg_restore_at_once_and_nothing_is_committed_though_it_has_the_whole_dump() {
    let backups = Backups::create();
    let (backup, _) = backup_of(&backups, 3);
    // So short a dump is in the pipe before pg_restore has read any of it.
    assert!(fs::metadata(backup.join("database.dump")).expect("a dump").len() < 1 << 16);
    // A table, a primary key, and an index of those that are made last.
    for name in ["users", "users_pkey", "users_second_factor"] {
        let target = Target::create();
        // pg_restore waits where it makes a relation of the same name.
        let relation = target.database.begin(&format!("CREATE TABLE {name} ()"));
        let process = target.begin(&backup);
        target.database.wait_for_blocked_statement();
        let [pg_restore] = children(process.id())[..] else { panic!("one program") };
        kill(process, &target);
        wait_until(|| parent_of(pg_restore).is_none());
        relation.roll_back();
        let server_side = "pg_stat_activity
                           WHERE datname = current_database() AND application_name = 'pg_restore'";
        wait_until(|| target.database.count(server_side) == 0);
        assert_eq!(target.tables(), 0, "{name}");
        is_marked(&target);
        finishes(target, &backup, 3);
    }
}

#[test]
fn kill_9_between_the_database_and_the_end_leaves_a_mark_until_the_database_is_made_anew() {
    let backups = Backups::create();
    let (backup, _) = backup_of(&backups, 3);
    for waits_for in ["migration", "VACUUM"] {
        let target = Target::create();
        // The lock under which migrations are applied.
        let migrations = target.database.begin("SELECT pg_advisory_xact_lock(7164223571444789103)");
        let process = target.begin(&backup);
        target.database.wait_for_blocked_statement();
        if waits_for == "VACUUM" {
            let table = target.database.begin("LOCK TABLE sign_in_networks IN SHARE MODE");
            migrations.roll_back();
            let vacuum =
                "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                          AND query LIKE '%VACUUM (ANALYZE)%'";
            wait_until(|| target.database.count(vacuum) == 1);
            kill(process, &target);
            table.roll_back();
        } else {
            kill(process, &target);
            migrations.roll_back();
        }
        assert_eq!(target.entries(), ["restore.lock", "restore.partial"]);
        is_restored_anew(target, &backup, 3);
    }
}

#[test]
fn an_id_that_an_interrupted_restoration_has_made_does_not_hinder_the_next_one() {
    let backups = Backups::create();
    let (backup, _) = backup_of(&backups, 3);
    let target = Target::create();
    // As it is left between the last two steps.
    fs::create_dir(target.data.join("restore.partial")).expect("made");
    fs::write(target.data.join("installation-id"), UNKNOWN_ID).expect("written");
    is_marked(&target);
    finishes(target, &backup, 3);
}

#[test]
fn of_two_restorations_into_one_database_or_one_directory_the_second_is_refused() {
    let backups = Backups::create();
    let (backup, _) = backup_of(&backups, 3);
    let target = Target::create();
    let table = target.database.begin("CREATE TABLE users ()");
    let process = target.begin(&backup);
    target.database.wait_for_blocked_statement();
    let same_database = Target::of(&target.database);
    let error = same_database.restore(&backup).exits(1).err();
    assert!(
        error.contains("another `cloakroom restore` is writing to the database at "),
        "{error}"
    );
    assert_eq!(same_database.entries(), Vec::<String>::new());
    let same_directory = Target { database: Database::create(), data: target.data.clone() };
    let error = same_directory.restore(&backup).exits(1).err();
    assert!(error.contains("another `cloakroom restore` is writing to it"), "{error}");
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
    let target = Target::create();
    let table = target.database.begin("CREATE TABLE users ()");
    let process = target.begin(&backup);
    target.database.wait_for_blocked_statement();
    target.database.end_connections("application_name = 'pg_restore'");
    let output = process.wait_with_output().expect("it ends").exits(1);
    assert!(
        output.err().contains("terminating connection due to administrator command"),
        "{}",
        output.err()
    );
    assert!(output.err().ends_with("Nothing was restored.\n"), "{}", output.err());
    table.roll_back();
    target.is_untouched();
    // Files of this process may have 1 KiB.
    let command = target.command(&backup, &[]);
    let mut limited = Command::new("/bin/bash");
    limited.args(["-c", "ulimit -f 1 && exec \"$0\" \"$@\""]).arg(command.get_program());
    limited.args(command.get_args()).env_clear();
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let error = limited.output().expect("bash runs").exits(1).err();
    assert!(error.contains("restore.partial: File too large"), "{error}");
    target.is_untouched();
    target.restore(&backup).exits(0);
}
