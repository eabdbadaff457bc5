//! The schema: makes it in a new database, brings that of an older one up to date, or compares it with this program.

use postgres::error::SqlState;
use postgres::{Client, Row, Transaction};

use super::postgres_error::describe;
use super::{Database, sql};
use crate::error::Error;

/// The version of the first schema that has migrations to later ones. While there are none, it is the version that
/// [`SCHEMA`] makes.
const OLDEST_VERSION: i32 = 47;

/// What a database that was made by [`SCHEMA`] records in the place of the migrations that are in it.
const NEW_SCHEMA: &str = "schema";

/// One step from a version of the schema to the next.
pub struct Migration {
    version: i32,
    name: &'static str,
    /// The oldest version of the schema whose programs may use the database once this step is applied: its own, unless
    /// the statements of older programs mean the same afterwards, and their rows are what newer ones expect. The
    /// database keeps it, because those programs do not know the step.
    oldest_program: i32,
    sql: &'static str,
}

/// The migrations after [`OLDEST_VERSION`] in the order in which they are applied, without a gap. What each of them
/// makes is in [`SCHEMA`] as well.
pub const MIGRATIONS: &[Migration] = &[];

/// The newest version of the schema that this program knows.
pub fn newest_schema_version() -> i32 {
    newest_version(MIGRATIONS)
}

fn newest_version(migrations: &[Migration]) -> i32 {
    migrations.last().map_or(OLDEST_VERSION, |migration| migration.version)
}

/// The schema, in the order in which its parts name each other: a file of the folder of each feature, with its tables,
/// functions and triggers. The last one says what a change of an account ends in the tables of the others.
#[rustfmt::skip]
const SCHEMA: [&str; 16] = [
    sql!("db/schema"), sql!("accounts/schema"), sql!("sign_in/schema"),
    sql!("second_factor/schema"), sql!("mail/schema"), sql!("personal_tokens/schema"),
    sql!("files/schema"), sql!("undo/schema"), sql!("changes/schema"),
    sql!("folders/schema"), sql!("repeats/schema"), sql!("provider/schema"), sql!("links/schema"),
    sql!("partial/schema"), sql!("audit/schema"), sql!("accounts/ends"),
];

/// Says why a database or a backup with this version of the schema cannot be upgraded, to follow "the database has";
/// `None` if it can.
pub fn too_old(version: i32) -> Option<String> {
    (version < OLDEST_VERSION).then(|| {
        format!(
            "schema version {version}, which was never released, and this program upgrades from {OLDEST_VERSION} on: \
             use the build that made it"
        )
    })
}

/// Makes the schema in a new database, or applies the migrations that another one lacks, under an advisory lock: of
/// several processes that start together one does so, and the others find nothing to do. Fails, before it changes
/// anything, if the database has migrations that do not suit this program, or is too old for it. Calls `begin` before
/// each step, whose time begins then, with what it is, and before all steps `check`, with whether the database is new:
/// if that fails, nothing is changed.
pub(super) fn migrate(
    client: &mut Client,
    begin: &dyn Fn(&str),
    check: impl FnOnce(&mut Client, bool) -> Result<(), String>,
) -> Result<(), String> {
    migrate_by(MIGRATIONS, client, begin, check)
}

fn migrate_by(
    migrations: &[Migration],
    client: &mut Client,
    begin: &dyn Fn(&str),
    check: impl FnOnce(&mut Client, bool) -> Result<(), String>,
) -> Result<(), String> {
    let newest = newest_version(migrations);
    let failed = |e: postgres::Error| match e.code() {
        Some(&SqlState::DUPLICATE_TABLE) => format!("the database is not empty: {}", describe(&e)),
        _ => format!("migration: {}", describe(&e)),
    };
    begin("Waiting for another process that migrates");
    client.batch_execute(sql!("db/schema_history/lock")).map_err(failed)?;
    let applied = find_applied(client).map_err(failed)?;
    verify(migrations, &applied)?;
    let version: Option<i32> = applied.last().map(|row| row.get("version"));
    check(client, version.is_none())?;
    if let Some(newer) = version.filter(|last| *last > newest) {
        log::info!("the database has schema version {newer}, which suits this program too");
    }
    if version.is_none() {
        create(client, newest, begin).map_err(failed)?;
        log::info!("the schema was made, version {newest}");
    }
    let is_missing = |one: &&Migration| version.is_some_and(|last| last < one.version);
    for migration in migrations.iter().filter(is_missing) {
        let Migration { version, name, .. } = migration;
        apply(client, migration, begin)
            .map_err(|e| format!("migration V{version}__{name}: {}", describe(&e)))?;
        log::info!("migration V{version}__{name} applied");
    }
    client.batch_execute(sql!("db/schema_history/unlock")).map_err(failed)
}

/// Returns the applied migrations, the oldest first. There are none in a new database. Fails if the database cannot
/// hold the texts of the schema, or compare them.
pub fn find_applied(client: &mut Client) -> Result<Vec<Row>, postgres::Error> {
    client.batch_execute(sql!("db/schema_history/check_text"))?;
    match client.query_typed(sql!("db/schema_history/find"), &[]) {
        Err(e) if e.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
        outcome => outcome,
    }
}

/// Fails if the database is older than the migrations of this program, or has one that is not this program's and does
/// not suit it. The message is meant for the operator.
pub fn verify(migrations: &[Migration], applied: &[Row]) -> Result<(), String> {
    let newest = newest_version(migrations);
    let is_unsuited = |row: &&Row| {
        let (version, oldest): (i32, Option<i32>) = (row.get("version"), row.get("oldest_program"));
        version > newest && oldest.unwrap_or(version) > newest
    };
    if let Some(row) = applied.iter().rfind(is_unsuited) {
        return Err(unsuited(row.get("version"), newest));
    }
    if let Some(reason) = applied.last().and_then(|row| too_old(row.get("version"))) {
        return Err(format!("the database has {reason}"));
    }
    for migration in migrations {
        let is_other = |row: &&Row| {
            let (version, name): (i32, &str) = (row.get("version"), row.get("name"));
            version == migration.version && ![migration.name, NEW_SCHEMA].contains(&name)
        };
        if let Some(row) = applied.iter().find(is_other) {
            let (Migration { version, name, .. }, found) = (migration, row.get::<_, &str>("name"));
            return Err(format!(
                "the database has applied migration V{version}__{found}, which is not V{version}__{name} of this \
                 program: another build of cloakroom made it"
            ));
        }
    }
    Ok(())
}

/// The migration that another process has applied, and that does not suit this program; `None` if there is none. On
/// success with a migration: what to tell the operator.
pub fn find_unsuited(db: &Database) -> Result<Option<String>, Error> {
    let newest = newest_schema_version();
    let rows = db.read(sql!("db/schema_history/unsuited"), &[&newest])?;
    Ok(rows.first().map(|row| unsuited(row.get("version"), newest)))
}

fn unsuited(version: i32, newest: i32) -> String {
    format!(
        "the database has schema version {version}, this program knows versions up to {newest}: use a newer cloakroom"
    )
}

/// Makes the newest schema in a new database, and records it as one migration.
fn create(client: &mut Client, newest: i32, begin: &dyn Fn(&str)) -> Result<(), postgres::Error> {
    let mut transaction = client.transaction()?;
    begin("Making the schema");
    transaction.batch_execute(sql!("db/schema_history/create"))?;
    for part in SCHEMA {
        transaction.batch_execute(part)?;
    }
    record(&mut transaction, newest, NEW_SCHEMA, newest)?;
    transaction.commit()
}

/// Applies one migration and records it in the same transaction, so that a crash leaves both or neither. Waits for the
/// end of a running backup first. That has read all tables: if the migration waited for a lock of one of them instead,
/// everybody else who uses the table would wait behind it.
fn apply(
    client: &mut Client,
    migration: &Migration,
    begin: &dyn Fn(&str),
) -> Result<(), postgres::Error> {
    let mut transaction = client.transaction()?;
    let row = transaction.query_one(sql!("db/schema_history/try_without_backup"), &[])?;
    if !row.get::<_, bool>("is_locked") {
        log::info!("a backup is running: the migration waits for its end");
        begin("Waiting for a backup to end");
        transaction.batch_execute(sql!("db/schema_history/wait_for_backup"))?;
    }
    let Migration { version, name, oldest_program, .. } = *migration;
    begin(&format!("Migrating: V{version}__{name}"));
    transaction.batch_execute(migration.sql)?;
    record(&mut transaction, version, name, oldest_program)?;
    transaction.commit()
}

fn record(
    transaction: &mut Transaction,
    version: i32,
    name: &str,
    oldest_program: i32,
) -> Result<(), postgres::Error> {
    transaction
        .execute(sql!("db/schema_history/insert"), &[&version, &name, &oldest_program])
        .map(drop)
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use postgres::NoTls;

    use super::*;
    use crate::semaphore::lock;

    /// Two steps that no program has: the first suits programs without it, the second does not.
    const INVENTED: [Migration; 2] = [
        Migration {
            version: OLDEST_VERSION + 1,
            name: "columns",
            oldest_program: OLDEST_VERSION,
            sql: "ALTER TABLE users ADD COLUMN invented int",
        },
        Migration {
            version: OLDEST_VERSION + 2,
            name: "tables",
            oldest_program: OLDEST_VERSION + 2,
            sql: "CREATE TABLE invented (); CREATE TABLE also_invented ()",
        },
    ];

    /// A database on the server of the tests, which is dropped at the end of the test.
    struct Database {
        server: String,
        name: String,
    }

    impl Database {
        fn create() -> Database {
            let server = std::env::var("CLOAKROOM_TEST_DATABASE_URL")
                .expect("CLOAKROOM_TEST_DATABASE_URL, which scripts/test sets");
            let name = format!("cloakroom_test_migrations_{}", uuid::Uuid::new_v4().simple());
            connect(&server).batch_execute(&format!("CREATE DATABASE {name}")).expect("a database");
            Database { server, name }
        }

        /// One with the schema from which the migrations lead.
        fn of_oldest_version() -> Database {
            let database = Database::create();
            assert_eq!(database.migrate(&[]), Ok(vec!["Making the schema".to_owned()]));
            database
        }

        fn client(&self) -> Client {
            let (server, _) = self.server.rsplit_once('/').expect("a URL with a database");
            connect(&format!("{server}/{}", self.name))
        }

        fn run(&self, sql: &str) {
            self.client().batch_execute(sql).expect("SQL of the test");
        }

        /// Migrates it as a program with these migrations would, and returns what each step was called.
        fn migrate(&self, migrations: &[Migration]) -> Result<Vec<String>, String> {
            let steps = Mutex::new(Vec::new());
            let begin = |step: &str| lock(&steps).push(step.to_owned());
            migrate_by(migrations, &mut self.client(), &begin, |_, _| Ok(()))?;
            let mut steps = steps.into_inner().expect("no panic");
            assert_eq!(steps.remove(0), "Waiting for another process that migrates");
            Ok(steps)
        }

        /// The versions that it records, with the oldest programs that each of them suits.
        fn history(&self) -> Vec<(i32, i32)> {
            let rows = find_applied(&mut self.client()).expect("the history");
            rows.iter().map(|row| (row.get("version"), row.get("oldest_program"))).collect()
        }

        /// Blocks until a statement waits for a lock.
        fn wait_for_blocked_statement(&self) {
            let sql = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            let mut client = self.client();
            while client.query(sql, &[]).expect("the statements").is_empty() {
                thread::yield_now();
            }
        }
    }

    impl Drop for Database {
        fn drop(&mut self) {
            let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
            connect(&self.server).batch_execute(&drop).expect("dropped");
        }
    }

    fn connect(url: &str) -> Client {
        Client::connect(url, NoTls).expect("a connection")
    }

    const OLD: (i32, i32) = (OLDEST_VERSION, OLDEST_VERSION);
    const FIRST: (i32, i32) = (OLDEST_VERSION + 1, OLDEST_VERSION);
    const SECOND: (i32, i32) = (OLDEST_VERSION + 2, OLDEST_VERSION + 2);

    fn step(migration: &Migration) -> String {
        format!("Migrating: V{}__{}", migration.version, migration.name)
    }

    #[test]
    fn what_a_database_lacks_is_applied_once_in_order_and_a_new_one_has_it_all() {
        let database = Database::of_oldest_version();
        assert_eq!(database.migrate(&INVENTED[..1]), Ok(vec![step(&INVENTED[0])]));
        assert_eq!(database.history(), [OLD, FIRST]);
        assert_eq!(database.migrate(&INVENTED), Ok(vec![step(&INVENTED[1])]));
        assert_eq!(database.migrate(&INVENTED), Ok(vec![]));
        assert_eq!(database.history(), [OLD, FIRST, SECOND]);
        database.run("SELECT invented FROM users; TABLE also_invented");
        let new = Database::create();
        assert_eq!(new.migrate(&INVENTED), Ok(vec!["Making the schema".to_owned()]));
        assert_eq!((new.history(), new.migrate(&INVENTED)), (vec![SECOND], Ok(vec![])));
    }

    #[test]
    fn of_several_programs_that_start_together_one_migrates() {
        let database = Database::of_oldest_version();
        let steps = thread::scope(|scope| {
            let starts = [(); 4].map(|()| scope.spawn(|| database.migrate(&INVENTED)));
            starts.map(|start| start.join().expect("no panic").expect("migrated")).concat()
        });
        assert_eq!(steps, INVENTED.each_ref().map(step));
    }

    #[test]
    fn a_program_goes_on_beside_a_newer_schema_exactly_if_all_steps_after_its_own_suit_it() {
        let database = Database::of_oldest_version();
        database.migrate(&INVENTED[..1]).expect("migrated");
        assert_eq!(database.migrate(&[]), Ok(vec![]));
        database.migrate(&INVENTED).expect("migrated");
        for (known, newest) in
            [(&INVENTED[..0], OLDEST_VERSION), (&INVENTED[..1], OLDEST_VERSION + 1)]
        {
            let refusal = format!(
                "the database has schema version {}, this program knows versions up to {newest}: use a newer cloakroom",
                SECOND.0
            );
            assert_eq!(database.migrate(known), Err(refusal));
        }
        assert_eq!(database.history(), [OLD, FIRST, SECOND]);
    }

    #[test]
    fn a_step_that_fails_leaves_no_part_of_itself_and_is_applied_later() {
        let database = Database::of_oldest_version();
        database.run("CREATE TABLE also_invented ()");
        let error = database.migrate(&INVENTED).expect_err("a table of that name");
        assert!(error.starts_with(&format!("migration V{}__tables: ", SECOND.0)), "{error}");
        assert!(error.contains("also_invented"), "{error}");
        assert_eq!(database.history(), [OLD, FIRST]);
        // Nothing is left of the step's first statement, and it is made now.
        database.run("DROP TABLE also_invented");
        assert_eq!(database.migrate(&INVENTED), Ok(vec![step(&INVENTED[1])]));
    }

    #[test]
    fn a_step_waits_for_a_backup_and_lets_nobody_else_wait() {
        let database = Database::of_oldest_version();
        let mut backup = database.client();
        backup
            .batch_execute(
                "BEGIN; SELECT pg_advisory_xact_lock(hashtext('cloakroom: backup')); TABLE users",
            )
            .expect("a backup");
        thread::scope(|scope| {
            let migration = scope.spawn(|| database.migrate(&INVENTED[..1]));
            database.wait_for_blocked_statement();
            database.run("SET lock_timeout = '1s'; UPDATE users SET name = 'x'");
            backup.batch_execute("COMMIT").expect("the end of the backup");
            let steps = migration.join().expect("no panic").expect("migrated");
            assert_eq!(steps, ["Waiting for a backup to end".to_owned(), step(&INVENTED[0])]);
        });
    }

    #[test]
    fn a_step_of_another_build_is_refused_and_left_alone() {
        let database = Database::of_oldest_version();
        let other = format!(
            "INSERT INTO refinery_schema_history (version, name, oldest_program) VALUES ({}, 'other', 1)",
            FIRST.0
        );
        database.run(&other);
        let error = database.migrate(&INVENTED).expect_err("another step");
        let fault = format!("V{0}__other, which is not V{0}__columns of this program", FIRST.0);
        assert!(error.contains(&fault), "{error}");
        assert_eq!(database.history(), [OLD, (FIRST.0, 1)]);
    }
}
