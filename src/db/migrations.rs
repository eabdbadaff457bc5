//! Opens the database at start: waits until it answers, and brings its schema up to date.

use std::error::Error as _;
use std::time::{Duration, Instant};

use postgres::Client;

use super::connector::Connector;
use super::pool::Database;
use super::postgres_error::{describe, is_unavailable};
use crate::config;

mod embedded {
    refinery::embed_migrations!("sql/migrations");
}

/// How long to wait at start for a database that does not answer.
const MAX_STARTUP_WAIT: Duration = Duration::from_secs(30);
/// Pause between two attempts to connect.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Time between two log lines about the wait.
const REPORT_PERIOD: Duration = Duration::from_secs(10);
/// How long to wait for another process that migrates, and for each migration. A change to a large table takes long.
const MAX_MIGRATION_TIME: Duration = Duration::from_secs(3600);
/// Key of the advisory lock: the bytes "cloakroo".
const LOCK_KEY: i64 = 0x636c_6f61_6b72_6f6f;

/// Applies pending migrations and opens the pool. On failure: what to tell the operator.
pub fn open_and_migrate(settings: &config::Config) -> Result<Database, String> {
    let connector = Connector::new(settings)?;
    let mut client = wait_for_database(&connector)?;
    // The pool connects while the schema is compared: PostgreSQL takes milliseconds to start a session.
    let database = Database::new(connector, settings.database_pool_size, settings.database_timeout);
    migrate(&mut client)?;
    Ok(database)
}

/// Connects as soon as the database can be reached. An error that waiting cannot mend, such as a wrong password,
/// fails at once.
fn wait_for_database(connector: &Connector) -> Result<Client, String> {
    let begin = Instant::now();
    let server = connector.server();
    let mut reports = 0;
    loop {
        let error = match connector.connect(MAX_MIGRATION_TIME) {
            Ok((client, _)) => return Ok(client),
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

/// Applies pending migrations under an advisory lock, so that of several processes that start together one migrates and
/// the others find nothing to do. The lock belongs to the database session and is released when the connection closes.
fn migrate(client: &mut Client) -> Result<(), String> {
    let failed_query = |e: postgres::Error| format!("migration: {}", describe(&e));
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK_KEY]).map_err(failed_query)?;
    let runner = embedded::migrations::runner();
    let newest = runner.get_migrations().iter().map(|m| m.version()).max().unwrap_or_default();
    let has_history: bool = client
        .query_one("SELECT to_regclass('refinery_schema_history') IS NOT NULL AS has_history", &[])
        .map_err(failed_query)?
        .get("has_history");
    let last = if has_history {
        runner.get_last_applied_migration(client).map_err(failed_migration)?
    } else {
        None
    };
    let applied = last.map_or(0, |m| m.version());
    if applied > newest {
        return Err(format!(
            "the database has schema version {applied}, this program knows versions up to {newest}: \
             use a newer cloakroom"
        ));
    }
    let report = runner.run(client).map_err(failed_migration)?;
    for migration in report.applied_migrations() {
        log::info!("migration {migration} applied");
    }
    Ok(())
}

/// Formats the error together with PostgreSQL's message, which refinery keeps as its source.
fn failed_migration(error: refinery::Error) -> String {
    let database = error.source().and_then(|source| source.downcast_ref::<postgres::Error>());
    format!("migration: {error}: {}", database.map(describe).unwrap_or_default())
}
