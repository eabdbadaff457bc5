//! The check that the database and the data directory belong together. Compared with the wrong database, every content
//! would look as if it had no record, and the sweep would move it to the trash.

use uuid::Uuid;

use crate::config::Config;
use crate::db::installation::DatabaseSide;
use crate::db::{self, Database};
use crate::storage::Storage;

/// Makes sure that the database and the data directory belong together. A side without an id gets one if neither side
/// has anything to lose, or if neither has an id yet. On failure: what to tell the operator.
pub fn check(config: &Config, db: &Database, storage: &Storage) -> Result<(), String> {
    // Usually both have the same id. Then nothing is decided, so no lock is needed.
    let database =
        db::installation::find(db).map_err(|e| format!("installation id: {}", e.cause()))?;
    if database.id.is_some() && database.id == storage.installation_id()? {
        return Ok(());
    }
    db::installation::reconcile(db, |database| {
        let Agreement { id, in_directory } = compare(config, &database, storage)?;
        if in_directory.is_none() {
            storage.create_installation_id(id)?;
        }
        Ok(id)
    })
}

/// The ids of two sides that may belong together.
pub struct Agreement {
    /// The id of both, or the id that the side without one is to get.
    pub id: Uuid,
    pub in_directory: Option<Uuid>,
}

/// Compares the two sides, and changes nothing. On failure: what to tell the operator.
pub fn compare(
    config: &Config,
    database: &DatabaseSide,
    storage: &Storage,
) -> Result<Agreement, String> {
    let in_directory = storage.installation_id()?;
    let has_contents = has_contents(storage)?;
    let can_lose = database.has_files || has_contents;
    let id = common_id(database.id, in_directory, can_lose)
        .ok_or_else(|| refusal(config, database, in_directory, has_contents))?;
    Ok(Agreement { id, in_directory })
}

pub fn has_contents(storage: &Storage) -> Result<bool, String> {
    let count = storage.count_contents(1)?;
    Ok(count > 0)
}

/// Returns the id that both sides have, or that the side without one is to get; `None` if they may not belong together.
/// If neither side has an id, this is the first start, or the first start of a version that knows ids. `can_lose` says
/// whether there are records or contents: if one side has an id and the other has none, a volume is not mounted or a
/// URL is wrong.
fn common_id(
    in_database: Option<Uuid>,
    in_directory: Option<Uuid>,
    can_lose: bool,
) -> Option<Uuid> {
    match (in_database, in_directory) {
        (None, None) => Some(Uuid::new_v4()),
        (Some(database), Some(directory)) => (database == directory).then_some(database),
        (Some(id), None) | (None, Some(id)) => (!can_lose).then_some(id),
    }
}

fn refusal(
    config: &Config,
    database: &DatabaseSide,
    in_directory: Option<Uuid>,
    has_contents: bool,
) -> String {
    let directory = config.data_dir.display();
    let (in_database, in_directory) = (name_of(database.id), name_of(in_directory));
    let lack = lack(database.has_files, has_contents);
    format!(
        "the database and the data directory do not belong together: the installation id of the database is \
         {in_database}, that of {directory} is {in_directory}.{lack} Check CLOAKROOM_DATABASE_URL and \
         CLOAKROOM_DATA_DIR. If both are right, as after one side was restored by hand, run `cloakroom adopt-data-dir \
         {in_directory}`"
    )
}

/// Says after a blank, in a sentence, that one side has files and the other has none; empty if that is not so.
pub fn lack(has_files: bool, has_contents: bool) -> &'static str {
    match (has_files, has_contents) {
        (true, false) => {
            " The database has records of files, and the directory has no contents, as if its volume were not mounted."
        }
        (false, true) => {
            " The directory has contents, and the database has no records of files, as if it were another one."
        }
        _ => "",
    }
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
        for (in_database, in_directory) in [(ONE, None), (None, ONE)] {
            assert_eq!(common_id(in_database, in_directory, false), ONE);
            assert_eq!(common_id(in_database, in_directory, true), None);
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
