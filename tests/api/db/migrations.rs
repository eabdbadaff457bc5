//! How a start brings the schema up to date, and which databases it refuses.

use std::thread;
use std::time::Duration;

use crate::harness::*;

const NEWEST: &str = "SELECT max(version) FROM refinery_schema_history";

#[test]
fn a_database_of_another_build_is_refused_and_left_alone() {
    let (outdated, version, newest) = Database::create_outdated();
    let newer = Database::create_migrated();
    newer.run("INSERT INTO refinery_schema_history (version, name) VALUES (999, 'x')");
    for (database, version, sentence) in [
        (
            &outdated,
            version,
            format!(
                "the database has schema version {version}, which was never released, and this program upgrades from \
                 {newest} on: use the build that made it"
            ),
        ),
        (
            &newer,
            999,
            format!(
                "the database has schema version 999, this program knows versions up to {newest}: use a newer cloakroom"
            ),
        ),
    ] {
        for command in ["migrate", "serve"] {
            let error = run(&database.url, &[command], &[]).exits(1).err();
            assert!(error.contains(&sentence), "{error}");
        }
        assert_eq!(database.value::<i32>(NEWEST), version);
    }
}

#[test]
fn a_schema_that_cannot_be_made_leaves_no_part_of_itself() {
    let database = Database::create();
    // The schema has tables before it meets this one.
    database.run("CREATE TABLE audit_events (id int)");
    let error = run(&database.url, &["migrate"], &[]).exits(1).err();
    assert!(error.contains("audit_events"), "{error}");
    let left = "pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace";
    assert_eq!(database.count(left), 1);
    database.run("DROP TABLE audit_events");
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
    let applied = servers.iter().filter(|api| api.log().contains("the schema was made")).count();
    assert_eq!(applied, 1);
}

#[test]
fn a_newer_schema_is_used_while_it_suits_and_ends_a_process_that_it_suits_no_more() {
    let database = Database::create_migrated();
    let newest: i32 = database.value(NEWEST);
    let running = Server::start_on(&database, &[]);
    let ann = running.sign_up("ann");
    database.run(&format!(
        "INSERT INTO refinery_schema_history (version, name, oldest_program)
         VALUES (998, 'later', {newest}), (999, 'latest', {newest})"
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
