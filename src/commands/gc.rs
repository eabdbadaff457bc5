//! `cloakroom gc`: moves contents without a record to the trash, and reports records whose content is missing.

use super::{installation, print_line};
use crate::background::sweep;
use crate::config::Config;
use crate::db;
use crate::db::files::FileOfOwner;
use crate::storage::Storage;
use crate::telemetry::logging;

/// Runs the command. It may run beside a server, which sweeps in the same way every hour. Unless `is_confirmed`, it
/// fails, and moves nothing, if suspiciously many contents have no record. Fails too if a content is missing.
pub fn gc(config: &Config, is_confirmed: bool) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    let storage = Storage::open(&config.data_dir)?;
    let db = db::open_and_migrate(config)?;
    installation::check(config, &db, &storage)?;
    let swept = sweep::sweep(&storage, &db, config.trash_days, is_confirmed, print_line)
        .map_err(|e| e.cause().into_owned())?;
    let missing = sweep::missing_contents(&storage, &db).map_err(|e| e.cause().into_owned())?;
    for FileOfOwner { id, filename, owner } in &missing {
        print_line(format_args!(
            "the content of file {id} ({filename:?}, owner {owner}) is missing"
        ));
    }
    let (moved, removed) = (swept.moved, swept.removed);
    print_line(format_args!(
        "{moved} moved to the trash, {removed} removed, {} missing.",
        missing.len()
    ));
    let are_missing = "contents are missing: restore them from a backup, or delete their files";
    let missing = (!missing.is_empty()).then(|| are_missing.to_owned());
    let faults: Vec<_> = swept.refusal.into_iter().chain(missing).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}
