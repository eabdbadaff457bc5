//! PostgreSQL: the connection pool, and one module for each table. One query is one file below `sql/` and one round
//! trip; whatever must be unique, or used only once, is decided by the database within that query. `sql/README.md`
//! says more.

pub mod audit;
pub mod backup;
mod batches;
pub mod checks;
mod client_programs;
mod connector;
mod deadline;
pub mod diagnosis;
pub mod exports;
mod failure_queue;
pub mod files;
pub mod installation;
mod migrations;
mod outage;
pub mod outbox;
pub mod personal_tokens;
mod pool;
mod pooled_connection;
mod postgres_error;
mod readiness;
pub mod removals;
pub mod resets;
pub mod restore;
pub mod sessions;
pub mod stats;
mod tls;
pub mod users;

use postgres::Row;

use crate::config::Config;
use crate::error::Error;

pub use client_programs::environment as client_environment;
pub use failure_queue::FailureQueue;
pub use migrations::{check_schema, newest_schema_version, open_and_migrate};
pub use pool::Database;
pub use readiness::Readiness;

/// Includes the text of `sql/<name>.sql` at compile time.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name, ".sql"))
    };
}
use sql;

/// Checks the settings of the database without connecting. On failure: what to tell the operator.
pub fn check_settings(settings: &Config) -> Result<(), String> {
    connector::Connector::new(settings).map(drop)
}

/// Opens the pool without waiting for the database or migrating it. On failure: what to tell the operator.
pub fn open(settings: &Config) -> Result<Database, String> {
    let connector = connector::Connector::new(settings)?;
    Ok(Database::new(connector, None, settings.database_pool_size, settings.database_timeout))
}

/// The version of PostgreSQL, such as `17.5`.
pub fn server_version(db: &Database) -> Result<String, Error> {
    Ok(one_row(db.read_planned(sql!("database/version"), &[], None)?)?.get("version"))
}

/// Takes the row of a query that always returns one.
fn one_row(rows: Vec<Row>) -> Result<Row, Error> {
    rows.into_iter().next().ok_or_else(|| Error::Internal("a query returned no row".into()))
}

/// Returns the numbers of the columns with these names. They are the same for all rows of a result, so a function that
/// reads many rows looks them up once. The number of a column that is missing is [`usize::MAX`], which no row has.
fn column_numbers<const N: usize>(row: &Row, names: [&str; N]) -> [usize; N] {
    let number = |name| row.columns().iter().position(|column| column.name() == name);
    names.map(|name| number(name).unwrap_or(usize::MAX))
}

/// Builds a `LIKE` pattern for texts that contain `part`. The characters in `wildcards` stand for any run of
/// characters; others that are wildcards in SQL, `%` and `_`, are escaped.
fn like_pattern(part: &str, wildcards: &str) -> String {
    let mut pattern = String::with_capacity(part.len() + 2);
    pattern.push('%');
    for c in part.chars() {
        match c {
            _ if wildcards.contains(c) => pattern.push('%'),
            '%' | '_' | '\\' => pattern.extend(['\\', c]),
            _ => pattern.push(c),
        }
    }
    pattern.push('%');
    pattern
}
