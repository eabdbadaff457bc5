//! Queries for all that lies in a folder. Folders are in the form of the column `files.folder`.

use uuid::Uuid;

use crate::db::{Database, sql};
use crate::error::{Error, FieldError, FieldLocation};
use crate::model::file::FileQuotas;
use crate::model::problems::value_error;

/// Returns up to `limit` folders directly in `folder`, in the order of their names, that come after the name `after`.
pub fn list(
    db: &Database,
    user: Uuid,
    folder: &str,
    after: &str,
    limit: i64,
) -> Result<Vec<String>, Error> {
    let rows = db.read(sql!("folders/list"), &[&user, &folder, &after, &limit])?;
    Ok(rows.iter().map(|row| row.get("folder")).collect())
}

/// Moves up to 1,000 files that lie in `from` or below it into `to` or below that. Returns how many, and how many
/// remain. Fails with [`Error::FolderNotFound`] if nothing lies there.
pub fn move_files(db: &Database, user: Uuid, from: &str, to: &str) -> Result<(i64, i64), Error> {
    let rows = db.write(sql!("folders/move"), &[&user, &from, &to, &db.address, &db.request_id])?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    let problem = match row.get("problem") {
        Some("too long") => "A folder would be too long or too deep there",
        Some(_) => {
            "More than 1,000 files cannot be moved to where a folder of the same name lies in them"
        }
        None => {
            let moved: Option<i64> = row.get("moved");
            return Ok((moved.ok_or(Error::FolderNotFound)?, row.get("remaining")));
        }
    };
    let (location, problem) = (FieldLocation::Body, value_error(problem));
    Err(Error::Invalid(vec![FieldError { location, field: Some("to"), problem }]))
}

/// Deletes up to 1,000 files that lie in `folder` or below it. Returns how many, and how many remain. Fails with
/// [`Error::FolderNotFound`] if nothing lies there.
pub fn delete(
    db: &Database,
    user: Uuid,
    folder: &str,
    is_restorable: bool,
    quotas: &FileQuotas,
) -> Result<(i64, i64), Error> {
    let (bytes, files) = (quotas.user_bytes as i64, i64::from(quotas.user_files));
    let rows = db.write(
        sql!("folders/delete"),
        &[&user, &folder, &db.address, &db.request_id, &is_restorable, &bytes, &files],
    )?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    match row.get("deleted") {
        0 => Err(Error::FolderNotFound),
        deleted => Ok((deleted, row.get("remaining"))),
    }
}
