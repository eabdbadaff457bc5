//! PostgreSQL: the pool, and one module a table. One query is one file below `sql/` and one round
//! trip; what must be unique or used once is decided by the database within that query.

pub mod exports;
pub mod files;
mod migrations;
mod pool;
pub mod resets;
pub mod sessions;
pub mod stats;
mod tls;
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

/// A `LIKE` pattern for texts that contain `part`. `wildcard` stands for any run of characters; `%`
/// and `_` are ordinary ones.
fn pattern(part: &str, wildcard: Option<char>) -> String {
    let mut pattern = String::with_capacity(part.len() + 2);
    pattern.push('%');
    for c in part.chars() {
        match c {
            _ if Some(c) == wildcard => pattern.push('%'),
            '%' | '_' | '\\' => pattern.extend(['\\', c]),
            _ => pattern.push(c),
        }
    }
    pattern.push('%');
    pattern
}

/// Asks the database for an answer, any answer.
pub fn ping(db: &Database) -> Result<(), crate::error::Error> {
    db.read(sql!("database/ping"), &[]).map(drop)
}
