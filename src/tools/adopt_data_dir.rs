//! `cloakroom adopt-data-dir ID`: makes the data directory the database's, after a refusal that named both ids.

use std::fs;
use std::io;
use std::path::Path;

use uuid::Uuid;

use super::print_line;
use crate::config::Config;
use crate::db;
use crate::serve::installation::{has_contents, lack, name_of};
use crate::storage::file_system::write_aside;
use crate::storage::{Storage, sync_directory};

/// Gives the data directory the installation id of the database. Fails if the directory holds another id than
/// `expected`, which is what the refusal has named: then it is another directory than the one in the refusal.
pub fn adopt_data_dir(config: &Config, expected: Option<Uuid>) -> Result<(), String> {
    let storage = Storage::open(&config.data_dir)?;
    let db = db::open_and_migrate(config)?;
    let directory = config.data_dir.display();
    db::installation::reconcile(&db, |database| {
        let found = storage.installation_id()?;
        if found != expected {
            let (found, expected) = (name_of(found), name_of(expected));
            return Err(format!(
                "the installation id of {directory} is {found}, not {expected}: nothing was changed"
            ));
        }
        let id = database.id.or(found).unwrap_or_else(Uuid::new_v4);
        let lack = lack(database.has_files, has_contents(&storage)?);
        write_id(&config.data_dir, id).map_err(|e| format!("{directory}/installation-id: {e}"))?;
        print_line(format_args!(
            "{directory} belongs to the database now; installation id: {id}.{lack}"
        ));
        Ok(id)
    })
}

/// Writes the installation id to the data directory, in place of an earlier one.
pub fn write_id(data_dir: &Path, id: Uuid) -> io::Result<()> {
    let path = data_dir.join("installation-id");
    fs::rename(write_aside(&path, format!("{id}\n").as_bytes())?, &path)?;
    sync_directory(data_dir)
}
