//! Queries that only the tools make.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::iter;
use std::time::Duration;

use postgres::types::ToSql;
use postgres::{Client, Row};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::output::{bytes, count};
use crate::auth::sealing::SealingKeys;
use crate::config::Config;
use crate::db::connector::Connector;
use crate::db::deadline::Deadline;
use crate::db::migrations::{MIGRATIONS, find_applied, newest_schema_version, verify};
use crate::db::pool::Pool;
use crate::db::postgres_error::describe;
use crate::db::{Database, sql};
use crate::error::Error;
use crate::second_factor::count_sealed;
use crate::serve::secrets;

/// How long a command that only looks at the applied migrations waits for them.
const MAX_CHECK_TIME: Duration = Duration::from_secs(60);

/// How long a statement may take that reads whole tables. For one that waits for a lock the server has a limit of its
/// own, which is shorter.
const MAX_READ_TIME: Duration = Duration::from_secs(600);

/// Numbers of records, without those of deleted users, whose contents may be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub users: u64,
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// As in `2 users, 3 files (1.50 GiB)`.
impl Display for Totals {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let (users, files) = (count(self.users, "user"), count(self.files, "file"));
        write!(f, "{users}, {files} ({})", bytes(self.bytes))
    }
}

impl Totals {
    /// Reads a row of the query `tools/backup/counts`.
    pub fn of(row: &Row) -> Totals {
        // Counts and sums of sizes, none of which is negative.
        let number = |column| row.get::<_, i64>(column).unsigned_abs();
        Totals { users: number("users"), files: number("files"), bytes: number("bytes") }
    }
}

/// What the content of a file must be, by its record or by the manifest of a backup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedContent {
    pub id: Uuid,
    /// In bytes.
    pub size: u64,
    /// SHA-256, in hexadecimal.
    pub sha256: String,
}

impl RecordedContent {
    /// Reads a row of the queries `tools/contents_after` and `tools/with_owners`.
    pub fn of(row: &Row) -> RecordedContent {
        // The table has a constraint that keeps the size from being negative.
        let size: i64 = row.get("file_size");
        RecordedContent {
            id: row.get("id"),
            size: size.unsigned_abs(),
            sha256: row.get("file_hash"),
        }
    }
}

/// All contents, in the order of ids, about a thousand at a time. Those of deleted users are left out. A
/// caller stops at the first failure.
pub fn batches(db: &Database) -> impl Iterator<Item = Result<Vec<RecordedContent>, Error>> {
    let mut last = Uuid::nil();
    iter::from_fn(move || next_batch(&mut last, |sql, params| db.read(sql, params)).transpose())
}

/// Returns the contents that follow `last` in the order of ids, about a thousand, and moves `last` on; `None` after all
/// of them.
pub fn next_batch<E>(
    last: &mut Uuid,
    query: impl FnOnce(&'static str, &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, E>,
) -> Result<Option<Vec<RecordedContent>>, E> {
    let rows = query(sql!("tools/contents_after"), &[last])?;
    let batch: Vec<_> = rows.iter().map(RecordedContent::of).collect();
    let Some(newest) = batch.last() else { return Ok(None) };
    *last = newest.id;
    Ok(Some(batch))
}

/// A file, as messages name it.
pub struct FileOfOwner {
    pub content: RecordedContent,
    filename: String,
    /// The username, or the id of an owner without one.
    owner: String,
}

impl FileOfOwner {
    /// Reads a row of the query `tools/with_owners`.
    pub fn of(row: &Row) -> FileOfOwner {
        let content = RecordedContent::of(row);
        FileOfOwner { content, filename: row.get("filename"), owner: row.get("owner") }
    }
}

impl Display for FileOfOwner {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        write!(f, "files/{} ({:?}, owner {})", self.content.id, self.filename, self.owner)
    }
}

/// Returns the files with these ids, in the order of ids, without those that are gone or whose owner is deleted.
pub fn with_owners(
    db: &Database,
    ids: impl IntoIterator<Item = Uuid>,
) -> Result<Vec<FileOfOwner>, Error> {
    let ids: Vec<Uuid> = ids.into_iter().collect();
    Ok(db.read(sql!("tools/with_owners"), &[&ids])?.iter().map(FileOfOwner::of).collect())
}

/// Runs a query that may read whole tables.
pub fn read_at_length(db: &Database, sql: &str) -> Result<Vec<Row>, Error> {
    db.run(MAX_READ_TIME, |client| client.query(sql, &[]))
}

/// A connection of a command, which is none of the pool's: locks belong to it for as long as the command takes. On
/// failure, its functions return what to tell the operator.
pub struct DedicatedConnection {
    client: Client,
    deadline: Deadline,
    /// Names the server in messages.
    pub server: String,
}

impl DedicatedConnection {
    /// Connects. Only a wait for a lock ends after a minute: how long its statements and transactions take is not
    /// known.
    pub fn open(settings: &Config) -> Result<DedicatedConnection, String> {
        let connector = Connector::new(settings)?;
        let server = connector.server();
        let connection = connector.connect(settings.database_timeout);
        let (client, deadline) =
            connection.map_err(|e| format!("the database at {server}: {}", describe(&e)))?;
        let mut connection = DedicatedConnection { client, deadline, server };
        connection.execute("SET lock_timeout = '60s'")?;
        Ok(connection)
    }

    pub fn execute(&mut self, sql: &str) -> Result<(), String> {
        self.query(sql, &[]).map(drop)
    }

    pub fn query_one(&mut self, sql: &str) -> Result<Row, String> {
        let rows = self.query(sql, &[])?;
        rows.into_iter().next().ok_or_else(|| "a query returned no row".to_owned())
    }

    pub fn query(&mut self, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, String> {
        self.deadline.set(MAX_READ_TIME);
        let failed = |e| format!("the database at {}: {}", self.server, describe(&e));
        self.client.query(sql, params).map_err(failed)
    }
}

/// Opens the pool without waiting for the database or migrating it. On failure: what to tell the operator.
pub fn open(settings: &Config) -> Result<Database, String> {
    let connector = Connector::new(settings)?;
    Ok(Database::of(Pool::new(connector, None, settings)))
}

/// Fails, and changes nothing in any case, unless all migrations of this program are applied and no others that do not
/// suit it. On failure: what to tell the operator.
pub fn check_schema(db: &Database) -> Result<(), String> {
    let (applied, newest) = (applied_version(db)?, newest_schema_version());
    if applied < newest {
        return Err(format!(
            "the database has schema version {applied}, this program has version {newest}: `cloakroom migrate` brings \
             it up to date"
        ));
    }
    Ok(())
}

/// The version of the schema; 0 if the database has none. Fails if it does not suit this program. On failure: what to
/// tell the operator.
pub fn applied_version(db: &Database) -> Result<i32, String> {
    let applied = db.run(MAX_CHECK_TIME, find_applied)?;
    verify(MIGRATIONS, &applied)?;
    Ok(applied.last().map_or(0, |row| row.get("version")))
}

/// Returns how many accounts have a second factor, or an offer of one that is not over, and of how many of them no key
/// opens the secret. The keys are those that the service would have with these settings: the secret in the data
/// directory is read, but not made.
pub fn count_second_factors(db: &Database, config: &Config) -> Result<(usize, usize), Error> {
    let configured = config.jwt_secret.as_ref().map(|secret| secret.expose().as_bytes().to_vec());
    let secret = configured.or_else(|| fs::read(secrets::path(config)).ok());
    let keys: SealingKeys = secrets::sealing_keys(config, secret.as_deref());
    count_sealed(db, &keys, MAX_READ_TIME)
}
