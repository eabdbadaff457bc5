//! Table `files`: one record for each stored content. The database also keeps the totals that quotas are compared with.

use postgres::Row;
use postgres::types::{FromSql, Type};
use uuid::Uuid;

use super::audit::AuditOrigin;
use super::pooled_connection::SqlParams;
use super::{Database, column_numbers, sql};
use crate::error::{Error, Forbidden};
use crate::model::file::File;
use crate::model::page::{Page, PageRequest};
use crate::model::timestamp::Timestamp;

/// The columns of a [`File`], which every query that returns files selects.
const COLUMNS: [&str; 11] = [
    "id",
    "user_id",
    "filename",
    "original_filename",
    "content_type",
    "file_size",
    "file_hash",
    "description",
    "upload_date",
    "updated_at",
    "is_public",
];

/// Reads a [`File`]. `None` where its columns are null, because the query joined no file to its row.
fn from_row(row: &Row) -> Option<File> {
    from_columns(row, &column_numbers(row, COLUMNS))
}

/// Like [`from_row`], with the numbers of [`COLUMNS`].
fn from_columns<'a, T: FromSql<'a>>(row: &'a Row, columns: &[usize; 11]) -> Option<File<T>> {
    let [
        id,
        user_id,
        names @ ..,
        file_size,
        file_hash,
        description,
        upload_date,
        updated_at,
        is_public,
    ] = *columns;
    let [filename, original_filename, content_type] = names;
    let id = row.get::<_, Option<_>>(id)?;
    let uploaded = Timestamp(row.get(upload_date));
    Some(File {
        id,
        user_id: row.get(user_id),
        filename: row.get(filename),
        original_filename: row.get(original_filename),
        content_type: row.get(content_type),
        file_size: row.get(file_size),
        file_hash: row.get(file_hash),
        description: row.get(description),
        upload_date: uploaded,
        uploaded_at: uploaded,
        updated_at: Timestamp(row.get(updated_at)),
        is_public: row.get(is_public),
    })
}

/// A file whose content is stored and that is about to be recorded.
pub struct NewFile<'a> {
    pub id: Uuid,
    /// The owner.
    pub user: Uuid,
    /// The name the client sent.
    pub filename: &'a str,
    /// The media type, in lower case.
    pub content_type: &'a str,
    /// In bytes.
    pub size: u64,
    /// SHA-256 of the content, hexadecimal.
    pub hash: &'a str,
    pub description: Option<&'a str>,
}

/// What a new file must fit into, each together with the files that exist.
pub struct FileQuotas {
    /// Bytes of the owner's files.
    pub user_bytes: u64,
    /// Number of the owner's files.
    pub user_files: u32,
    /// Bytes of all files.
    pub service_bytes: u64,
}

/// Records a file where it fits into all quotas. Fails with [`Error::StorageFull`], or with [`Error::UserNotUsable`]
/// where the owner is deleted or inactive.
pub fn insert(
    db: &Database,
    file: &NewFile,
    quotas: &FileQuotas,
    origin: &AuditOrigin,
) -> Result<File, Error> {
    let rows = db.write(
        sql!("files/insert"),
        &[
            &file.id,
            &file.user,
            &file.filename,
            &file.content_type,
            // The casts lose nothing: sizes and quotas are at most an exbibyte.
            &(file.size as i64),
            &file.hash,
            &file.description,
            &(quotas.user_bytes as i64),
            &i64::from(quotas.user_files),
            &(quotas.service_bytes as i64),
            &origin.address,
            &origin.request_id,
        ],
    )?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    from_row(row).ok_or(Error::StorageFull)
}

/// Finds a file by id, whoever owns it, unless the owner is deleted. Fails with [`Error::FileNotFound`].
pub fn find(db: &Database, id: Uuid) -> Result<File, Error> {
    let rows = db.read(sql!("files/find"), &[&id])?;
    rows.first().and_then(from_row).ok_or(Error::FileNotFound)
}

/// Changes a file of `user`; `None` keeps a value. Fails with [`Error::FileNotFound`] or [`Error::NotPermitted`].
pub fn update(
    db: &Database,
    id: Uuid,
    user: Uuid,
    filename: Option<&str>,
    description: Option<&str>,
    is_public: Option<bool>,
    origin: &AuditOrigin,
) -> Result<File, Error> {
    let AuditOrigin { address, request_id, .. } = origin;
    let params: SqlParams = &[&id, &user, &filename, &description, &is_public, address, request_id];
    let rows = db.write(sql!("files/update"), params)?;
    let row = rows.first().ok_or(Error::FileNotFound)?;
    from_row(row).ok_or_else(|| why_unchanged(row.get("owner_id"), user))
}

/// Removes the record of a file of `user`. Returns whether the content may be removed too; not while a backup runs,
/// which may need it. Fails with [`Error::FileNotFound`] or [`Error::NotPermitted`].
pub fn delete(db: &Database, id: Uuid, user: Uuid, origin: &AuditOrigin) -> Result<bool, Error> {
    let AuditOrigin { address, request_id, .. } = origin;
    let rows = db.write(sql!("files/delete"), &[&id, &user, address, request_id])?;
    let row = rows.first().ok_or(Error::FileNotFound)?;
    match row.get("is_removed") {
        true => Ok(row.get("may_remove_content")),
        false => Err(why_unchanged(row.get("owner_id"), user)),
    }
}

/// Why the statement found a file and did not change it: the file is another user's, or another request removed the
/// user's own file after the statement had begun.
fn why_unchanged(owner: Uuid, user: Uuid) -> Error {
    match owner == user {
        true => Error::FileNotFound,
        false => Error::NotPermitted(Forbidden::ForeignFile),
    }
}

/// What a list of files is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSort {
    UploadDate,
    Filename,
    /// The size in bytes.
    Size,
}

/// Which files a list shows, and in which order. Ties are in the order of ids.
pub struct FileQuery {
    /// Part of the filename or of the description, without regard to case.
    pub search: Option<String>,
    pub content_type: Option<String>,
    pub sort: FileSort,
    pub descending: bool,
}

/// Reads a page of the files of `user` and returns what `make` makes of it.
pub fn list<T>(
    db: &Database,
    user: Uuid,
    query: &FileQuery,
    page: PageRequest,
    make: impl FnOnce(&Page<File<&str>>) -> T,
) -> Result<T, Error> {
    let is_default = query.search.is_none()
        && query.content_type.is_none()
        && query.sort == FileSort::UploadDate
        && query.descending;
    let mut rows = Vec::new();
    if is_default {
        rows = db.read(sql!("files/list_newest"), &[&user, &page.size, &page.offset])?;
    }
    // Past the end of the list, the query for the default list finds no row, and so no total.
    if rows.is_empty() && (!is_default || page.offset > 0) {
        rows = matching_rows(db, user, query, page)?;
    }
    let Some(first) = rows.first() else {
        return Ok(make(&Page::new(Vec::new(), 0, page)));
    };
    let columns = column_numbers(first, COLUMNS);
    let files = rows.iter().filter_map(|row| from_columns(row, &columns));
    Ok(make(&Page::new(files.collect(), first.get("total"), page)))
}

/// Runs the query for lists in any order and with any filter, which reads all of the user's files.
fn matching_rows(
    db: &Database,
    user: Uuid,
    query: &FileQuery,
    page: PageRequest,
) -> Result<Vec<Row>, Error> {
    let FileQuery { search, content_type, sort, descending } = query;
    let column = match sort {
        FileSort::UploadDate => "upload_date",
        FileSort::Filename => "filename",
        FileSort::Size => "file_size",
    };
    db.read_planned(
        sql!("files/list"),
        &[
            (&user, Type::UUID),
            (search, Type::TEXT),
            (content_type, Type::TEXT),
            (&column, Type::TEXT),
            (descending, Type::BOOL),
            (&page.size, Type::INT8),
            (&page.offset, Type::INT8),
        ],
        None,
    )
}

/// A content without a record.
pub struct UnrecordedContent {
    pub id: Uuid,
    /// Whether a user has deleted the file. Its content stays until a sweep if a backup was running, or if it could not
    /// be removed.
    pub is_deleted: bool,
}

/// Returns those of `ids` that have no record, in the order of ids. Files of deleted users have one until the
/// background thread removes it.
pub fn unrecorded(db: &Database, ids: &[Uuid]) -> Result<Vec<UnrecordedContent>, Error> {
    let rows = db.read(sql!("files/unrecorded"), &[&ids])?;
    let content =
        |row: &Row| UnrecordedContent { id: row.get("id"), is_deleted: row.get("is_deleted") };
    Ok(rows.iter().map(content).collect())
}

/// A file, as an operator knows it.
pub struct FileOfOwner {
    pub id: Uuid,
    pub filename: String,
    /// The username, or the id of an owner without one.
    pub owner: String,
}

/// Returns the files with these ids, in the order of ids, without those that are gone or whose owner is deleted.
pub fn with_owners(db: &Database, ids: &[Uuid]) -> Result<Vec<FileOfOwner>, Error> {
    let rows = db.read(sql!("files/with_owners"), &[&ids])?;
    Ok(rows.iter().map(file_of_owner).collect())
}

/// Reads a row of the query `files/with_owners`.
pub(super) fn file_of_owner(row: &Row) -> FileOfOwner {
    FileOfOwner { id: row.get("id"), filename: row.get("filename"), owner: row.get("owner") }
}

/// What a content must be by its record.
pub struct RecordedContent {
    pub id: Uuid,
    /// In bytes.
    pub size: u64,
    /// SHA-256, hexadecimal.
    pub hash: String,
}

/// Returns the thousand contents that follow `after`, or what is left of them, in the order of ids. Those of deleted
/// users are left out.
pub fn contents_after(db: &Database, after: Uuid) -> Result<Vec<RecordedContent>, Error> {
    let rows = db.read(sql!("files/contents_after"), &[&after])?;
    Ok(rows.iter().map(recorded_content).collect())
}

/// Reads a row of the query `files/contents_after`.
pub(super) fn recorded_content(row: &Row) -> RecordedContent {
    RecordedContent {
        id: row.get("id"),
        // The table has a constraint that keeps it from being negative.
        size: row.get::<_, i64>("file_size").unsigned_abs(),
        hash: row.get("file_hash"),
    }
}
