//! Table `file_links`: the links by which anyone may download a file for a while. A trigger on `users` removes those of
//! a user whose password changes or whose account is deleted.

use postgres::Row;
use serde::Serialize;
use uuid::Uuid;

use crate::db::{Database, SqlParams, from_row, sql};
use crate::error::{Error, Forbidden, TokenProblem};
use crate::files::statements as files;
use crate::model::file::File;
use crate::model::rules;
use crate::model::timestamp::Timestamp;

/// The maximum number of live links of one user.
const MAX_LINKS_OF_USER: i64 = 1000;
/// The most memory that all of them take, in bytes: their rows and records, or these and their JSON, see
/// [`rules::FILE_MEMORY`].
pub const OWN_LINKS_MEMORY: usize =
    MAX_LINKS_OF_USER as usize * (2 * 4 * rules::MAX_FILENAME + 1024);
/// The maximum number of live links to one file.
const MAX_LINKS_OF_FILE: i64 = 100;

/// The SHA-256 of a link's token, under which it is stored.
pub type LinkHash = [u8; 32];

/// A link by which anyone may download a file, without its secret part, of which the database holds only a hash.
#[derive(Debug, Clone, Serialize)]
pub struct FileLink {
    pub id: Uuid,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// Whether browsers show the file in place of saving it, if its type is one that they show safely.
    pub inline: bool,
}

/// One of all links of a user.
#[derive(Serialize)]
pub struct OwnLink {
    #[serde(flatten)]
    pub link: FileLink,
    pub file_id: Uuid,
    pub filename: String,
    /// The hour in which the file was last downloaded by it.
    pub last_used_at: Option<Timestamp>,
}

/// The owner's choices for a new link.
pub struct NewFileLink {
    /// Whether browsers show the file in place of saving it.
    pub inline: bool,
    /// Its lifetime in minutes.
    pub minutes: i32,
}

/// Stores a link to a file of `user`, and returns it with the file's name. `version` is that of the credentials with
/// which the request was authenticated. Fails with [`Error::FileNotFound`], [`Error::NotPermitted`] or
/// [`Error::TooManyLinks`], or with [`Error::InvalidToken`] if the account has changed since.
pub fn insert(
    db: &Database,
    file: Uuid,
    (user, version): (Uuid, Option<i32>),
    link: &NewFileLink,
    hash: &LinkHash,
) -> Result<(FileLink, String), Error> {
    let rows = db.write(
        sql!("links/insert"),
        &[
            &file,
            &user,
            &version,
            &Uuid::new_v4(),
            &hash.as_slice(),
            &link.inline,
            &link.minutes,
            &MAX_LINKS_OF_USER,
            &MAX_LINKS_OF_FILE,
            &db.address,
            &db.request_id,
        ],
    )?;
    let row = owned_row(&rows, user)?;
    match (row.get("is_unchanged"), row.get("is_there")) {
        (false, _) => Err(Error::InvalidToken(TokenProblem::SessionEnded)),
        (true, false) => Err(Error::FileNotFound),
        (true, true) => {
            let link = link_from_row(row).ok_or(Error::TooManyLinks)?;
            Ok((link, row.get("filename")))
        }
    }
}

/// The live links to a file of `user`, newest first. Fails with [`Error::FileNotFound`] or [`Error::NotPermitted`].
pub fn list(db: &Database, file: Uuid, user: Uuid) -> Result<Vec<FileLink>, Error> {
    let rows = db.read(sql!("links/list"), &[&file])?;
    owned_row(&rows, user)?;
    Ok(rows.iter().filter_map(link_from_row).collect())
}

/// All live links of `user`, newest first.
pub fn list_own(db: &Database, user: Uuid) -> Result<Vec<OwnLink>, Error> {
    let rows = db.read(sql!("links/list_own"), &[&user])?;
    let read = |row: &Row| {
        let link = link_from_row(row)?;
        Some(from_row!(row => OwnLink { file_id, filename, last_used_at; link: link }))
    };
    Ok(rows.iter().filter_map(read).collect())
}

/// Ends one link to a file of `user`. Fails with [`Error::FileNotFound`], [`Error::NotPermitted`] or
/// [`Error::LinkNotFound`].
pub fn delete(db: &Database, file: Uuid, user: Uuid, link: Uuid) -> Result<(), Error> {
    let params: SqlParams = &[&file, &user, &link, &db.address, &db.request_id];
    let rows = db.write(sql!("links/delete"), params)?;
    match owned_row(&rows, user)?.get("is_ended") {
        true => Ok(()),
        false => Err(Error::LinkNotFound),
    }
}

/// A file that a link is to.
pub struct LinkedFile {
    pub file: File,
    /// Whether all of its content is UTF-8 without NUL.
    pub is_utf8: bool,
    pub link_id: Uuid,
    /// Whether its owner wants browsers to show it.
    pub inline: bool,
    /// Whether a use now is the first one in this hour.
    pub is_first_use: bool,
    /// From when until when the link works.
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// What the owner is called.
    pub sender: Option<String>,
}

/// Finds the file that the live link with this hash is to. Fails with [`Error::LinkNotFound`], also while the owner of
/// the file is not active.
pub fn find_file(db: &Database, hash: &LinkHash) -> Result<LinkedFile, Error> {
    let rows = db.read(sql!("links/find_file"), &[&hash.as_slice()])?;
    let row = rows.first().ok_or(Error::LinkNotFound)?;
    let file = files::from_row(row).ok_or(Error::LinkNotFound)?;
    Ok(from_row!(row => LinkedFile {
        is_utf8, link_id, inline, is_first_use, created_at, expires_at, sender; file: file
    }))
}

/// Stores the hour of a use.
pub fn record_use(db: &Database, link: Uuid) {
    db.note(sql!("links/use"), &[&link], &format!("the use of link {link}"));
}

/// The first row of a query about a file's links, which says who the file's owner is.
fn owned_row(rows: &[Row], user: Uuid) -> Result<&Row, Error> {
    let row = rows.first().ok_or(Error::FileNotFound)?;
    match row.get::<_, Uuid>("owner_id") == user {
        true => Ok(row),
        false => Err(Error::NotPermitted(Forbidden::ForeignFile)),
    }
}

/// Reads a [`FileLink`]. `None` if the query joined no link to its row.
fn link_from_row(row: &Row) -> Option<FileLink> {
    row.get::<_, Option<Uuid>>("id")?;
    Some(from_row!(row => FileLink { id, created_at, expires_at, inline }))
}
