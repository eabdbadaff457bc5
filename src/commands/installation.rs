//! The check that the database and the data directory belong together. Compared with the wrong database, every content
//! would look as if it had no record, and the sweep would move it to the trash.

use uuid::Uuid;

use crate::arguments::ExpectedId;
use crate::config::Config;
use crate::db::installation::DatabaseSide;
use crate::db::{self, Database};
use crate::storage::Storage;
use crate::telemetry::logging;

/// Makes sure that the database and the data directory belong together. A side without an id gets one if nothing can be
/// lost by that. On failure: what to tell the operator.
pub fn check(config: &Config, db: &Database, storage: &Storage) -> Result<(), String> {
    // Usually both have the same id. Then nothing is decided, so no lock is needed.
    let database =
        db::installation::find(db).map_err(|e| format!("installation id: {}", e.cause()))?;
    if database.id.is_some() && database.id == storage.installation_id()? {
        return Ok(());
    }
    db::installation::reconcile(db, |database| {
        let Agreement { id, in_directory, has_contents } = compare(config, &database, storage)?;
        if in_directory.is_none() {
            storage.create_installation_id(id)?;
        } else if database.id.is_none() && has_contents {
            log::warn!(
                "{} holds contents, and the database has no file records: is CLOAKROOM_DATABASE_URL right? Contents \
                 without a record are moved to the trash",
                config.data_dir.display()
            );
        }
        Ok(id)
    })
}

/// Fails where [`check`] fails, and changes nothing: no side gets an id.
pub fn check_only(config: &Config, db: &Database, storage: &Storage) -> Result<(), String> {
    let database = db::installation::find(db).map_err(|e| e.cause().into_owned())?;
    compare(config, &database, storage).map(drop)
}

/// What both sides have, where they may belong together.
pub struct Agreement {
    /// The id of both, or the one that the side without one is to get.
    pub id: Uuid,
    pub in_directory: Option<Uuid>,
    pub has_contents: bool,
}

/// Compares the two sides, and changes nothing. On failure: what to tell the operator.
pub fn compare(
    config: &Config,
    database: &DatabaseSide,
    storage: &Storage,
) -> Result<Agreement, String> {
    let in_directory = storage.installation_id()?;
    let has_contents = storage.count_contents(1).map_err(|e| e.cause().into_owned())? > 0;
    let id = common_id(database.id, in_directory, database.has_files && has_contents)
        .ok_or_else(|| refusal(config, database.id, in_directory))?;
    Ok(Agreement { id, in_directory, has_contents })
}

/// The id that both sides have, or that the side without one is to get; `None` if they may not belong together. Where
/// neither side has an id, this is the first start, or the first start of a version that knows ids. `both_have_files`:
/// there are records and contents, so a wrong pair would do harm.
fn common_id(
    in_database: Option<Uuid>,
    in_directory: Option<Uuid>,
    both_have_files: bool,
) -> Option<Uuid> {
    match (in_database, in_directory) {
        (None, None) => Some(Uuid::new_v4()),
        (Some(database), Some(directory)) => (database == directory).then_some(database),
        (Some(id), None) | (None, Some(id)) => (!both_have_files).then_some(id),
    }
}

fn refusal(config: &Config, in_database: Option<Uuid>, in_directory: Option<Uuid>) -> String {
    let directory = config.data_dir.display();
    let (in_database, in_directory) = (name_of(in_database), name_of(in_directory));
    format!(
        "the database and the data directory do not belong together: the installation id of the database is \
         {in_database}, that of {directory} is {in_directory}. Check CLOAKROOM_DATABASE_URL and CLOAKROOM_DATA_DIR. If \
         both are right, as after a restore, run `cloakroom adopt-data-dir {in_directory}`"
    )
}

fn name_of(id: Option<Uuid>) -> String {
    id.map_or("none".into(), |id| id.to_string())
}

/// `cloakroom adopt-data-dir ID`: gives the data directory the installation id of the database. Fails if the directory
/// holds another id than `expected`: then it is not the directory that the user has read about in a refusal.
pub fn adopt_data_dir(config: &Config, expected: ExpectedId) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    let storage = Storage::open(&config.data_dir)?;
    let db = db::open_and_migrate(config)?;
    let directory = config.data_dir.display();
    db::installation::reconcile(&db, |database| {
        let found = storage.installation_id()?;
        if found != expected.0 {
            let (found, expected) = (name_of(found), name_of(expected.0));
            return Err(format!(
                "the installation id of {directory} is {found}, not {expected}: nothing was changed"
            ));
        }
        let id = database.id.or(found).unwrap_or_else(Uuid::new_v4);
        storage.replace_installation_id(id)?;
        println!("{directory} belongs to the database now; installation id: {id}.");
        Ok(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Option<Uuid> = Some(Uuid::from_u128(1));
    const OTHER: Option<Uuid> = Some(Uuid::from_u128(2));

    #[test]
    fn a_side_without_an_id_gets_the_others_only_while_nothing_can_be_lost() {
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
