//! How a start brings the schema up to date, and which databases it refuses.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::harness::*;

const HISTORY: &str = "SELECT string_agg(concat_ws(' ', version, name), ', ' ORDER BY version) \
                       FROM refinery_schema_history";
const NEWEST: &str = "SELECT max(version) FROM refinery_schema_history";
/// Tables of schema 23 that are no more.
const DROPPED: [&str; 1] = ["kept_contents"];

/// The statements of the schema as `pg_dump` writes them, without those that differ from one call to the next, and
/// without parentheses: of a condition that was dumped before, PostgreSQL keeps fewer.
fn schema(database: &Database) -> Vec<String> {
    let dump =
        Command::new("pg_dump").args(["--schema-only", "--no-owner", &database.url]).output();
    let dump = dump.expect("pg_dump runs").exits(0).out();
    let lines = dump.lines().filter(|line| !line.contains("restrict ") && !line.starts_with("--"));
    lines.map(|line| line.replace(['(', ')'], "")).collect()
}

/// All rows of a database but those of the migrations, as JSON and by table.
fn rows(database: &Database) -> BTreeMap<String, Vec<serde_json::Value>> {
    let mut client = database.client();
    let tables = "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
                  AND relname <> 'refinery_schema_history'";
    let tables = client.query(tables, &[]).expect("the tables");
    let tables: Vec<String> = tables.iter().map(|row| row.get(0)).collect();
    let mut rows_of = |table: &String| {
        let sql = format!("SELECT to_jsonb(t)::text FROM {table} t ORDER BY 1");
        let rows = client.query(&sql, &[]).expect("the rows");
        rows.iter().map(|row| serde_json::from_str(row.get(0)).expect("JSON")).collect()
    };
    tables.iter().map(|table| (table.clone(), rows_of(table))).collect()
}

#[test]
fn a_new_database_and_one_of_schema_23_get_the_same_schema_and_keep_their_rows() {
    let (new, old) = (Database::create(), Database::create_of_schema_23());
    let before = rows(&old);
    assert!(before.values().all(|rows| !rows.is_empty()), "rows in each table");
    // A second time changes nothing.
    for database in [&new, &old, &new, &old] {
        let text = run(&database.url, &["migrate"], &[]).exits(0).out();
        assert_eq!(text, "The database is up to date.\n");
    }
    let (new, migrated) = (schema(&new), schema(&old));
    let differing = new.iter().zip(&migrated).find(|(new, migrated)| new != migrated);
    assert_eq!((differing, new.len()), (None, migrated.len()));
    let after = rows(&old);
    for (table, before) in before.iter().filter(|(table, _)| !DROPPED.contains(&table.as_str())) {
        let after = &after[table];
        assert_eq!(before.len(), after.len(), "{table}");
        for row in before {
            let row = row.as_object().expect("a row");
            // What a later version has renamed or dropped is left out, and what it has added is no change.
            let is_row = |later: &serde_json::Value| {
                row.iter().all(|(column, value)| later.get(column).is_none_or(|same| same == value))
            };
            assert!(after.iter().any(is_row), "{table}: {row:?}");
        }
    }
    // A service on it knows its accounts, and what they have.
    let data = Arc::new(Directory::create());
    let adopted = command(&old.url, &data, &[]).args(["adopt-data-dir", "none"]).output();
    adopted.expect("the binary runs").exits(0);
    let api = Server::start_with(&old, &data, &[]);
    let bob = api.sign_in("bob");
    assert_eq!(bob.user["email"], "bob2@example.com");
}

#[test]
fn of_the_accounts_of_schema_23_the_young_ones_that_registered_themselves_are_known() {
    let database = Database::create_of_schema_23();
    let accounts = [
        ("registered", "6 days", "auth.register", true),
        ("made", "6 days", "user.create", false),
        ("old", "8 days", "auth.register", false),
    ];
    for (name, age, action, _) in accounts {
        database.run(&format!(
            "WITH account AS (
                 INSERT INTO users (id, username, email, password_hash, is_settled, created_at)
                 VALUES (gen_random_uuid(), '{name}', '{name}@example.com', '-', true, now() - interval '{age}')
                 RETURNING id
             )
             INSERT INTO audit_events (action, actor_id, subject_type, subject_id)
             SELECT '{action}', id, 'user', id FROM account"
        ));
    }
    run(&database.url, &["migrate"], &[]).exits(0);
    for (name, .., expected) in accounts {
        let is_known = format!("SELECT is_self_registered FROM users WHERE username = '{name}'");
        assert_eq!(database.value::<bool>(&is_known), expected, "{name}");
    }
}

#[test]
fn a_database_older_than_schema_23_is_refused_and_left_alone() {
    let database = Database::create_of_schema_23();
    database.run("DELETE FROM refinery_schema_history WHERE version > 14");
    let before = (schema(&database), database.value::<String>(HISTORY));
    for command in ["migrate", "serve"] {
        let error = run(&database.url, &[command], &[]).exits(1).err();
        let sentence = "the database has schema version 14, and this program upgrades from 23 on: \
                        start the version before this one first";
        assert!(error.contains(sentence), "{error}");
    }
    assert_eq!((schema(&database), database.value::<String>(HISTORY)), before);
}

#[test]
fn a_migration_that_fails_leaves_no_part_of_itself_and_is_applied_later() {
    let database = Database::create_of_schema_23();
    database.run(
        "CREATE FUNCTION is_signed_in(uuid, uuid, bigint) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    );
    let error = run(&database.url, &["migrate"], &[]).exits(1).err();
    assert!(
        error.contains("migration V24__signed_in: ") && error.contains("is_signed_in"),
        "{error}"
    );
    assert_eq!(database.value::<i32>(NEWEST), 23);
    database.run("DROP FUNCTION is_signed_in(uuid, uuid, bigint)");
    run(&database.url, &["migrate"], &[]).exits(0);
    assert!(database.value::<i32>(NEWEST) > 23);
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
fn a_migration_waits_for_a_backup_and_lets_nobody_else_wait() {
    let database = Database::create_of_schema_23();
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
    assert!(database.value::<i32>(NEWEST) > 23);
}

#[test]
fn a_database_of_another_build_is_refused_and_left_alone() {
    let database = Database::create_of_schema_23();
    let newest: i32 = Database::create_migrated().value(NEWEST);
    let known = format!("schema version 999, this program knows versions up to {newest}");
    for (version, fault) in
        [(24, "V24__x, which is not V24__signed_in of this program"), (999, &known)]
    {
        let other = "INSERT INTO refinery_schema_history (version, name) VALUES";
        database.run(&format!("{other} ({version}, 'x')"));
        let before: String = database.value(HISTORY);
        for command in ["migrate", "serve"] {
            let error = run(&database.url, &[command], &[]).exits(1).err();
            assert!(error.contains(fault), "{version}: {error}");
        }
        assert_eq!(database.value::<String>(HISTORY), before);
        database.run("DELETE FROM refinery_schema_history WHERE version > 23");
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
