//! What a backup needs of the database: that contents stay, and a snapshot from which `pg_dump` and the list of files
//! are made, so that they agree while the service goes on.

use std::time::Duration;

use postgres::{Client, IsolationLevel, Row, Transaction};
use uuid::Uuid;

use super::connector::Connector;
use super::deadline::Deadline;
use super::files::{self, FileOfOwner};
use super::pooled_connection::SqlParams;
use super::postgres_error::describe;
use super::{Database, one_row, sql};
use crate::config::Config;
use crate::error::Error;

/// How long an answer may take. The longest is the wait for deletions that are being made, which the server limits to
/// 60 seconds.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(90);

/// The database as it was at one moment.
pub struct Snapshot<'a> {
    transaction: Transaction<'a>,
    deadline: Deadline,
    /// Names the server in messages.
    server: &'a str,
    /// The id under which `pg_dump --snapshot` finds it.
    pub id: String,
    pub installation_id: Uuid,
    /// The number of the last applied migration.
    pub schema_version: i32,
    /// Number of accounts.
    pub users: u64,
    /// Number of files. Those of deleted users do not count, because their contents may be gone.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Whether a backup is running, which may need contents whose record is gone by now.
pub fn is_running(db: &Database) -> Result<bool, Error> {
    Ok(one_row(db.read(sql!("backup/is_running"), &[])?)?.get("is_running"))
}

/// Takes the lock of backups, and then a snapshot, and passes it to `work`. Until that returns, no content that the
/// snapshot names is removed: `sql/backup/pause_removals.sql` says why. Fails if another backup holds the lock, and
/// also if the connection was lost while `work` ran, because then the lock was lost too. On failure, its own or that
/// of `work`: what to tell the operator.
///
/// The connection is none of the pool's: the lock belongs to it for as long as the backup takes.
pub fn with_snapshot<T>(
    settings: &Config,
    work: impl FnOnce(&mut Snapshot) -> Result<T, String>,
) -> Result<T, String> {
    let connector = Connector::new(settings)?;
    let server = connector.server();
    let failed = |e: postgres::Error| failure(&server, &e);
    let (mut client, deadline) = connector.connect(settings.database_timeout).map_err(failed)?;
    deadline.set(MAX_ANSWER_TIME);
    if !lock(&mut client).map_err(failed)? {
        return Err(
            "another backup of this database, or a migration, is running: nothing was done".into(),
        );
    }
    deadline.set(MAX_ANSWER_TIME);
    let mut snapshot = Snapshot::take(&mut client, deadline.clone(), &server)
        .map_err(failed)?
        .ok_or("the database has no installation id yet: start the service once")?;
    let outcome = work(&mut snapshot)?;
    deadline.set(MAX_ANSWER_TIME);
    snapshot.transaction.commit().map_err(failed)?;
    Ok(outcome)
}

fn failure(server: &str, error: &postgres::Error) -> String {
    format!("the database at {server}: {}", describe(error))
}

/// Returns whether the connection has the lock now. Then all deletions that removed their contents are committed, and
/// later ones leave them.
fn lock(client: &mut Client) -> Result<bool, postgres::Error> {
    client.batch_execute(sql!("backup/no_timeouts"))?;
    if !client.query_one(sql!("backup/lock"), &[])?.get::<_, bool>("is_locked") {
        return Ok(false);
    }
    client.batch_execute(sql!("backup/pause_removals")).map(|()| true)
}

impl<'a> Snapshot<'a> {
    /// `None` where the database has no installation id.
    fn take(
        client: &'a mut Client,
        deadline: Deadline,
        server: &'a str,
    ) -> Result<Option<Snapshot<'a>>, postgres::Error> {
        let begin = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
        let mut transaction = begin.read_only(true).start()?;
        let row = transaction.query_one(sql!("backup/snapshot"), &[])?;
        let counts = transaction.query_one(sql!("backup/counts"), &[])?;
        // Counts and sums of sizes, none of which is negative.
        let count = |name| counts.get::<_, i64>(name) as u64;
        Ok(row.get::<_, Option<Uuid>>("installation_id").map(|installation_id| Snapshot {
            deadline,
            id: row.get("snapshot_id"),
            installation_id,
            schema_version: row.get("schema_version"),
            users: count("users"),
            files: count("files"),
            bytes: count("bytes"),
            transaction,
            server,
        }))
    }

    /// Returns the thousand files whose ids follow `after`, or what is left of them, in order. Those of deleted users
    /// are left out.
    pub fn files_after(&mut self, after: Uuid) -> Result<Vec<files::RecordedContent>, String> {
        let rows = self.query(sql!("files/contents_after"), &[&after])?;
        Ok(rows.iter().map(files::recorded_content).collect())
    }

    /// Returns these files as messages name them, in the order of ids.
    pub fn with_owners(&mut self, ids: &[Uuid]) -> Result<Vec<FileOfOwner>, String> {
        let rows = self.query(sql!("files/with_owners"), &[&ids])?;
        Ok(rows.iter().map(files::file_of_owner).collect())
    }

    fn query(&mut self, sql: &str, params: SqlParams) -> Result<Vec<Row>, String> {
        self.deadline.set(MAX_ANSWER_TIME);
        self.transaction.query(sql, params).map_err(|e| failure(self.server, &e))
    }
}
