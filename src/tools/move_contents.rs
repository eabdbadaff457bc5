//! `cloakroom move-contents --to s3|directory`: copies the contents of all files between the data directory and the
//! store. It deletes nothing, so it may be broken off and run again, and the service may go on meanwhile.

use std::panic::resume_unwind;
use std::thread;

use uuid::Uuid;

use super::database::{self, RecordedContent, batches, with_owners};
use super::files::{Damage, FoundContents, lock};
use super::output::{Names, Progress, count, print_line};
use super::require_store;
use crate::arguments::tools::ContentPlace;
use crate::config::Config;
use crate::db::{self, Database};
use crate::error::Error;
use crate::serve::{CommandError, ignore_file_size_signal, installation};
use crate::storage::Storage;

/// The file that a process which copies keeps locked.
const LOCK: &str = "move-contents.lock";
/// How many contents are copied at a time. A store may take tens of milliseconds for each, however small it is.
const THREADS: usize = 8;

/// The two places of contents, and what was done.
struct Move {
    from: Storage,
    to: Storage,
    db: Database,
    copied: u64,
    /// Contents that could not be copied.
    damaged: u64,
    /// All contents.
    total: u64,
    names: Names,
}

/// Runs the command. The service may use either place, whose installation id is that of the database. The other place
/// gets it, if it is empty.
pub fn move_contents(config: &Config, to: ContentPlace, all: bool) -> Result<(), CommandError> {
    if config.store.is_none() {
        let fault = "CLOAKROOM_STORAGE_URL is not set; move-contents needs it in both directions";
        return Err(CommandError::Settings(vec![fault.to_owned()]));
    }
    ignore_file_size_signal()?;
    let (directory, store) = (Storage::in_directory(config), Storage::at(config)?);
    require_store(&store)?;
    let (from, to) = match to {
        ContentPlace::S3 => (directory, store),
        ContentPlace::Directory => (store, directory),
    };
    let db = database::open(config)?;
    database::check_schema(&db)?;
    to.prepare(&config.data_dir)?;
    let refusal = "another `cloakroom move-contents` is running: nothing was copied";
    let _lock = lock(&config.data_dir.join(LOCK), refusal)?;
    check_ids(&db, &from, &to)?;
    let names = Names::new(all);
    let mut work = Move { from, to, db, copied: 0, damaged: 0, total: 0, names };
    work.copy_all()?;
    Ok(work.sum_up()?)
}

/// Fails unless both places are those of the database. A place without an id gets it if it is empty.
fn check_ids(db: &Database, from: &Storage, to: &Storage) -> Result<(), String> {
    let database = db::installation::find(db)?;
    let id = installation::compare(&database, from)?.id;
    match to.installation_id()? {
        None if to.count_contents(1)? == 0 => to.replace_installation_id(id),
        Some(found) if found == id => Ok(()),
        found => Err(format!(
            "the installation id of {} is {}, not {id}, and it is not empty: nothing was copied",
            to.place().0,
            installation::name_of(found)
        )),
    }
}

impl Move {
    /// Copies what the other place lacks, in the order of ids.
    fn copy_all(&mut self) -> Result<(), String> {
        let (_, stored) = db::stats::totals(&self.db)?;
        let mut progress = Progress::begin("copying contents", u64::try_from(stored.total).ok());
        for batch in batches(&self.db) {
            let batch = batch?;
            let seen = batch.len() as u64;
            self.total += seen;
            let lacking = lacking(&self.to, batch)?;
            let found = FoundContents::find(&self.from, &lacking)?;
            let faults = self.copy_batch(&found, &lacking)?;
            self.copied += (lacking.len() - faults.len()) as u64;
            progress.advance(seen);
            self.damaged += print_faults(&self.db, &self.from, &faults, &mut self.names)?;
        }
        self.names.end();
        Ok(())
    }

    /// Copies contents, several at a time. Returns those that cannot be taken, and what is wrong with them, in the
    /// order of ids.
    fn copy_batch(
        &self,
        found: &FoundContents,
        contents: &[RecordedContent],
    ) -> Result<Vec<(Uuid, Damage)>, String> {
        let copy_some = |some: &[RecordedContent]| -> Result<Vec<_>, String> {
            let mut faults = Vec::new();
            for content in some {
                let damage = self.copy(found, content)?;
                faults.extend(damage.map(|damage| (content.id, damage)));
            }
            Ok(faults)
        };
        let part = contents.len().div_ceil(THREADS).max(1);
        let outcome: Result<Vec<_>, String> = thread::scope(|scope| {
            let parts = contents.chunks(part).map(|some| scope.spawn(|| copy_some(some)));
            let threads: Vec<_> = parts.collect();
            threads.into_iter().map(|one| one.join().unwrap_or_else(|e| resume_unwind(e))).collect()
        });
        Ok(outcome?.into_iter().flatten().collect())
    }

    /// Copies a content. Returns what is wrong with it, if it cannot be taken.
    fn copy(
        &self,
        found: &FoundContents,
        content: &RecordedContent,
    ) -> Result<Option<Damage>, String> {
        let mut draft = self.to.draft_of(content.id)?;
        let copied = found.copy(content, &mut draft);
        let damage = copied.map_err(|e| e.between(self.from.place().0, draft.path().display()))?;
        if damage.is_none() {
            draft.commit()?;
            draft.keep();
        }
        Ok(damage)
    }

    /// Names what was uploaded since its id was passed, and says what is left to do.
    fn sum_up(mut self) -> Result<(), String> {
        let (place, _) = self.to.place();
        let done = format!(
            "{} copied to {place}, {} there already",
            count(self.copied, "content"),
            self.total - self.copied - self.damaged
        );
        if self.damaged > 0 {
            return Err(format!(
                "{done}; {} missing or damaged: `cloakroom check` names them with their owners",
                count(self.damaged, "content")
            ));
        }
        let mut later = 0;
        for batch in batches(&self.db) {
            for content in lacking(&self.to, batch?)? {
                later += 1;
                let line = format_args!("files/{} was uploaded meanwhile", content.id);
                self.names.print("new", line);
            }
        }
        self.names.end();
        let next = match (self.copied, later) {
            (0, 0) => "nothing is left to do",
            (_, 0) => "all are there; run it again to be sure",
            _ => "run it again",
        };
        print_line(format_args!("{done}; {next}."));
        Ok(())
    }
}

/// Those of these contents that a place does not have, or not in their size.
fn lacking(to: &Storage, contents: Vec<RecordedContent>) -> Result<Vec<RecordedContent>, Error> {
    let ids: Vec<Uuid> = contents.iter().map(|content| content.id).collect();
    let sizes = to.sizes(&ids)?;
    let lacks = |content: &RecordedContent| sizes.get(&content.id) != Some(&content.size);
    Ok(contents.into_iter().filter(lacks).collect())
}

/// Names those of these contents that still have a record, and returns how many those are.
fn print_faults(
    db: &Database,
    from: &Storage,
    faults: &[(Uuid, Damage)],
    names: &mut Names,
) -> Result<u64, Error> {
    let ids: Vec<Uuid> = faults.iter().map(|(id, _)| *id).collect();
    let recorded = with_owners(db, &ids)?;
    let (place, _) = from.place();
    for (id, damage) in faults {
        if recorded.iter().any(|file| file.id == *id) {
            names.print("damaged", format_args!("files/{id} of {place} {damage}"));
        }
    }
    Ok(recorded.len() as u64)
}
