//! Table `files`: one record for each stored content. The database also keeps the totals that quotas are compared with.

use postgres::Row;
use postgres::types::Type;
use uuid::Uuid;

use super::audit::AuditOrigin;
use super::connection::SqlParams;
use super::{Database, from_row, one_row, sql};
use crate::error::{Error, Forbidden};
use crate::model::file::{File, VersionConditions};
use crate::model::page::PageRequest;

/// Reads a [`File`]. `None` if its columns are null, because the query joined no file to its row.
pub(super) fn from_row(row: &Row) -> Option<File> {
    row.get::<_, Option<Uuid>>("id")?;
    Some(from_row!(row => File {
        id, user_id, filename, original_filename, content_type, file_size, file_hash, description, upload_date,
        updated_at, is_public, version;
        uploaded_at: row.get("upload_date"),
    }))
}

/// Finds a file by id, whoever owns it, unless the owner is deleted. Fails with [`Error::FileNotFound`].
pub fn find(db: &Database, id: Uuid) -> Result<File, Error> {
    let rows = db.read(sql!("files/find"), &[&id])?;
    rows.first().and_then(from_row).ok_or(Error::FileNotFound)
}

/// A change of a file's metadata; `None` keeps a value, and an empty description is none.
pub struct FileChange {
    pub filename: Option<String>,
    pub description: Option<String>,
    pub is_public: Option<bool>,
}

/// Changes a file of `user`. Fails with [`Error::FileNotFound`], [`Error::NotPermitted`] or
/// [`Error::PreconditionFailed`].
pub fn update(
    db: &Database,
    id: Uuid,
    user: Uuid,
    change: &FileChange,
    conditions: &VersionConditions,
    origin: &AuditOrigin,
) -> Result<File, Error> {
    let rows = db.write(
        sql!("files/update"),
        &[
            &id,
            &user,
            &change.filename,
            &change.description,
            &change.is_public,
            &origin.address,
            &origin.request_id,
            &conditions.allowed,
            &conditions.refused,
            &conditions.unmodified_since,
        ],
    )?;
    let row = rows.first().ok_or(Error::FileNotFound)?;
    from_row(row).ok_or_else(|| why_unchanged(row, user))
}

/// Removes the record of a file of `user`. Returns whether the content may be removed too: while a backup runs, it may
/// not, because the backup may need it. Fails with [`Error::FileNotFound`], [`Error::NotPermitted`] or
/// [`Error::PreconditionFailed`].
pub fn delete(
    db: &Database,
    id: Uuid,
    user: Uuid,
    conditions: &VersionConditions,
    origin: &AuditOrigin,
) -> Result<bool, Error> {
    let AuditOrigin { address, request_id, .. } = origin;
    let VersionConditions { allowed, refused, unmodified_since } = conditions;
    let params: SqlParams = &[&id, &user, address, request_id, allowed, refused, unmodified_since];
    let rows = db.write(sql!("files/delete"), params)?;
    let row = rows.first().ok_or(Error::FileNotFound)?;
    match row.get("is_removed") {
        true => Ok(row.get("may_remove_content")),
        false => Err(why_unchanged(row, user)),
    }
}

/// The error if a statement found a file and did not change it: the file is another user's, it is in another state than
/// the request asks for, or another request removed it after the statement had begun.
fn why_unchanged(row: &Row, user: Uuid) -> Error {
    match (row.get::<_, Uuid>("owner_id") == user, row.get("is_own")) {
        (false, _) => Error::NotPermitted(Forbidden::ForeignFile),
        (true, true) => Error::PreconditionFailed,
        (true, false) => Error::FileNotFound,
    }
}

/// The column by which a list of files is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSort {
    UploadDate,
    Filename,
    /// The size in bytes.
    Size,
}

/// The filter and the order of a list. Names are compared without regard to case. Ties are in the order of ids.
pub struct FileQuery {
    /// Part of the filename or of the description, without regard to case.
    pub search: Option<String>,
    /// All spellings of the type.
    pub content_type: Option<Vec<String>>,
    pub sort: FileSort,
    pub descending: bool,
}

impl FileQuery {
    /// Whether it is the list that is asked for most, which has a query of its own that is not planned each time.
    fn is_default(&self) -> bool {
        self.search.is_none()
            && self.content_type.is_none()
            && self.sort == FileSort::UploadDate
            && self.descending
    }
}

/// Returns the page of the files of `user` that match, and how many match in all.
pub fn list(
    db: &Database,
    user: Uuid,
    query: &FileQuery,
    page: PageRequest,
) -> Result<(Vec<File>, i64), Error> {
    let mut rows = Vec::new();
    if query.is_default() {
        rows = db.read(sql!("files/list_newest"), &[&user, &page.size, &page.offset])?;
    }
    // Past the end of the list that query finds no row, and so no total.
    if rows.is_empty() && !(query.is_default() && page.offset == 0) {
        rows = matching_rows(db, user, query, page)?;
    }
    let total = rows.first().map_or(0, |row| row.get("total"));
    Ok((rows.iter().filter_map(from_row).collect(), total))
}

/// Runs the query for lists in any order and with any filter.
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
    db.read_unprepared(
        sql!("files/list"),
        &[
            (&user, Type::UUID),
            (search, Type::TEXT),
            (content_type, Type::TEXT_ARRAY),
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
    /// Whether its record was removed and not lost. The content stays until a sweep if a backup was running.
    pub is_deleted: bool,
}

/// Returns those of `ids` that have no record, in the order of ids; those that are listed for removal only if
/// `with_listed`. Files of deleted users have one until the background thread removes it.
pub fn unrecorded(
    db: &Database,
    ids: &[Uuid],
    with_listed: bool,
) -> Result<Vec<UnrecordedContent>, Error> {
    let rows = db.read(sql!("files/unrecorded"), &[&ids, &with_listed])?;
    let content = |row: &Row| from_row!(row => UnrecordedContent { id, is_deleted });
    Ok(rows.iter().map(content).collect())
}

/// Returns a deleted user whose files still have records, with the ids of up to `limit` of them, or with none if all
/// are removed. `None` if there is no such user, or while a backup runs, which needs the contents. The table
/// `pending_removals` has these users. No response shows their files any more, and with a limited number at a time no
/// upload waits long, even if a user had a million.
pub fn next_removal(db: &Database, limit: i64) -> Result<Option<(Uuid, Vec<Uuid>)>, Error> {
    let rows = db.read(sql!("removals/next"), &[&limit])?;
    let files = rows.iter().filter_map(|row| row.get("file_id")).collect();
    Ok(rows.first().map(|row| (row.get("user_id"), files)))
}

/// Removes the records of these files of a deleted user. Returns how many there were.
pub fn remove_records(db: &Database, user: Uuid, files: &[Uuid]) -> Result<i64, Error> {
    Ok(db.write(sql!("removals/remove"), &[&user, &files])?.len() as i64)
}

/// Takes a deleted user off the table `pending_removals`, unless a file still has a record.
pub fn finish_removal(db: &Database, user: Uuid) -> Result<(), Error> {
    db.write(sql!("removals/finish"), &[&user]).map(drop)
}

/// Whether a backup is running, which may need contents whose record is gone by now.
pub fn is_backup_running(db: &Database) -> Result<bool, Error> {
    Ok(one_row(db.read(sql!("backup/is_running"), &[])?)?.get("is_running"))
}
