//! Records of uploads. Those that come while others are recorded wait for that, and are recorded together: a commit
//! for each of them would be most of what an upload costs.

use std::sync::Arc;
use std::time::Duration;

use super::statements::from_row;
use crate::db::batches::Batches;
use crate::db::{Database, sql};
use crate::error::Error;
use crate::model::file::{File, FileQuotas, KeyedUpload, NewFile};
use crate::repeats;

/// How long an upload waits for those that are being recorded, before it is recorded beside them.
const MAX_QUEUED: Duration = Duration::from_millis(20);

/// What became of an upload.
pub enum Recorded {
    New(File),
    /// It has the key of an earlier one, and nothing was changed.
    Known(KeyedUpload),
}

/// The uploads that wait to be recorded.
pub struct Uploads(Batches<Arc<NewFile>, Option<File>>);

impl Uploads {
    pub fn new() -> Uploads {
        // The files of each statement are committed at once, so the fewer statements there are, the fewer commits.
        Uploads(Batches::new(1, MAX_QUEUED))
    }

    /// Records a file, unless its key is known. Fails with [`Error::StorageFull`] if it does not fit into all quotas,
    /// with [`Error::RateLimited`] if the owner has too many keys, or with [`Error::UserNotUsable`] if the owner is
    /// deleted or inactive.
    pub fn record(
        &self,
        db: &Database,
        file: &Arc<NewFile>,
        quotas: &FileQuotas,
    ) -> Result<Recorded, Error> {
        let record = |files: &[Arc<NewFile>]| match files {
            [file] => Ok(vec![Some(insert(db, file, quotas)?)]),
            // The time was this request's. The others may have more, and nothing was changed.
            files => match insert_many(db, files, quotas) {
                Err(Error::TimedOut | Error::Unavailable) => Ok(vec![None; files.len()]),
                outcome => outcome,
            },
        };
        let recorded = match db.timed(|_| self.0.submit(file.clone(), record)) {
            Ok(None) => insert(db, file, quotas),
            recorded => recorded.and_then(|file| file.ok_or(Error::StorageFull)),
        };
        match (recorded, &file.key) {
            // The statement does not say whether it was the quota or the key.
            (Err(Error::StorageFull), Some(key)) => {
                let known = repeats::find(db, file.user, key)?;
                known.map(Recorded::Known).ok_or(Error::StorageFull)
            }
            (recorded, _) => recorded.map(Recorded::New),
        }
    }
}

/// Records those of the files that certainly fit into all quotas. Returns them in the order of `files`.
fn insert_many(
    db: &Database,
    files: &[Arc<NewFile>],
    quotas: &FileQuotas,
) -> Result<Vec<Option<File>>, Error> {
    fn each<'a, T>(files: &'a [Arc<NewFile>], field: impl Fn(&'a NewFile) -> T) -> Vec<T> {
        files.iter().map(|file| field(file)).collect()
    }
    let rows = db.write_of_many(
        sql!("files/insert_many"),
        &[
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
        ],
    )?;
    let mut recorded: Vec<File> = rows.iter().filter_map(from_row).collect();
    let mut take = |file: &Arc<NewFile>| {
        let position = recorded.iter().position(|recorded| recorded.id == file.id)?;
        Some(recorded.swap_remove(position))
    };
    Ok(files.iter().map(&mut take).collect())
}

fn insert(db: &Database, file: &NewFile, quotas: &FileQuotas) -> Result<File, Error> {
    let rows = db.write(
        sql!("files/insert"),
        &[
            &file.id,
            &file.user,
            &file.filename,
            &file.content_type,
            &(file.size as i64),
            &file.hash,
            &file.description,
            &(quotas.user_bytes as i64),
            &i64::from(quotas.user_files),
            &(quotas.service_bytes as i64),
            &file.address,
            &file.request_id,
            &(quotas.young_bytes as i64),
            &file.key,
            &file.key.as_ref().map(|_| file.request_hash()),
            &file.is_utf8,
        ],
    )?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    from_row(row).ok_or(Error::StorageFull)
}
