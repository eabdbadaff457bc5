//! Opens the database at start: waits until it answers, and brings its schema up to date.

use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::{Client, Row};
use siphasher::sip::SipHasher13;

use super::connector::Connector;
use super::deadline::Deadline;
use super::pool::Database;
use super::postgres_error::{describe, is_unavailable};
use super::sql;
use crate::config;

/// One step of the schema.
struct Migration {
    version: i32,
    name: &'static str,
    sql: &'static str,
}

/// Includes `sql/migrations/V<version>__<name>.sql` at compile time.
macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                concat!("/sql/migrations/V", $version, "__", $name, ".sql")
            )),
        }
    };
}

/// All migrations in the order in which they are applied. The versions count from 1, without a gap.
const MIGRATIONS: &[Migration] = &[
    migration!(1, "accounts"),
    migration!(2, "files"),
    migration!(3, "administration"),
    migration!(4, "installation_and_tombstones"),
    migration!(5, "outbox"),
    migration!(6, "sign_in_networks"),
    migration!(7, "sessions_and_tokens"),
    migration!(8, "audit"),
    migration!(9, "files_of_the_month"),
];

/// The version of a database's schema, 0 if it has none, and that which this program makes.
pub struct SchemaVersions {
    pub applied: i32,
    pub newest: i32,
}

/// How long to wait at start for a database that does not answer.
const MAX_STARTUP_WAIT: Duration = Duration::from_secs(30);
/// Pause between two attempts to connect.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Time between two log lines about the wait.
const REPORT_PERIOD: Duration = Duration::from_secs(10);
/// How long to wait for another process that migrates, and for each migration. A change to a large table takes long.
const MAX_MIGRATION_TIME: Duration = Duration::from_secs(3600);
/// How long a command that only looks at the applied migrations waits for them.
const MAX_CHECK_TIME: Duration = Duration::from_secs(60);

/// Applies pending migrations and opens the pool, whose first connection is the one that migrated: to open another
/// would take a quarter of the start. On failure: what to tell the operator.
pub fn open_and_migrate(settings: &config::Config) -> Result<Database, String> {
    let connector = Connector::new(settings)?;
    let (mut client, deadline) = wait_for_database(&connector)?;
    migrate(&mut client)?;
    let first = Some((client, deadline));
    Ok(Database::new(connector, first, settings.database_pool_size, settings.database_timeout))
}

/// Fails, and changes nothing in any case, unless all migrations of this program are applied and no others. On failure:
/// what to tell the operator.
pub fn check_schema(db: &Database) -> Result<(), String> {
    let applied = db
        .run(MAX_CHECK_TIME, find_applied)
        .map_err(|e| e.cause().into_owned())?
        .unwrap_or_default();
    verify(&applied)?;
    if applied.len() < MIGRATIONS.len() {
        return Err(format!(
            "the database has schema version {}, this program has version {}: `cloakroom migrate` brings it up to date",
            applied.len(),
            MIGRATIONS.len()
        ));
    }
    Ok(())
}

/// The newest version of the schema that this program knows.
pub fn newest_schema_version() -> i32 {
    MIGRATIONS.len() as i32
}

/// Connects as soon as the database can be reached. An error that waiting cannot mend, such as a wrong password,
/// fails at once.
fn wait_for_database(connector: &Connector) -> Result<(Client, Deadline), String> {
    let begin = Instant::now();
    let server = connector.server();
    let mut reports = 0;
    loop {
        let error = match connector.connect(MAX_MIGRATION_TIME) {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        let reason = describe(&error);
        if !is_unavailable(&error) {
            return Err(format!("the database at {server} refuses the connection: {reason}"));
        }
        let waited = begin.elapsed();
        if waited >= MAX_STARTUP_WAIT {
            let seconds = MAX_STARTUP_WAIT.as_secs();
            return Err(format!(
                "the database at {server} did not answer for {seconds} s: {reason}"
            ));
        }
        if waited >= REPORT_PERIOD * reports {
            log::warn!("waiting for the database at {server}: {reason}");
            reports += 1;
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// Applies pending migrations under an advisory lock, so that of several processes that start together one migrates and
/// the others find nothing to do. Fails, before it changes anything, if the database has migrations that this program
/// does not know, or knows with another content.
fn migrate(client: &mut Client) -> Result<(), String> {
    let failed = |e: postgres::Error| format!("migration: {}", describe(&e));
    client.batch_execute(sql!("schema_history/lock")).map_err(failed)?;
    let applied = find_applied(client).map_err(failed)?;
    if applied.is_none() {
        client.batch_execute(sql!("schema_history/create")).map_err(failed)?;
    }
    let applied = applied.unwrap_or_default();
    verify(&applied)?;
    for migration in &MIGRATIONS[applied.len()..] {
        let Migration { version, name, .. } = migration;
        apply(client, migration)
            .map_err(|e| format!("migration V{version}__{name}: {}", describe(&e)))?;
        log::info!("migration V{version}__{name} applied");
    }
    client.batch_execute(sql!("schema_history/unlock")).map_err(failed)
}

/// Compares the schema with the migrations of this program. Changes nothing. Fails if the database has migrations that
/// this program does not know, or knows with another content. The message is meant for the operator.
pub fn schema_versions(client: &mut Client) -> Result<SchemaVersions, String> {
    let applied = find_applied(client).map_err(|e| describe(&e))?.unwrap_or_default();
    verify(&applied)?;
    let applied = applied.last().map_or(0, |row| row.get("version"));
    Ok(SchemaVersions { applied, newest: newest_schema_version() })
}

/// Returns the applied migrations, the oldest first; `None` where there is no table of them yet.
fn find_applied(client: &mut Client) -> Result<Option<Vec<Row>>, postgres::Error> {
    match client.query_typed(sql!("schema_history/find"), &[]) {
        Err(e) if e.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Fails unless the applied migrations are the first ones of this program. The message is meant for the operator.
fn verify(applied: &[Row]) -> Result<(), String> {
    let newest = newest_schema_version();
    let last: i32 = applied.last().map_or(0, |row| row.get("version"));
    if last > newest {
        return Err(format!(
            "the database has schema version {last}, this program knows versions up to {newest}: \
             use a newer cloakroom"
        ));
    }
    for (row, migration) in applied.iter().zip(MIGRATIONS) {
        let (version, name): (i32, Option<&str>) = (row.get("version"), row.get("name"));
        let checksum: Option<String> = row.get("checksum");
        let Migration { version: expected_version, name: expected_name, .. } = migration;
        if (version, name) != (*expected_version, Some(expected_name))
            || checksum != Some(migration.checksum())
        {
            return Err(format!(
                "the database has applied migration V{version}__{}, which is not V{expected_version}__{expected_name} \
                 of this program: another build of cloakroom made it",
                name.unwrap_or_default()
            ));
        }
    }
    Ok(())
}

/// Applies one migration and records it in the same transaction, so that a crash leaves both or neither. It waits for a
/// running backup, which reads all tables: to wait for a lock of one of these would let all others wait who use it.
fn apply(client: &mut Client, migration: &Migration) -> Result<(), postgres::Error> {
    let mut transaction = client.transaction()?;
    let row = transaction.query_one(sql!("schema_history/try_without_backup"), &[])?;
    if !row.get::<_, bool>("is_locked") {
        log::info!("a backup is running: the migration waits for its end");
        transaction.batch_execute(sql!("schema_history/wait_for_backup"))?;
    }
    transaction.batch_execute(migration.sql)?;
    transaction.execute(
        sql!("schema_history/insert"),
        &[&migration.version, &migration.name, &migration.checksum()],
    )?;
    transaction.commit()
}

impl Migration {
    /// The checksum of the crate `refinery`, which earlier versions of this program migrated with: SipHash-1-3 with a
    /// key of zeros, in decimal.
    fn checksum(&self) -> String {
        let mut hasher = SipHasher13::new();
        (self.name, self.version, self.sql).hash(&mut hasher);
        hasher.finish().to_string()
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_migration_and_versions_count_from_1_without_a_gap() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/migrations");
        let entries = std::fs::read_dir(directory).expect("a directory");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        files.sort();
        let name = |(i, migration): (usize, &Migration)| {
            assert_eq!(migration.version, i as i32 + 1);
            format!("V{}__{}.sql", migration.version, migration.name).into()
        };
        let mut listed: Vec<std::ffi::OsString> = MIGRATIONS.iter().enumerate().map(name).collect();
        listed.sort();
        assert_eq!(listed, files);
    }
}
