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

/// How many contents there are, how many of them were copied, and how many could not be.
#[derive(Default)]
struct Counts {
    total: u64,
    copied: u64,
    damaged: u64,
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
    let mut names = Names::new(all);
    let counts = copy_all(&from, &to, &db, &mut names)?;
    Ok(sum_up(&to, &db, counts, names)?)
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

/// Copies what the other place lacks, in the order of ids.
fn copy_all(
    from: &Storage,
    to: &Storage,
    db: &Database,
    names: &mut Names,
) -> Result<Counts, String> {
    let (_, stored) = db::stats::totals(db)?;
    let mut progress = Progress::begin("copying contents", u64::try_from(stored.total).ok());
    let mut counts = Counts::default();
    let place = from.place().0;
    for batch in batches(db) {
        let batch = batch?;
        let seen = batch.len() as u64;
        let lacking = lacking(to, batch)?;
        let faults = copy_batch(from, to, &lacking)?;
        counts.total += seen;
        counts.copied += (lacking.len() - faults.len()) as u64;
        progress.advance(seen);
        // Those without a record by now were deleted meanwhile.
        let recorded = with_owners(db, faults.iter().map(|(id, _)| *id))?;
        counts.damaged += recorded.len() as u64;
        for (id, damage) in
            faults.iter().filter(|(id, _)| recorded.iter().any(|file| file.content.id == *id))
        {
            names.print("damaged", format_args!("files/{id} of {place} {damage}"));
        }
    }
    names.end();
    Ok(counts)
}

/// Copies contents, several at a time. Returns those that cannot be taken, and what is wrong with them, in the order of
/// ids.
fn copy_batch(
    from: &Storage,
    to: &Storage,
    contents: &[RecordedContent],
) -> Result<Vec<(Uuid, Damage)>, String> {
    let found = FoundContents::find(from, contents)?;
    let copy_some = |some: &[RecordedContent]| -> Result<Vec<_>, String> {
        let mut faults = Vec::new();
        for content in some {
            let mut draft = to.draft_of(content.id)?;
            let copied = found.copy(content, &mut draft);
            match copied.map_err(|e| e.between(from.place().0, draft.path().display()))? {
                Some(damage) => faults.push((content.id, damage)),
                None => {
                    draft.commit()?;
                    draft.keep();
                }
            }
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

/// Names what was uploaded since its id was passed, and says what is left to do.
fn sum_up(to: &Storage, db: &Database, counts: Counts, mut names: Names) -> Result<(), String> {
    let Counts { total, copied, damaged } = counts;
    let there = total - copied - damaged;
    let place = to.place().0;
    let done = format!("{} copied to {place}, {there} there already", count(copied, "content"));
    if damaged > 0 {
        return Err(format!(
            "{done}; {} missing or damaged: `cloakroom check` names them with their owners",
            count(damaged, "content")
        ));
    }
    let mut later = 0;
    for batch in batches(db) {
        for content in lacking(to, batch?)? {
            later += 1;
            names.print("new", format_args!("files/{} was uploaded meanwhile", content.id));
        }
    }
    names.end();
    let next = match (copied, later) {
        (0, 0) => "nothing is left to do",
        (_, 0) => "all are there; run it again to be sure",
        _ => "run it again",
    };
    print_line(format_args!("{done}; {next}."));
    Ok(())
}

/// Those of these contents that a place does not have, or not in their size.
fn lacking(to: &Storage, contents: Vec<RecordedContent>) -> Result<Vec<RecordedContent>, Error> {
    let ids: Vec<Uuid> = contents.iter().map(|content| content.id).collect();
    let sizes = to.sizes(&ids)?;
    let lacks = |content: &RecordedContent| sizes.get(&content.id) != Some(&content.size);
    Ok(contents.into_iter().filter(lacks).collect())
}
