//! `cloakroom adopt-data-dir ID`: makes the data directory or the store the database's, after a refusal that named both
//! ids.

use uuid::Uuid;

use super::{print_line, require_store};
use crate::config::Config;
use crate::db;
use crate::serve::installation::{has_contents, lack, name_of};
use crate::storage::Storage;

/// Gives the data directory, or the store if there is one, the installation id of the database. Fails if it holds
/// another id than `expected`, which is what the refusal has named: then it is another one than that in the refusal.
pub fn adopt_data_dir(config: &Config, expected: Option<Uuid>) -> Result<(), String> {
    let storage = Storage::open(config)?;
    let db = db::open_and_migrate(config)?;
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
