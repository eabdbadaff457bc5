//! The contents of a backup: each is a hard link to the one of the last backup, or a verified copy.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::CONTENTS;
use super::directory::{create_directory, describe};
use super::manifest::{Content, ManifestWriter};
use crate::commands::print_line;
use crate::commands::progress::{Progress, Unit};
use crate::db::backup::Snapshot;
use crate::db::files::FileOfOwner;
use crate::storage::{Damage, Storage};

/// Puts contents into a backup, and counts them.
pub struct ContentCopier<'a> {
    storage: &'a Storage,
    directory: PathBuf,
    /// The contents of the last backup.
    last: Option<PathBuf>,
    pub copied: u64,
    pub linked: u64,
    /// Contents that are missing or damaged.
    pub damaged: u64,
}

impl<'a> ContentCopier<'a> {
    /// `backup` is a new backup, `last` the one before it.
    pub fn new(
        storage: &'a Storage,
        backup: &Path,
        last: Option<PathBuf>,
    ) -> Result<ContentCopier<'a>, String> {
        let directory = backup.join(CONTENTS);
        create_directory(&directory)?;
        let last = last.map(|path| path.join(CONTENTS));
        Ok(ContentCopier { storage, directory, last, copied: 0, linked: 0, damaged: 0 })
    }

    /// Puts all contents into the backup that the snapshot names, and notes each in the manifest. One that is missing
    /// or damaged is printed as a line, and the others follow nevertheless, so that one run names all. On failure: what
    /// to tell the operator.
    pub fn copy_all(
        &mut self,
        snapshot: &mut Snapshot,
        manifest: &mut ManifestWriter,
    ) -> Result<(), String> {
        let mut progress = Progress::new("copying contents", Unit::Bytes, Some(snapshot.bytes));
        let mut newest = Uuid::nil();
        loop {
            let mut faults = Vec::new();
            let batch = snapshot.files_after(newest)?;
            let Some(last) = batch.last() else { return Ok(()) };
            newest = last.id;
            for recorded in batch {
                let content =
                    Content { id: recorded.id, size: recorded.size, sha256: recorded.hash };
                if let Some(fault) = self.add(&content, &mut progress)? {
                    faults.push((content.id, fault));
                }
                manifest.add(&content)?;
            }
            self.damaged += faults.len() as u64;
            progress.suspend(|| print_faults(snapshot, &faults))?;
        }
    }

    /// Returns what is wrong with the content, if it cannot be taken.
    fn add(
        &mut self,
        content: &Content,
        progress: &mut Progress,
    ) -> Result<Option<Damage>, String> {
        let target = self.directory.join(content.id.to_string());
        if self.link(content, &target) {
            self.linked += 1;
            progress.advance(content.size);
            return Ok(None);
        }
        let file = File::options().write(true).create_new(true).mode(0o600).open(&target);
        let file = file.map_err(|e| describe(&target, &e))?;
        let Content { id, size, ref sha256 } = *content;
        let copied =
            self.storage.copy_verified(id, file, size, sha256, |bytes| progress.advance(bytes));
        let damage = copied.map_err(|e| describe(&target, &e))?.err();
        self.copied += u64::from(damage.is_none());
        Ok(damage)
    }

    /// Links the content of the last backup, where that has it with this size, and returns whether it did. A content
    /// never changes, so it need not be read again; `backup --verify` does that. Where linking is not possible, as on
    /// another file system or beyond the most links of a file, the content is copied.
    ///
    /// Never links to the data directory: a content that rots there would rot in the backup as well.
    fn link(&self, content: &Content, target: &Path) -> bool {
        let Some(last) = &self.last else { return false };
        let source = last.join(content.id.to_string());
        let is_whole = fs::symlink_metadata(&source)
            .is_ok_and(|found| found.is_file() && found.len() == content.size);
        is_whole && fs::hard_link(source, target).is_ok()
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
