//! Changes of many files of a user, and the published files of all users.

use postgres::Row;
use serde::Serialize;
use uuid::Uuid;

use crate::db::{Database, SqlParams, sql};
use crate::error::Error;
use crate::files::statements::from_row;
use crate::model::file::{File, FileQuotas};
use crate::model::position::TimePosition;

/// Deletes those of these files that `user` has, in this order, and returns them. If they are restorable, others that
/// the user has deleted may go for good, as with a single deletion.
pub fn delete(
    db: &Database,
    user: Uuid,
    ids: &[Uuid],
    is_restorable: bool,
    quotas: &FileQuotas,
) -> Result<Vec<Uuid>, Error> {
    let (bytes, files) = (quotas.user_bytes as i64, i64::from(quotas.user_files));
    let sql = sql!("files/delete_many");
    let rows =
        db.write(sql, &[&user, &ids, &db.address, &db.request_id, &is_restorable, &bytes, &files])?;
    Ok(rows.iter().map(|row| row.get("file_id")).collect())
}

/// Makes those of these files that `user` has public or private, and moves them into a folder, in this order; `None`
/// leaves that as it is. Returns them, also those that are so already and stay as they are.
pub fn update(
    db: &Database,
    user: Uuid,
    ids: &[Uuid],
    is_public: Option<bool>,
    folder: Option<&str>,
) -> Result<Vec<Uuid>, Error> {
    let sql = sql!("files/update_many");
    let rows = db.write(sql, &[&user, &ids, &is_public, &folder, &db.address, &db.request_id])?;
    Ok(rows.iter().map(|row| row.get("file_id")).collect())
}

/// A file that its owner has published.
#[derive(Serialize)]
pub struct PublicFile {
    #[serde(flatten)]
    pub file: File,
    pub owner: FileOwner,
}

#[derive(Serialize)]
pub struct FileOwner {
    id: Uuid,
    /// The display name or the username, if there is one of them.
    name: Option<String>,
}

/// Returns up to `limit` published files of active accounts that follow `after`, the latest upload first, and where the
/// next page begins, if there may be one. With `hides_young` others' files are those of accounts that did not register
/// themselves or are older than seven days. A query looks at 10,000 files, so it may find fewer than `limit`.
pub fn list_public(
    db: &Database,
    user: Uuid,
    search: Option<&str>,
    hides_young: bool,
    after: TimePosition,
    limit: i64,
) -> Result<(Vec<PublicFile>, Option<TimePosition>), Error> {
    // One more than asked for tells whether there are others.
    let wanted = limit + 1;
    let params: SqlParams = &[&user, &search, &hides_young, &after.at.0, &after.id, &wanted];
    let rows = db.read(sql!("files/list_public"), params)?;
    let place = |row: &Row| TimePosition { at: row.get("upload_date"), id: row.get("id") };
    // A row without an owner is the last file that was looked at.
    let is_file = |row: &&Row| row.get::<_, Option<Uuid>>("user_id").is_some();
    let next = match rows.last() {
        Some(last) if !is_file(&last) => Some(place(last)),
        _ if rows.len() as i64 > limit => rows.iter().rev().nth(1).map(place),
        _ => None,
    };
    let files = rows.iter().filter(is_file).take(limit as usize).filter_map(|row| {
        let mut file = from_row(row)?;
        if file.user_id != user {
            (file.folder, file.received_by) = (None, None);
        }
        let owner = FileOwner { id: file.user_id, name: row.get("owner_name") };
        Some(PublicFile { file, owner })
    });
    Ok((files.collect(), next))
}
