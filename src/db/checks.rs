//! What `cloakroom check` asks the database. Nothing here changes anything, nor locks more than a `SELECT` does.

use std::time::Duration;

use postgres::Row;
use postgres::error::DbError;
use postgres::types::Type;
use uuid::Uuid;

use super::postgres_error::{describe, is_connection_lost};
use super::{Database, one_row, sql};
use crate::error::Error;

/// How long a statement may take that reads a large part of a table.
const MAX_STATEMENT_TIME: Duration = Duration::from_secs(600);
/// How long the verification of one index may take. One of a million entries takes a second where all of it is cached.
const MAX_INDEX_TIME: Duration = Duration::from_secs(3600);

/// How many files there are, and their bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    pub files: i64,
    pub bytes: i64,
}

/// The totals of an account.
pub struct UserTotals {
    pub id: Uuid,
    /// The username, or the id of an account without one.
    pub name: String,
    pub is_deleted: bool,
    /// What the triggers on `files` keep in the account's row, with which quotas are compared.
    pub kept: Totals,
    /// What the records of the account's files add up to.
    pub counted: Totals,
}

/// Returns the totals of the thousand accounts that follow `after`, or of what is left of them, in the order of ids.
pub fn user_totals(db: &Database, after: Uuid) -> Result<Vec<UserTotals>, Error> {
    let params = &[(&after as _, Type::UUID)];
    let rows = db.read_planned(sql!("checks/user_totals"), params, Some(MAX_STATEMENT_TIME))?;
    let totals = |row: &Row| UserTotals {
        id: row.get("id"),
        name: row.get("name"),
        is_deleted: row.get("is_deleted"),
        kept: Totals { files: row.get("total_uploads"), bytes: row.get("total_storage_used") },
        counted: Totals { files: row.get("files"), bytes: row.get("bytes") },
    };
    Ok(rows.iter().map(totals).collect())
}

/// Returns the bytes of all files, as they are kept, `None` if that row is gone, and as the records add up.
pub fn service_total(db: &Database) -> Result<(Option<i64>, i64), Error> {
    let rows = db.read_planned(sql!("checks/service_total"), &[], Some(MAX_STATEMENT_TIME))?;
    let row = one_row(rows)?;
    Ok((row.get("kept"), row.get("counted")))
}

/// An index, a constraint or a trigger that is missing or has no effect.
pub struct SchemaFault {
    /// `index`, `constraint` or `trigger`.
    pub kind: String,
    pub name: String,
    /// The table that has it; `None` if it is missing.
    pub table: Option<String>,
}

/// Returns the indexes, constraints and triggers of the migrations that are missing, and those that have no effect:
/// invalid indexes, constraints that were never validated, disabled triggers.
pub fn schema_faults(db: &Database) -> Result<Vec<SchemaFault>, Error> {
    let rows = db.read(sql!("checks/schema_faults"), &[])?;
    let fault = |row: &Row| SchemaFault {
        kind: row.get("kind"),
        name: row.get("name"),
        table: row.get("table_name"),
    };
    Ok(rows.iter().map(fault).collect())
}

/// Whether the extension `amcheck` may be used, and the name of the database user, quoted for SQL.
pub fn amcheck(db: &Database) -> Result<(bool, String), Error> {
    let row = one_row(db.read(sql!("checks/amcheck"), &[])?)?;
    Ok((row.get("is_usable"), row.get("role")))
}

/// An index, by its number in the catalogs and its name.
pub struct Index {
    oid: u32,
    pub name: String,
}

/// Returns the B-tree indexes that the database uses.
pub fn btree_indexes(db: &Database) -> Result<Vec<Index>, Error> {
    let rows = db.read(sql!("checks/btree_indexes"), &[])?;
    Ok(rows.iter().map(|row| Index { oid: row.get("oid"), name: row.get("name") }).collect())
}

/// Verifies an index by the extension `amcheck`. Returns what PostgreSQL says about it if it is damaged.
pub fn verify(db: &Database, index: &Index) -> Result<Option<String>, Error> {
    db.run(MAX_INDEX_TIME, |client| {
        match client.query(sql!("checks/verify_index"), &[&index.oid]) {
            Ok(_) => Ok(None),
            Err(e) if e.as_db_error().is_some_and(is_damage) && !is_connection_lost(&e) => {
                Ok(Some(describe(&e)))
            }
            Err(e) => Err(e),
        }
    })
}

/// Whether an error tells of damage: SQLSTATE of class XX (internal errors, corrupted data and indexes) or 58 (errors
/// of the system, as of a disk that cannot be read).
fn is_damage(error: &DbError) -> bool {
    matches!(error.code().code().get(..2), Some("XX" | "58"))
}
