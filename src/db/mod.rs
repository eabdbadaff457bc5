//! PostgreSQL: the connection pool, and the queries by subject. Each query is a file below `sql/` and takes one round
//! trip; whatever must be unique, or used only once, is decided by the database within that query. `sql/README.md`
//! says more.

mod account_row;
pub mod audit;
pub mod batches;
mod connection;
pub mod connector;
pub mod contents;
mod database;
pub mod deadline;
pub mod health;
pub mod installation;
pub mod migrations;
pub mod outbox;
pub mod pool;
pub mod postgres_error;
pub mod state;
pub mod stats;
mod tls;

use std::error::Error as StdError;

use postgres::Row;
use postgres::types::{FromSql, Type, accepts};
use time::OffsetDateTime;

use crate::error::Error;
use crate::model::timestamp::Timestamp;

pub use account_row::{second_factor_from_row, user_from_row};
pub use connection::{SqlParams, TypedParam};
pub use database::Database;
pub use installation::{check_settings, open_and_migrate};

/// Includes the text of `sql/<name>.sql` at compile time.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name, ".sql"))
    };
}
pub(crate) use sql;

/// Reads a struct from a row that has a column for each of its fields, of the same name. Fields that are read otherwise
/// follow after a semicolon with their values.
macro_rules! from_row {
    ($row:expr => $type:ident { $($field:ident),+ $(,)? $(; $($other:ident: $value:expr),+ $(,)?)? }) => {
        $type { $($field: $row.get(stringify!($field)),)+ $($($other: $value),+)? }
    };
}
pub(crate) use from_row;

impl<'a> FromSql<'a> for Timestamp {
    fn from_sql(
        sql_type: &Type,
        raw: &'a [u8],
    ) -> Result<Timestamp, Box<dyn StdError + Sync + Send>> {
        OffsetDateTime::from_sql(sql_type, raw).map(Timestamp)
    }

    accepts!(TIMESTAMPTZ);
}

/// The version of PostgreSQL, such as `17.5`.
pub fn server_version(db: &Database) -> Result<String, Error> {
    Ok(one_row(db.read_unprepared(sql!("db/database/version"), &[], None)?)?.get("version"))
}

/// Removes up to `limit` rows of a table in which the time `at` is over for longer than `age`, such as `1 day`. Returns
/// how many.
pub fn sweep(db: &Database, table: &str, at: &str, age: &str, limit: i64) -> Result<i64, Error> {
    let rows = db.write(sql!("db/sweep"), &[&table, &at, &age, &limit])?;
    Ok(one_row(rows)?.get("removed"))
}

/// Takes the row of a query that always returns one.
pub fn one_row(rows: Vec<Row>) -> Result<Row, Error> {
    rows.into_iter().next().ok_or_else(|| Error::Internal("a query returned no row".into()))
}

/// Returns the numbers of the columns with these names. They are the same for all rows of a result, so a function that
/// reads many rows looks them up once. The number of a column that is missing is [`usize::MAX`], which no row has.
pub fn column_numbers<const N: usize>(row: &Row, names: [&str; N]) -> [usize; N] {
    let number = |name| row.columns().iter().position(|column| column.name() == name);
    names.map(|name| number(name).unwrap_or(usize::MAX))
}

/// Builds a `LIKE` pattern for texts that contain `part`. The characters in `wildcards` stand for any run of
/// characters; others that are wildcards in SQL, `%` and `_`, are escaped.
pub fn like_pattern(part: &str, wildcards: &str) -> String {
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
