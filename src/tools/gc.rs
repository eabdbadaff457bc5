//! `cloakroom gc` and `cloakroom adopt-data-dir`: what sets the contents right, in the data directory or in a store.

use uuid::Uuid;

use super::database::{FileOfOwner, batches, with_owners};
use super::output::{Names, print_line};
use super::require_store;
use crate::background::sweep;
use crate::config::Config;
use crate::db::{self, Database};
use crate::error::Error;
use crate::serve::installation::{self, has_contents, lack, name_of};
use crate::storage::Storage;

/// Contents of deleted files that are removed at a time.
const MAX_REMOVED: i64 = 1000;

/// Moves contents without a record to the trash, or lists those of a store for removal, and reports records whose
/// content is missing. It may run beside a server, which sweeps in the same way every hour. Unless `is_confirmed`, it
/// fails, and moves nothing, if suspiciously many contents have no record. Fails too if a content is missing.
pub fn gc(config: &Config, is_confirmed: bool, all: bool) -> Result<(), String> {
    let storage = Storage::open(config)?;
    let db = installation::open_database(config, &storage)?;
    require_store(&storage)?;
    installation::check(&db, &storage)?;
    while sweep::remove_deleted(&storage, &db, config.trash_days, MAX_REMOVED)? > 0 {}
    let mut names = Names::new(all);
    let report = |kind, line| names.print(kind, line);
    let swept = sweep::sweep(&storage, &db, config.trash_days, is_confirmed, report)?;
    let missing = missing_contents(&storage, &db)?;
    for file in &missing {
        names.print("missing", format_args!("{file} is missing"));
    }
    names.end();
    let (moved, removed) = (swept.moved, swept.removed);
    let taken = if storage.trash().is_some() { "moved to the trash" } else { "listed for removal" };
    print_line(format_args!(
        "contents without a record {taken}: {moved}; unfinished uploads and old trash removed: {removed}; \
         files without a content: {}.",
        missing.len()
    ));
    let are_missing = "contents are missing: restore them from a backup, or delete their files by `cloakroom check \
                       --remove-lost ID ...`";
    let missing = (!missing.is_empty()).then(|| are_missing.to_owned());
    let faults: Vec<_> = swept.refusal.into_iter().chain(missing).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Returns the files whose content is missing. Files of deleted users do not count, because their contents are removed
/// before their records.
fn missing_contents(storage: &Storage, db: &Database) -> Result<Vec<FileOfOwner>, Error> {
    let mut missing = Vec::new();
    for recorded in batches(db) {
        let mut found: Vec<Uuid> = recorded?.iter().map(|content| content.id).collect();
        let sizes = storage.sizes(&found)?;
        found.retain(|id| !sizes.contains_key(id));
        // A file or its owner may have been deleted since the records were read: those are not found any more.
        missing.extend(with_owners(db, &found)?);
    }
    Ok(missing)
}

/// Gives the data directory, or the store if there is one, the installation id of the database. Fails if it holds
/// another id than `expected`, which is what the refusal has named: then it is another one than that in the refusal.
pub fn adopt_data_dir(config: &Config, expected: Option<Uuid>) -> Result<(), String> {
    let storage = Storage::open(config)?;
    let db = db::open_and_migrate(config, |_| Ok(()))?;
    require_store(&storage)?;
    let (place, _) = storage.place();
    db::installation::reconcile(&db, |database| {
        let found = storage.installation_id()?;
        if found != expected {
            let (found, expected) = (name_of(found), name_of(expected));
            return Err(format!(
                "the installation id of {place} is {found}, not {expected}: nothing was changed"
            ));
        }
        let id = database.id.or(found).unwrap_or_else(Uuid::new_v4);
        let lack = lack(database.has_files, has_contents(&storage)?, &storage);
        storage.replace_installation_id(id)?;
        print_line(format_args!(
            "{place} belongs to the database now; installation id: {id}.{lack}"
        ));
        Ok(id)
    })
}
