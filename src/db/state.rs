//! What the database can be used for just now, for probes.

use super::{Database, one_row, sql};

/// What the database can be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseState {
    /// It does not answer.
    Lost,
    /// It answers, and refuses changes: it is a standby, was made read-only, or has no room left.
    ReadOnly,
    Writable,
}

/// Asks the database what it can be used for.
pub fn state(db: &Database) -> DatabaseState {
    match db.read(sql!("db/database/ping"), &[]).and_then(one_row) {
        Err(_) => DatabaseState::Lost,
        Ok(row) if row.get("is_read_only") || db.pool.refuses_changes() => DatabaseState::ReadOnly,
        Ok(_) => DatabaseState::Writable,
    }
}
