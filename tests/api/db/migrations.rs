//! How a start brings the schema up to date, and which databases it refuses.

use std::thread;
use std::time::Duration;

use crate::harness::*;

const HISTORY: &str = "SELECT string_agg(concat_ws(' ', version, name, checksum), ', ' ORDER BY version) \
                       FROM refinery_schema_history";
const NEWEST: &str = "SELECT max(version) FROM refinery_schema_history";

#[test]
fn the_history_is_the_one_that_earlier_versions_kept() {
    let (own, earlier) = (Database::create(), Database::create());
    run(&own.url, &["migrate"], &[]).exits(0);
    let newest = own.value(NEWEST);
    // They migrated with the crate `refinery`, as the tests do.
    earlier.migrate_to(newest);
    assert_eq!(own.value::<String>(HISTORY), earlier.value::<String>(HISTORY));
    // Each finds nothing to do in a database of the other.
    own.migrate_to(newest);
    let log = run(&earlier.url, &["migrate"], &[]).exits(0).err();
    assert!(!log.contains("applied"), "{log}");
}

#[test]
fn a_migration_that_fails_leaves_no_part_of_itself_and_is_applied_later() {
    let database = Database::create();
    database.migrate_to(4);
    // The migration makes a table before it meets this function.
    database.run("CREATE FUNCTION queue_notices() RETURNS int LANGUAGE sql AS 'SELECT 1'");
    let error = run(&database.url, &["migrate"], &[]).exits(1).err();
    assert!(error.contains("migration V5__outbox: ") && error.contains("queue_notices"), "{error}");
    assert_eq!(database.value::<i32>(NEWEST), 4);
    assert!(database.value::<bool>("SELECT to_regclass('outbox') IS NULL"));
    database.run("DROP FUNCTION queue_notices()");
    run(&database.url, &["migrate"], &[]).exits(0);
    assert!(database.value::<i32>(NEWEST) > 4);
}

#[test]
fn a_migration_waits_for_a_backup_and_lets_nobody_else_wait() {
    let database = Database::create();
    database.migrate_to(4);
    let backup =
        database.begin("SELECT pg_advisory_xact_lock(hashtext('cloakroom: backup')); TABLE users");
    thread::scope(|scope| {
        let migration = scope.spawn(|| run(&database.url, &["migrate"], &[]));
        database.wait_for_blocked_statement();
        database.run("SET lock_timeout = '1s'; UPDATE users SET name = 'x'");
        backup.commit();
        let log = migration.join().expect("no panic").exits(0).err();
        assert!(log.contains("a backup is running: the migration waits for its end"), "{log}");
    });
    assert!(database.value::<i32>(NEWEST) > 4);
}

#[test]
fn a_database_with_other_migrations_is_refused_and_left_alone() {
    let database = Database::create();
    database.migrate_to(6);
    for (change, fault) in [
        (
            "UPDATE refinery_schema_history SET checksum = '1' WHERE version = 3",
            "V3__administration",
        ),
        (
            "UPDATE refinery_schema_history SET checksum = NULL WHERE version = 3",
            "V3__administration",
        ),
        (
            "UPDATE refinery_schema_history SET name = 'x' WHERE version = 4",
            "V4__x, which is not V4__installation",
        ),
        (
            "DELETE FROM refinery_schema_history WHERE version = 2",
            "V3__administration, which is not V2__files",
        ),
        ("INSERT INTO refinery_schema_history VALUES (999, 'x', '', '1')", "schema version 999"),
    ] {
        let mut client = database.client();
        client.batch_execute("CREATE TABLE kept AS TABLE refinery_schema_history").expect("kept");
        client.batch_execute(change).expect(change);
        let before: String = database.value(HISTORY);
        for command in ["migrate", "serve"] {
            let error = run(&database.url, &[command], &[]).exits(1).err();
            assert!(error.contains(fault), "{change}: {error}");
        }
        assert_eq!(database.value::<String>(HISTORY), before);
        let restore = "TRUNCATE refinery_schema_history;
                       INSERT INTO refinery_schema_history TABLE kept; DROP TABLE kept";
        client.batch_execute(restore).expect("restored");
    }
    run(&database.url, &["migrate"], &[]).exits(0);
}

#[test]
fn several_processes_may_start_at_once_on_an_empty_database() {
    let database = Database::create();
    let servers = parallel(5, |_| Server::start_on(&database, &[]));
    let ann = servers[0].sign_up("ann");
    for api in &servers {
        api.me(&ann).expect(200);
    }
    let applied = servers.iter().filter(|api| api.log().contains("V1__accounts applied")).count();
    assert_eq!(applied, 1);
}

#[test]
fn migrate_may_be_run_again() {
    let database = Database::create();
    for _ in 0..2 {
        let text = run(&database.url, &["migrate"], &[]).exits(0).out();
        assert_eq!(text, "The database is up to date.\n");
    }
}

#[test]
fn a_newer_schema_is_refused_with_both_versions() {
    let database = Database::create_migrated();
    let newest: i32 = database.value(NEWEST);
    database.run(
        "INSERT INTO refinery_schema_history (version, name, applied_on, checksum)
         SELECT 999, 'later', applied_on, checksum FROM refinery_schema_history LIMIT 1",
    );
    for command in ["serve", "migrate"] {
        let text = run(&database.url, &[command], &[]).exits(1).err();
        assert!(text.contains("999") && text.contains(&format!("up to {newest}")), "{text}");
    }
}

#[test]
fn a_newer_schema_is_used_while_it_suits_and_ends_a_process_that_it_suits_no_more() {
    let database = Database::create_migrated();
    let newest: i32 = database.value(NEWEST);
    let running = Server::start_on(&database, &[]);
    let ann = running.sign_up("ann");
    database.run(&format!(
        "INSERT INTO refinery_schema_history (version, name, applied_on, checksum, oldest_program)
         VALUES (998, 'later', '', '1', {newest}), (999, 'latest', '', '2', {newest})"
    ));
    let started = Server::start_on(&database, &[]);
    assert!(started.log().contains("schema version 999, which suits this program too"));
    run(&database.url, &["migrate"], &[]).exits(0);
    // Longer than a running process takes to look.
    thread::sleep(Duration::from_secs(6));
    for api in [&running, &started] {
        api.me(&ann).expect(200);
    }
    // The last migration suits, but not the one before it.
    database.run("UPDATE refinery_schema_history SET oldest_program = 998 WHERE version = 998");
    for api in [running, started] {
        api.logged(&format!(
            "stops: the database has schema version 998, this program knows versions up to {newest}"
        ));
        assert_eq!(api.exit_code(), Some(0));
    }
    let error = run(&database.url, &["serve"], &[]).exits(1).err();
    assert!(error.contains("schema version 998"), "{error}");
}
