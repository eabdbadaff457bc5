//! Queries of `cloakroom restore`: makes sure that the database is empty, and changes a restored one so that it is an
//! installation of its own.

use std::time::Duration;

use uuid::Uuid;

use super::{DedicatedConnection, Totals, second_factors};
use crate::config::Config;
use crate::db::{Database, sql};
use crate::error::Error;

/// How long a change to the restored database may take. A large one takes long.
const MAX_CHANGE_TIME: Duration = Duration::from_secs(3600);

/// A database without tables, into which no other process restores meanwhile.
pub struct EmptyDatabase(DedicatedConnection);

impl EmptyDatabase {
    /// Connects and takes the lock. Fails if the database has tables, or if another process restores into it. On
    /// failure, here and below: what to tell the operator.
    pub fn lock(settings: &Config) -> Result<EmptyDatabase, String> {
        let mut connection = DedicatedConnection::open(settings)?;
        if !connection.query_one(sql!("restore/lock"))?.get::<_, bool>("is_locked") {
            let server = connection.server;
            return Err(format!(
                "another `cloakroom restore` is writing to the database at {server}"
            ));
        }
        let mut database = EmptyDatabase(connection);
        match database.table()? {
            None => Ok(database),
            Some(table) => Err(format!(
                "the database at {} is not empty: it has the table {table}. Restore into a new one (createdb); one \
                 that an interrupted restore has left is removed first (dropdb)",
                database.0.server
            )),
        }
    }

    /// Returns one of the tables that the database has by now.
    pub fn table(&mut self) -> Result<Option<String>, String> {
        let rows = self.0.query(sql!("restore/find_tables"), &[])?;
        Ok(rows.first().map(|row| row.get("name")))
    }

    /// The version of PostgreSQL, such as `15.14`.
    pub fn server_version(&mut self) -> Result<String, String> {
        Ok(self.0.query_one(sql!("database/version"))?.get("version"))
    }
}

/// Makes a restored database an installation of its own, with this id: removes the records of the files whose contents
/// are damaged, and ends all access that was given before. All of it happens or nothing. Returns how many sessions, how
/// many personal access tokens and how many links to files were ended.
pub fn renew(db: &Database, installation_id: Uuid, damaged: &[Uuid]) -> Result<[i64; 3], Error> {
    db.run(MAX_CHANGE_TIME, |client| {
        let mut transaction = client.transaction()?;
        transaction.execute(sql!("restore/remove_files"), &[&damaged])?;
        let row = transaction.query_one(sql!("restore/renew"), &[&installation_id])?;
        transaction.commit()?;
        Ok(["sessions", "personal_tokens", "links"].map(|name| row.get(name)))
    })
}

/// Counts second factors, and those of them that no key of these settings opens.
pub fn second_factors(db: &Database, config: &Config) -> Result<(usize, usize), Error> {
    let keys = second_factors::sealing_keys(config);
    db.run(MAX_CHANGE_TIME, |client| second_factors::count(client, &keys))
}

/// Collects the statistics that plans depend on.
pub fn vacuum(db: &Database) -> Result<(), Error> {
    db.run(MAX_CHANGE_TIME, |client| client.batch_execute(sql!("restore/vacuum")))
}

/// Counts the records.
pub fn totals(db: &Database) -> Result<Totals, Error> {
    db.run(MAX_CHANGE_TIME, |client| Ok(Totals::of(&client.query_one(sql!("backup/counts"), &[])?)))
}
