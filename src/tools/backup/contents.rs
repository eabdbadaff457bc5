//! The contents of a backup: each is a hard link to the one of the last backup, or a verified copy. Of a linked one,
//! both that of the last backup and that in the data directory are read and compared with the record.

use std::fs;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::CONTENTS;
use super::manifest::ManifestWriter;
use crate::db::contents::RecordedContent;
use crate::storage::Storage;
use crate::tools::database::files::FileOfOwner;
use crate::tools::database::snapshot::Snapshot;
use crate::tools::examination::{CopyError, Damage, FoundContents, examine};
use crate::tools::print_line;
use crate::tools::private_files::{create_directory, create_file, describe};
use crate::tools::progress::Progress;

/// Puts contents into a backup, and counts them.
pub struct ContentCopier<'a> {
    storage: &'a Storage,
    /// The directory of the backup.
    backup: &'a Path,
    /// The contents of the last backup.
    last: Option<PathBuf>,
    share: VerifiedShare,
    pub copied: u64,
    pub linked: u64,
    /// Contents that were read, and are what they should be: copied ones, and linked ones of the share.
    pub verified: u64,
    /// Contents of the present batch that have rotted in the data directory only.
    rotted: Vec<(Uuid, Damage)>,
    /// How many contents are damaged in the data directory, and whole in the backup.
    pub damaged_sources: usize,
}

/// Which of the linked contents are read, in the last backup and in the data directory: one in `parts` for each backup,
/// all of them within `parts` backups. Ids are random, so the shares are about equal.
#[derive(Clone, Copy)]
pub struct VerifiedShare {
    pub parts: u32,
    /// The sequence number of the backup before.
    pub sequence: u64,
}

impl VerifiedShare {
    /// Returns whether the content with this id is read.
    fn has(self, id: Uuid) -> bool {
        let parts = u128::from(self.parts);
        id.as_u128() % parts == u128::from(self.sequence) % parts
    }
}

impl<'a> ContentCopier<'a> {
    /// Makes the directory of the contents in `backup`, which is a new backup. `last` is the backup before it.
    pub fn new(
        storage: &'a Storage,
        backup: &'a Path,
        last: Option<PathBuf>,
        share: VerifiedShare,
    ) -> Result<ContentCopier<'a>, String> {
        create_directory(&backup.join(CONTENTS))?;
        let last = last.map(|path| path.join(CONTENTS));
        // A symbolic link would show what is elsewhere, such as the data directory.
        let last = last.filter(|path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()));
        let (rotted, damaged_sources) = (Vec::new(), 0);
        let (copied, linked, verified) = (0, 0, 0);
        Ok(ContentCopier {
            storage,
            backup,
            last,
            share,
            copied,
            linked,
            verified,
            rotted,
            damaged_sources,
        })
    }

    /// Puts all contents that the snapshot names into the backup, and notes each in the manifest. A content that is
    /// missing or damaged is printed as a line, and the others follow nevertheless, so that one run names all; then it
    /// fails. On failure: what to tell the operator.
    pub fn copy_all(
        &mut self,
        snapshot: &mut Snapshot,
        manifest: &mut ManifestWriter,
    ) -> Result<(), String> {
        let mut progress = Progress::of_bytes("copying contents", Some(snapshot.totals.bytes));
        let (mut damaged, mut newest) = (0, Uuid::nil());
        loop {
            let mut faults = Vec::new();
            let batch = snapshot.files_after(newest)?;
            let Some(last) = batch.last() else { break };
            newest = last.id;
            let found = FoundContents::find(self.storage, &batch)?;
            for content in batch {
                if let Some(fault) = self.add(&found, &content, &mut progress)? {
                    faults.push((content.id, fault));
                }
                manifest.add(&content)?;
            }
            damaged += faults.len();
            progress.erase();
            print_faults(snapshot, &faults)?;
            self.damaged_sources += self.rotted.len();
            print_faults(snapshot, &std::mem::take(&mut self.rotted))?;
        }
        if damaged == 0 {
            return Ok(());
        }
        Err(format!(
            "contents are missing or damaged, {damaged} in all: restore them from an earlier backup, or delete their \
             files. {} is not whole",
            self.backup.display()
        ))
    }

    /// Adds a content, which must be there, also if the last backup has it. Returns what is wrong with it, if it cannot
    /// be taken.
    fn add(
        &mut self,
        found: &FoundContents,
        content: &RecordedContent,
        progress: &mut Progress,
    ) -> Result<Option<Damage>, String> {
        if let Some(damage) = found.examine(content, false, |_| {})? {
            return Ok(Some(damage));
        }
        let target = self.backup.join(CONTENTS).join(content.id.to_string());
        if self.link(content, &target, progress)? {
            // It may have rotted in the data directory nevertheless. A store compares hashes by itself.
            let is_read = self.share.has(content.id) && self.storage.content_directory().is_some();
            let rotted = if is_read { found.examine(content, true, |_| {})? } else { None };
            self.verified -= u64::from(rotted.is_some());
            self.rotted.extend(rotted.map(|damage| (content.id, damage)));
            return Ok(None);
        }
        let file = create_file(&target)?;
        let copied = found.copy(content, file, |bytes| progress.advance(bytes));
        let damage = copied.map_err(|e| match e {
            CopyError::Read(e) => format!("{}: {e}", self.storage.place().0),
            CopyError::Write(e) => describe(&target, &e),
        })?;
        self.copied += u64::from(damage.is_none());
        self.verified += u64::from(damage.is_none());
        Ok(damage)
    }

    /// Links the content of the last backup, if that has it, and returns whether it did. It is the link that is
    /// examined, so nothing else can come in its place. A content that has rotted is warned about and unlinked. If
    /// linking is not possible, as on another file system or beyond the most links of a file, the content is copied.
    ///
    /// Never links to the data directory: a content that rots there would rot in the backup as well.
    fn link(
        &mut self,
        content: &RecordedContent,
        target: &Path,
        progress: &mut Progress,
    ) -> Result<bool, String> {
        let RecordedContent { id, size, ref sha256 } = *content;
        let Some(last) = &self.last else { return Ok(false) };
        let source = last.join(id.to_string());
        if fs::hard_link(&source, target).is_err() {
            return Ok(false);
        }
        let is_read = self.share.has(id);
        let hash = is_read.then_some(sha256.as_str());
        if let Err(damage) = examine(target, size, hash, |_| {}) {
            log::warn!("{} {damage}: the content is copied anew", source.display());
            fs::remove_file(target).map_err(|e| describe(target, &e))?;
            return Ok(false);
        }
        self.linked += 1;
        self.verified += u64::from(is_read);
        progress.advance(size);
        Ok(true)
    }
}

/// Prints a line for each of these contents.
fn print_faults(snapshot: &mut Snapshot, faults: &[(Uuid, Damage)]) -> Result<(), String> {
    if faults.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = faults.iter().map(|(id, _)| *id).collect();
    // Both are in the order of ids.
    for (file, (id, fault)) in snapshot.with_owners(&ids)?.iter().zip(faults) {
        let FileOfOwner { filename, owner, .. } = file;
        print_line(format_args!("the content of file {id} ({filename:?}, owner {owner}) {fault}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_content_is_read_for_one_backup_of_as_many_as_there_are_parts() {
        for id in [Uuid::from_u128(0), Uuid::from_u128(u128::MAX), Uuid::new_v4()] {
            for parts in [1, 2, 14] {
                let all = (20_000..).take(parts as usize);
                let read = all.filter(|n| VerifiedShare { parts, sequence: *n }.has(id));
                assert_eq!(read.count(), 1, "{id} {parts}");
            }
        }
    }
}
