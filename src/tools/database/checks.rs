//! Queries of `cloakroom check`. Nothing here changes anything, nor locks more than a `SELECT` does.

use std::time::Duration;

use postgres::Row;
use postgres::error::DbError;
use postgres::types::{ToSql, Type};

use crate::db::postgres_error::{describe, is_connection_lost};
use crate::db::{Database, sql};
use crate::error::Error;

/// How long a statement may take that reads a large part of a table.
pub const MAX_STATEMENT_TIME: Duration = Duration::from_secs(600);
/// How long the verification of one index may take. An index of a million entries takes a second if all of it is
/// cached.
const MAX_INDEX_TIME: Duration = Duration::from_secs(3600);

/// Most accounts that are named because of their totals, so that the memory for them has a limit.
pub const MAX_NAMED_ACCOUNTS: usize = 10_000;

/// The totals of an account: the number of its files, and their bytes.
pub struct UserTotals {
    /// The username, or the id of an account without one.
    pub name: String,
    pub is_deleted: bool,
    /// As the triggers on `files` keep them in the account's row, with which quotas are compared.
    pub kept: (i64, i64),
    /// As the records of the account's files add up.
    pub counted: (i64, i64),
}

/// Returns the accounts whose totals are wrong or above a quota, at most [`MAX_NAMED_ACCOUNTS`] and one.
pub fn user_totals(
    db: &Database,
    max_bytes: u64,
    max_files: u32,
) -> Result<Vec<UserTotals>, Error> {
    let sql = sql!("checks/user_totals");
    // The casts lose nothing: quotas are at most an exbibyte.
    let (max_bytes, max_files) = (max_bytes as i64, i64::from(max_files));
    let limit = MAX_NAMED_ACCOUNTS as i64 + 1;
    let params =
        &[&max_bytes, &max_files, &limit].map(|number| (number as &(dyn ToSql + Sync), Type::INT8));
    let rows = db.read_unprepared(sql, params, Some(MAX_STATEMENT_TIME))?;
    let totals = |row: &Row| UserTotals {
        name: row.get("name"),
        is_deleted: row.get("is_deleted"),
        kept: (row.get("total_uploads"), row.get("total_storage_used")),
        counted: (row.get("files"), row.get("bytes")),
    };
    Ok(rows.iter().map(totals).collect())
}

/// Verifies an index, named by its number in the catalogs, by the extension `amcheck`. Returns what PostgreSQL says
/// about it if it is damaged.
pub fn verify(db: &Database, index: u32) -> Result<Option<String>, Error> {
    db.run(MAX_INDEX_TIME, |client| match client.query(sql!("checks/verify_index"), &[&index]) {
        Ok(_) => Ok(None),
        Err(e) if e.as_db_error().is_some_and(is_damage) && !is_connection_lost(&e) => {
            Ok(Some(describe(&e)))
        }
        Err(e) => Err(e),
    })
}

/// Returns whether an error tells of damage: SQLSTATE of class XX (internal errors, corrupted data and indexes) or 58
/// (errors of the system, as of a disk that cannot be read).
fn is_damage(error: &DbError) -> bool {
    matches!(error.code().code().get(..2), Some("XX" | "58"))
}
