//! `cloakroom check`: compares the database with the contents, and looks for damage in either. It may run beside a
//! service: whatever looks wrong is looked up once more before it is reported, in an order that no upload and no
//! deletion upsets. It changes nothing, unless it is to bring contents back from the trash or the last backup, or to
//! delete the files of those that are lost.

use std::fs;
use std::io::ErrorKind;
use std::iter;
use std::path::{Path, PathBuf};
use std::slice;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::backup::manifest::CONTENTS;
use super::database::{FileOfOwner, RecordedContent, batches, read_at_length, with_owners};
use super::files::{AtPath, Damage, FoundContents, copy_verified, examine};
use super::open_installation;
use super::output::{Findings, Progress, count, print_line};
use crate::background::sweep;
use crate::config::Config;
use crate::db::{self, Database, sql};
use crate::error::Error;
use crate::files::statements as files;
use crate::serve::ignore_file_size_signal;
use crate::storage::file_system::{LAST_BACKUP, last_backup};
use crate::storage::{Storage, sync_directory, translate};

/// A content without a record that is younger is left to the sweep, which runs hourly and takes those that are over an
/// hour old.
const MAX_UNSWEPT_AGE: Duration = Duration::from_secs(2 * 3600);

/// Parameters of every step of the check, and its findings.
struct Check<'a> {
    storage: &'a Storage,
    db: &'a Database,
    /// The contents of the last backup, if they can be read.
    backup: Option<PathBuf>,
    /// Whether to bring damaged and missing contents back from the trash or the last backup.
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
    if repairs {
        ignore_file_size_signal()?;
    }
    let backup = contents_of_last_backup(config).filter(|path| fs::read_dir(path).is_ok());
    let mut check = Check { storage: &storage, db: &db, backup, repairs, findings };
    // A step that fails, as on a damaged table, does not end the check: the others may find more.
    check.run("records", Check::compare_records);
    check.run("contents", Check::compare_contents);
    check.run("totals", Check::compare_totals);
    print_line(format_args!("checked in {:.1} s", begin.elapsed().as_secs_f64()));
    check.findings.finish()
}

/// Deletes these files for good, whose contents are lost, with an event for each and a mail to each owner. Damaged
/// bytes go where contents without a record go. Leaves and names each whose content is right in its place, in the
/// trash, or in the last backup, or cannot be read there; then it fails, as it does for an id without a record.
pub fn remove_lost(config: &Config, ids: &[Uuid]) -> Result<(), String> {
    let (storage, db) = open_installation(config)?;
    let backup = contents_of_last_backup(config);
    if let Some(Err(e)) = backup.as_ref().map(fs::read_dir) {
        let mark = config.data_dir.join(LAST_BACKUP).display().to_string();
        return Err(format!(
            "the last backup, which {mark} names, may have them, and cannot be read: {e}. If it is gone for good, \
             remove {mark}"
        ));
    }
    let (mut lost, mut damaged) = (Vec::new(), Vec::new());
    for file in with_owners(&db, ids.iter().copied())? {
        let (content, id) = (&file.content, file.content.id);
        let found = FoundContents::find(&storage, slice::from_ref(content))?.read(content)?;
        let is_missing = matches!(found, Some(Damage::Missing));
        let directory = storage.content_directory();
        let place = directory.map_or_else(|| storage.place().0.into(), |d| d.join(id.to_string()));
        let copies = copies(&storage, backup.as_deref(), content)?;
        let may_be_right =
            |damage: &Option<Damage>| !damage.as_ref().is_some_and(Damage::is_certain);
        match iter::once((place, found)).chain(copies).find(|(_, damage)| may_be_right(damage)) {
            Some((copy, damage)) => {
                let what = damage.map_or("has the right bytes".into(), |damage| damage.to_string());
                print_line(format_args!("files/{id} is left: {} {what}", copy.display()));
            }
            None => {
                damaged.extend((!is_missing).then_some(id));
                lost.push(file);
            }
        }
    }
    let removed: Vec<Uuid> = lost.iter().map(|file| file.content.id).collect();
    let reason = "content lost";
    db.write(sql!("tools/restore/remove_files"), &[&removed, &"file.purge", &reason, &true])?;
    lost.iter().for_each(|file| print_line(format_args!("{file} was deleted for good")));
    // They have no record any more: if this fails, the next sweep does the same.
    sweep::discard(&storage, &db, &damaged, print_line)?;
    let left: Vec<_> = ids.iter().filter(|id| !removed.contains(id)).collect();
    let ids = left.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let fault =
        format!("left, because their bytes are or may be right, or no record is there: {ids}");
    if left.is_empty() { Ok(()) } else { Err(fault) }
}

/// The directory of the contents of the last backup, which may be away; `None` if there was none.
fn contents_of_last_backup(config: &Config) -> Option<PathBuf> {
    last_backup(&config.data_dir).map(|(_, path)| path.join(CONTENTS))
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
                suspects.extend(outcome.map(|damage| (content.id, damage)));
                progress.advance(1);
            }
            // A suspect without a record was deleted since. A deletion removes the record first, so a content that was
            // missing before its record was found is missing indeed.
            let files = with_owners(self.db, suspects.iter().map(|(id, _)| *id))?;
            damaged += files.len();
            for (id, damage) in &suspects {
                if let Some(file) = files.iter().find(|file| file.content.id == *id) {
                    self.report_damaged(file, damage)?;
                }
            }
        }
        self.findings.sum_up(format_args!(
            "records: {} compared with their contents; {damaged} damaged or missing",
            count(compared, "file")
        ));
        Ok(())
    }

    /// Reports a damaged or missing content. If it is to be repaired, and there is a right copy, it is brought back.
    fn report_damaged(&mut self, file: &FileOfOwner, damage: &Damage) -> Result<(), Error> {
        let content = &file.content;
        let copies = copies(self.storage, self.backup.as_deref(), content)?;
        let right = copies.iter().find(|(_, damage)| damage.is_none());
        let found = match right.or(copies.first()) {
            Some((copy, None)) if self.repairs => match bring_back(self.storage, content, copy) {
                Ok(()) => {
                    let is_missing = matches!(damage, Damage::Missing);
                    let was = if is_missing { "missing" } else { "damaged" };
                    let place = copy.display();
                    self.findings
                        .warning(format_args!("{file} was {was} and is back, from {place}"));
                    return Ok(());
                }
                Err(error) => format!("; {} cannot be brought back: {error}", copy.display()),
            },
            Some((copy, None)) => format!(
                "; {} has the right bytes: `cloakroom check --repair` brings them back",
                copy.display()
            ),
            Some((copy, Some(other))) => format!("; {} {other}", copy.display()),
            None => {
                "; neither the trash nor the last backup has a copy that can be read".to_owned()
            }
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

/// Returns the copies of a content in the trash, if there is one, the latest day first, and in `backup`, the contents
/// of a backup: each with what is wrong with it.
fn copies(
    storage: &Storage,
    backup: Option<&Path>,
    content: &RecordedContent,
) -> Result<Vec<(PathBuf, Option<Damage>)>, Error> {
    let mut places = Vec::new();
    match storage.trash().map(fs::read_dir) {
        None => {}
        Some(Err(e)) if e.kind() == ErrorKind::NotFound => {}
        Some(days) => {
            for day in days.map_err(translate)? {
                places.push(day.map_err(translate)?.path());
            }
        }
    }
    // The names of days differ in the date alone, whose order is that of time.
    places.sort_unstable_by(|one, other| other.cmp(one));
    places.extend(backup.map(Path::to_owned));
    let examined = places.into_iter().map(|place| {
        let copy = place.join(content.id.to_string());
        let damage = examine(&copy, Some(content.size), Some(&content.sha256));
        (copy, damage)
    });
    Ok(examined.filter(|(_, damage)| !matches!(damage, Some(Damage::Missing))).collect())
}

/// Puts a right copy in the place of a content. One in the trash is moved, which needs no room; one in a backup is
/// copied. On failure: what to tell the operator.
fn bring_back(storage: &Storage, content: &RecordedContent, copy: &Path) -> Result<(), String> {
    let directories = storage.content_directory().zip(storage.trash());
    if let Some((contents, _)) = directories.filter(|(_, trash)| copy.starts_with(trash)) {
        fs::rename(copy, contents.join(content.id.to_string())).at(copy)?;
        // The directory of the new name comes first, so that a loss of power in between leaves both names and not none.
        let changed = [Some(contents), copy.parent()];
        return changed.into_iter().flatten().try_for_each(|path| sync_directory(path).at(path));
    }
    let mut draft = storage.draft_of(content.id)?;
    let copied = copy_verified(copy, &mut draft, Some(content.size), &content.sha256);
    copied.at(draft.path())?.map_err(|damage| damage.to_string())?;
    draft.commit()?;
    draft.keep();
    Ok(())
}
