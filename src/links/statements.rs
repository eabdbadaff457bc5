//! Table `file_links`: the links by which anyone may download a file for a while. A trigger on `users` removes those of
//! a user whose password changes or whose account is deleted.

use postgres::Row;
use uuid::Uuid;

use crate::db::{Database, SqlParams, from_row, sql};
use crate::error::{Error, Forbidden, TokenProblem};
use crate::files::statements as files;
use crate::model::file::{File, FileLink};

/// The maximum number of live links of one user.
const MAX_LINKS_OF_USER: i64 = 1000;
/// The maximum number of live links to one file.
const MAX_LINKS_OF_FILE: i64 = 100;

/// The SHA-256 of a link's token, under which it is stored.
pub type LinkHash = [u8; 32];

/// The owner's choices for a new link.
pub struct NewFileLink {
    /// Whether browsers show the file in place of saving it.
    pub inline: bool,
    /// Its lifetime in minutes.
    pub minutes: i32,
}

/// Stores a link to a file of `user`. `version` is that of the credentials with which the request was authenticated.
/// Fails with [`Error::FileNotFound`], [`Error::NotPermitted`] or [`Error::TooManyLinks`], or with
/// [`Error::InvalidToken`] if the account has changed since.
pub fn insert(
    db: &Database,
    file: Uuid,
    (user, version): (Uuid, Option<i32>),
    link: &NewFileLink,
    hash: &LinkHash,
) -> Result<FileLink, Error> {
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
        (true, true) => link_from_row(row).ok_or(Error::TooManyLinks),
    }
}

/// The live links to a file of `user`, newest first. Fails with [`Error::FileNotFound`] or [`Error::NotPermitted`].
pub fn list(db: &Database, file: Uuid, user: Uuid) -> Result<Vec<FileLink>, Error> {
    let rows = db.read(sql!("links/list"), &[&file])?;
    owned_row(&rows, user)?;
    Ok(rows.iter().filter_map(link_from_row).collect())
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

/// Finds the file that the live link with this hash is to, whether browsers show it, and whether all of its content is
/// UTF-8 without NUL. Fails with [`Error::LinkNotFound`], also while the owner of the file is not active.
pub fn find_file(db: &Database, hash: &LinkHash) -> Result<(File, bool, bool), Error> {
    let rows = db.read(sql!("links/find_file"), &[&hash.as_slice()])?;
    let row = rows.first().ok_or(Error::LinkNotFound)?;
    Ok((files::from_row(row).ok_or(Error::LinkNotFound)?, row.get("inline"), row.get("is_utf8")))
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
