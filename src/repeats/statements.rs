//! Table `idempotency_keys`: the uploads of the last day that had a key, so that one that is sent again is answered as
//! the first was. The statement `files/insert_many` writes its rows.

use uuid::Uuid;

use crate::db::{Database, one_row, sql};
use crate::error::Error;
use crate::model::file::KeyedUpload;
use crate::model::timestamp::Timestamp;

/// Finds the upload that `sender`, a user or a link, has recorded with `key` within a day. Returns `None` for an
/// unknown key, or fails with [`Error::RateLimited`] if the sender already has 10,000 keys.
pub fn find(db: &Database, sender: Uuid, key: &str) -> Result<Option<KeyedUpload>, Error> {
    let row = one_row(db.read(sql!("repeats/find"), &[&sender, &key])?)?;
    if let Some(file) = row.get("file_id") {
        return Ok(Some(KeyedUpload {
            file,
            request_hash: row.get("request_hash"),
            size: u64::try_from(row.get::<_, i64>("file_size")).unwrap_or(0),
            created_at: Timestamp(row.get("created_at")),
        }));
    }
    match row.get::<_, Option<i64>>("retry_after") {
        Some(seconds) => {
            let retry_after = u64::try_from(seconds).unwrap_or(1);
            Err(Error::RateLimited { retry_after, login: false })
        }
        None => Ok(None),
    }
}
