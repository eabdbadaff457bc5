//! Compares the directory of contents with the records in the database.

use std::path::PathBuf;

use uuid::Uuid;

use crate::db::{self, Database};
use crate::error::Error;
use crate::storage::Storage;

/// Removes contents without a record and unfinished uploads, both over an hour old. Returns the paths of what is gone.
pub fn remove_orphans(storage: &Storage, db: &Database) -> Result<Vec<PathBuf>, Error> {
    // Nothing is removed before all lookups have succeeded, so no error hides what was removed.
    let orphans = orphans(storage, db)?;
    let mut removed = storage.remove_old_drafts()?;
    removed.extend(orphans.into_iter().filter_map(|id| storage.remove(id)));
    for path in &removed {
        log::info!("removed {}, which no record owns", path.display());
    }
    Ok(removed)
}

/// Returns the ids of old contents without a record. The records are looked up after the directory was read: a content
/// that is old and has no record by then never gets one, because uploads record theirs at once.
fn orphans(storage: &Storage, db: &Database) -> Result<Vec<Uuid>, Error> {
    let mut orphans = Vec::new();
    for batch in storage.old_contents()? {
        let batch = batch?;
        let recorded = db::files::recorded(db, &batch)?;
        orphans.extend(batch.into_iter().filter(|id| !recorded.contains(id)));
    }
    Ok(orphans)
}

/// Returns the ids of records whose content is missing, and logs each.
pub fn missing_contents(storage: &Storage, db: &Database) -> Result<Vec<Uuid>, Error> {
    let mut missing = Vec::new();
    let mut last = Uuid::nil();
    loop {
        let mut ids = db::files::ids_after(db, last)?;
        let Some(newest) = ids.last() else {
            return Ok(missing);
        };
        last = *newest;
        ids.retain(|id| !storage.has(*id));
        // A file may have been deleted since its record was read, so only what still has one is missing.
        for id in db::files::recorded(db, &ids)? {
            log::error!("the content of file {id} is missing");
            missing.push(id);
        }
    }
}
