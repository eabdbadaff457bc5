//! Records of uploads. Those that come while others are recorded wait for that, and are recorded together: a commit
//! for each of them would be most of what an upload costs.

use std::slice;
use std::sync::Arc;

use postgres::Row;

use super::statements::from_row;
use crate::db::batches::Batches;
use crate::db::{Database, SqlParams, sql};
use crate::error::Error;
use crate::model::file::{File, FileQuotas, KeyedUpload, NewFile};
use crate::repeats;

/// What became of an upload.
pub enum Recorded {
    New(File),
    /// It has the key of an earlier one, and nothing was changed.
    Known(KeyedUpload),
}

/// Records a file, unless its key is known. Fails with [`Error::StorageFull`] if it does not fit into all quotas,
/// with [`Error::RateLimited`] if the owner has too many keys, or with [`Error::UserNotUsable`] if the owner is
/// deleted or inactive.
pub fn record(
    batches: &Batches<Arc<NewFile>, Option<File>>,
    db: &Database,
    file: &Arc<NewFile>,
    quotas: &FileQuotas,
) -> Result<Recorded, Error> {
    let record = |files: &[Arc<NewFile>]| match files {
        [file] => Ok(vec![Some(insert_alone(db, file, quotas)?)]),
        // The time was this request's. The others may have more, and nothing was changed.
        files => match insert_many(db, files, quotas) {
            Err(Error::TimedOut | Error::Unavailable) => Ok(vec![None; files.len()]),
            rows => rows.map(|rows| in_order(files, &rows)),
        },
    };
    let recorded = match db.timed(|_| batches.submit(file.clone(), record)) {
        Ok(None) => insert_alone(db, file, quotas),
        recorded => recorded.and_then(|file| file.ok_or(Error::StorageFull)),
    };
    match (recorded, &file.key) {
        // The statement does not say whether it was the quota or the key.
        (Err(Error::StorageFull), Some(key)) => {
            let known = repeats::find(db, file.link.unwrap_or(file.user), key)?;
            known.map(Recorded::Known).ok_or(Error::StorageFull)
        }
        (recorded, _) => recorded.map(Recorded::New),
    }
}

/// Records one file, if it fits into all quotas, its key is not known, and the owner may have another key.
fn insert_alone(db: &Database, file: &Arc<NewFile>, quotas: &FileQuotas) -> Result<File, Error> {
    let rows = insert_many(db, slice::from_ref(file), quotas)?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    from_row(row).ok_or(Error::StorageFull)
}

/// The recorded files in the order of `files`, and `None` for those that are not among the rows.
fn in_order(files: &[Arc<NewFile>], rows: &[Row]) -> Vec<Option<File>> {
    let mut recorded: Vec<File> = rows.iter().filter_map(from_row).collect();
    let mut take = |file: &Arc<NewFile>| {
        let position = recorded.iter().position(|recorded| recorded.id == file.id)?;
        Some(recorded.swap_remove(position))
    };
    files.iter().map(&mut take).collect()
}

/// Records one file, or those of several that certainly fit into all quotas. The parameters are arrays, because reading
/// records from JSON makes the statement 4 % slower.
fn insert_many(
    db: &Database,
    files: &[Arc<NewFile>],
    quotas: &FileQuotas,
) -> Result<Vec<Row>, Error> {
    fn each<'a, T>(files: &'a [Arc<NewFile>], field: impl Fn(&'a NewFile) -> T) -> Vec<T> {
        files.iter().map(|file| field(file)).collect()
    }
    let params: SqlParams = &[
        &each(files, |file| file.id),
        &each(files, |file| file.user),
        &each(files, |file| &*file.filename),
        &each(files, |file| &*file.content_type),
        &each(files, |file| file.size as i64),
        &each(files, |file| &*file.hash),
        &each(files, |file| file.description.as_deref()),
        &each(files, |file| file.address),
        &each(files, |file| file.request_id),
        &(quotas.user_bytes as i64),
        &i64::from(quotas.user_files),
        &(quotas.service_bytes as i64),
        &(quotas.young_bytes as i64),
        &each(files, |file| file.key.as_deref()),
        &each(files, |file| file.key.as_ref().map(|_| file.request_hash())),
        &each(files, |file| file.is_utf8),
        &each(files, |file| &*file.folder),
        &each(files, |file| file.crc32.cast_signed()),
        &each(files, |file| file.link),
        &each(files, |file| file.partial),
    ];
    match files.len() {
        1 => db.write(sql!("files/insert_many"), params),
        _ => db.write_of_many(sql!("files/insert_many"), params),
    }
}
