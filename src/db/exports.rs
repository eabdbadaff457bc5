//! Exports of table `users`, read in batches. No transaction spans the batches, so a connection is held for one batch
//! only and a slow client holds none.

use std::time::Instant;

use postgres::Row;
use postgres::types::Type;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

use super::{Database, like_pattern, one_row, sql};
use crate::error::Error;
use crate::model::timestamp::Timestamp;

/// Rows of a batch.
const BATCH_ROWS: i64 = 2000;

/// Which accounts are exported.
#[derive(Clone)]
pub struct ExportFilter {
    email_pattern: Option<String>,
}

impl ExportFilter {
    /// Accounts whose e-mail address contains `email`, where `*` and `%` stand for any run of characters; `None` is
    /// all.
    pub fn by_email(email: Option<&str>) -> ExportFilter {
        ExportFilter { email_pattern: email.map(|part| like_pattern(part, "*%")) }
    }

    /// Whether only some accounts are asked for.
    pub fn is_filtered(&self) -> bool {
        self.email_pattern.is_some()
    }
}

/// A position in an export, which is ordered by creation time and then by id: the values of the last row that was read.
/// It is not a number of rows, so accounts that are created or deleted meanwhile neither hide nor repeat others.
#[derive(Clone, Copy)]
pub struct ExportPosition(OffsetDateTime, Uuid);

impl ExportPosition {
    /// Before every row.
    pub const START: ExportPosition = ExportPosition(datetime!(-4000-01-01 0:00 UTC), Uuid::nil());
}

/// Counts the rows of an export, but no further than `max`. Fails with [`Error::TimedOut`] where that is not done by
/// `deadline`.
pub fn count(
    db: &Database,
    filter: &ExportFilter,
    max: i64,
    deadline: Instant,
) -> Result<i64, Error> {
    let rows = db.read_for_export(
        sql!("exports/count"),
        &[(&filter.email_pattern, Type::TEXT), (&max, Type::INT8)],
        deadline,
    )?;
    Ok(one_row(rows)?.get("accounts"))
}

/// An account as it is exported. Texts are borrowed from the batch, because an export reads a million of them.
pub struct ExportedUser<'a> {
    pub id: Uuid,
    pub username: Option<&'a str>,
    pub email: &'a str,
    /// Display name.
    pub name: Option<&'a str>,
    pub role: &'a str,
    pub is_active: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub last_login: Option<Timestamp>,
    /// Number of files.
    pub total_uploads: i64,
    /// Bytes of all files.
    pub total_storage_used: i64,
}

/// Some consecutive rows of an export.
pub struct ExportBatch {
    rows: Vec<Row>,
}

impl ExportBatch {
    /// Returns the accounts in the order of the export.
    pub fn users(&self) -> impl ExactSizeIterator<Item = ExportedUser<'_>> {
        let [id, username, email, name, role, is_active] =
            ["id", "username", "email", "name", "role", "is_active"].map(|name| self.column(name));
        let [created_at, updated_at, last_login] =
            ["created_at", "updated_at", "last_login"].map(|name| self.column(name));
        let [total_uploads, total_storage_used] =
            ["total_uploads", "total_storage_used"].map(|name| self.column(name));
        self.rows.iter().map(move |row| ExportedUser {
            id: row.get(id),
            username: row.get(username),
            email: row.get(email),
            name: row.get(name),
            role: row.get(role),
            is_active: row.get(is_active),
            created_at: Timestamp(row.get(created_at)),
            updated_at: Timestamp(row.get(updated_at)),
            last_login: row.get::<_, Option<_>>(last_login).map(Timestamp),
            total_uploads: row.get(total_uploads),
            total_storage_used: row.get(total_storage_used),
        })
    }

    /// The number of a column, which is looked up once for all rows. [`usize::MAX`] where there is none, which no row
    /// has.
    fn column(&self, name: &str) -> usize {
        let columns = self.rows.first().map_or(&[][..], Row::columns);
        columns.iter().position(|column| column.name() == name).unwrap_or(usize::MAX)
    }

    /// Returns the position of the last row; `None` where the batch is empty, which means that the export is complete.
    pub fn end(&self) -> Option<ExportPosition> {
        self.rows.last().map(|row| ExportPosition(row.get("created_at"), row.get("id")))
    }
}

/// Reads the rows that follow `after`. Fails with [`Error::TimedOut`] where that is not done by `deadline`.
pub fn batch(
    db: &Database,
    filter: &ExportFilter,
    after: ExportPosition,
    deadline: Instant,
) -> Result<ExportBatch, Error> {
    let rows = db.read_for_export(
        sql!("exports/batch"),
        &[
            (&filter.email_pattern, Type::TEXT),
            (&after.0, Type::TIMESTAMPTZ),
            (&after.1, Type::UUID),
            (&BATCH_ROWS, Type::INT8),
        ],
        deadline,
    )?;
    Ok(ExportBatch { rows })
}
