//! Keeps the directory of contents and its records together.

use std::path::Path;

use uuid::Uuid;

use crate::db::{self, Database};
use crate::error::Error;
use crate::storage::Storage;

/// Removes what no record owns and is older than an hour; logs each path and tells it to `removed`.
pub fn sweep(files: &Storage, db: &Database, removed: &mut dyn FnMut(&Path)) -> Result<(), Error> {
    files.sweep(&|ids| db::files::recorded(db, ids), &mut |path| {
        log::info!("removed {}, which no record owns", path.display());
        removed(path);
    })
}

/// Tells `missing` each record without a content.
pub fn check(files: &Storage, db: &Database, missing: &mut dyn FnMut(Uuid)) -> Result<(), Error> {
    let mut last = Uuid::nil();
    loop {
        let mut ids = db::files::ids_after(db, last)?;
        let Some(newest) = ids.last() else {
            return Ok(());
        };
        last = *newest;
        ids.retain(|id| !files.has(*id));
        // A file may have been deleted since its record was read.
        for id in db::files::recorded(db, &ids)? {
            log::error!("the content of file {id} is missing");
            missing(id);
        }
    }
}
