//! Table `files`. The database keeps the totals that quotas are compared with.

use std::collections::HashSet;

use postgres::Row;
use uuid::Uuid;

use super::{Database, sql};
use crate::error::Error;
use crate::model::file::File;
use crate::model::page::{Page, PageRequest};
use crate::model::timestamp::Timestamp;

/// The first eleven columns of every query that gives files; `None` where they are null.
fn from_row(row: &Row) -> Option<File> {
    Some(File {
        id: row.get::<_, Option<_>>(0)?,
        user_id: row.get(1),
        filename: row.get(2),
        original_filename: row.get(3),
        content_type: row.get(4),
        file_size: row.get(5),
        file_hash: row.get(6),
        description: row.get(7),
        upload_date: Timestamp(row.get(8)),
        updated_at: Timestamp(row.get(9)),
        is_public: row.get(10),
    })
}

/// A file about to be recorded. Its content is stored.
pub struct Upload<'a> {
    /// The file.
    pub id: Uuid,
    /// Owner.
    pub user: Uuid,
    /// The name sent.
    pub filename: &'a str,
    /// Type, lower case.
    pub content_type: &'a str,
    /// Bytes.
    pub size: u64,
    /// SHA-256, hexadecimal.
    pub hash: &'a str,
    /// Free text.
    pub description: Option<&'a str>,
}

/// Records a file where it fits into the quotas, bytes of its owner's files and of all. Fails with
/// [`Error::StorageFull`], or [`Error::UserNotUsable`] where the owner is gone.
pub fn insert(
    db: &Database,
    upload: &Upload,
    user_quota: u64,
    service_quota: u64,
) -> Result<File, Error> {
    let rows = db.write(
        sql!("files/insert"),
        &[
            &upload.id,
            &upload.user,
            &upload.filename,
            &upload.content_type,
            // All of these fit: sizes and quotas are at most an exbibyte.
            &(upload.size as i64),
            &upload.hash,
            &upload.description,
            &(user_quota as i64),
            &(service_quota as i64),
        ],
    )?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    from_row(row).ok_or(Error::StorageFull)
}

/// The file. Fails with [`Error::FileNotFound`].
pub fn find(db: &Database, id: Uuid) -> Result<File, Error> {
    let rows = db.read(sql!("files/find"), &[&id])?;
    rows.first().and_then(from_row).ok_or(Error::FileNotFound)
}

/// Changes what is given of a file of `user`. Fails with [`Error::FileNotFound`] or
/// [`Error::NotPermitted`].
pub fn update(
    db: &Database,
    id: Uuid,
    user: Uuid,
    filename: Option<&str>,
    description: Option<&str>,
    is_public: Option<bool>,
) -> Result<File, Error> {
    let rows =
        db.write(sql!("files/update"), &[&id, &user, &filename, &description, &is_public])?;
    let row = rows.first().ok_or(Error::FileNotFound)?;
    from_row(row).ok_or_else(|| not_changed(row.get(11), user))
}

/// Removes the record of a file of `user`. Fails with [`Error::FileNotFound`] or
/// [`Error::NotPermitted`].
pub fn delete(db: &Database, id: Uuid, user: Uuid) -> Result<(), Error> {
    let rows = db.write(sql!("files/delete"), &[&id, &user])?;
    let row = rows.first().ok_or(Error::FileNotFound)?;
    if row.get(1) { Ok(()) } else { Err(not_changed(row.get(0), user)) }
}

/// Why a file that was there a moment ago was not changed: the owner's was removed meanwhile.
fn not_changed(owner: Uuid, user: Uuid) -> Error {
    if owner == user { Error::FileNotFound } else { Error::NotPermitted }
}

/// A column that lists can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortBy {
    /// Time of upload.
    UploadDate,
    /// Display name.
    Filename,
    /// Bytes.
    Size,
}

/// Which files a list shows, and in which order. Ties are in the order of ids.
pub struct Listing {
    /// Part of the filename or the description, without regard to case.
    pub search: Option<String>,
    /// Type.
    pub content_type: Option<String>,
    /// Column.
    pub sort_by: SortBy,
    /// Largest or newest first.
    pub descending: bool,
}

/// A page of the files of `user`.
pub fn list(
    db: &Database,
    user: Uuid,
    listing: &Listing,
    asked: PageRequest,
) -> Result<Page<File>, Error> {
    let Listing { search, content_type, sort_by, descending } = listing;
    let is_default =
        search.is_none() && content_type.is_none() && *sort_by == SortBy::UploadDate && *descending;
    let column = match sort_by {
        SortBy::UploadDate => "upload_date",
        SortBy::Filename => "filename",
        SortBy::Size => "file_size",
    };
    let (size, offset) = (&asked.size, &asked.offset());
    let rows = if is_default {
        db.read(sql!("files/list_newest"), &[&user, size, offset])?
    } else {
        db.read(
            sql!("files/list"),
            &[&user, search, content_type, &column, descending, size, offset],
        )?
    };
    let total = rows.first().map_or(0, |row| row.get(11));
    Ok(Page::new(rows.iter().filter_map(from_row).collect(), total, asked))
}

/// Those of `ids` that have a record.
pub fn recorded(db: &Database, ids: &[Uuid]) -> Result<HashSet<Uuid>, Error> {
    let rows = db.read(sql!("files/recorded"), &[&ids])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The files with the thousand ids after `after`, in order.
pub fn ids_after(db: &Database, after: Uuid) -> Result<Vec<Uuid>, Error> {
    let rows = db.read(sql!("files/ids_after"), &[&after])?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
