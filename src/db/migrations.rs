//! The steps of the schema: brings a database up to date, or compares it with them.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, Row};
use siphasher::sip::SipHasher13;

use super::postgres_error::describe;
use super::{Database, addresses, sql};
use crate::error::Error;
use crate::supervisor;

/// One step of the schema.
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
    migration!(10, "ascii_addresses"),
    migration!(11, "audit_limits"),
    migration!(12, "mail_limits"),
    migration!(13, "names_descending"),
    migration!(14, "session_epochs"),
    migration!(15, "storage_shards"),
    migration!(16, "listed_users"),
    migration!(17, "totals"),
    migration!(18, "second_factor"),
    migration!(19, "file_links"),
    migration!(20, "daily_statistics"),
    migration!(21, "largest_files_first"),
    migration!(22, "deleted_contents"),
    migration!(23, "folded_events"),
    migration!(24, "signed_in", suits 23),
    migration!(25, "password_reset_counts", suits 23),
    migration!(26, "self_registered_accounts", suits 23),
];

/// The newest version of the schema that this program knows.
pub fn newest_schema_version() -> i32 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

/// Applies pending migrations under an advisory lock, so that of several processes that start together one migrates and
/// the others find nothing to do. Fails, before it changes anything, if the database has migrations that do not suit
/// this program, or that it knows with another content. `max_time` is how long each statement may take.
pub(super) fn migrate(client: &mut Client, max_time: Duration) -> Result<(), String> {
    let failed = |e: postgres::Error| format!("migration: {}", describe(&e));
    supervisor::starting("Waiting for another process that migrates", max_time);
    client.batch_execute(sql!("schema_history/lock")).map_err(failed)?;
    let applied = find_applied(client).map_err(failed)?;
    if applied.is_none() {
        client.batch_execute(sql!("schema_history/create")).map_err(failed)?;
    }
    let applied = applied.unwrap_or_default();
    verify(&applied)?;
    let newer = applied.last().map_or(0, |row| row.get("version"));
    if newer > newest_schema_version() {
        log::info!("the database has schema version {newer}, which suits this program too");
    }
    for migration in MIGRATIONS.iter().skip(applied.len()) {
        let Migration { version, name, .. } = migration;
        apply(client, migration, max_time)
            .map_err(|e| format!("migration V{version}__{name}: {}", describe(&e)))?;
        log::info!("migration V{version}__{name} applied");
    }
    if let Err(error) = addresses::fill(client) {
        // Until the next start these accounts are known by their addresses as they are.
        log::warn!("ASCII forms of e-mail addresses: {}", describe(&error));
    }
    client.batch_execute(sql!("schema_history/unlock")).map_err(failed)
}

/// Returns the applied migrations, the oldest first; `None` if there is no table of them yet.
pub fn find_applied(client: &mut Client) -> Result<Option<Vec<Row>>, postgres::Error> {
    match client.query_typed(sql!("schema_history/find"), &[]) {
        Err(e) if e.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// Fails unless the applied migrations are the first ones of this program, or all of its own and later ones that suit
/// it. The message is meant for the operator.
pub fn verify(applied: &[Row]) -> Result<(), String> {
    let newest = newest_schema_version();
    let is_unsuited = |row: &&Row| {
        let (version, oldest): (i32, Option<i32>) = (row.get("version"), row.get("oldest_program"));
        version > newest && oldest.unwrap_or(version) > newest
    };
    if let Some(row) = applied.iter().rfind(is_unsuited) {
        return Err(unsuited(row.get("version")));
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

/// Applies one migration and records it in the same transaction, so that a crash leaves both or neither. Waits for the
/// end of a running backup first. That has read all tables: if the migration waited for a lock of one of them instead,
/// everybody else who uses the table would wait behind it. `max_time` is how long each statement may take.
fn apply(
    client: &mut Client,
    migration: &Migration,
    max_time: Duration,
) -> Result<(), postgres::Error> {
    let mut transaction = client.transaction()?;
    let row = transaction.query_one(sql!("schema_history/try_without_backup"), &[])?;
    if !row.get::<_, bool>("is_locked") {
        log::info!("a backup is running: the migration waits for its end");
        supervisor::starting("Waiting for a backup to end", max_time);
        transaction.batch_execute(sql!("schema_history/wait_for_backup"))?;
    }
    transaction.batch_execute(sql!("schema_history/extend"))?;
    let Migration { version, name, oldest_program, .. } = migration;
    supervisor::starting(&format!("Migrating: V{version}__{name}"), max_time);
    transaction.batch_execute(migration.sql)?;
    transaction.execute(
        sql!("schema_history/insert"),
        &[version, name, &migration.checksum(), oldest_program],
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
