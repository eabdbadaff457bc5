//! Compares the schema of a database with the migrations of this program, and changes nothing.

use std::time::Duration;

use postgres::Client;

use crate::db::Database;
use crate::db::migrations::{find_applied, newest_schema_version, verify};
use crate::db::postgres_error::describe;

/// How long a command that only looks at the applied migrations waits for them.
const MAX_CHECK_TIME: Duration = Duration::from_secs(60);

/// The version of a database's schema, 0 if it has none, and that which this program makes.
pub struct SchemaVersions {
    pub applied: i32,
    pub newest: i32,
}

/// Fails, and changes nothing in any case, unless all migrations of this program are applied and no others. On failure:
/// what to tell the operator.
pub fn check_schema(db: &Database) -> Result<(), String> {
    let applied = db.run(MAX_CHECK_TIME, find_applied)?;
    verify(&applied)?;
    let applied = applied.last().map_or(0, |row| row.get("version"));
    let newest = newest_schema_version();
    if applied < newest {
        return Err(format!(
            "the database has schema version {applied}, this program has version {newest}: `cloakroom migrate` brings \
             it up to date"
        ));
    }
    Ok(())
}

/// Compares the schema with the migrations of this program. Changes nothing. Fails if the database has migrations that
/// this program does not know, or knows with another content. The message is meant for the operator.
pub fn schema_versions(client: &mut Client) -> Result<SchemaVersions, String> {
    let applied = find_applied(client).map_err(|e| describe(&e))?;
    verify(&applied)?;
    let applied = applied.last().map_or(0, |row| row.get("version"));
    Ok(SchemaVersions { applied, newest: newest_schema_version() })
}
