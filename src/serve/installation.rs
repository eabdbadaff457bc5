//! The check that the database and the contents belong together. Compared with the wrong database, every content
//! would look as if it had no record, and the sweep would move it to the trash.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use uuid::Uuid;

use crate::config::Config;
use crate::db::installation::DatabaseSide;
use crate::db::{self, Database};
use crate::storage::Storage;

/// Pause before a store that is away is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// Opens and migrates the database, unless the contents have an id and it is not theirs: then it is not changed. If the
/// contents cannot be reached, they are not compared. On failure: what to tell the operator.
pub fn open_database(config: &Config, storage: &Storage) -> Result<Database, String> {
    db::open_and_migrate(config, |side| {
        let is_reached = storage.reach()?.is_none();
        match is_reached && storage.installation_id()?.is_some() {
            true => compare(side, storage).map(drop),
            false => Ok(()),
        }
    })
}

/// Makes sure that the database and the contents belong together. A side without an id gets one if neither side
/// has anything to lose, or if neither has an id yet. On failure: what to tell the operator.
pub fn check(db: &Database, storage: &Storage) -> Result<(), String> {
    // Usually both have the same id. Then nothing is decided, so no lock is needed.
    let database =
        db::installation::find(db).map_err(|e| format!("installation id: {}", e.cause()))?;
    if database.id.is_some() && database.id == storage.installation_id()? {
        return Ok(());
    }
    db::installation::reconcile(db, |database| {
        let Agreement { id, of_contents } = compare(&database, storage)?;
        if of_contents.is_none() {
            storage.create_installation_id(id)?;
        }
        Ok(id)
    })
}

/// Starts a thread that tries again to reach a store which was away at the start, and then compares the two sides.
/// Until they are known to belong together, no content is used.
pub fn check_later(storage: Arc<Storage>, db: Arc<Database>) -> io::Result<()> {
    storage.hold(true);
    let work = move || {
        let mut last_refusal = String::new();
        loop {
            thread::sleep(RETRY_PAUSE);
            let outcome = match storage.reach() {
                Ok(Some(_)) => continue,
                Ok(None) => check(&db, &storage),
                Err(refusal) => Err(refusal),
            };
            let Err(refusal) = outcome else { return storage.hold(false) };
            if refusal != last_refusal {
                log::error!("contents cannot be used: {refusal}");
            }
            last_refusal = refusal;
        }
    };
    thread::Builder::new().name("store".into()).spawn(work).map(drop)
}

/// The ids of two sides that may belong together.
pub struct Agreement {
    /// The id of both, or the id that the side without one is to get.
    pub id: Uuid,
    /// The id of the data directory or of the store.
    pub of_contents: Option<Uuid>,
}

/// Compares the two sides, and changes nothing. On failure: what to tell the operator.
pub fn compare(database: &DatabaseSide, storage: &Storage) -> Result<Agreement, String> {
    let of_contents = storage.installation_id()?;
    let has_contents = has_contents(storage)?;
    let can_lose = database.has_files || has_contents;
    if let Some(id) = common_id(database.id, of_contents, can_lose) {
        return Ok(Agreement { id, of_contents });
    }
    let ((place, setting), kind) = (storage.place(), kind(storage));
    let (of_database, of_contents) = (name_of(database.id), name_of(of_contents));
    let lack = lack(database.has_files, has_contents, storage);
    Err(format!(
        "the database and the {kind} do not belong together: the installation id of the database is {of_database}, \
         that of {place} is {of_contents}.{lack} Check CLOAKROOM_DATABASE_URL and {setting}. If both are right, as \
         after one side was restored by hand, run `cloakroom adopt-data-dir {of_contents}`"
    ))
}

pub fn has_contents(storage: &Storage) -> Result<bool, String> {
    let count = storage.count_contents(1)?;
    Ok(count > 0)
}

/// Returns the id that both sides have, or that the side without one is to get; `None` if they may not belong together.
/// If neither side has an id, this is the first start, or the first start of a version that knows ids. `can_lose` says
/// whether there are records or contents: if one side has an id and the other has none, a volume is not mounted or a
/// URL is wrong.
fn common_id(of_database: Option<Uuid>, of_contents: Option<Uuid>, can_lose: bool) -> Option<Uuid> {
    match (of_database, of_contents) {
        (None, None) => Some(Uuid::new_v4()),
        (Some(database), Some(contents)) => (database == contents).then_some(database),
        (Some(id), None) | (None, Some(id)) => (!can_lose).then_some(id),
    }
}

/// Says after a blank, in a sentence, that one side has files and the other has none; empty if that is not so.
pub fn lack(has_files: bool, has_contents: bool, storage: &Storage) -> String {
    let kind = kind(storage);
    match (has_files, has_contents) {
        (true, false) => {
            let cause = match storage.trash() {
                Some(_) => "its volume were not mounted",
                None => "it were another one",
            };
            format!(
                " The database has records of files, and the {kind} has no contents, as if {cause}."
            )
        }
        (false, true) => format!(
            " The {kind} has contents, and the database has no records of files, as if it were another one."
        ),
        _ => String::new(),
    }
}

/// What the place of contents is called.
fn kind(storage: &Storage) -> &'static str {
    if storage.trash().is_some() { "data directory" } else { "store" }
}

pub fn name_of(id: Option<Uuid>) -> String {
    id.map_or("none".into(), |id| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Option<Uuid> = Some(Uuid::from_u128(1));
    const OTHER: Option<Uuid> = Some(Uuid::from_u128(2));

    #[test]
    fn a_side_without_an_id_gets_the_others_only_if_nothing_can_be_lost() {
        for (of_database, of_contents) in [(ONE, None), (None, ONE)] {
            assert_eq!(common_id(of_database, of_contents, false), ONE);
            assert_eq!(common_id(of_database, of_contents, true), None);
        }
    }

    #[test]
    fn different_ids_are_never_reconciled_and_equal_ones_always_agree() {
        for can_lose in [false, true] {
            assert_eq!(common_id(ONE, OTHER, can_lose), None);
            assert_eq!(common_id(ONE, ONE, can_lose), ONE);
        }
    }

    #[test]
    fn two_sides_without_ids_get_a_new_one_also_at_an_upgrade() {
        assert!(common_id(None, None, true).is_some());
        assert_ne!(common_id(None, None, false), common_id(None, None, false));
    }
}
