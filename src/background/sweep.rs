//! Compares the directory of contents with the records in the database.

use std::path::Path;

use uuid::Uuid;

use super::Background;
use crate::db::{self, Database};
use crate::error::Error;
use crate::storage::Storage;

/// Up to this many contents without a record (orphans) are always moved to the trash.
const MAX_UNQUESTIONED_ORPHANS: usize = 20;
/// More orphans than that are moved only if there are at least this many contents for each of them, which is 5 %. A
/// crash does not leave more: then the database and the directory are of different times, or do not belong together.
const MIN_CONTENTS_PER_ORPHAN: usize = 20;

/// The outcome of a sweep.
pub struct Swept {
    /// Contents that were moved to the trash.
    pub moved: usize,
    /// How many of them were not deleted by a user.
    pub unexplained: usize,
    /// Unfinished uploads, and directories of the trash, that were removed.
    pub removed: usize,
    /// A sentence for the operator, if no content was moved because too many have no record.
    pub refusal: Option<String>,
}

/// The sweep of the background thread, which leaves no work. A refusal is only logged; the next sweep decides anew.
pub fn run(background: &Background) -> Result<i64, Error> {
    let report = |line: String| log::info!("{line}");
    let Background { storage, db, config, .. } = background;
    let swept = sweep(storage, db, config.trash_days, false, report)?;
    if swept.unexplained > 0 {
        let [.., trash] = storage.directories();
        log::warn!(
            "{} contents have no record in the database, as after a crash, or after the database was recovered to an \
             earlier time: they are in {} now, for {} days. If their records come back, `cloakroom check --repair` \
             brings the contents back",
            swept.unexplained,
            trash.display(),
            config.trash_days
        );
    }
    if let Some(refusal) = swept.refusal {
        log::error!("{refusal}");
    }
    Ok(0)
}

/// Moves contents without a record to the trash, and removes unfinished uploads; both must be over an hour old. Removes
/// from the trash what has been there for more than `trash_days` days. If more than 5 % of the contents, and more than
/// 20, have no record although no user has deleted the files, none is moved unless `is_confirmed`, and the trash stays
/// as it is. None is moved while a backup runs, whose snapshot may be from before the record was removed.
/// Passes a line for each change to `report`.
pub fn sweep(
    storage: &Storage,
    db: &Database,
    trash_days: u32,
    is_confirmed: bool,
    mut report: impl FnMut(String),
) -> Result<Swept, Error> {
    // Nothing is changed before all lookups have succeeded.
    let (mut orphans, mut unexplained) = orphans(storage, db)?;
    // Asked after the look-ups and before the first move: `sql/backup/pause_removals.sql` says why that is enough.
    let is_postponed = !orphans.is_empty() && db::files::is_backup_running(db)?;
    if is_postponed {
        report("a backup is running: contents without a record stay until a later sweep".into());
        orphans.clear();
        unexplained = 0;
    }
    let refusal = if is_confirmed { None } else { refusal(storage, unexplained)? };
    let mut swept = Swept { moved: 0, unexplained: 0, removed: 0, refusal };
    let mut removed = storage.remove_old_drafts()?;
    // After a refusal the operator may want contents back from the trash, so it is not emptied either.
    if swept.refusal.is_none() {
        removed.extend(storage.empty_trash(trash_days)?);
    }
    // This comes before contents are moved, because on a full disk it frees the space that moving may need.
    for path in removed {
        report(format!("removed {}", path.display()));
        swept.removed += 1;
    }
    if swept.refusal.is_none() {
        storage.move_to_trash(&orphans, |from: &Path, to: &Path| {
            report(format!("moved {} to {}", from.display(), to.display()));
            swept.moved += 1;
        })?;
        swept.unexplained = unexplained.min(swept.moved);
        if !is_postponed {
            db::files::forget_kept(db)?;
        }
    }
    Ok(swept)
}

/// Why so many orphans must not be moved without confirmation; `None` if they may.
fn refusal(storage: &Storage, orphans: usize) -> Result<Option<String>, Error> {
    if orphans <= MAX_UNQUESTIONED_ORPHANS {
        return Ok(None);
    }
    let enough = orphans.saturating_mul(MIN_CONTENTS_PER_ORPHAN);
    let contents = storage.count_contents(enough)?;
    Ok((contents < enough).then(|| {
        format!(
            "{orphans} of {contents} contents have no record in the database, which is more than 5 %: none was moved \
             to the trash. Check that database and data directory are of the same service and time; if they are, run \
             `cloakroom gc --confirm`"
        )
    }))
}

/// Returns the ids of old contents without a record, and how many of them are unexplained. Contents of files that users
/// have deleted are explained; there may be many of them, because they stay while a backup runs.
///
/// Records are looked up after the directory was read. A content that is old and has no record by then never gets one,
/// because an upload is recorded right after its content is stored.
fn orphans(storage: &Storage, db: &Database) -> Result<(Vec<Uuid>, usize), Error> {
    let (mut orphans, mut unexplained) = (Vec::new(), 0);
    for batch in storage.old_contents()? {
        for content in db::files::unrecorded(db, &batch?)? {
            orphans.push(content.id);
            unexplained += usize::from(!content.is_deleted);
        }
    }
    Ok((orphans, unexplained))
}
