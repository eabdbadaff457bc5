//! Files as they are compared with their contents.

use postgres::Row;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::db::{Database, sql};
use crate::error::Error;

/// What the content of a file must be, by its record or by the manifest of a backup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedContent {
    pub id: Uuid,
    /// In bytes.
    pub size: u64,
    /// SHA-256, in hexadecimal.
    pub sha256: String,
}

impl RecordedContent {
    /// Reads a row of the query `files/contents_after`.
    pub fn of(row: &Row) -> RecordedContent {
        // The table has a constraint that keeps the size from being negative.
        let size: i64 = row.get("file_size");
        RecordedContent {
            id: row.get("id"),
            size: size.unsigned_abs(),
            sha256: row.get("file_hash"),
        }
    }
}

/// Returns the thousand contents that follow `after`, or what is left of them, in the order of ids. Those of deleted
/// users are left out.
pub fn contents_after(db: &Database, after: Uuid) -> Result<Vec<RecordedContent>, Error> {
    Ok(db.read(sql!("files/contents_after"), &[&after])?.iter().map(RecordedContent::of).collect())
}
