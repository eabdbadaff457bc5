//! The commands for operators. The service needs none of them: they are built with the feature `tools`.

mod audit;
mod backup;
mod check;
mod database;
mod doctor;
mod files;
mod gc;
mod import_files;
mod import_users;
#[cfg(feature = "s3")]
mod move_contents;
mod output;
mod postgres_programs;
mod restoration;
mod restore;
mod send_test_mail;

use std::fs;
use std::iter;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::arguments::Tool;
use crate::config::{Config, UsedSettings};
use crate::db::{self, Database};
use crate::serve::{CommandError, installation, start};
use crate::storage::{Storage, refuse_partial};

/// Runs a command with the settings that it uses. Faults in other settings do not matter to it.
pub fn run(tool: Tool) -> Result<(), CommandError> {
    let config = || start(UsedSettings::Installation);
    match tool {
        Tool::Doctor => doctor::doctor()?,
        Tool::Gc { confirm, all } => gc::gc(&config()?, confirm, all)?,
        Tool::Check { remove_lost: ids, .. } if !ids.is_empty() => {
            check::remove_lost(&config()?, &ids)?
        }
        Tool::Check { repair, all, .. } => check::check(&config()?, repair, all)?,
        Tool::Backup { directory, verify: true, all, .. } => {
            backup::manifest::verify(&directory, all)?;
        }
        Tool::Backup { directory, verify_share, keep, all, .. } => {
            backup::backup(&config()?, &directory, verify_share, keep, all)?;
        }
        Tool::Restore { backup, skip_damaged, all } => {
            restore::restore(&config()?, &backup, skip_damaged, all)?;
        }
        Tool::Audit { since, follow, format } => {
            audit::print_audit(&config()?, since, follow, format)?;
        }
        Tool::ImportFiles { directory, owner, folder, dry_run, all } => {
            let config = start(UsedSettings::Files)?;
            import_files::import_files(&config, (&directory, &owner, &folder), dry_run, all)?;
        }
        Tool::ImportUsers { file, invite, dry_run } => {
            import_users::import_users(&config()?, &file, invite, dry_run)?;
        }
        #[cfg(feature = "s3")]
        Tool::MoveContents { to, all } => move_contents::move_contents(&config()?, to, all)?,
        Tool::AdoptDataDir { id } => gc::adopt_data_dir(&config()?, id.0)?,
        Tool::SendTestMail { to } => {
            send_test_mail::send_test_mail(&start(UsedSettings::WithoutDatabase)?, &to)?;
        }
    }
    Ok(())
}

/// Opens the data directory and the database of an installation that has been started before, and makes sure that they
/// belong together and that the schema is this program's. Creates and changes nothing. On failure: what to tell the
/// operator.
fn open_installation(config: &Config) -> Result<(Storage, Database), String> {
    let data_dir = &config.data_dir;
    refuse_partial(data_dir)?;
    let storage = Storage::at(config)?;
    let places = iter::once(data_dir.as_path()).chain(storage.content_directory());
    for path in places {
        fs::read_dir(path).map_err(|e| {
            format!("CLOAKROOM_DATA_DIR={}: {}: {e}", data_dir.display(), path.display())
        })?;
    }
    require_store(&storage)?;
    let db = database::open(config)?;
    database::check_schema(&db)?;
    let database = db::installation::find(&db)?;
    installation::compare(&database, &storage)?;
    Ok((storage, db))
}

/// Fails if the contents are in a store that is away. On failure: what to tell the operator.
fn require_store(storage: &Storage) -> Result<(), String> {
    match storage.reach()? {
        None => Ok(()),
        Some(cause) => Err(format!("the store {} does not answer: {cause}", storage.place().0)),
    }
}

/// The longest wait for another program or server. Most have shorter limits of their own, but not for looking up names.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Runs `work` on a thread of its own, which may hang until the process ends. Returns `None` if it takes too long.
fn within_max_wait<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    let work = move || drop(sender.send(work()));
    thread::Builder::new().spawn(work).ok()?;
    receiver.recv_timeout(MAX_WAIT).ok()
}
