//! Opening the database at start: waits until it answers, and brings its schema up to date.

use std::error::Error as _;
use std::time::{Duration, Instant};

use postgres::{Client, Config};
use r2d2::ManageConnection as _;
use r2d2_postgres::PostgresConnectionManager;

use super::pool::{Database, describe, is_unavailable};
use super::tls::{Deadline, Linker};
use crate::config;

mod embedded {
    refinery::embed_migrations!("sql/migrations");
}

/// How long a database that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);
/// How long another process may be at the migrations, and each of them may take.
const MAX_MIGRATION: Duration = Duration::from_secs(3600);
/// Key of the advisory lock: the bytes "cloakroo".
const LOCK: i64 = 0x636c_6f61_6b72_6f6f;

/// Applies pending migrations and opens the pool. On failure: what to tell the operator.
pub fn open_and_migrate(settings: &config::Config) -> Result<Database, String> {
    let (config, linker) = parse(settings)?;
    migrate(&mut wait_for(&config, &linker)?)?;
    Database::new(config, linker, settings.database_pool_size, settings.database_timeout)
}

/// Checks the settings of the database without a connection.
pub fn parse(settings: &config::Config) -> Result<(Config, Linker), String> {
    let mut config: Config =
        settings.database_url.expose().parse().map_err(|e: postgres::Error| {
            // The message names the bad option, not the value of a good one.
            format!(
                "CLOAKROOM_DATABASE_URL is no PostgreSQL URL or key/value text: {}",
                describe(&e)
            )
        })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err("CLOAKROOM_DATABASE_URL names no host".into());
    }
    if config.get_application_name().is_none() {
        config.application_name("cloakroom");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(settings.database_timeout);
    }
    let linker = Linker::new(&mut config, settings.database_ca.as_deref())
        .map_err(|e| format!("CLOAKROOM_DATABASE_CA or CLOAKROOM_DATABASE_URL: {e}"))?;
    Ok((config, linker))
}

fn wait_for(config: &Config, linker: &Linker) -> Result<Client, String> {
    let begin = Instant::now();
    loop {
        let hook = linker.with_deadline(Deadline::new(MAX_MIGRATION));
        let error = match PostgresConnectionManager::new(config.clone(), hook).connect() {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        if !is_unavailable(&error) {
            return Err(format!("the database refuses the connection: {}", describe(&error)));
        }
        if begin.elapsed() >= PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(format!(
                "the database did not answer for {seconds} s: {}",
                describe(&error)
            ));
        }
        log::warn!("waiting for the database: {}", describe(&error));
        std::thread::sleep(PAUSE);
    }
}

/// Runs under a lock of its session, so that of several processes one migrates and the others find
/// nothing to do. The lock goes with the connection.
fn migrate(client: &mut Client) -> Result<(), String> {
    let fault = |e: postgres::Error| format!("migration: {}", describe(&e));
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).map_err(fault)?;
    let runner = embedded::migrations::runner();
    let newest = runner.get_migrations().iter().map(|m| m.version()).max().unwrap_or_default();
    let known: bool = client
        .query_one("SELECT to_regclass('refinery_schema_history') IS NOT NULL", &[])
        .map_err(fault)?
        .get(0);
    let applied =
        if known { runner.get_last_applied_migration(client).map_err(failed)? } else { None };
    let applied = applied.map_or(0, |m| m.version());
    if applied > newest {
        return Err(format!(
            "the database has schema version {applied}, this program knows versions up to {newest}: \
             use a newer cloakroom"
        ));
    }
    let report = runner.run(client).map_err(failed)?;
    for migration in report.applied_migrations() {
        log::info!("migration {migration} applied");
    }
    Ok(())
}

/// The error with what is behind it: where PostgreSQL refused, its message.
fn failed(error: refinery::Error) -> String {
    let database = error.source().and_then(|source| source.downcast_ref::<postgres::Error>());
    format!("migration: {error}: {}", database.map(describe).unwrap_or_default())
}
