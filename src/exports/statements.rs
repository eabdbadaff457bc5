//! Exports of table `users`, read in batches. No transaction spans the batches, so a connection is held for one batch
//! only and a slow client holds none.

use std::time::Instant;

use postgres::Row;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::Type;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

use crate::accounts::statements as accounts;
use crate::db::{Database, TypedParams, column_numbers, like_pattern, one_row, sql};
use crate::error::Error;
use crate::model::timestamp::Timestamp;

/// Most accounts of a batch, and most bytes of its rows: together with the last row, which may exceed them, and unless
/// many cells must be quoted, a batch is no longer than 256 KiB as CSV.
const BATCH_ROWS: i64 = 1000;
const BATCH_BYTES: i64 = 250_000;

/// The `LIKE` pattern of e-mail addresses that contain `part`; `*` and `%` in it stand for any run of characters.
pub fn email_pattern(part: &str) -> String {
    like_pattern(part, "*%")
}

/// A position in an export, which is ordered by creation time and then by id: the values of the last row that was read.
/// It is not a number of rows, so accounts that are created or deleted meanwhile neither hide nor repeat others.
#[derive(Clone, Copy, PartialEq)]
pub struct ExportPosition(OffsetDateTime, Uuid);

impl ExportPosition {
    /// Before every row.
    pub const START: ExportPosition = ExportPosition(datetime!(-4000-01-01 0:00 UTC), Uuid::nil());
}

/// Counts the rows of an export, but no further than `max`. Without a pattern it is an export of all accounts, whose
/// number the database keeps. Fails with [`Error::TimedOut`] if that is not done by `deadline`.
pub fn count(
    db: &Database,
    email_pattern: Option<&str>,
    max: i64,
    deadline: Instant,
) -> Result<i64, Error> {
    match email_pattern {
        None => accounts::count(db),
        Some(pattern) => {
            let params: TypedParams = &[(&pattern, Type::TEXT), (&max, Type::INT8)];
            let rows =
                db.read_bulk(sql!("exports/count"), params, deadline, |rows| rows.collect())?;
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

/// Reads the accounts that follow `after`, and calls `add` with each of them when it arrives, in the order of the
/// export, so that they are never all in memory. Returns the value of `start` to which `add` has added all of them, and
/// the position of the last one; `None` is the end of the export. If the connection breaks, it begins again with
/// another value of `start`. Fails with [`Error::TimedOut`] if the batch is not read by `deadline`.
pub fn batch<T>(
    db: &Database,
    email_pattern: Option<&str>,
    after: ExportPosition,
    deadline: Instant,
    start: impl Fn() -> T,
    add: impl Fn(&mut T, &ExportedUser),
) -> Result<(T, Option<ExportPosition>), Error> {
    let params: TypedParams = &[
        (&email_pattern, Type::TEXT),
        (&after.0, Type::TIMESTAMPTZ),
        (&after.1, Type::UUID),
        (&BATCH_ROWS, Type::INT8),
        (&BATCH_BYTES, Type::INT8),
    ];
    db.read_bulk(sql!("exports/batch"), params, deadline, |mut rows| {
        let (mut total, mut columns, mut end, mut is_full) = (start(), None, None, false);
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let columns = columns.get_or_insert_with(|| column_numbers(&row, COLUMNS));
            let user = from_columns(&row, columns);
            add(&mut total, &user);
            end = Some(ExportPosition(user.created_at.0, user.id));
            count += 1;
            is_full = count == BATCH_ROWS || row.get::<_, i64>("bytes") >= BATCH_BYTES;
        }
        // A batch that is not full is the last one.
        Ok((total, end.filter(|_| is_full)))
    })
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
