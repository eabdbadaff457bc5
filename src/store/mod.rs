//! PostgreSQL: the pool, and one module a table. One query is one file below `sql/` and one round
//! trip; what must be unique or used once is decided by the database within that query.

pub mod files;
mod link;
mod migrations;
mod pool;
pub mod resets;
pub mod sessions;
pub mod users;

pub use migrations::{open_and_migrate, parse as check_settings};
pub use pool::Database;

/// The text of `sql/<name>.sql`, at compile time.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name, ".sql"))
    };
}
use sql;

/// Asks the database for an answer, any answer.
pub fn ping(db: &Database) -> Result<(), crate::error::Error> {
    db.read(sql!("database/ping"), &[]).map(drop)
}
