//! Table `installation`: the random id that a database shares with the data directory that belongs to it.

use std::time::Duration;

use postgres::Row;
use uuid::Uuid;

use super::pool::Database;
use super::{from_row, one_row, sql};
use crate::error::Error;

/// How long the comparison may take, including the wait for other processes that compare.
const MAX_TIME: Duration = Duration::from_secs(60);

/// The database's side of the comparison with the data directory.
pub struct DatabaseSide {
    /// The installation id; `None` if it has none yet.
    pub id: Option<Uuid>,
    /// Whether any file is recorded.
    pub has_files: bool,
}

impl DatabaseSide {
    pub fn of(row: &Row) -> DatabaseSide {
        from_row!(row => DatabaseSide { id, has_files })
    }
}

/// Reads the database's side without a lock, so others may change it meanwhile unless it has an id already.
pub fn find(db: &Database) -> Result<DatabaseSide, Error> {
    let row = one_row(db.read_unprepared(sql!("installation/find"), &[], None)?)?;
    Ok(DatabaseSide::of(&row))
}

/// Passes the database's side to `compare`, and stores the id that it returns if the database has none. Processes that
/// start at the same moment do so one after the other, so all see the decision of the first one. On failure, its own or
/// that of `compare`: what to tell the operator.
pub fn reconcile(
    db: &Database,
    compare: impl FnOnce(DatabaseSide) -> Result<Uuid, String>,
) -> Result<(), String> {
    let outcome = db.run(MAX_TIME, |client| {
        let mut transaction = client.transaction()?;
        transaction.batch_execute(sql!("installation/lock"))?;
        let side = DatabaseSide::of(&transaction.query_one(sql!("installation/find"), &[])?);
        let is_new = side.id.is_none();
        match compare(side) {
            Ok(id) if is_new => transaction.execute(sql!("installation/insert"), &[&id])?,
            Ok(_) => 0,
            Err(refusal) => return Ok(Err(refusal)),
        };
        transaction.commit().map(Ok)
    });
    outcome.map_err(|e| format!("installation id: {}", e.cause()))?
}
