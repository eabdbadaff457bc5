//! The contents of a backup: each is a hard link to the one of the last backup, or a verified copy. Of a linked one,
//! both that of the last backup and that in the data directory are read and compared with the record.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::manifest::{CONTENTS, LIST};
use crate::config::Config;
use crate::db::sql;
use crate::storage::Storage;
use crate::tools::database::{
    DedicatedConnection, FileOfOwner, RecordedContent, Totals, next_batch,
};
use crate::tools::files::{
    AtPath, Checksum, Damage, FoundContents, copy_hashed, create_directory, create_file, examine,
};
use crate::tools::output::{Names, Progress};

/// The database as it was at one moment, from which `pg_dump` and the list of contents are made, so that they agree
/// while the service goes on. As long as this exists, no other backup runs, and no content that the snapshot names is
/// removed: `sql/tools/backup/pause_removals.sql` says why.
pub struct Snapshot {
    connection: DedicatedConnection,
    /// The id under which `pg_dump --snapshot` finds it.
    pub id: String,
    pub installation_id: Uuid,
    /// The number of the last applied migration.
    pub schema_version: i32,
    pub totals: Totals,
    /// Bytes that the database takes on its disk, more than a dump of it.
    pub database_size: u64,
}

impl Snapshot {
    /// Takes the lock of backups, and then a snapshot. Fails if another backup holds the lock. On failure, here and
    /// below: what to tell the operator.
    pub fn take(settings: &Config) -> Result<Snapshot, String> {
        let mut connection = DedicatedConnection::open(settings)?;
        if !connection.query_one(sql!("tools/backup/lock"))?.get::<_, bool>("is_locked") {
            let text =
                "another backup of this database, or a migration, is running: nothing was done";
            return Err(text.to_owned());
        }
        // From now on all deletions that removed their contents are committed, and later ones leave them.
        connection.execute(sql!("tools/backup/pause_removals"))?;
        connection.execute(sql!("tools/backup/begin"))?;
        let row = connection.query_one(sql!("tools/backup/snapshot"))?;
        let installation_id: Option<Uuid> = row.get("installation_id");
        Ok(Snapshot {
            id: row.get("snapshot_id"),
            installation_id: installation_id
                .ok_or("the database has no installation id yet: start the service once")?,
            schema_version: row.get("schema_version"),
            database_size: row.get::<_, i64>("database_size").unsigned_abs(),
            totals: Totals::of(&connection.query_one(sql!("tools/backup/counts"))?),
            connection,
        })
    }

    /// Returns the contents that follow `last`, see [`next_batch`].
    fn next_batch(&mut self, last: &mut Uuid) -> Result<Option<Vec<RecordedContent>>, String> {
        next_batch(last, |sql, params| self.connection.query(sql, params))
    }

    /// Counts the bytes of the contents that are not in this directory, which has those of another backup.
    pub fn bytes_beside(&mut self, contents: Option<&Path>) -> Result<u64, String> {
        let is_there = |id: Uuid| contents.is_some_and(|path| path.join(id.to_string()).exists());
        let (mut bytes, mut last) = (0, Uuid::nil());
        while let Some(batch) = self.next_batch(&mut last)? {
            let new = batch.iter().filter(|content| !is_there(content.id));
            bytes += new.map(|content| content.size).sum::<u64>();
        }
        Ok(bytes)
    }

    /// Names these damaged contents, which are in the order of their ids.
    fn print_faults(&mut self, faults: &[(Uuid, Damage)], names: &mut Names) -> Result<(), String> {
        let ids: Vec<Uuid> = faults.iter().map(|(id, _)| *id).collect();
        let rows = self.connection.query(sql!("tools/with_owners"), &[&ids])?;
        for (file, (_, damage)) in rows.iter().map(FileOfOwner::of).zip(faults) {
            names.print("damaged", format_args!("{file} {damage}"));
        }
        Ok(())
    }

    /// Ends the snapshot. Fails if the connection was lost meanwhile, because then the locks were lost too.
    pub fn finish(mut self) -> Result<(), String> {
        self.connection.execute(sql!("tools/backup/commit"))
    }
}

/// Whether a linked content is read for the backup with this sequence number, in the last backup and in the data
/// directory: one in `parts` is for each backup, all of them within `parts` backups. Ids are random, so the shares are
/// about equal.
fn is_in_share(id: Uuid, parts: u32, sequence: u64) -> bool {
    let parts = u128::from(parts);
    id.as_u128() % parts == u128::from(sequence) % parts
}

/// Puts contents into a backup, and counts them.
pub struct ContentCopier<'a> {
    pub storage: &'a Storage,
    /// The directory of the backup.
    pub backup: &'a Path,
    /// The contents of the last backup.
    pub last: Option<PathBuf>,
    /// One linked content in so many is read.
    pub parts: u32,
    /// The sequence number of the last backup.
    pub sequence: u64,
    pub counts: Counts,
}

/// Numbers of contents.
#[derive(Default)]
pub struct Counts {
    pub copied: u64,
    pub linked: u64,
    /// Contents that were read, and are what they should be: copied ones, and linked ones of the share.
    pub verified: u64,
    /// Contents that are damaged in the data directory, and whole in the backup.
    pub rotted: u64,
    /// Contents that are missing or damaged, and not in the backup.
    lost: u64,
}

impl ContentCopier<'_> {
    /// Puts all contents that the snapshot names into the backup, and lists them. A content that is missing or damaged
    /// is named, and the others follow nevertheless, so that one run names all; then it fails. On failure: what to tell
    /// the operator.
    pub fn copy_all(
        &mut self,
        snapshot: &mut Snapshot,
        names: &mut Names,
    ) -> Result<Checksum, String> {
        let Totals { files, bytes, .. } = snapshot.totals;
        create_directory(&self.backup.join(CONTENTS))?;
        let path = self.backup.join(LIST);
        let mut list = BufWriter::new(create_file(&path)?);
        let mut progress = Progress::begin("copying contents", Some(files));
        let (mut all_bytes, mut last) = (0, Uuid::nil());
        while let Some(batch) = snapshot.next_batch(&mut last)? {
            let found = FoundContents::find(self.storage, &batch)?;
            let mut faults = Vec::new();
            for content in batch {
                faults.extend(self.add(&found, &content)?.map(|damage| (content.id, damage)));
                writeln!(list, "{}  {CONTENTS}/{}", content.sha256, content.id).at(&path)?;
                all_bytes += content.size;
                progress.advance(1);
            }
            snapshot.print_faults(&faults, names)?;
        }
        names.end();
        list.flush().at(&path)?;
        if self.counts.lost > 0 {
            return Err(format!(
                "contents are missing or damaged, {} in all: `cloakroom check --repair` brings back what the trash or \
                 the last backup has; copy others from an earlier backup, or delete their files by `cloakroom check \
                 --remove-lost ID ...`. {} is not whole",
                self.counts.lost,
                self.backup.display()
            ));
        }
        if (self.counts.copied + self.counts.linked, all_bytes) != (files, bytes) {
            return Err(format!("{}: not as many contents as were counted", path.display()));
        }
        let read = File::open(&path).at(&path)?;
        copy_hashed(read, io::sink()).map_err(|e| e.between(path.display(), ""))
    }

    /// Adds a content, which must be there, also if the last backup has it. Returns what is wrong with it, if it cannot
    /// be taken, or if it is damaged only in the data directory.
    fn add(
        &mut self,
        found: &FoundContents,
        content: &RecordedContent,
    ) -> Result<Option<Damage>, String> {
        if let Some(damage) = found.examine(content) {
            self.counts.lost += 1;
            return Ok(Some(damage));
        }
        let target = self.backup.join(CONTENTS).join(content.id.to_string());
        let is_read = is_in_share(content.id, self.parts, self.sequence);
        if self.link(content, &target, is_read)? {
            // It may have rotted in the data directory nevertheless. A store compares hashes by itself.
            let rotted = match self.storage.content_directory() {
                Some(_) if is_read => found.read(content)?,
                _ => None,
            };
            self.counts.linked += 1;
            self.counts.verified += u64::from(is_read && rotted.is_none());
            self.counts.rotted += u64::from(rotted.is_some());
            return Ok(rotted);
        }
        let damage = found
            .copy(content, create_file(&target)?)
            .map_err(|e| e.between(self.storage.place().0, target.display()))?;
        self.counts.copied += u64::from(damage.is_none());
        self.counts.verified += u64::from(damage.is_none());
        self.counts.lost += u64::from(damage.is_some());
        Ok(damage)
    }

    /// Links the content of the last backup, if that has it, and returns whether it did. It is the link that is
    /// examined, so nothing else can come in its place. A content that has rotted is warned about and unlinked. If
    /// linking is not possible, as on another file system or beyond the most links of a file, the content is copied.
    ///
    /// Never links to the data directory: a content that rots there would rot in the backup as well.
    fn link(
        &self,
        content: &RecordedContent,
        target: &Path,
        is_read: bool,
    ) -> Result<bool, String> {
        let Some(last) = &self.last else { return Ok(false) };
        let source = last.join(content.id.to_string());
        if fs::hard_link(&source, target).is_err() {
            return Ok(false);
        }
        let sha256 = is_read.then_some(content.sha256.as_str());
        if let Some(damage) = examine(target, Some(content.size), sha256) {
            log::warn!("{} {damage}: the content is copied anew", source.display());
            fs::remove_file(target).at(target)?;
            return Ok(false);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_content_is_read_for_one_backup_of_as_many_as_there_are_parts() {
        for id in [Uuid::from_u128(0), Uuid::from_u128(u128::MAX), Uuid::new_v4()] {
            for parts in [1, 2, 14] {
                let all = (20_000..).take(parts as usize);
                let read = all.filter(|n| is_in_share(id, parts, *n));
                assert_eq!(read.count(), 1, "{id} {parts}");
            }
        }
    }
}
