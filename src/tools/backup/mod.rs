//! `cloakroom backup DIR`: makes a backup, also beside a running service. A backup is a directory named after the time
//! of the backup, with a dump of the database, the contents that it names, and a manifest of both.

mod contents;
mod directory;
mod dump;
pub mod manifest;
pub mod verify;

use std::fs;
use std::path::Path;
use std::time::Instant;

use uuid::Uuid;

use super::database::Totals;
use super::database::snapshot::Snapshot;
use super::quantity::{self, count};
use super::{open_installation, postgres_programs, print_line};
use crate::config::Config;
use crate::db;
use crate::model::timestamp::Timestamp;
use crate::serve::ignore_file_size_signal;
use crate::storage::file_system::write_aside;
use crate::storage::{last_backup, sync_directory};
use contents::{ContentCopier, VerifiedShare};
use directory::BackupDirectory;
use manifest::{FORMAT, Header, ManifestWriter};

/// The dump of the database, in the directory of a backup.
pub const DUMP: &str = "database.dump";
/// The directory of the contents, in the directory of a backup. Each has its id as its name.
pub const CONTENTS: &str = "files";
/// The end of the name of a directory whose backup is not whole.
pub const PARTIAL: &str = ".partial";

/// Makes a backup below `directory`, and then removes the oldest whole ones, so that `keep` are left; `None` keeps all.
/// Of the contents that are linked to the last backup, one in `verify_share` is read there and in the data directory,
/// another one after each whole backup. Changes nothing of the installation but the mark of its last backup. The backup
/// is whole or its name says that it is not.
pub fn backup(
    config: &Config,
    directory: &Path,
    verify_share: u32,
    keep: Option<usize>,
) -> Result<(), String> {
    ignore_file_size_signal()?;
    let begin = Instant::now();
    let (storage, db) = open_installation(config)?;
    let postgresql = db::server_version(&db)?;
    // The snapshot has a connection of its own.
    drop(db);
    let pg_dump = postgres_programs::command(config, "pg_dump", &postgresql)?;
    let backups = BackupDirectory::open(directory)?;
    backups.remove_partial()?;
    let mut snapshot = Snapshot::take(config)?;
    let Totals { users, files, bytes } = snapshot.totals;
    let partial = backups.begin()?;
    let last = backups.backups_of(snapshot.installation_id)?.next();
    let sequence = last.as_ref().map_or(0, |(_, manifest)| manifest.header.sequence);
    let header = Header {
        format: FORMAT,
        created_at: Timestamp(partial.time).text(),
        sequence: sequence.saturating_add(1),
        cloakroom: env!("CARGO_PKG_VERSION").into(),
        postgresql,
        schema_version: snapshot.schema_version,
        installation_id: snapshot.installation_id,
        totals: snapshot.totals,
        dump: dump::dump(pg_dump, &snapshot.id, &partial.path)?,
    };
    let mut manifest = ManifestWriter::create(&partial.path, &header)?;
    let share = VerifiedShare { parts: verify_share, sequence };
    let last = last.map(|(path, _)| path);
    let mut copier = ContentCopier::new(&storage, &partial.path, last, share)?;
    copier.copy_all(&mut snapshot, &mut manifest)?;
    let ContentCopier { copied, linked, verified, damaged_sources, .. } = copier;
    manifest.finish()?;
    snapshot.finish()?;
    let at = Timestamp(partial.time);
    let path = backups.finish(partial)?;
    note(config, at, &path);
    let removed =
        keep.map_or(Ok(()), |keep| remove_old(&backups, header.installation_id, &path, keep));
    print_line(format_args!(
        "{} is whole: {}, {} ({}), {copied} copied, {linked} linked to the backup before; {verified} of {files} \
         contents read and right, in {:.1} s.",
        path.display(),
        count(users, "user"),
        count(files, "file"),
        quantity::bytes(bytes),
        begin.elapsed().as_secs_f32()
    ));
    removed?;
    match damaged_sources {
        0 => Ok(()),
        damaged => Err(format!(
            "the backup is whole, but {damaged} of its contents have rotted in the data directory: copy them back from \
             {}",
            path.join(CONTENTS).display()
        )),
    }
}

/// Leaves the mark in the data directory by which the service and `cloakroom status` know the age of the last backup.
/// The backup is whole without it.
fn note(config: &Config, at: Timestamp, backup: &Path) {
    let backup = backup.canonicalize().unwrap_or_else(|_| backup.to_owned());
    let line = format!("{} {}\n", at.text(), backup.display());
    let path = config.data_dir.join(last_backup::NAME);
    let written = write_aside(&path, line.as_bytes())
        .and_then(|temporary| fs::rename(temporary, &path))
        .and_then(|()| sync_directory(&config.data_dir));
    if let Err(error) = written {
        let path = path.display();
        log::warn!("{path} was not written, so alerts will miss this backup: {error}");
    }
}

/// Removes the oldest whole backups of the installation, so that `keep` are left. `made`, the new one, is one of them.
fn remove_old(
    backups: &BackupDirectory,
    installation: Uuid,
    made: &Path,
    keep: usize,
) -> Result<(), String> {
    let others = backups.backups_of(installation)?.filter(|(other, _)| other != made);
    for (old, _) in others.skip(keep - 1) {
        backups.remove(&old)?;
        print_line(format_args!("removed {}", old.display()));
    }
    Ok(())
}
