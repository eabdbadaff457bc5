//! `cloakroom backup DIR`: makes a backup, also beside a running service.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::contents::ContentCopier;
use super::directory::{BackupDirectory, PartialBackup};
use super::dump::dump;
use super::manifest::{Header, ManifestWriter};
use crate::commands::serve::ignore_file_size_signal;
use crate::commands::{installation, postgres_programs, print_line};
use crate::config::Config;
use crate::db;
use crate::db::backup::Snapshot;
use crate::model::timestamp::Timestamp;
use crate::storage::Storage;
use crate::telemetry::logging;

/// Makes a backup below `directory`, and then removes the oldest whole ones, so that `keep` are left; `None` keeps all.
/// Changes nothing of the installation. The backup is whole or its name says that it is not.
pub fn backup(config: &Config, directory: &Path, keep: Option<usize>) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    ignore_file_size_signal()?;
    let begin = Instant::now();
    let storage = Storage::open_existing(&config.data_dir)?;
    let postgresql = check(config, &storage)?;
    let pg_dump = postgres_programs::command(config, "pg_dump", &postgresql)?;
    let backups = BackupDirectory::open(directory)?;
    backups.remove_partial()?;
    let written = db::backup::with_snapshot(config, |snapshot| {
        let partial = backups.begin()?;
        let last = backups.backups_of(snapshot.installation_id)?.next();
        let mut copier = ContentCopier::new(&storage, &partial.path, last)?;
        let header = write(snapshot, &partial, pg_dump, postgresql, &mut copier)?;
        Ok((partial, header, copier))
    });
    let (partial, header, ContentCopier { copied, linked, .. }) = written?;
    let path = backups.finish(partial)?;
    let Header { users, files, bytes, installation_id, .. } = header;
    let seconds = begin.elapsed().as_secs_f32();
    print_line(format_args!(
        "{} is whole: {users} users, {files} files of {bytes} bytes, {copied} copied, {linked} linked to the backup \
         before, in {seconds:.1} s.",
        path.display()
    ));
    let Some(keep) = keep else { return Ok(()) };
    // The new one counts, whatever the clock showed when the others were named.
    let others = backups.backups_of(installation_id)?.filter(|other| *other != path);
    for old in others.skip(keep - 1) {
        backups.remove(&old)?;
        print_line(format_args!("removed {}", old.display()));
    }
    Ok(())
}

/// Makes sure that the schema is that of this program, and that the database and the data directory belong together.
/// Returns the version of PostgreSQL. On failure: what to tell the operator.
fn check(config: &Config, storage: &Storage) -> Result<String, String> {
    let db = db::open(config)?;
    db::check_schema(&db)?;
    installation::check_only(config, &db, storage)?;
    db::server_version(&db).map_err(|e| e.cause().into_owned())
}

/// Writes everything that a backup consists of, the end of the manifest last.
fn write(
    snapshot: &mut Snapshot,
    partial: &PartialBackup,
    pg_dump: Command,
    postgresql: String,
    copier: &mut ContentCopier,
) -> Result<Header, String> {
    let header = Header {
        created_at: Timestamp(partial.time).text(),
        cloakroom: env!("CARGO_PKG_VERSION").into(),
        postgresql,
        schema_version: snapshot.schema_version,
        installation_id: snapshot.installation_id,
        users: snapshot.users,
        files: snapshot.files,
        bytes: snapshot.bytes,
        dump: dump(pg_dump, &snapshot.id, &partial.path)?,
    };
    let mut manifest = ManifestWriter::create(&partial.path, &header)?;
    copier.copy_all(snapshot, &mut manifest)?;
    if copier.damaged > 0 {
        return Err(format!(
            "contents are missing or damaged, {} in all: restore them from an earlier backup, or delete their files. \
             {} is not whole",
            copier.damaged,
            partial.path.display()
        ));
    }
    manifest.finish()?;
    Ok(header)
}
