//! Whether every record has its content, and every content its record.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use super::Check;
use crate::db;
use crate::db::contents::{self, RecordedContent};
use crate::db::files::UnrecordedContent;
use crate::error::Error;
use crate::storage::{MIN_SWEPT_AGE, Storage, age, id_of, sync_directory, translate};
use crate::tools::database::files::{self, FileOfOwner};
use crate::tools::examination::{Damage, FoundContents, examine};
use crate::tools::progress::Progress;
use crate::tools::quantity::count;

/// A content without a record that is younger is left to the sweep, which runs hourly and takes those that are over an
/// hour old.
const MAX_UNSWEPT_AGE: Duration = Duration::from_secs(2 * 3600);

impl Check<'_> {
    /// Compares the content of every file with its record: the sizes of all, and the hashes of a random sample, which
    /// is another one in each run.
    pub fn compare_records(&mut self) -> Result<(), Error> {
        let (_, stored) = db::stats::totals(self.db)?;
        let total = stored.total.unsigned_abs();
        let mut progress = Progress::of_items("comparing contents", Some(total));
        // Hashes ids with a random key.
        let hasher = RandomState::new();
        let sample = self.sample / 100.0;
        let is_sampled = |id: Uuid| hasher.hash_one(id) as f64 / u64::MAX as f64 <= sample;
        let (mut compared, mut hashed, mut suspects) = (0, 0, BTreeMap::new());
        let (mut damaged, mut last) = (0, Uuid::nil());
        loop {
            let recorded = contents::contents_after(self.db, last)?;
            let Some(newest) = recorded.last() else { break };
            last = newest.id;
            let found = FoundContents::find(self.storage, &recorded)?;
            for content in recorded {
                let is_hashed = is_sampled(content.id);
                hashed += u64::from(is_hashed);
                compared += 1;
                let outcome = found.examine(&content, is_hashed, |_| progress.advance(0))?;
                progress.advance(1);
                if let Some(damage) = outcome {
                    suspects.insert(content.id, (content, damage));
                }
            }
            // A suspect without a record was deleted since. A deletion removes the record first, so a content that was
            // missing before its record was found is missing indeed.
            let ids: Vec<Uuid> = suspects.keys().copied().collect();
            for file in files::with_owners(self.db, &ids)? {
                damaged += 1;
                if let Some((content, damage)) = suspects.get(&file.id) {
                    progress.erase();
                    self.report_damaged(&file, content, damage)?;
                }
            }
            suspects.clear();
        }
        drop(progress);
        self.findings.sum_up(format_args!(
            "records: {} compared with their contents, {hashed} of them by hash; {damaged} damaged or missing",
            count(compared, "file")
        ));
        Ok(())
    }

    /// Reports a damaged content, or brings it back from the trash.
    fn report_damaged(
        &mut self,
        file: &FileOfOwner,
        content: &RecordedContent,
        damage: &Damage,
    ) -> Result<(), Error> {
        let FileOfOwner { id, filename, owner } = file;
        let name = format!("files/{id} ({filename:?}, owner {owner})");
        if !matches!(damage, Damage::Missing) {
            self.findings.fault(format_args!("{name} {damage}"), "");
            return Ok(());
        }
        let problem = match self.storage.trash() {
            Some(trash) => match self.look_into_trash(trash, &name, content)? {
                Some(problem) => format!("; {problem}"),
                None => return Ok(()),
            },
            None => String::new(),
        };
        // Another process may have brought it back meanwhile.
        let found = FoundContents::find(self.storage, std::slice::from_ref(content))?;
        if found.examine(content, true, |_| {})?.is_some() {
            self.findings.fault(format_args!("{name} {damage}{problem}"), "");
        }
        Ok(())
    }

    /// Looks for a missing content in the trash, and brings it back if it is to. Returns what is wrong with it if it is
    /// still missing.
    fn look_into_trash(
        &mut self,
        trash: &Path,
        name: &str,
        content: &RecordedContent,
    ) -> Result<Option<String>, Error> {
        let (size, hash) = (content.size, Some(content.sha256.as_str()));
        let copies = copies_in_trash(trash, content.id)?;
        let copy = copies.iter().find(|path| examine(path, size, hash, |_| {}).is_ok());
        Ok(Some(match (copy, copies.first()) {
            (Some(copy), _) if self.repairs => match bring_back(self.storage, content.id, copy) {
                Ok(()) => {
                    let place = copy.display();
                    let text = format_args!("{name} was missing and is back, from {place}");
                    self.findings.warning(text, "");
                    return Ok(None);
                }
                Err(error) => format!("{} cannot be moved back: {error}", copy.display()),
            },
            (Some(copy), _) => {
                format!("it is {}: `cloakroom check --repair` moves it back", copy.display())
            }
            (None, Some(other)) => format!("{} is not what was uploaded", other.display()),
            (None, None) => "the trash does not have it".to_owned(),
        }))
    }

    /// Looks up the record of every content that is over an hour old.
    pub fn compare_contents(&mut self) -> Result<(), Error> {
        let mut progress = Progress::of_items("looking for contents without a record", None);
        let (mut contents, mut unrecorded) = (0, 0);
        // The sweeps wait for the end of a backup.
        let is_backup_running = db::files::is_backup_running(self.db)?;
        for ids in self.storage.old_contents()? {
            let ids = ids?;
            // An upload has its record before its content is an hour old. A deletion removes the record first, so
            // whether the content is still there is asked after the record was looked up.
            let with_listed = self.storage.trash().is_some();
            for content in db::files::unrecorded(self.db, &ids, with_listed)? {
                progress.erase();
                unrecorded += self.report_unrecorded(&content, is_backup_running)?;
            }
            contents += ids.len();
            progress.advance(ids.len() as u64);
        }
        drop(progress);
        for name in foreign_entries(self.storage)? {
            self.findings
                .warning(format_args!("files/: {name:?} is no content of this program"), "");
        }
        self.findings.sum_up(format_args!(
            "contents: {contents} over an hour old looked up in the database; {unrecorded} without a record"
        ));
        Ok(())
    }

    /// Reports a content without a record, unless it is gone by now. Returns how many were reported.
    fn report_unrecorded(
        &mut self,
        content: &UnrecordedContent,
        is_backup_running: bool,
    ) -> Result<usize, Error> {
        let UnrecordedContent { id, is_deleted } = content;
        let Some(age) = self.storage.age_of(*id)? else { return Ok(0) };
        let sweep = match self.storage.trash() {
            Some(_) => "the next sweep moves it to the trash",
            None => "the next sweep lists it for removal",
        };
        if *is_deleted {
            self.findings.warning(format_args!("files/{id} is of a deleted file: {sweep}"), "");
        } else if age < MAX_UNSWEPT_AGE || is_backup_running {
            self.findings.warning(format_args!("files/{id} has no record: {sweep}"), "");
        } else {
            self.findings.fault(format_args!("files/{id} has no record"), "");
        }
        Ok(1)
    }
}

/// Returns the files in `trash` that have the id of a content, the latest day first.
fn copies_in_trash(trash: &Path, id: Uuid) -> Result<Vec<PathBuf>, Error> {
    let days = match fs::read_dir(trash) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(translate)?,
    };
    let mut found = Vec::new();
    for day in days {
        let path = day.map_err(translate)?.path().join(id.to_string());
        if path.is_file() {
            found.push(path);
        }
    }
    // Their names differ in the date alone, whose order is that of time.
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(found)
}

/// Moves a content from its place in the trash back to where it was.
fn bring_back(storage: &Storage, id: Uuid, from: &Path) -> io::Result<()> {
    let contents = storage.content_directory().ok_or(ErrorKind::Unsupported)?;
    fs::rename(from, contents.join(id.to_string()))?;
    // The directory of the new name comes first, so that a loss of power in between leaves both names and not none.
    sync_directory(contents)?;
    from.parent().map_or(Ok(()), sync_directory)
}

/// Returns the names of old entries among the contents that this program did not make. Young ones are left out, because
/// a process that starts makes a file there for a moment.
fn foreign_entries(storage: &Storage) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    let Some(contents) = storage.content_directory() else { return Ok(names) };
    for entry in fs::read_dir(contents).map_err(translate)? {
        let entry = entry.map_err(translate)?;
        let age = entry.metadata().ok().and_then(|metadata| age(&metadata));
        if id_of(&entry).is_none() && age.is_some_and(|age| age > MIN_SWEPT_AGE) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}
