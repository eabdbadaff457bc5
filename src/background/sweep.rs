//! Compares the contents with the records in the database.

use uuid::Uuid;

use super::Background;
use crate::db::{self, Database};
use crate::error::Error;
use crate::files::statements as files;
use crate::storage::Storage;

/// Up to this many contents without a record (orphans) are always moved to the trash.
const MAX_UNQUESTIONED_ORPHANS: usize = 20;
/// More orphans than that are moved only if there are at least this many contents for each of them, which is 5 %. A
/// crash hardly leaves more, one for each upload that was about to be recorded: then the database and the directory are
/// of different times, or do not belong together.
const MIN_CONTENTS_PER_ORPHAN: usize = 20;

/// Most contents without a record that are moved or listed at a time.
const MAX_DISCARDED: usize = 1000;

/// The outcome of a sweep.
pub struct Swept {
    /// Contents that were moved to the trash or, where there is none, listed for removal.
    pub moved: usize,
    /// Unfinished uploads, and directories of the trash, that were removed.
    pub removed: usize,
    /// A sentence for the operator, if no content was moved because too many have no record.
    pub refusal: Option<String>,
}

/// The sweep of the background thread, which leaves no work. A refusal is only logged; the next sweep decides anew.
pub fn run(background: &Background) -> Result<i64, Error> {
    let report = |_, line: String| log::info!("{line}");
    let Background { storage, db, config, .. } = background;
    let swept = sweep(storage, db, config.trash_days, false, report)?;
    let (moved, days) = (swept.moved, config.trash_days);
    match storage.trash() {
        Some(trash) if moved > 0 => log::warn!(
            "{moved} contents have no record in the database, as after a crash, or after the database was \
             recovered to an earlier time: they are in {} now, for {days} days. If their records come back, `cloakroom \
             check --repair` brings the contents back",
            trash.display()
        ),
        None if moved > 0 => log::warn!(
            "{moved} contents of {} have no record in the database, as after a crash, or after the database was \
             recovered to an earlier time: they are removed in {days} days, unless their records come back",
            storage.place().0
        ),
        _ => {}
    }
    if let Some(refusal) = swept.refusal {
        log::error!("{refusal}");
    }
    Ok(0)
}

/// Moves contents without a record to the trash, and removes unfinished uploads; both must be over an hour old. Removes
/// from the trash what has been there for more than `trash_days` days. Without a trash, contents without a record are
/// listed instead, and [`remove_deleted`] takes them when they have been listed for as long.
///
/// If more than 5 % of the contents, and more than 20, have no record and are not to be removed, none is moved or
/// listed unless `is_confirmed`, and the trash stays as it is. None is while a backup runs, whose snapshot may be from
/// before the record was removed, nor if the database is a standby. Passes a line for each change to `report`, with a
/// word for the kind of change.
pub fn sweep(
    storage: &Storage,
    db: &Database,
    trash_days: u32,
    is_confirmed: bool,
    mut report: impl FnMut(&'static str, String),
) -> Result<Swept, Error> {
    // Nothing is changed before it is certain that all may go. Where it is from the beginning, they are not gathered.
    let (orphans, refusal) = if is_confirmed { (vec![], None) } else { orphans(storage, db)? };
    let mut swept = Swept { moved: 0, removed: 0, refusal };
    let mut removed = storage.remove_old_drafts()?;
    // After a refusal the operator may want contents back from the trash, so it is not emptied either.
    if swept.refusal.is_none() {
        removed.extend(storage.directory().map_or(Ok(vec![]), |d| d.empty_trash(trash_days))?);
    }
    // This comes before contents are moved, because on a full disk it frees the space that moving may need.
    for path in removed {
        report("removed", format!("removed {}", path.display()));
        swept.removed += 1;
    }
    let batches: Box<dyn Iterator<Item = _>> = match is_confirmed {
        true => storage.old_contents()?,
        false => Box::new(orphans.chunks(MAX_DISCARDED).map(|ids| Ok(ids.to_vec()))),
    };
    for ids in batches {
        let orphans = files::unrecorded(db, &ids?)?;
        // Asked after the look-up and before the first move: `sql/tools/backup/pause_removals.sql` says why that is
        // enough.
        if !orphans.is_empty() && files::is_backup_running(db)? {
            report(
                "",
                "a backup is running: contents without a record stay until a later sweep".into(),
            );
            break;
        }
        discard(storage, db, &orphans, |line| {
            report("moved", line);
            swept.moved += 1;
        })?;
    }
    Ok(swept)
}

/// Moves contents without a record to the trash or, where there is none, lists them for removal. Passes a line about
/// each to `report`.
pub fn discard(
    storage: &Storage,
    db: &Database,
    ids: &[Uuid],
    mut report: impl FnMut(String),
) -> Result<(), Error> {
    if let Some(directory) = storage.directory() {
        return directory.move_to_trash(ids, report);
    }
    let (place, _) = storage.place();
    for id in db::contents::list_for_removal(db, ids)? {
        report(format!("files/{id} of {place} has no record, and is listed for removal"));
    }
    Ok(())
}

/// Removes up to `limit` contents of files that nobody may restore, or that have been listed for removal for more than
/// `trash_days` days, and have no record. Returns how many. Each that cannot be removed is tried again after a minute,
/// so that it keeps no other waiting; then this fails, once the others are gone.
pub fn remove_deleted(
    storage: &Storage,
    db: &Database,
    trash_days: u32,
    limit: i64,
) -> Result<i64, Error> {
    let ids = db::contents::deleted(db, trash_days, limit)?;
    if ids.is_empty() {
        return Ok(0);
    }
    let mut failure = None;
    let (gone, left): (Vec<_>, Vec<_>) = ids
        .into_iter()
        .partition(|id| storage.remove(*id).map_err(|error| failure = Some(error)).is_ok());
    let forgotten = db::contents::forget_deleted(db, &gone, &left, trash_days)?;
    failure.map_or(Ok(forgotten), Err)
}

/// Returns the ids of old contents without a record, but not of those that are listed for removal; or none, and why:
/// they are too many to be moved without confirmation. Stops as soon as that is certain, so it holds one id for every
/// [`MIN_CONTENTS_PER_ORPHAN`] contents at most, but for a batch.
///
/// Records are looked up after the contents were listed. A content that is old and has no record by then never gets
/// one, because an upload is recorded right after its content is stored.
fn orphans(storage: &Storage, db: &Database) -> Result<(Vec<Uuid>, Option<String>), Error> {
    let (mut orphans, mut contents) = (Vec::new(), 0);
    let mut batches = storage.old_contents()?;
    loop {
        let batch = batches.next();
        let number = orphans.len();
        let is_too_many =
            |contents| number > MAX_UNQUESTIONED_ORPHANS.max(contents / MIN_CONTENTS_PER_ORPHAN);
        // The contents are counted only where the answer may depend on their number.
        if is_too_many(contents) {
            contents = storage.count_contents(usize::MAX)?;
        }
        if is_too_many(contents) {
            let least = if batch.is_some() { "at least " } else { "" };
            let (taken, place) = match storage.trash() {
                Some(_) => ("moved to the trash", "data directory"),
                None => ("listed for removal", "store"),
            };
            let refusal = format!(
                "{least}{number} of {contents} contents have no record in the database, which is more than 5 %: none \
                 was {taken}. Check that database and {place} are of the same service and time; if they are, run \
                 `cloakroom gc --confirm`"
            );
            return Ok((Vec::new(), Some(refusal)));
        }
        let Some(batch) = batch else { return Ok((orphans, None)) };
        orphans.extend(files::unrecorded(db, &batch?)?);
    }
}
