//! Whether every record has its content, and every content its record.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use uuid::Uuid;

use super::Check;
use crate::commands::progress::{Progress, Unit};
use crate::db;
use crate::db::files::{FileOfOwner, RecordedContent, UnrecordedContent};
use crate::error::Error;
use crate::storage::{self, Damage};

/// A content without a record that is younger is left to the sweep, which runs hourly and takes those that are over an
/// hour old.
const MAX_UNSWEPT_AGE: Duration = Duration::from_secs(2 * 3600);

impl Check<'_> {
    /// Compares the content of every file with its record: the sizes of all, and the hashes of a random sample.
    pub fn compare_records(&mut self) -> Result<(), Error> {
        let total = db::stats::totals(self.db)?.files.unsigned_abs();
        let mut progress = Progress::new("comparing contents", Unit::Items, Some(total));
        let sampling = Sampling { percentage: self.sample, hasher: RandomState::new() };
        let (mut files, mut hashed, mut damaged) = (0, 0, 0);
        let mut last = Uuid::nil();
        loop {
            let recorded = db::files::contents_after(self.db, last)?;
            let Some(newest) = recorded.last() else { break };
            last = newest.id;
            let mut suspects = BTreeMap::new();
            for content in recorded {
                let RecordedContent { id, size, ref hash } = content;
                let hash = sampling.takes(id).then_some(hash.as_str());
                hashed += u64::from(hash.is_some());
                files += 1;
                let outcome = self.storage.examine(id, size, hash, |_| progress.advance(0));
                progress.advance(1);
                if let Err(damage) = outcome {
                    suspects.insert(id, (content, damage));
                }
            }
            damaged += self.report_damaged(&suspects, &progress)?;
        }
        drop(progress);
        self.findings.conclude(&format!(
            "records: {files} files compared with their contents, {hashed} of them by hash; {damaged} damaged or \
             missing"
        ));
        Ok(())
    }

    /// Reports those of the contents that still have a record. The others were deleted since: a deletion removes the
    /// record first, so a content that was missing before its record was found is missing indeed.
    fn report_damaged(
        &mut self,
        suspects: &BTreeMap<Uuid, (RecordedContent, Damage)>,
        progress: &Progress,
    ) -> Result<usize, Error> {
        if suspects.is_empty() {
            return Ok(0);
        }
        let ids: Vec<Uuid> = suspects.keys().copied().collect();
        let files = db::files::with_owners(self.db, &ids)?;
        for file in &files {
            if let Some((content, damage)) = suspects.get(&file.id) {
                progress.suspend(|| self.report_one(file, content, damage))?;
            }
        }
        Ok(files.len())
    }

    /// Reports a damaged content, or brings it back from the trash.
    fn report_one(
        &mut self,
        file: &FileOfOwner,
        content: &RecordedContent,
        damage: &Damage,
    ) -> Result<(), Error> {
        let FileOfOwner { id, filename, owner } = file;
        let name = format!("files/{id} ({filename:?}, owner {owner})");
        if !matches!(damage, Damage::Missing) {
            self.fault(&format!("{name} {damage}"));
            return Ok(());
        }
        let (size, hash) = (content.size, Some(content.hash.as_str()));
        let copies = self.storage.in_trash(*id)?;
        let copy = copies.iter().find(|path| storage::examine(path, size, hash, |_| {}).is_ok());
        let problem = match copy {
            Some(copy) if self.repairs => match self.storage.bring_back(*id, copy) {
                Ok(()) => {
                    let place = copy.display();
                    self.warning(&format!("{name} was missing and is back, from {place}"));
                    return Ok(());
                }
                Err(error) => format!("{} cannot be moved back: {error}", copy.display()),
            },
            Some(copy) => {
                format!("it is {}: `cloakroom check --repair` moves it back", copy.display())
            }
            None => match copies.first() {
                Some(other) => format!("{} is not what was uploaded", other.display()),
                None => "the trash does not have it".to_owned(),
            },
        };
        // Another process may have brought it back meanwhile.
        if self.storage.examine(*id, size, hash, |_| {}).is_err() {
            self.fault(&format!("{name} {damage}; {problem}"));
        }
        Ok(())
    }

    /// Looks up the record of every content that is over an hour old.
    pub fn compare_contents(&mut self) -> Result<(), Error> {
        let mut progress =
            Progress::new("looking for contents without a record", Unit::Items, None);
        let (mut contents, mut unrecorded) = (0, 0);
        let storage = self.storage;
        // Then the sweeps wait for its end.
        let is_backup_running = db::backup::is_running(self.db)?;
        for ids in storage.old_contents()? {
            let ids = ids?;
            // An upload has its record before its content is an hour old. A deletion removes the record first, so
            // whether the content is still there is asked after the record was looked up.
            for content in db::files::unrecorded(self.db, &ids)? {
                unrecorded +=
                    progress.suspend(|| self.report_unrecorded(&content, is_backup_running));
            }
            contents += ids.len();
            progress.advance(ids.len() as u64);
        }
        drop(progress);
        for name in self.storage.foreign_entries()? {
            self.warning(&format!("files/: {:?} is no content of this program", name?));
        }
        self.findings.conclude(&format!(
            "contents: {contents} over an hour old looked up; {unrecorded} without a record"
        ));
        Ok(())
    }

    /// Reports a content without a record, unless it is gone by now. Returns how many were reported.
    fn report_unrecorded(&mut self, content: &UnrecordedContent, is_backup_running: bool) -> usize {
        let UnrecordedContent { id, is_deleted } = content;
        let Some(age) = self.storage.age_of(*id) else { return 0 };
        let sweep = "the next sweep moves it to the trash";
        if *is_deleted {
            self.warning(&format!("files/{id} is of a deleted file: {sweep}"));
        } else if age < MAX_UNSWEPT_AGE || is_backup_running {
            self.warning(&format!("files/{id} has no record: {sweep}"));
        } else {
            self.fault(&format!("files/{id} has no record"));
        }
        1
    }
}

/// A random choice of contents, another one in each run.
struct Sampling {
    percentage: f64,
    /// Hashes with a random key.
    hasher: RandomState,
}

impl Sampling {
    /// Whether the content with that id is one of the sample.
    fn takes(&self, id: Uuid) -> bool {
        let place = self.hasher.hash_one(id) as f64 / u64::MAX as f64;
        place * 100.0 <= self.percentage
    }
}
