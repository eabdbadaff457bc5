//! Table `files`: one record for each stored content. The database also keeps the totals that quotas are compared with.

use postgres::Row;
use postgres::types::Type;
use uuid::Uuid;

use crate::db::{Database, SqlParams, from_row, one_row, sql};
use crate::error::{Error, Forbidden};
use crate::model::file::{File, FileQuotas, VersionConditions};
use crate::model::page::PageRequest;

/// Reads a [`File`]. `None` if its columns are null, because the query joined no file to its row.
pub fn from_row(row: &Row) -> Option<File> {
    row.get::<_, Option<Uuid>>("id")?;
    Some(from_row!(row => File {
        id, user_id, filename, original_filename, content_type, file_size, file_hash, description, folder,
        upload_date, updated_at, is_public, received_by, version;
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
    /// In the form of the column.
    pub folder: Option<String>,
}

/// Changes a file of `user`. Fails with [`Error::FileNotFound`], [`Error::NotPermitted`] or
/// [`Error::PreconditionFailed`].
pub fn update(
    db: &Database,
    id: Uuid,
    user: Uuid,
    change: &FileChange,
    conditions: &VersionConditions,
) -> Result<File, Error> {
    let rows = db.write(
        sql!("files/update"),
        &[
            &id,
            &user,
            &change.filename,
            &change.description,
            &change.is_public,
            &db.address,
            &db.request_id,
            &conditions.allowed,
            &conditions.refused,
            &conditions.unmodified_since,
            &change.folder,
        ],
    )?;
    let row = rows.first().ok_or(Error::FileNotFound)?;
    from_row(row).ok_or_else(|| why_unchanged(row, user))
}

/// What becomes of a file that is deleted.
pub struct Deletion {
    /// Whether the owner may restore it.
    pub is_restorable: bool,
    /// Whether it goes for good, also if it was deleted before.
    pub is_permanent: bool,
}

/// How often a permanent deletion is tried, if other requests of the owner delete and restore the file at the moment.
const MAX_DELETE_ATTEMPTS: usize = 5;

/// Deletes a file of `user`. Others that the user has deleted go for good if they exceed the quotas of one user. Fails
/// with [`Error::FileNotFound`], [`Error::NotPermitted`] or [`Error::PreconditionFailed`], and with
/// [`Error::Unavailable`] after [`MAX_DELETE_ATTEMPTS`].
pub fn delete(
    db: &Database,
    id: Uuid,
    user: Uuid,
    deletion: &Deletion,
    quotas: &FileQuotas,
    conditions: &VersionConditions,
) -> Result<(), Error> {
    let params: SqlParams = &[
        &id,
        &user,
        &db.address,
        &db.request_id,
        &conditions.allowed,
        &conditions.refused,
        &conditions.unmodified_since,
        &deletion.is_restorable,
        &(quotas.user_bytes as i64),
        &i64::from(quotas.user_files),
        &deletion.is_permanent,
    ];
    for _ in 0..MAX_DELETE_ATTEMPTS {
        let rows = db.write(sql!("files/delete"), params)?;
        let row = rows.first().ok_or(Error::FileNotFound)?;
        if row.get("is_deleted") {
            return Ok(());
        }
        match why_unchanged(row, user) {
            // Another request has deleted or restored it meanwhile: the next statement sees where it is now.
            Error::FileNotFound if deletion.is_permanent => {}
            error => return Err(error),
        }
    }
    Err(Error::Unavailable)
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
    /// Only deleted files have this.
    DeletedAt,
}

impl FileSort {
    /// The name of the column in the queries.
    fn column(self) -> &'static str {
        match self {
            FileSort::UploadDate => "upload_date",
            FileSort::Filename => "filename",
            FileSort::Size => "file_size",
            FileSort::DeletedAt => "deleted_at",
        }
    }
}

/// The filter and the order of a list. Names are compared without regard to case. Ties are in the order of ids.
pub struct FileQuery {
    /// Part of the filename or of the description, without regard to case.
    pub search: Option<String>,
    /// All spellings of the type.
    pub content_type: Option<Vec<String>>,
    /// The folder in which the files lie, in the form of the column.
    pub folder: Option<String>,
    /// The folder in which or below which they lie.
    pub below: Option<String>,
    /// Whether strangers sent them by links.
    pub received: Option<bool>,
    pub sort: FileSort,
    pub descending: bool,
}

impl FileQuery {
    /// Whether it is the list that is asked for most, of all files or of a folder, which has a query of its own that is
    /// not planned each time.
    fn is_default(&self) -> bool {
        !self.reads_all()
            && self.content_type.is_none()
            && self.sort == FileSort::UploadDate
            && self.descending
    }

    /// Whether each file of the user, or below a folder, is read, however few match.
    pub fn reads_all(&self) -> bool {
        self.search.is_some() || self.below.is_some() || self.received.is_some()
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
        rows = match &query.folder {
            None => db.read(sql!("files/list_newest"), &[&user, &page.size, &page.offset]),
            Some(folder) => {
                let params: SqlParams = &[&user, &page.size, &page.offset, folder];
                db.read(sql!("files/list_newest_in_folder"), params)
            }
        }?;
    }
    // Past the end of the list that query finds no row, and so no total.
    if rows.is_empty() && !(query.is_default() && page.offset == 0) {
        rows = matching_rows(db, sql!("files/list"), user, query, page)?;
    }
    let total = rows.first().map_or(0, |row| row.get("total"));
    Ok((rows.iter().filter_map(from_row).collect(), total))
}

/// Runs one of the queries for lists in any order and with any filter.
pub fn matching_rows(
    db: &Database,
    sql: &'static str,
    user: Uuid,
    query: &FileQuery,
    page: PageRequest,
) -> Result<Vec<Row>, Error> {
    let FileQuery { search, content_type, folder, below, received, sort, descending } = query;
    db.read_unprepared(
        sql,
        &[
            (&user, Type::UUID),
            (search, Type::TEXT),
            (content_type, Type::TEXT_ARRAY),
            (&sort.column(), Type::TEXT),
            (descending, Type::BOOL),
            (&page.size, Type::INT8),
            (&page.offset, Type::INT8),
            (folder, Type::TEXT),
            (below, Type::TEXT),
            (received, Type::BOOL),
        ],
        None,
    )
}

/// Returns those of `ids` that have no record, in the order of ids, without those that are listed for removal; none if
/// the server is a standby. Files of deleted users have one until the background thread removes it.
pub fn unrecorded(db: &Database, ids: &[Uuid]) -> Result<Vec<Uuid>, Error> {
    let rows = db.read(sql!("files/unrecorded"), &[&ids])?;
    Ok(rows.iter().map(|row| row.get("id")).collect())
}

/// Whether a backup is running, which may need contents whose record is gone by now.
pub fn is_backup_running(db: &Database) -> Result<bool, Error> {
    Ok(one_row(db.read(sql!("db/backup_is_running"), &[])?)?.get("is_running"))
}
