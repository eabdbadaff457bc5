//! Table `partial_uploads`: uploads that come in several requests. What they keep of quotas goes with their rows.

use std::net::IpAddr;

use postgres::Row;
use serde::{Serialize, Serializer};
use uuid::Uuid;

use super::metadata::FileToCome;
use crate::db::{Database, SqlParams, from_row, one_row, sql};
use crate::error::Error;
use crate::error::partial::PartialError;
use crate::model::file::{FileQuotas, folder_path};
use crate::model::timestamp::Timestamp;

/// Most uploads at once of a user, and by a link.
const MAX_OF_USER: i64 = 100;
const MAX_OF_LINK: i64 = 20;
/// When a client may try again that has too many.
const PAUSE: i64 = 60;

/// Whose an upload is: its owner's, and that of a link if it comes by one.
#[derive(Clone, Copy)]
pub struct Whose {
    pub user: Uuid,
    pub link: Option<Uuid>,
}

/// An upload that comes in several requests.
#[derive(Serialize)]
pub struct PartialUpload {
    pub id: Uuid,
    pub filename: String,
    #[serde(serialize_with = "as_path")]
    pub folder: String,
    /// How long the file will be.
    pub file_size: i64,
    /// How many bytes have come: as the row says, the synced ones.
    #[serde(rename = "offset")]
    pub file_offset: i64,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The link by which it comes.
    #[serde(rename = "received_by")]
    pub link_id: Option<Uuid>,
    /// The id that the file will have.
    #[serde(skip)]
    pub file_id: Uuid,
    #[serde(skip)]
    pub declared_type: Option<String>,
    #[serde(skip)]
    pub description: Option<String>,
    #[serde(skip)]
    pub sha256: Option<String>,
    /// What follows from the synced bytes.
    #[serde(skip)]
    pub state: Option<Vec<u8>>,
    /// The boot of the host that wrote what is not synced.
    #[serde(skip)]
    pub boot: Option<String>,
    /// How many bytes count towards quotas that many share.
    #[serde(skip)]
    pub charged: i64,
    /// Whether the file has a record.
    #[serde(skip)]
    pub is_complete: bool,
    /// The version of the file, if it is there.
    #[serde(skip)]
    pub version: Option<i32>,
}

fn as_path<S: Serializer>(folder: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&folder_path(folder))
}

impl PartialUpload {
    fn of(row: &Row) -> PartialUpload {
        from_row!(row => PartialUpload {
            id, filename, folder, file_size, file_offset, created_at, expires_at, link_id, file_id, declared_type,
            description, sha256, state, boot, charged, is_complete, version
        })
    }

    pub fn size(&self) -> u64 {
        self.file_size.unsigned_abs()
    }

    /// How many bytes are certainly on the disk.
    pub fn synced(&self) -> u64 {
        self.file_offset.unsigned_abs()
    }
}

/// Begins an upload. Returns its id, when it expires, and the uploads that have ended for it. Fails with
/// [`Error::StorageFull`] if its length does not fit into what owner or link have left, with [`Error::RateLimited`] if
/// there are too many, and with [`Error::UserNotUsable`].
pub fn insert(
    db: &Database,
    whose: Whose,
    network: Option<IpAddr>,
    file: &FileToCome,
    quotas: &FileQuotas,
) -> Result<(Uuid, Timestamp, Vec<Uuid>), Error> {
    let id = Uuid::new_v4();
    let (file_id, most) = match whose.link {
        Some(_) => (Uuid::new_v4(), MAX_OF_LINK),
        None => (id, MAX_OF_USER),
    };
    let params: SqlParams = &[
        &whose.user,
        &whose.link,
        &network,
        &id,
        &file_id,
        &file.folder.as_deref().unwrap_or_default(),
        &file.filename,
        &file.declared_type,
        &file.description,
        &file.sha256,
        &file.size.cast_signed(),
        &quotas.user_bytes.cast_signed(),
        &i64::from(quotas.user_files),
        &most,
    ];
    let rows = db.write(sql!("partial/insert"), params)?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    match row.get("expires_at") {
        Some(expires_at) => Ok((id, expires_at, row.get("ended"))),
        None if row.get("is_too_many") => Err(Error::wait(PAUSE)),
        None => Err(Error::StorageFull),
    }
}

/// Finds an upload. Fails with [`PartialError::NotFound`].
pub fn find(db: &Database, id: Uuid, whose: Whose) -> Result<PartialUpload, Error> {
    let rows = db.read(sql!("partial/find"), &[&id, &whose.user, &whose.link])?;
    rows.first().map(PartialUpload::of).ok_or(Error::Partial(PartialError::NotFound))
}

/// The uploads of a user, and by the user's links, that are not complete, at most so many: first of all its own.
pub fn list(db: &Database, user: Uuid, most: i64) -> Result<Vec<PartialUpload>, Error> {
    Ok(db.read(sql!("partial/list"), &[&user, &most])?.iter().map(PartialUpload::of).collect())
}

/// How far an upload has come.
pub struct Progress<'a> {
    pub synced: u64,
    pub state: &'a [u8],
    pub boot: &'a str,
    /// How many bytes are to count towards quotas that many share.
    pub charge: u64,
}

/// Notes how far an upload has come. Fails, and notes nothing, with [`Error::StorageFull`] if what is to count does not
/// fit, and with [`PartialError::NotFound`] if it has ended.
pub fn advance(
    db: &Database,
    id: Uuid,
    progress: &Progress,
    quotas: &FileQuotas,
) -> Result<(), Error> {
    let params: SqlParams = &[
        &id,
        &progress.synced.cast_signed(),
        &progress.state,
        &progress.boot,
        &progress.charge.cast_signed(),
        &quotas.user_bytes.cast_signed(),
        &quotas.service_bytes.cast_signed(),
        &quotas.young_bytes.cast_signed(),
    ];
    match one_row(db.write(sql!("partial/advance"), params)?)?.get("fits") {
        Some(true) => Ok(()),
        Some(false) => Err(Error::StorageFull),
        None => Err(Error::Partial(PartialError::NotFound)),
    }
}

/// Ends an upload, also one by a link if its owner asks for that. Returns the file that it was to be, if that has no
/// record. Fails with [`PartialError::NotFound`].
pub fn delete(db: &Database, id: Uuid, whose: Whose) -> Result<Option<Uuid>, Error> {
    let rows = db.write(sql!("partial/delete"), &[&id, &whose.user, &whose.link])?;
    let row = rows.first().ok_or(Error::Partial(PartialError::NotFound))?;
    Ok(row.get("file_id"))
}

/// Removes up to `limit` uploads whose time is over. Returns each, with the file that it was to be, if that has no
/// record.
pub fn expire(db: &Database, limit: i64) -> Result<Vec<(Uuid, Option<Uuid>)>, Error> {
    let rows = db.write(sql!("partial/expire"), &[&limit])?;
    Ok(rows.iter().map(|row| (row.get("id"), row.get("file_id"))).collect())
}

/// Those of these uploads that are none any more.
pub fn ended(db: &Database, ids: &[Uuid]) -> Result<Vec<Uuid>, Error> {
    let rows = db.read(sql!("partial/ended"), &[&ids])?;
    Ok(rows.iter().map(|row| row.get("id")).collect())
}
