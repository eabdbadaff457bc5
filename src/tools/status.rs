//! `cloakroom status`: whether all is well, on one screen. `doctor` looks at more, and takes longer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;

use super::database::connect::connect;
use super::database::diagnosis::{DatabaseFacts, find_stored};
use super::doctor::{data_directory, judge_doubts, mail_server};
use super::findings::{Findings, Level};
use super::quantity::age;
use super::unit::Unit;
use super::{service, within_max_wait};
use crate::config::{Config, Environment, UsedSettings};
use crate::db;
use crate::serve::ignore_file_size_signal;
use crate::storage::Storage;
use crate::storage::file_system::last_backup;

/// The longest wait for a connection to the database.
const MAX_CONNECT: Duration = Duration::from_secs(5);
/// A backup is made every night; older than this, one was missed. `scripts/alerts.yml` has the same.
const MAX_BACKUP_AGE: Duration = Duration::from_secs(36 * 3600);

/// Prints a line for each part of the installation. Fails if there are faults. `env_files` are the files from which the
/// environment has settings.
pub fn status(env_files: &[PathBuf]) -> Result<(), String> {
    let (mut config, refused) = Config::from_environment(UsedSettings::All, db::check_settings);
    ignore_file_size_signal()?;
    config.database_timeout = config.database_timeout.min(MAX_CONNECT);
    let config = Arc::new(config);
    let unit = Unit::find(env_files);
    let mut findings = Findings::default();
    service::judge(&mut findings, &config, unit.as_ref(), Level::Fault);
    let facts = judge_database(&mut findings, &config);
    judge_backup(&mut findings, &config, unit.as_ref());
    if let Ok(storage) = Storage::at(&config) {
        data_directory::judge_room(&mut findings, &config, &storage, &facts);
        data_directory::judge_store(&mut findings, &storage);
    }
    match &facts.stored {
        Some(stored) => mail_server::judge_outbox(&mut findings, stored),
        None => findings.warning("outbox: not looked at, because it is in the database", ""),
    }
    judge_doubts(&mut findings, &config, &refused);
    findings.finish()
}

/// Connects to the database, and asks it for what the other lines need.
fn judge_database(findings: &mut Findings, config: &Arc<Config>) -> DatabaseFacts {
    let mut facts = DatabaseFacts::default();
    if db::check_settings(config).is_err() {
        findings.warning("database: not looked at, because its settings are wrong", "");
        return facts;
    }
    let settings = config.clone();
    let answer = within_max_wait(move || {
        let mut connection = connect(&settings)?;
        let stored = find_stored(&mut connection.client);
        Ok((format!("PostgreSQL {} at {}", connection.version, connection.server), stored))
    });
    match answer {
        None => findings.fault("database: no answer in time", ""),
        Some(Err((reason, advice))) => findings.fault(format_args!("database: {reason}"), advice),
        Some(Ok((server, Ok(stored)))) => {
            findings.ok(format_args!("database: {server} answers"));
            facts.stored = Some(stored);
        }
        Some(Ok((server, Err(reason)))) => findings.warning(
            format_args!("database: {server} has not the schema of this program: {reason}"),
            "The next start of the service makes it.",
        ),
    }
    facts
}

/// Reports the last whole backup. Without any, that may be the work of another program, so it is no fault.
fn judge_backup(findings: &mut Findings, config: &Config, unit: Option<&Unit>) {
    if unit.is_some_and(|unit| unit.backup_has_failed) {
        let advice = "`journalctl -u cloakroom-backup` says why; `systemctl start cloakroom-backup` makes one now.";
        findings.fault("last backup: the last run of cloakroom-backup.service failed", advice);
    }
    let advice = "`systemctl enable --now cloakroom-backup.timer` makes one every night, `cloakroom backup DIR` now.";
    match last_backup(&config.data_dir) {
        None => findings.judge(
            config.environment == Environment::Development,
            Level::Warning,
            "last backup: `cloakroom backup` has made none of this data directory",
            advice,
        ),
        Some((at, path)) => {
            let since = Duration::try_from(OffsetDateTime::now_utc() - at.0).unwrap_or_default();
            let text = format!("last backup: {} is whole, {} old", path.display(), age(since));
            findings.judge(since <= MAX_BACKUP_AGE, Level::Warning, text, advice);
        }
    }
}
