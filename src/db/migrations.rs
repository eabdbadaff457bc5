//! The schema: makes it in a new database, brings that of an older one up to date, or compares it with this program.

use postgres::error::SqlState;
use postgres::{Client, Row, Transaction};

use super::postgres_error::describe;
use super::{Database, sql};
use crate::error::Error;

/// The oldest version of the schema from which the migrations lead to the newest one.
const OLDEST_VERSION: i32 = 23;

/// What a database that was made by `sql/schema.sql` records in the place of the migrations that are in it.
const NEW_SCHEMA: &str = "schema";

/// One step from a version of the schema to the next.
struct Migration {
    version: i32,
    name: &'static str,
    /// The oldest version of the schema whose programs may use the database once this step is applied. The database
    /// keeps it, because those programs do not know the step.
    oldest_program: i32,
    sql: &'static str,
}

/// Includes `sql/migrations/V<version>__<name>.sql` at compile time. Programs that do not know the step may not use the
/// database after it, unless `suits` names the oldest version that may: one whose statements mean the same afterwards,
/// and whose rows are what the newer programs expect.
macro_rules! migration {
    ($version:literal, $name:literal) => {
        migration!($version, $name, suits $version)
    };
    ($version:literal, $name:literal, suits $oldest_program:literal) => {
        Migration {
            version: $version,
            name: $name,
            oldest_program: $oldest_program,
            sql: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                concat!("/sql/migrations/V", $version, "__", $name, ".sql")
            )),
        }
    };
}

/// The migrations after [`OLDEST_VERSION`] in the order in which they are applied, without a gap. What each of them
/// makes is in `sql/schema.sql` as well.
const MIGRATIONS: &[Migration] = &[
    migration!(24, "signed_in", suits 23),
    migration!(25, "password_reset_counts", suits 23),
    migration!(26, "self_registered_accounts", suits 23),
    migration!(27, "former_releases"),
    migration!(28, "missing_codes", suits 27),
    migration!(29, "repeatable_requests", suits 27),
    migration!(30, "deleted_files"),
    migration!(31, "quotas_and_scopes"),
    migration!(32, "confirmed_addresses"),
];

/// The newest version of the schema that this program knows.
pub fn newest_schema_version() -> i32 {
    MIGRATIONS.last().map_or(OLDEST_VERSION, |migration| migration.version)
}

/// Makes the schema in a new database, or applies the migrations that another one lacks, under an advisory lock: of
/// several processes that start together one does so, and the others find nothing to do. Fails, before it changes
/// anything, if the database has migrations that do not suit this program, or is too old for it. Calls `begin` before
/// each step, whose time begins then, with what it is.
pub(super) fn migrate(client: &mut Client, begin: &dyn Fn(&str)) -> Result<(), String> {
    let failed = |e: postgres::Error| format!("migration: {}", describe(&e));
    begin("Waiting for another process that migrates");
    client.batch_execute(sql!("schema_history/lock")).map_err(failed)?;
    let applied = find_applied(client).map_err(failed)?;
    verify(&applied)?;
    let version = applied.last().map(|row| row.get("version"));
    if version > Some(newest_schema_version()) {
        log::info!(
            "the database has schema version {}, which suits this program too",
            version.unwrap_or_default()
        );
    }
    if version.is_none() {
        create(client, begin).map_err(failed)?;
        log::info!("the schema was made, version {}", newest_schema_version());
    }
    for migration in MIGRATIONS.iter().filter(|one| version.is_some_and(|last| last < one.version))
    {
        let Migration { version, name, .. } = migration;
        apply(client, migration, begin)
            .map_err(|e| format!("migration V{version}__{name}: {}", describe(&e)))?;
        log::info!("migration V{version}__{name} applied");
    }
    client.batch_execute(sql!("schema_history/unlock")).map_err(failed)
}

/// Returns the applied migrations, the oldest first. There are none in a new database.
pub fn find_applied(client: &mut Client) -> Result<Vec<Row>, postgres::Error> {
    match client.query_typed(sql!("schema_history/find"), &[]) {
        Err(e) if e.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
        outcome => outcome,
    }
}

/// Fails if the database is older than the migrations of this program, or has one that is not this program's and does
/// not suit it. The message is meant for the operator.
pub fn verify(applied: &[Row]) -> Result<(), String> {
    let newest = newest_schema_version();
    let is_unsuited = |row: &&Row| {
        let (version, oldest): (i32, Option<i32>) = (row.get("version"), row.get("oldest_program"));
        version > newest && oldest.unwrap_or(version) > newest
    };
    if let Some(row) = applied.iter().rfind(is_unsuited) {
        return Err(unsuited(row.get("version")));
    }
    if let Some(version) = applied.last().map(|row| row.get::<_, i32>("version"))
        && version < OLDEST_VERSION
    {
        return Err(format!(
            "the database has schema version {version}, and this program upgrades from {OLDEST_VERSION} on: \
             start the version before this one first"
        ));
    }
    for migration in MIGRATIONS {
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
    let rows = db.read(sql!("schema_history/unsuited"), &[&newest_schema_version()])?;
    Ok(rows.first().map(|row| unsuited(row.get("version"))))
}

fn unsuited(version: i32) -> String {
    let newest = newest_schema_version();
    format!(
        "the database has schema version {version}, this program knows versions up to {newest}: use a newer cloakroom"
    )
}

/// Makes the newest schema in a new database, and records it as one migration.
fn create(client: &mut Client, begin: &dyn Fn(&str)) -> Result<(), postgres::Error> {
    let mut transaction = client.transaction()?;
    begin("Making the schema");
    transaction.batch_execute(sql!("schema_history/create"))?;
    transaction.batch_execute(sql!("schema"))?;
    record(&mut transaction, newest_schema_version(), NEW_SCHEMA, newest_schema_version())?;
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
    let row = transaction.query_one(sql!("schema_history/try_without_backup"), &[])?;
    if !row.get::<_, bool>("is_locked") {
        log::info!("a backup is running: the migration waits for its end");
        begin("Waiting for a backup to end");
        transaction.batch_execute(sql!("schema_history/wait_for_backup"))?;
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
        .execute(sql!("schema_history/insert"), &[&version, &name, &oldest_program])
        .map(drop)
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_migration_and_versions_follow_each_other_without_a_gap() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/migrations");
        let entries = std::fs::read_dir(directory).expect("a directory");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        files.sort();
        let name = |(version, migration): (i32, &Migration)| {
            assert_eq!(migration.version, version);
            format!("V{version}__{}.sql", migration.name).into()
        };
        let listed = (OLDEST_VERSION + 1..).zip(MIGRATIONS).map(name);
        let mut listed: Vec<std::ffi::OsString> = listed.collect();
        listed.sort();
        assert_eq!(listed, files);
    }
}
