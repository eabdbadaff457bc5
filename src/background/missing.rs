//! Looks for files whose content is missing, as after an old copy of it was put back.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use uuid::Uuid;

use super::{POLL_PERIOD, attempt};
use crate::db::Database;
use crate::db::contents;
use crate::error::Error;
use crate::storage::Storage;

/// Starts a thread that looks at all files once, and logs how many have no content, if any. A start need not wait for
/// it. It rests as long as it works, so that it leaves disk and database to requests.
pub fn look_once(storage: Arc<Storage>, db: Arc<Database>) -> io::Result<()> {
    let work = move || {
        let (mut last, mut count) = (Uuid::nil(), 0);
        loop {
            let began = Instant::now();
            let step = || find_after(&storage, &db, last);
            match attempt(&db, "looking for missing contents", step) {
                Some(Some((newest, found))) => {
                    last = newest;
                    count += found.len();
                    thread::sleep(began.elapsed());
                }
                Some(None) => break,
                None => thread::sleep(POLL_PERIOD),
            }
        }
        if count == 0 {
            return;
        }
        let (place, setting) = storage.place();
        match storage.trash() {
            Some(_) => log::warn!(
                "{count} files have no content in {place}/files, and cannot be downloaded: `cloakroom check` names \
                 them, and `cloakroom check --repair` brings back those that the trash has"
            ),
            None => log::warn!(
                "{count} files have no content in {place} ({setting}), and cannot be downloaded: `cloakroom check` \
                 names them"
            ),
        }
    };
    thread::Builder::new().name("missing".into()).spawn(work).map(drop)
}

/// Looks at the thousand files after the id `after`, in the order of ids. Returns the last of their ids, and those
/// whose content is missing; `None` if no file is left. Files of deleted users do not count, because their contents are
/// removed before their records.
pub fn find_after(
    storage: &Storage,
    db: &Database,
    after: Uuid,
) -> Result<Option<(Uuid, Vec<Uuid>)>, Error> {
    let recorded = contents::contents_after(db, after)?;
    let Some(newest) = recorded.last() else { return Ok(None) };
    let mut missing: Vec<Uuid> = recorded.iter().map(|content| content.id).collect();
    let sizes = storage.sizes(&missing)?;
    missing.retain(|id| !sizes.contains_key(id));
    if !missing.is_empty() {
        // A file or its owner may have been deleted since the records were read.
        let recorded = contents::contents_after(db, after)?;
        missing.retain(|id| recorded.iter().any(|content| content.id == *id));
    }
    Ok(Some((newest.id, missing)))
}
