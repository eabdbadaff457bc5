//! Exports of table `users`, read in batches. No transaction spans the batches, so a connection is held for one batch
//! only and a slow client holds none.

use std::time::Instant;

use postgres::fallible_iterator::FallibleIterator;
use postgres::types::Type;
use postgres::{Row, RowIter};
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

use crate::accounts::statements::{self as accounts, UserFilter};
use crate::db::{Database, SqlParams, column_numbers, one_row, sql};
use crate::error::Error;
use crate::model::timestamp::Timestamp;

/// A position in an export, which is ordered by creation time and then by id: the values of the last row that was read.
/// It is not a number of rows, so accounts that are created or deleted meanwhile neither hide nor repeat others.
#[derive(Clone, Copy, PartialEq)]
pub struct ExportPosition(OffsetDateTime, Uuid);

impl ExportPosition {
    /// Before every row.
    pub const START: ExportPosition = ExportPosition(datetime!(-4000-01-01 0:00 UTC), Uuid::nil());
}

/// Counts the rows of an export, but no further than `max`. Without a filter it is an export of all accounts, whose
/// number the database keeps. Fails with [`Error::TimedOut`] if that is not done by `deadline`.
pub fn count(
    db: &Database,
    filter: Option<&UserFilter>,
    max: i64,
    deadline: Instant,
) -> Result<i64, Error> {
    match filter {
        None => accounts::count(db),
        Some(filter) => {
            let params = &filter.params(&[(&max, Type::INT8)]);
            let sql = sql!("exports/count");
            let rows =
                db.read_bulk(deadline, |it, timeout| it.query_unprepared(sql, params, timeout))?;
            Ok(one_row(rows)?.get("accounts"))
        }
    }
}

/// Records that users were exported. Must precede the first byte of the export: if it fails, nothing was exported.
pub fn insert_export(db: &Database, rows: i64, is_filtered: bool) -> Result<(), Error> {
    let sql = sql!("exports/insert_event");
    db.write(sql, &[&db.actor, &db.address, &db.request_id, &rows, &is_filtered]).map(drop)
}

/// An account as it is exported. Texts are borrowed from the row, because an export reads a million of them.
pub struct ExportedUser<'a> {
    pub id: Uuid,
    pub email: &'a str,
    /// Display name.
    pub name: Option<&'a str>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub is_active: bool,
    pub role: &'a str,
    pub username: Option<&'a str>,
    pub last_login: Option<Timestamp>,
    /// Number of files.
    pub total_uploads: i64,
    /// Bytes of all files.
    pub total_storage_used: i64,
}

/// Reads the accounts that follow `after`, at most `limit`, and calls `add` with each of them when it arrives, in the
/// order of the export, until it returns false for one, which is the first of the next batch. Returns the value of
/// `start` to which they were added, and the position of the last one; `None` is the end of the export. If the
/// connection breaks, it begins again with another value of `start`. Fails with [`Error::TimedOut`] if the batch is not
/// read by `deadline`.
pub fn batch<T>(
    db: &Database,
    filter: Option<&UserFilter>,
    after: ExportPosition,
    limit: i64,
    deadline: Instant,
    start: impl Fn() -> T,
    add: impl Fn(&mut T, &ExportedUser) -> bool,
) -> Result<(T, Option<ExportPosition>), Error> {
    let ExportPosition(at, id) = after;
    db.read_bulk(deadline, |connection, timeout| {
        let read = |rows: RowIter| read_rows(rows, limit, start(), &add);
        match filter {
            None => {
                let params: SqlParams = &[&at, &id, &limit];
                connection.query_rows(sql!("exports/batch"), params, timeout, read)
            }
            Some(filter) => {
                let (at, id) = ((&at as _, Type::TIMESTAMPTZ), (&id as _, Type::UUID));
                let params = &filter.params(&[at, id, (&limit, Type::INT8)]);
                let sql = sql!("exports/batch_of_filter");
                connection.query_rows_unprepared(sql, params, timeout, read)
            }
        }
    })
}

/// Adds the rows of a batch to `total`, as [`batch`] says.
fn read_rows<T>(
    mut rows: RowIter,
    limit: i64,
    mut total: T,
    add: impl Fn(&mut T, &ExportedUser) -> bool,
) -> Result<(T, Option<ExportPosition>), postgres::Error> {
    let (mut columns, mut last, mut count, mut fits) = (None, None, 0, true);
    while let Some(row) = rows.next()? {
        let user = from_columns(&row, columns.get_or_insert_with(|| column_numbers(&row, COLUMNS)));
        fits = fits && add(&mut total, &user);
        last = if fits { Some(ExportPosition(user.created_at.0, user.id)) } else { last };
        count += 1;
    }
    // Fewer rows than asked for are the last ones.
    Ok((total, last.filter(|_| !fits || count == limit)))
}

/// The columns of an [`ExportedUser`]. Clients know the cells of a CSV file by the same names.
pub const COLUMNS: [&str; 11] = [
    "id",
    "email",
    "name",
    "created_at",
    "updated_at",
    "is_active",
    "role",
    "username",
    "last_login",
    "total_uploads",
    "total_storage_used",
];

/// Reads an [`ExportedUser`], given the numbers of [`COLUMNS`].
fn from_columns<'a>(row: &'a Row, columns: &[usize; 11]) -> ExportedUser<'a> {
    let [id, email, name, created_at, updated_at, is_active, role, username, totals @ ..] =
        *columns;
    let [last_login, total_uploads, total_storage_used] = totals;
    ExportedUser {
        id: row.get(id),
        email: row.get(email),
        name: row.get(name),
        created_at: row.get(created_at),
        updated_at: row.get(updated_at),
        is_active: row.get(is_active),
        role: row.get(role),
        username: row.get(username),
        last_login: row.get(last_login),
        total_uploads: row.get(total_uploads),
        total_storage_used: row.get(total_storage_used),
    }
}
