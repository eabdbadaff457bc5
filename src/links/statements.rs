//! Table `file_links`: the links by which anyone may download files for a while. A trigger on `users` removes those of
//! a user whose password changes or whose account is deleted.

use postgres::Row;
use serde::Serialize;
use uuid::Uuid;

use crate::db::{Database, SqlParams, from_row, sql};
use crate::error::{Error, Forbidden, TokenProblem};
use crate::files::statements as files;
use crate::model::file::{File, folder_path};
use crate::model::rules;
use crate::model::timestamp::Timestamp;

/// The maximum number of live links of one user.
const MAX_LINKS_OF_USER: i64 = 1000;
/// The most memory that all of them take, in bytes: their rows and records, or these and their JSON, see
/// [`rules::FILE_MEMORY`].
pub const OWN_LINKS_MEMORY: usize =
    MAX_LINKS_OF_USER as usize * (2 * (4 * rules::MAX_FILENAME + rules::MAX_FOLDER) + 1024);
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
    pub file_id: Option<Uuid>,
    pub filename: Option<String>,
    /// How many there are of several.
    pub files: Option<i32>,
    pub folder: Option<String>,
    /// The hour in which the file was last downloaded by it.
    pub last_used_at: Option<Timestamp>,
}

/// What a link is to, if that is not one file.
pub enum Several {
    Files(Vec<Uuid>),
    /// In the form of the column `files.folder`.
    Folder(String),
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

/// Stores a link to several files of `user`, or to a folder. Fails as [`insert`] does, and with [`Error::FileNotFound`]
/// if one of the files is not the user's.
pub fn insert_to_several(
    db: &Database,
    several: &Several,
    (user, version): (Uuid, Option<i32>),
    link: &NewFileLink,
    hash: &LinkHash,
) -> Result<FileLink, Error> {
    let (files, folder) = match several {
        Several::Files(files) => (Some(files), None),
        Several::Folder(folder) => (None, Some(folder)),
    };
    let rows = db.write(
        sql!("links/insert_to_several"),
        &[
            &files,
            &user,
            &folder,
            &version,
            &Uuid::new_v4(),
            &hash.as_slice(),
            &link.inline,
            &link.minutes,
            &MAX_LINKS_OF_USER,
            &db.address,
            &db.request_id,
        ],
    )?;
    let row = rows.first().ok_or(Error::InvalidToken(TokenProblem::SessionEnded))?;
    match row.get("are_own") {
        false => Err(Error::FileNotFound),
        true => link_from_row(row).ok_or(Error::TooManyLinks),
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
        let folder: Option<String> = row.get("folder");
        Some(from_row!(row => OwnLink {
            file_id, filename, files, last_used_at; folder: folder.as_deref().map(folder_path), link: link
        }))
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

/// Ends one link of `user`. Fails with [`Error::LinkNotFound`].
pub fn end(db: &Database, user: Uuid, link: Uuid) -> Result<(), Error> {
    let params: SqlParams = &[&link, &user, &db.address, &db.request_id];
    db.write(sql!("links/end"), params)?.first().map(drop).ok_or(Error::LinkNotFound)
}

/// A link that is live, and a file that it is to.
pub struct FoundLink {
    /// `None` if the link is to several files and none of them was asked for.
    pub file: Option<File>,
    /// Whether all of its content is UTF-8 without NUL.
    pub is_utf8: Option<bool>,
    pub link_id: Uuid,
    pub is_to_several: bool,
    /// The folder that the link is to, in the form of the column `files.folder`.
    pub link_folder: Option<String>,
    /// Whether its owner wants browsers to show files.
    pub inline: bool,
    /// Whether a use now is the first one in this hour.
    pub is_first_use: bool,
    /// From when until when the link works.
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// What the owner is called.
    pub sender: Option<String>,
}

/// Finds the live link with this hash and the file that it is to, or, of several, the one with this id. Fails with
/// [`Error::LinkNotFound`], also while the owner of the files is not active.
pub fn find(db: &Database, hash: &LinkHash, file: Option<Uuid>) -> Result<FoundLink, Error> {
    let rows = db.read(sql!("links/find"), &[&hash.as_slice(), &file])?;
    let row = rows.first().ok_or(Error::LinkNotFound)?;
    Ok(from_row!(row => FoundLink {
        is_utf8, link_id, is_to_several, link_folder, inline, is_first_use, created_at, expires_at, sender;
        file: files::from_row(row)
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
