//! Files as messages of commands name them.

use postgres::Row;
use uuid::Uuid;

use crate::db::{Database, sql};
use crate::error::Error;

/// A file, as an operator knows it.
pub struct FileOfOwner {
    pub id: Uuid,
    pub filename: String,
    /// The username, or the id of an owner without one.
    pub owner: String,
}

impl FileOfOwner {
    /// Reads a row of the query `files/with_owners`.
    pub fn of(row: &Row) -> FileOfOwner {
        FileOfOwner { id: row.get("id"), filename: row.get("filename"), owner: row.get("owner") }
    }
}

/// Returns the files with these ids, in the order of ids, without those that are gone or whose owner is deleted.
pub fn with_owners(db: &Database, ids: &[Uuid]) -> Result<Vec<FileOfOwner>, Error> {
    Ok(db.read(sql!("files/with_owners"), &[&ids])?.iter().map(FileOfOwner::of).collect())
}
