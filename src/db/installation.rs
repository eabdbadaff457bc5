//! Opens the database at the start: checks its settings, waits until it answers, has it migrated, and compares the
//! random id in its table `installation` with that of the data directory that belongs to it.

use std::time::{Duration, Instant};

use postgres::{Client, Row};
use uuid::Uuid;

use super::connector::Connector;
use super::database::Database;
use super::deadline::Deadline;
use super::migrations::migrate;
use super::pool::Pool;
use super::postgres_error::{describe, is_unavailable};
use super::{from_row, one_row, sql};
use crate::config::Config;
use crate::error::Error;
use crate::supervisor;

/// Longest wait at the start for a database that does not answer.
const MAX_STARTUP_WAIT: Duration = Duration::from_secs(30);
/// Pause between two attempts to connect.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Time between two log lines about the wait.
const REPORT_PERIOD: Duration = Duration::from_secs(10);
/// Longest wait for another process that migrates, and for each migration. A change to a large table takes long.
const MAX_MIGRATION_TIME: Duration = Duration::from_secs(3600);

/// Checks the settings of the database without connecting. On failure: what to tell the operator.
pub fn check_settings(settings: &Config) -> Result<(), String> {
    Connector::new(settings).map(drop)
}

/// Applies pending migrations and opens the pool, whose first connection is the one that migrated: to open another
/// would take a quarter of the start. Passes the database's side of the comparison with the contents to `check` before
/// it changes anything, and fails if that does. On failure: what to tell the operator.
pub fn open_and_migrate(
    settings: &Config,
    check: impl FnOnce(&DatabaseSide) -> Result<(), String>,
) -> Result<Database, String> {
    let connector = Connector::new(settings)?;
    let (mut client, deadline) = wait_for_database(&connector)?;
    let begin = |step: &str| {
        supervisor::starting(step, MAX_MIGRATION_TIME);
        deadline.set(MAX_MIGRATION_TIME);
    };
    migrate(&mut client, &begin, |client, is_new| {
        let rows = match is_new {
            true => Ok(Vec::new()),
            false => client.query_typed(sql!("db/installation/find"), &[]),
        };
        let rows = rows.map_err(|e| format!("installation id: {}", describe(&e)))?;
        check(&rows.first().map(DatabaseSide::of).unwrap_or_default())
    })?;
    Ok(Database::of(Pool::new(connector, Some((client, deadline)), settings)))
}

/// Connects as soon as the database can be reached. Fails at once if waiting cannot help, as with a wrong password.
fn wait_for_database(connector: &Connector) -> Result<(Client, Deadline), String> {
    let begin = Instant::now();
    let server = connector.server();
    let mut reports = 0;
    loop {
        supervisor::starting("Waiting for the database", MAX_STARTUP_WAIT);
        let error = match connector.connect(MAX_MIGRATION_TIME) {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        let reason = describe(&error);
        if !is_unavailable(&error) {
            return Err(format!("the database at {server} refuses the connection: {reason}"));
        }
        let waited = begin.elapsed();
        if waited >= MAX_STARTUP_WAIT {
            let seconds = MAX_STARTUP_WAIT.as_secs();
            return Err(format!(
                "the database at {server} did not answer for {seconds} s: {reason}"
            ));
        }
        if waited >= REPORT_PERIOD * reports {
            log::warn!("waiting for the database at {server}: {reason}");
            reports += 1;
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// How long the comparison may take, including the wait for other processes that compare.
const MAX_COMPARISON: Duration = Duration::from_secs(60);

/// The database's side of the comparison with the data directory. That of a database without a schema is empty.
#[derive(Default)]
pub struct DatabaseSide {
    /// The installation id; `None` if it has none yet.
    pub id: Option<Uuid>,
    /// Whether any file is recorded.
    pub has_files: bool,
}

impl DatabaseSide {
    pub fn of(row: &Row) -> DatabaseSide {
        from_row!(row => DatabaseSide { id, has_files })
    }
}

/// Reads the database's side without a lock, so others may change it meanwhile unless it has an id already.
pub fn find(db: &Database) -> Result<DatabaseSide, Error> {
    let row = one_row(db.read_unprepared(sql!("db/installation/find"), &[], None)?)?;
    Ok(DatabaseSide::of(&row))
}

/// Passes the database's side to `compare`, and stores the id that it returns if the database has none. Processes that
/// start at the same moment do so one after the other, so all see the decision of the first one. On failure, its own or
/// that of `compare`: what to tell the operator.
pub fn reconcile(
    db: &Database,
    compare: impl FnOnce(DatabaseSide) -> Result<Uuid, String>,
) -> Result<(), String> {
    let outcome = db.run(MAX_COMPARISON, |client| {
        let mut transaction = client.transaction()?;
        transaction.batch_execute(sql!("db/installation/lock"))?;
        let side = DatabaseSide::of(&transaction.query_one(sql!("db/installation/find"), &[])?);
        let is_new = side.id.is_none();
        match compare(side) {
            Ok(id) if is_new => transaction.execute(sql!("db/installation/insert"), &[&id])?,
            Ok(_) => 0,
            Err(refusal) => return Ok(Err(refusal)),
        };
        transaction.commit().map(Ok)
    });
    outcome.map_err(|e| format!("installation id: {}", e.cause()))?
}
