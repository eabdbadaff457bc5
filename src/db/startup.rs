//! Opens the database at the start: checks its settings, waits until it answers, and has it migrated.

use std::time::{Duration, Instant};

use postgres::Client;

use super::connector::Connector;
use super::deadline::Deadline;
use super::migrations::migrate;
use super::pool::Database;
use super::postgres_error::{describe, is_unavailable};
use crate::config::Config;
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
/// would take a quarter of the start. On failure: what to tell the operator.
pub fn open_and_migrate(settings: &Config) -> Result<Database, String> {
    let connector = Connector::new(settings)?;
    let (mut client, deadline) = wait_for_database(&connector)?;
    migrate(&mut client, MAX_MIGRATION_TIME)?;
    let first = Some((client, deadline));
    Ok(Database::new(connector, first, settings.database_pool_size, settings.database_timeout))
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
