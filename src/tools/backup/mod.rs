//! `cloakroom backup DIR`: makes a backup, also beside a running service. A backup is a directory named after the UTC
//! time of the backup, with a dump of the database, the contents that it names, a list of these, and a manifest.

mod contents;
mod directory;
pub mod manifest;

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use uuid::Uuid;

use super::database::Totals;
use super::files::{AtPath, Checksum, copy_hashed, create_file};
use super::output::{Names, Progress, bytes, print_line};
use super::{open_installation, postgres_programs};
use crate::config::Config;
use crate::db;
use crate::model::timestamp::Timestamp;
use crate::serve::ignore_file_size_signal;
use crate::storage::file_system::{DiskSpace, LAST_BACKUP, replace_file};
use contents::{ContentCopier, Counts, Snapshot};
use directory::BackupDirectory;
use manifest::{DUMP, LAYOUT, Manifest, contents_of};

/// The extensions that are dumped: those that the schema uses. Others are the server's business, and the role that
/// restores may not be allowed to create them. The first one is part of every database and never dumped itself; without
/// it the option would fail if the second is missing.
const EXTENSIONS: [&str; 2] = ["--extension=plpgsql", "--extension=pg_trgm"];
/// How long `pg_dump` may wait for the lock of a table, such as that of a migration, in milliseconds.
const MAX_LOCK_WAIT: &str = "--lock-wait-timeout=60000";
/// The part of the disk, in percent, that a backup leaves free.
const KEPT_FREE_PERCENT: u64 = 5;
/// How long `pg_dump` may write nothing. It has no such limit itself, and would wait for a server that hangs.
const MAX_SILENCE: Duration = Duration::from_secs(600);

/// Makes a backup below `directory`, and then removes the oldest whole ones, so that `keep` are left; `None` keeps all.
/// Of the contents that are linked to the last backup, one in `verify_share` is read there and in the data directory,
/// another one after each whole backup. Changes nothing of the installation but the mark of its last backup. The backup
/// is whole or its name says that it is not.
pub fn backup(
    config: &Config,
    directory: &Path,
    verify_share: u32,
    keep: Option<usize>,
    all: bool,
) -> Result<(), String> {
    ignore_file_size_signal()?;
    let (begin, mut names) = (Instant::now(), Names::new(all));
    let (storage, db) = open_installation(config)?;
    let postgresql = db::server_version(&db)?;
    // The snapshot has a connection of its own.
    drop(db);
    let pg_dump = postgres_programs::command(config, "pg_dump", &postgresql)?;
    let backups = BackupDirectory::open(directory)?;
    backups.remove_partial()?;
    let mut snapshot = Snapshot::take(config)?;
    let last = backups.backups_of(snapshot.installation_id)?.into_iter().next();
    let sequence = last.as_ref().map_or(0, |(_, manifest)| manifest.sequence);
    let last = last.and_then(|(path, _)| contents_of(&path));
    check_room(directory, snapshot.database_size + snapshot.bytes_beside(last.as_deref())?)?;
    let partial = backups.begin()?;
    let dump = dump(pg_dump, &snapshot.id, &partial.path)?;
    let mut copier = ContentCopier {
        storage: &storage,
        backup: &partial.path,
        last,
        parts: verify_share,
        sequence,
        counts: Counts::default(),
    };
    let contents = copier.copy_all(&mut snapshot, &mut names)?;
    let counts = copier.counts;
    let (at, totals, installation_id) =
        (Timestamp(partial.time), snapshot.totals, snapshot.installation_id);
    let manifest = Manifest {
        format: LAYOUT,
        created_at: at.text(),
        sequence: sequence.saturating_add(1),
        cloakroom: env!("CARGO_PKG_VERSION").into(),
        postgresql,
        schema_version: snapshot.schema_version,
        installation_id,
        totals,
        dump,
        contents,
    };
    manifest.write(&partial.path)?;
    snapshot.finish()?;
    let path = backups.finish(partial)?;
    record_last_backup(config, at, &path);
    let removed =
        keep.map_or(Ok(()), |keep| remove_old(&backups, installation_id, &path, keep, &mut names));
    let outcome = sum_up(&path, totals, &counts, begin);
    removed?;
    outcome
}

/// Prints what a whole backup has. Fails if contents were damaged in the data directory.
fn sum_up(path: &Path, totals: Totals, counts: &Counts, begin: Instant) -> Result<(), String> {
    let Counts { copied, linked, verified, rotted, .. } = counts;
    print_line(format_args!(
        "{} is whole: {totals}, {copied} copied, {linked} linked to the backup before; {verified} of {} contents read \
         and right, in {:.1} s.",
        path.display(),
        totals.files,
        begin.elapsed().as_secs_f32()
    ));
    if *rotted == 0 {
        return Ok(());
    }
    Err(format!(
        "the backup is whole, but {rotted} of its contents have rotted in the data directory: `cloakroom check \
         --repair` brings them back from it"
    ))
}

/// Fails if a backup of so many bytes does not fit on the disk of `directory` beside the part that is to stay free.
fn check_room(directory: &Path, needed: u64) -> Result<(), String> {
    let space = DiskSpace::of(directory).at(directory)?;
    let room = space.free_bytes.saturating_sub(space.total_bytes / 100 * KEPT_FREE_PERCENT);
    if needed <= room {
        return Ok(());
    }
    let (needed, room, place) = (bytes(needed), bytes(room), directory.display());
    Err(format!(
        "the backup may take {needed}, for the database and what the last backup does not hold, and the disk of \
         {place} has {room} beside the {KEPT_FREE_PERCENT} % that stay free: nothing was begun"
    ))
}

/// A process that is killed if this is dropped before its end.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Both fail if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A pipe from which each read fails with [`ErrorKind::TimedOut`] if nothing comes for that long.
struct TimeLimited<R>(R, Duration);

impl<R: Read + AsFd> Read for TimeLimited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = Timespec::try_from(self.1).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit))? {
            0 => Err(ErrorKind::TimedOut.into()),
            _ => self.0.read(buffer),
        }
    }
}

/// Dumps the database, as it is in the exported snapshot, into the directory of a backup. `pg_dump` is the program with
/// the settings of the database. On failure: what to tell the operator, after what the program itself has told.
///
/// The program writes to a pipe, and not to the file itself, so that the dump is hashed on its way.
fn dump(mut pg_dump: Command, snapshot_id: &str, backup: &Path) -> Result<Checksum, String> {
    let path = backup.join(DUMP);
    let file = create_file(&path)?;
    pg_dump.args(["--format=custom", MAX_LOCK_WAIT, "--snapshot", snapshot_id]).args(EXTENSIONS);
    let spawned = pg_dump.stdout(Stdio::piped()).spawn();
    let mut child = KilledOnDrop(spawned.map_err(|e| format!("pg_dump: {e}"))?);
    let output = child.0.stdout.take().ok_or("pg_dump has no output")?;
    Progress::begin("dumping the database", None);
    let copied = copy_hashed(TimeLimited(output, MAX_SILENCE), file);
    let dump = copied.map_err(|e| e.between("pg_dump", path.display()))?;
    let status = child.0.wait().map_err(|e| format!("pg_dump: {e}"))?;
    if status.success() { Ok(dump) } else { Err(format!("pg_dump failed: {status}")) }
}

/// Records the backup in the data directory, where the service finds the age of the last one. The backup is whole
/// without that.
fn record_last_backup(config: &Config, at: Timestamp, backup: &Path) {
    let backup = backup.canonicalize().unwrap_or_else(|_| backup.to_owned());
    let line = format!("{} {}\n", at.text(), backup.display());
    let path = config.data_dir.join(LAST_BACKUP);
    if let Err(error) = replace_file(&path, line.as_bytes()) {
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
    names: &mut Names,
) -> Result<(), String> {
    let others = backups.backups_of(installation)?.into_iter().filter(|(other, _)| other != made);
    for (old, _) in others.skip(keep - 1) {
        backups.remove(&old)?;
        names.print("removed", format_args!("removed {}", old.display()));
    }
    names.end();
    Ok(())
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_read_ends_with_bytes_with_the_end_of_the_pipe_or_with_its_limit() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let mut reader = TimeLimited(reader, Duration::from_millis(20));
        let mut buffer = [0; 10];
        for _ in 0..2 {
            writer.write_all(b"four").expect("written");
            assert_eq!(reader.read(&mut buffer).expect("bytes"), 4);
            assert_eq!(reader.read(&mut buffer).expect_err("none").kind(), ErrorKind::TimedOut);
        }
        drop(writer);
        assert_eq!(reader.read(&mut buffer).expect("the end"), 0);
    }
}
