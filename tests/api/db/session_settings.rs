//! Settings of the database, of its role or of the URL, which PostgreSQL gives to each session: none of them changes
//! what the service does, because each of its connections asks for what it relies on.

use std::sync::Arc;

use crate::harness::*;

/// A setting, a value that would do harm, and what the sessions of the service have.
const SETTINGS: [(&str, &str, &str); 10] = [
    ("default_transaction_isolation", "serializable", "read committed"),
    ("standard_conforming_strings", "off", "on"),
    ("TimeZone", "Pacific/Auckland", "UTC"),
    ("gin_fuzzy_search_limit", "1", "0"),
    ("plan_cache_mode", "force_generic_plan", "auto"),
    ("jit", "on", "off"),
    ("idle_session_timeout", "1h", "0"),
    ("idle_in_transaction_session_timeout", "1h", "0"),
    // Each query has a time limit of its own.
    ("statement_timeout", "1h", "5000"),
    ("lock_timeout", "1h", "2500"),
];

/// Gives a new database all of these settings by `ALTER ... SET`.
fn set(database: &Database, object: &str) {
    let set = |(name, value, _)| format!("ALTER {object} SET {name} = '{value}';");
    database.run(&SETTINGS.map(set).concat());
}

#[test]
fn each_session_has_what_the_service_relies_on_whatever_the_database_the_role_and_the_url_set() {
    let option = |(name, value, _)| format!("-c%20{name}%3D{value}");
    let options = SETTINGS.map(option).join("%20");
    for way in ["database", "role", "URL"] {
        let (database, data) = (Database::create(), Arc::new(Directory::create()));
        let name = database.name();
        let mut url = database.url.clone();
        match way {
            "database" => set(&database, &format!("DATABASE {name}")),
            "role" => set(&database, &format!("ROLE CURRENT_USER IN DATABASE {name}")),
            _ => url = format!("{url}?options={options}"),
        }
        // This one makes the schema.
        let api = Server::spawn(command(&url, &data, &[]), &database, &data);
        let names = SETTINGS.map(|(name, ..)| format!("'{name}'")).join(", ");
        database.run(&format!(
            "CREATE TABLE seen AS SELECT name, setting FROM pg_settings LIMIT 0;
             CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO seen SELECT name, setting FROM pg_settings WHERE name IN ({names});
                 RETURN NULL;
             END $$;
             CREATE TRIGGER see AFTER INSERT ON users EXECUTE FUNCTION see()"
        ));
        api.sign_up("ann");
        let seen = database.client().query("SELECT name, setting FROM seen", &[]).expect("rows");
        let seen = |name| seen.iter().find(|row| row.get::<_, &str>(0) == name).expect(name);
        for (name, _, wanted) in SETTINGS {
            assert_eq!(seen(name).get::<_, &str>(1), wanted, "{name} {way}");
        }
    }
}

#[test]
fn a_session_begins_at_once_whatever_transactions_the_database_asks_for() {
    let api = Server::start(&[]);
    let ann = api.sign_up("ann");
    // Reads that are serializable and deferrable wait for the end of such a transaction.
    let writer = api.database.begin(
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; CREATE TABLE written AS SELECT 1 AS one",
    );
    // A session from before the settings.
    let mut session = api.database.client();
    for (setting, value) in
        [("isolation", "serializable"), ("read_only", "on"), ("deferrable", "on")]
    {
        let set = format!("SET default_transaction_{setting} = '{value}'");
        let sql = format!("ALTER DATABASE {} {set}", api.database.name());
        session.batch_execute(&sql).expect("a setting");
    }
    let end = "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = current_database() \
               AND pid <> pg_backend_pid() AND state = 'idle'";
    session.batch_execute(end).expect("an end");
    api.get("/auth/me", &ann).expect(200);
    writer.commit();
}

#[test]
fn requests_at_once_succeed_whatever_isolation_the_database_asks_for() {
    const ROUNDS: usize = 6;
    for isolation in ["serializable", "repeatable read"] {
        let database = Database::create_migrated();
        let set = format!("SET default_transaction_isolation = '{isolation}'");
        database.run(&format!("ALTER DATABASE {} {set}", database.name()));
        let api = Server::start_on(&database, &[]);
        let users = ["ann", "bob"].map(|name| api.sign_up(name));
        parallel(8, |n| {
            for _ in 0..ROUNDS {
                let user = &users[n % 2];
                let file = api.new_file(user, "a.txt", "text");
                api.update_file(user, &file, json!({"description": "d"})).expect(200);
                if has_extras() {
                    api.new_link(user, &file);
                }
                api.list_files(user, "").expect(200);
                api.delete_file(user, &file).expect(204);
                api.refresh(&api.sign_in(["ann", "bob"][n % 2]).refresh).expect(200);
            }
        });
        assert_eq!(database.logged("could not serialize"), [""; 0], "{isolation}");
    }
}

#[test]
fn a_start_waits_for_a_migration_for_longer_than_the_time_limits_of_the_database() {
    let database = Database::create();
    for limit in ["statement_timeout", "lock_timeout"] {
        let name = database.name();
        database.run(&format!("ALTER DATABASE {name} SET {limit} = '200ms'"));
    }
    // The lock under which one process at a time migrates.
    let lock = "SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock(7164223571444789103)";
    let other = database.begin(lock);
    let data = Directory::create();
    let mut migration = command(&database.url, &data, &[]).arg("migrate").spawn().expect("it runs");
    let long_wait = "wait_event_type = 'Lock' AND query_start < now() - interval '400 ms'";
    wait_until(|| {
        assert_eq!(migration.try_wait().expect("a child"), None);
        database.connections(long_wait) == 1
    });
    other.commit();
    assert!(migration.wait().expect("a child").success());
}
