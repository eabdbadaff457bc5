//! `cloakroom gc` and `cloakroom adopt-data-dir`: what sets the contents right, in the data directory or in a store.

use uuid::Uuid;

use super::output::{Names, print_line};
use super::require_store;
use crate::background::sweep;
use crate::config::Config;
use crate::db;
use crate::serve::installation::{self, has_contents, lack, name_of};
use crate::storage::Storage;

/// Contents of deleted files that are removed at a time.
const MAX_REMOVED: i64 = 1000;

/// Moves contents without a record to the trash, or lists those of a store for removal. It may run beside a server,
/// which sweeps in the same way every hour. Unless `is_confirmed`, it fails, and moves nothing, if suspiciously many
/// contents have no record.
pub fn gc(config: &Config, is_confirmed: bool, all: bool) -> Result<(), String> {
    let storage = Storage::open(config)?;
    let db = installation::open_database(config, &storage)?;
    require_store(&storage)?;
    installation::check(&db, &storage)?;
    while sweep::remove_deleted(&storage, &db, config.trash_days, MAX_REMOVED)? > 0 {}
    let mut names = Names::new(all);
    let report = |kind, line| names.print(kind, line);
    let swept = sweep::sweep(&storage, &db, config.trash_days, is_confirmed, report)?;
    names.end();
    let (moved, removed) = (swept.moved, swept.removed);
    let taken = if storage.trash().is_some() { "moved to the trash" } else { "listed for removal" };
    print_line(format_args!(
        "contents without a record {taken}: {moved}; unfinished uploads and old trash removed: {removed}."
    ));
    swept.refusal.map_or(Ok(()), Err)
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
