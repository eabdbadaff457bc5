//! `cloakroom check`: compares the database with the contents, and looks for damage in either. It may run beside a
//! service: whatever looks wrong is looked up once more before it is reported, in an order that no upload and no
//! deletion upsets. It changes nothing, unless it is to bring contents back from
//! the trash, or to delete the files of those that are lost.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::slice;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::backup::manifest::CONTENTS;
use super::database::{FileOfOwner, RecordedContent, batches, read_at_length, with_owners};
use super::files::{Damage, FoundContents, examine};
use super::open_installation;
use super::output::{Findings, Progress, count, print_line};
use crate::config::Config;
use crate::db::{self, Database, sql};
use crate::error::Error;
use crate::files::statements as files;
use crate::storage::file_system::{LAST_BACKUP, last_backup};
use crate::storage::{Storage, exists, sync_directory, translate};

/// A content without a record that is younger is left to the sweep, which runs hourly and takes those that are over an
/// hour old.
const MAX_UNSWEPT_AGE: Duration = Duration::from_secs(2 * 3600);

/// Parameters of every step of the check, and its findings.
struct Check<'a> {
    storage: &'a Storage,
    db: &'a Database,
    /// Whether to bring missing contents back from the trash.
    repairs: bool,
    findings: Findings,
}

/// Runs the command. Fails if there is any fault; if `all`, each has been printed by then.
pub fn check(config: &Config, repairs: bool, all: bool) -> Result<(), String> {
    let begin = Instant::now();
    let mut findings = Findings::new(all);
    let (storage, db) = match open_installation(config) {
        Ok(opened) => opened,
        Err(reason) => {
            findings.fault(reason);
            return findings.finish();
        }
    };
    let mut check = Check { storage: &storage, db: &db, repairs, findings };
    // A step that fails, as on a damaged table, does not end the check: the others may find more.
    check.run("records", Check::compare_records);
    check.run("contents", Check::compare_contents);
    check.run("totals", Check::compare_totals);
    print_line(format_args!("checked in {:.1} s", begin.elapsed().as_secs_f64()));
    check.findings.finish()
}

/// Deletes these files for good, whose contents are lost, with an event for each and a mail to each owner. Leaves and
/// names each whose content is in its place, whole or not, in the trash, or in the last backup; then it fails, as it
/// does for an id without a record.
pub fn remove_lost(config: &Config, ids: &[Uuid]) -> Result<(), String> {
    let (storage, db) = open_installation(config)?;
    let backup = last_backup(&config.data_dir).map(|(_, path)| path.join(CONTENTS));
    if let Some(Err(e)) = backup.as_ref().map(fs::read_dir) {
        let mark = config.data_dir.join(LAST_BACKUP).display().to_string();
        return Err(format!(
            "the last backup, which {mark} names, may have them, and cannot be read: {e}. If it is gone for good, \
             remove {mark}"
        ));
    }
    let mut lost = Vec::new();
    for id in ids {
        match find(&storage, backup.as_deref(), *id)? {
            Some(place) => print_line(format_args!("files/{id} is left: it is {place}")),
            None => lost.push(*id),
        }
    }
    let files = with_owners(&db, lost)?;
    let lost: Vec<Uuid> = files.iter().map(|file| file.id).collect();
    db.write(sql!("tools/restore/remove_files"), &[&lost, &"file.purge", &"content lost", &true])?;
    files.iter().for_each(|file| print_line(format_args!("{file} was deleted for good")));
    let left: Vec<_> = ids.iter().filter(|id| !lost.contains(id)).collect();
    let ids = left.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let fault = format!("left, because they have a content or a copy of it, or no record: {ids}");
    if left.is_empty() { Ok(()) } else { Err(fault) }
}

/// Returns where the content of a file is, whole or not; `None` if it is nowhere. `backup` has those of a backup.
fn find(storage: &Storage, backup: Option<&Path>, id: Uuid) -> Result<Option<String>, Error> {
    if storage.content_directory().is_none() && storage.sizes(&[id])?.contains_key(&id) {
        return Ok(Some(format!("in {}", storage.place().0)));
    }
    let directories = [storage.content_directory(), backup].into_iter().flatten();
    let mut paths: Vec<_> = directories.map(|path| path.join(id.to_string())).collect();
    paths.extend(copies_in_trash(storage, id)?);
    for path in paths {
        if exists(&path).map_err(translate)? {
            return Ok(Some(path.display().to_string()));
        }
    }
    Ok(None)
}

impl Check<'_> {
    /// Runs a step, which prints what it finds. A step that cannot be finished is a fault.
    fn run(&mut self, name: &str, step: fn(&mut Self) -> Result<(), Error>) {
        if let Err(error) = step(self) {
            self.findings.fault(format_args!("{name}: {}", error.cause()));
            self.findings.sum_up(format_args!("{name}: not finished"));
        }
    }

    /// Compares the content of every file with its record, size and hash.
    fn compare_records(&mut self) -> Result<(), Error> {
        let (_, stored) = db::stats::totals(self.db)?;
        let total = stored.total.unsigned_abs();
        let mut progress = Progress::begin("comparing contents", Some(total));
        let (mut compared, mut damaged) = (0, 0);
        for recorded in batches(self.db) {
            let recorded = recorded?;
            compared += recorded.len() as u64;
            let found = FoundContents::find(self.storage, &recorded)?;
            let mut suspects = Vec::new();
            for content in recorded {
                let outcome = found.read(&content)?;
                suspects.extend(outcome.map(|damage| (content, damage)));
                progress.advance(1);
            }
            // A suspect without a record was deleted since. A deletion removes the record first, so a content that was
            // missing before its record was found is missing indeed.
            let files = with_owners(self.db, suspects.iter().map(|(content, _)| content.id))?;
            damaged += files.len();
            for (content, damage) in &suspects {
                if let Some(file) = files.iter().find(|file| file.id == content.id) {
                    self.report_damaged(file, content, damage)?;
                }
            }
        }
        self.findings.sum_up(format_args!(
            "records: {} compared with their contents; {damaged} damaged or missing",
            count(compared, "file")
        ));
        Ok(())
    }

    /// Reports a damaged content. One that is missing, and whole in the trash, is brought back if it is to.
    fn report_damaged(
        &mut self,
        file: &FileOfOwner,
        content: &RecordedContent,
        damage: &Damage,
    ) -> Result<(), Error> {
        if !matches!(damage, Damage::Missing) {
            self.findings.fault(format_args!("{file} {damage}"));
            return Ok(());
        }
        let copies = copies_in_trash(self.storage, content.id)?;
        let (size, sha256) = (Some(content.size), Some(&*content.sha256));
        let whole = copies.iter().find(|copy| examine(copy, size, sha256).is_none());
        let found = match (whole, copies.first()) {
            (Some(copy), _) if self.repairs => match bring_back(self.storage, content.id, copy) {
                Ok(()) => {
                    let place = copy.display();
                    self.findings
                        .warning(format_args!("{file} was missing and is back, from {place}"));
                    return Ok(());
                }
                Err(error) => format!("; {} cannot be moved back: {error}", copy.display()),
            },
            (Some(copy), _) => {
                format!("; it is {}: `cloakroom check --repair` moves it back", copy.display())
            }
            (None, Some(other)) => format!("; {} is not what was uploaded", other.display()),
            (None, None) if self.storage.trash().is_some() => {
                "; the trash does not have it".to_owned()
            }
            (None, None) => String::new(),
        };
        // Another process may have brought it back meanwhile.
        let contents = FoundContents::find(self.storage, slice::from_ref(content))?;
        if contents.read(content)?.is_some() {
            self.findings.fault(format_args!("{file} {damage}{found}"));
        }
        Ok(())
    }

    /// Looks up the record of every content that is over an hour old.
    fn compare_contents(&mut self) -> Result<(), Error> {
        let mut progress = Progress::begin("looking for contents without a record", None);
        let (mut contents, mut unrecorded) = (0, 0);
        // The sweeps wait for the end of a backup.
        let is_backup_running = files::is_backup_running(self.db)?;
        for ids in self.storage.old_contents()? {
            let ids = ids?;
            // An upload has its record before its content is an hour old. A deletion removes the record first, so
            // whether the content is still there is asked after the record was looked up.
            for id in files::unrecorded(self.db, &ids)? {
                unrecorded += self.report_unrecorded(id, is_backup_running)?;
            }
            contents += ids.len();
            progress.advance(ids.len() as u64);
        }
        self.findings.sum_up(format_args!(
            "contents: {contents} over an hour old looked up in the database; {unrecorded} without a record"
        ));
        Ok(())
    }

    /// Reports a content without a record, unless it does not exist any more. Returns how many were reported.
    fn report_unrecorded(&mut self, id: Uuid, is_backup_running: bool) -> Result<usize, Error> {
        let Some(age) = self.storage.age_of(id)? else { return Ok(0) };
        if age >= MAX_UNSWEPT_AGE && !is_backup_running {
            self.findings.fault(format_args!("files/{id} has no record"));
            return Ok(1);
        }
        let has_trash = self.storage.trash().is_some();
        let what = if has_trash { "moves it to the trash" } else { "lists it for removal" };
        self.findings.warning(format_args!("files/{id} has no record: the next sweep {what}"));
        Ok(1)
    }

    /// Compares the totals that triggers keep in the rows of accounts, and the tables that they keep for quotas, lists
    /// and statistics, with what they are made of.
    fn compare_totals(&mut self) -> Result<(), Error> {
        for row in read_at_length(self.db, sql!("tools/checks/user_totals"))? {
            let number = |column| row.get::<_, i64>(column);
            self.findings.fault(format_args!(
                "the totals of user {} are {} of {} bytes, the records are {} of {}",
                row.get::<_, &str>("name"),
                count(number("total_uploads").unsigned_abs(), "file"),
                number("total_storage_used"),
                number("files"),
                number("bytes")
            ));
        }
        self.findings.end_kind();
        for row in read_at_length(self.db, sql!("tools/checks/copies"))? {
            let (copy, faults): (&str, i64) = (row.get("copy"), row.get("faults"));
            let rows = count(faults.unsigned_abs(), "row");
            self.findings
                .fault(format_args!("the table {copy} differs from what it is made of in {rows}"));
        }
        self.findings.sum_up("totals: those of accounts, quotas, lists and statistics compared");
        Ok(())
    }
}

/// Returns the files in the trash, if there is one, that have the id of a content, the latest day first.
fn copies_in_trash(storage: &Storage, id: Uuid) -> Result<Vec<PathBuf>, Error> {
    let days = match storage.trash().map(fs::read_dir) {
        None => return Ok(Vec::new()),
        Some(Err(e)) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Some(days) => days.map_err(translate)?,
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
