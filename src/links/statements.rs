//! Table `file_links`: the links by which anyone may download files for a while, or send some. A trigger on `users`
//! removes those of a user whose password changes or whose account is deleted.

use postgres::Row;
use serde::Serialize;
use uuid::Uuid;

use crate::db::{Database, SqlParams, from_row, sql, user_from_row};
use crate::error::{Error, Forbidden, TokenProblem};
use crate::files::statements as files;
use crate::model::file::{File, folder_path};
use crate::model::rules;
use crate::model::timestamp::Timestamp;
use crate::model::user::User;

/// The longest note for whoever has a link, in characters: longer than a name of a file.
pub const MAX_NOTE: usize = 1000;
/// The maximum number of live links of one user.
const MAX_LINKS_OF_USER: i64 = 1000;
/// The most memory that all of them take, in bytes: their rows and records, or these and their JSON, see
/// [`rules::FILE_MEMORY`].
pub const OWN_LINKS_MEMORY: usize =
    MAX_LINKS_OF_USER as usize * (2 * (4 * MAX_NOTE + rules::MAX_FOLDER) + 1024);
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
    /// The folder to which files are sent by it.
    pub upload_to: Option<String>,
    pub max_files: Option<i32>,
    pub max_bytes: Option<i64>,
    pub note: Option<String>,
    pub notify: Option<bool>,
    /// How many files came by it, and their bytes, whatever became of them since.
    pub received_files: Option<i32>,
    pub received_bytes: Option<i64>,
    /// The hour in which a file was last downloaded or sent by it.
    pub last_used_at: Option<Timestamp>,
}

/// What a link is for, if that is not one file. Folders are in the form of the column `files.folder`.
pub enum Target {
    Files(Vec<Uuid>),
    Folder(String),
    /// Files are sent to the folder.
    SendTo(String, SentFiles),
}

/// The owner's choices for what is sent by a link.
pub struct SentFiles {
    pub max_files: i32,
    pub max_bytes: i64,
    /// What whoever has the link is told.
    pub note: Option<String>,
    /// Whether mail tells the owner that files came.
    pub notify: bool,
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

/// Stores a link of `user` for a target. Fails as [`insert`] does, with [`Error::FileNotFound`] if one of the files is
/// not the user's, and with [`Error::NotPermitted`] if a young account would ask for files while anyone may register.
pub fn insert_for(
    db: &Database,
    target: &Target,
    (user, version): (Uuid, Option<i32>),
    link: &NewFileLink,
    hash: &LinkHash,
    is_open: bool,
) -> Result<FileLink, Error> {
    let (files, folder, send_to) = match target {
        Target::Files(files) => (Some(files), None, None),
        Target::Folder(folder) => (None, Some(folder), None),
        Target::SendTo(folder, sent) => (None, None, Some((folder, sent))),
    };
    let sent = send_to.map(|(_, sent)| sent);
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
            &send_to.map(|(folder, _)| folder),
            &sent.map(|sent| sent.max_files),
            &sent.map(|sent| sent.max_bytes),
            &sent.and_then(|sent| sent.note.as_deref()),
            &sent.map(|sent| sent.notify),
            &is_open,
        ],
    )?;
    let row = rows.first().ok_or(Error::InvalidToken(TokenProblem::SessionEnded))?;
    match (row.get("may_ask"), row.get("are_own")) {
        (false, _) => Err(Error::NotPermitted(Forbidden::YoungAccount)),
        (true, false) => Err(Error::FileNotFound),
        (true, true) => link_from_row(row).ok_or(Error::TooManyLinks),
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
        let path = |column| row.get::<_, Option<&str>>(column).map(folder_path);
        Some(from_row!(row => OwnLink {
            file_id, filename, files, max_files, max_bytes, note, notify, received_files, received_bytes, last_used_at;
            folder: path("folder"), upload_to: path("upload_to"), link: link
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
    /// Whether files are sent by it.
    pub receives_files: bool,
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
        is_utf8, link_id, is_to_several, receives_files, link_folder, inline, is_first_use, created_at, expires_at,
        sender;
        file: files::from_row(row)
    }))
}

/// A live link by which files are sent.
pub struct LinkToSend {
    pub id: Uuid,
    pub owner: User,
    /// In the form of the column `files.folder`.
    pub folder: String,
    pub note: Option<String>,
    pub expires_at: Timestamp,
    /// What the owner is called.
    pub sender: Option<String>,
    /// How many files it still takes.
    pub files_left: i32,
    /// How many bytes it takes, and how many came.
    pub max_bytes: i64,
    pub received_bytes: i64,
}

/// Finds the live link to send files by with this hash. Fails with [`Error::LinkNotFound`], also while its owner is not
/// active.
pub fn find_to_send(db: &Database, hash: &LinkHash) -> Result<LinkToSend, Error> {
    let rows = db.read(sql!("links/find_to_send"), &[&hash.as_slice()])?;
    let row = rows.first().ok_or(Error::LinkNotFound)?;
    Ok(from_row!(row => LinkToSend {
        note, expires_at, sender, files_left, max_bytes, received_bytes;
        id: row.get("link_id"), folder: row.get("upload_to"), owner: user_from_row(row)
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
