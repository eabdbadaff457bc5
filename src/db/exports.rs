//! Exports of table `users`, in batches: each takes a connection and gives it back.

use std::time::Duration;

use postgres::types::Type;
use time::OffsetDateTime;
use time::macros::datetime;
use uuid::Uuid;

use super::{Database, pattern, sql};
use crate::error::Error;
use crate::http::csv::Rows;
use crate::model::timestamp::Timestamp;

/// Rows of a batch.
const BATCH: i64 = 2000;
/// What a row takes, roughly, bytes.
const ROW_BYTES: usize = 256;

/// Which accounts are exported.
pub struct Selection {
    pattern: Option<String>,
}

impl Selection {
    /// Accounts whose e-mail address contains `email`, where `*` stands for any run of characters.
    pub fn by_email(email: Option<&str>) -> Selection {
        Selection { pattern: email.map(|part| pattern(part, Some('*'))) }
    }
}

/// The row after which a batch begins.
#[derive(Clone, Copy)]
pub struct Position(OffsetDateTime, Uuid);

impl Position {
    /// Before every row.
    pub const START: Position = Position(datetime!(-4000-01-01 0:00 UTC), Uuid::nil());
}

/// The number of rows, counted no further than `most`; may take `wait`.
pub fn count(db: &Database, which: &Selection, most: i64, wait: Duration) -> Result<i64, Error> {
    let rows = db.read_planned(
        sql!("exports/count"),
        &[(&which.pattern, Type::TEXT), (&most, Type::INT8)],
        Some(wait),
    )?;
    let row = rows.first();
    row.map(|row| row.get(0)).ok_or_else(|| Error::Internal("count gave no row".into()))
}

/// The first row of every export.
pub const HEADER: &[u8] = b"id,username,email,name,role,is_active,created_at,updated_at,last_login,total_uploads,total_storage_used\r\n";

/// The next rows after `position`, which moves to the last of them; none: the export is complete.
pub fn batch(
    db: &Database,
    which: &Selection,
    position: &mut Position,
    wait: Option<Duration>,
) -> Result<Vec<u8>, Error> {
    let found = db.read_planned(
        sql!("exports/batch"),
        &[
            (&which.pattern, Type::TEXT),
            (&position.0, Type::TIMESTAMPTZ),
            (&position.1, Type::UUID),
            (&BATCH, Type::INT8),
        ],
        wait,
    )?;
    let (mut rows, mut last) = (Rows::new(found.len() * ROW_BYTES), *position);
    for row in &found {
        let (id, created_at): (Uuid, _) = (row.get(0), row.get(6));
        let time = |column| row.get::<_, Option<_>>(column).map(Timestamp);
        rows.cell(id.hyphenated().encode_lower(&mut Uuid::encode_buffer()))?;
        rows.text(row.get(1))?;
        rows.text(row.get(2))?;
        rows.text(row.get(3))?;
        rows.text(row.get(4))?;
        rows.cell(if row.get(5) { "true" } else { "false" })?;
        rows.cell(Timestamp(created_at).bytes())?;
        for column in [7, 8] {
            match time(column) {
                Some(at) => rows.cell(at.bytes())?,
                None => rows.cell("")?,
            }
        }
        rows.number(row.get(9))?;
        rows.number(row.get(10))?;
        rows.end()?;
        last = Position(created_at, id);
    }
    let bytes = rows.finish()?;
    *position = last;
    Ok(bytes)
}
