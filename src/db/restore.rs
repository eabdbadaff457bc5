//! What `cloakroom restore` needs of the database: that it is empty, and what must not be as it was in the backup.

use std::time::Duration;

use postgres::Client;
use uuid::Uuid;

use super::connector::Connector;
use super::deadline::Deadline;
use super::pool::Database;
use super::postgres_error::describe;
use super::sql;
use crate::config::Config;
use crate::error::Error;

/// How long an answer about the empty database may take.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(60);
/// How long a change to the restored database may take. A large one takes long.
const MAX_CHANGE_TIME: Duration = Duration::from_secs(3600);

/// A database without tables, into which no other process restores meanwhile. The lock belongs to this connection,
/// which is none of the pool's, for as long as the restoration takes.
pub struct EmptyDatabase {
    client: Client,
    deadline: Deadline,
    /// What messages call the server.
    server: String,
}

/// Numbers of records, without those of deleted users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub users: u64,
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// How much access was ended.
pub struct EndedAccess {
    pub sessions: i64,
    pub personal_tokens: i64,
}

impl EmptyDatabase {
    /// Connects and takes the lock. Fails where the database has tables, or where another process restores into it. On
    /// failure: what to tell the operator.
    pub fn lock(settings: &Config) -> Result<EmptyDatabase, String> {
        let connector = Connector::new(settings)?;
        let server = connector.server();
        let failed = |e: postgres::Error| format!("the database at {server}: {}", describe(&e));
        let (mut client, deadline) =
            connector.connect(settings.database_timeout).map_err(failed)?;
        deadline.set(MAX_ANSWER_TIME);
        client.batch_execute(sql!("backup/no_timeouts")).map_err(failed)?;
        let row = client.query_one(sql!("restore/lock"), &[]).map_err(failed)?;
        if !row.get::<_, bool>("is_locked") {
            return Err(format!(
                "another `cloakroom restore` is writing to the database at {server}"
            ));
        }
        let mut database = EmptyDatabase { client, deadline, server };
        match database.table()? {
            None => Ok(database),
            Some(table) => Err(format!(
                "the database at {} is not empty: it has the table {table}. Restore into a new one (createdb); one that \
                 an interrupted restore has left is removed first (dropdb)",
                database.server
            )),
        }
    }

    /// One of the tables that the database has by now.
    pub fn table(&mut self) -> Result<Option<String>, String> {
        self.deadline.set(MAX_ANSWER_TIME);
        let rows = self.client.query(sql!("restore/find_tables"), &[]);
        let rows =
            rows.map_err(|e| format!("the database at {}: {}", self.server, describe(&e)))?;
        Ok(rows.first().map(|row| row.get("name")))
    }

    /// The version of PostgreSQL, such as `15.14`.
    pub fn server_version(&mut self) -> Result<String, String> {
        self.deadline.set(MAX_ANSWER_TIME);
        let row = self.client.query_one(sql!("database/version"), &[]);
        let row = row.map_err(|e| format!("the database at {}: {}", self.server, describe(&e)))?;
        Ok(row.get("version"))
    }
}

/// Makes a restored database an installation of its own, with this id: removes the records of the files whose contents
/// are damaged, and ends all access that was given before. All of it happens or nothing.
pub fn renew(db: &Database, installation_id: Uuid, damaged: &[Uuid]) -> Result<EndedAccess, Error> {
    db.run(MAX_CHANGE_TIME, |client| {
        let mut transaction = client.transaction()?;
        transaction.execute(sql!("restore/remove_files"), &[&damaged])?;
        let row = transaction.query_one(sql!("restore/renew"), &[&installation_id])?;
        transaction.commit()?;
        Ok(EndedAccess {
            sessions: row.get("sessions"),
            personal_tokens: row.get("personal_tokens"),
        })
    })
}

/// Collects the statistics that plans depend on.
pub fn vacuum(db: &Database) -> Result<(), Error> {
    db.run(MAX_CHANGE_TIME, |client| client.batch_execute(sql!("restore/vacuum")))
}

/// Counts the records.
pub fn counts(db: &Database) -> Result<Counts, Error> {
    db.run(MAX_CHANGE_TIME, |client| {
        let row = client.query_one(sql!("backup/counts"), &[])?;
        // Counts and sums of sizes, none of which is negative.
        let number = |column| row.get::<_, i64>(column) as u64;
        Ok(Counts { users: number("users"), files: number("files"), bytes: number("bytes") })
    })
}
