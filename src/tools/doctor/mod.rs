//! `cloakroom doctor`: looks at everything that the service depends on, and says what is wrong and what to do about it.
//! It changes nothing. What is wrong with one thing does not keep it from looking at the others.

pub mod data_directory;
mod limits;
pub mod mail_server;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::database::connect::connect;
use super::database::diagnosis::{self, DatabaseFacts};
use super::environment_file::{LineFinding, examine, read};
use super::findings::{Findings, Level};
use super::unit::Unit;
use super::{service, within_max_wait};
use crate::config::{Config, Environment, Registration, ShownSetting, UsedSettings};
use crate::db;
use crate::serve::{ignore_file_size_signal, warnings};

/// The longest wait for a single connection to the database, if the settings allow longer ones.
const MAX_CONNECT: Duration = Duration::from_secs(5);

/// Prints the findings. `all` lists the settings with defaults too. Settings that are refused have their defaults for
/// the rest; `env_files` are the files from which the environment has some. Fails if there are faults.
pub fn doctor(all: bool, env_files: &[PathBuf]) -> Result<(), String> {
    let (mut config, refused) = Config::from_environment(UsedSettings::All, db::check_settings);
    ignore_file_size_signal()?;
    let mut findings = Findings::default();
    for file in env_files {
        judge_file(&mut findings, file);
    }
    list_settings(&mut findings, &config, all);
    judge_doubts(&mut findings, &config, &refused);
    judge_exposure(&mut findings, &config);
    config.database_timeout = config.database_timeout.min(MAX_CONNECT);
    let config = Arc::new(config);
    let unit = Unit::find(env_files);
    service::judge(&mut findings, &config, unit.as_ref(), Level::Warning);
    let facts = judge_database(&mut findings, &config);
    data_directory::judge(&mut findings, &config, &facts);
    if let Some(unit) = unit {
        judge_sandbox(&mut findings, &unit, &config.data_dir);
    }
    limits::judge(&mut findings, &config);
    mail_server::judge(&mut findings, &config, facts.stored.as_ref());
    findings.finish()
}

/// Names the lines of a file of settings that systemd or a shell would read in another way than their writer expects.
fn judge_file(findings: &mut Findings, file: &Path) {
    let shown = file.display();
    let text = match read(file) {
        Ok(text) => text,
        Err(reason) => return findings.fault(format_args!("settings file: {reason}"), ""),
    };
    let odd = examine(&text);
    if odd.is_empty() {
        let text = "is read by systemd, by commands and by shells alike";
        return findings.ok(format_args!("settings file: {shown} {text}"));
    }
    for LineFinding { line, text, is_fault } in odd {
        let level = if is_fault { Level::Fault } else { Level::Warning };
        findings.report(level, format_args!("settings file: {shown}, line {line}: {text}"), "");
    }
}

/// The unit may keep the service from a directory that this process can write to.
fn judge_sandbox(findings: &mut Findings, unit: &Unit, data_dir: &Path) {
    let Some(reason) = unit.refuses(data_dir) else { return };
    let shown = data_dir.display();
    let advice = format!(
        "`systemctl edit cloakroom` and the same for cloakroom-backup, with [Service] and ReadWritePaths={shown}; a \
         directory below /home, /root or /tmp cannot be used."
    );
    let text = format!("data directory: cloakroom.service may not write to {shown}: {reason}");
    findings.fault(text, &advice);
}

/// Lists the settings, those with their defaults only if `all` is true.
fn list_settings(findings: &mut Findings, config: &Config, all: bool) {
    for ShownSetting { name, value, variable } in &config.shown {
        let source = match variable {
            Some(variable) if variable == name => "set".to_owned(),
            Some(variable) => format!("from {variable}"),
            None if all => "default".to_owned(),
            None => continue,
        };
        findings.ok(format_args!("setting: {name}={value} ({source})"));
    }
    let defaults = config.shown.iter().filter(|setting| setting.variable.is_none()).count();
    if !all {
        findings
            .ok(format_args!("setting: {defaults} others have their defaults, which --all shows"));
    }
}

/// Reports settings that are refused, and those that are probably not intended.
pub fn judge_doubts(findings: &mut Findings, config: &Config, refused: &[String]) {
    for fault in refused {
        findings.fault(format_args!("setting: {fault}"), "");
    }
    for (level, text, advice) in warnings::find(config) {
        let is_fault = level == log::Level::Error;
        let level = if is_fault { Level::Fault } else { Level::Warning };
        findings.report(level, format_args!("setting: {text}"), advice);
    }
}

/// Reports what strangers may do, and what would be unsafe if they reached a service in development.
fn judge_exposure(findings: &mut Findings, config: &Config) {
    if config.environment == Environment::Production && config.registration == Registration::Open {
        let advice =
            "if only administrators shall make accounts, set CLOAKROOM_REGISTRATION to off";
        findings.ok(format_args!("setting: anyone may register; {advice}"));
    }
    // A development service that only this host reaches may be as unsafe as it likes.
    if config.environment == Environment::Development && !config.listen.ip().is_loopback() {
        for text in config.unsafe_in_production() {
            findings.warning(format_args!("setting: {text}"), "");
        }
    }
}

/// Connects to the database, asks it and judges the answers.
fn judge_database(findings: &mut Findings, config: &Arc<Config>) -> DatabaseFacts {
    if db::check_settings(config).is_err() {
        findings.warning("database: not looked at, because its settings are wrong", "");
        return DatabaseFacts::default();
    }
    let (settings, mut asked) = (config.clone(), Findings::held_back());
    let answer = within_max_wait(move || {
        let facts = match connect(&settings) {
            Ok(connection) => diagnosis::diagnose(&mut asked, &settings, connection),
            Err((reason, advice)) => {
                asked.fault(format_args!("database: {reason}"), advice);
                DatabaseFacts::default()
            }
        };
        (asked, facts)
    });
    let Some((asked, facts)) = answer else {
        let advice =
            "Check the hosts in CLOAKROOM_DATABASE_URL, firewalls, and the look-up of names (DNS).";
        findings.fault("database: no answer in time", advice);
        return DatabaseFacts::default();
    };
    findings.release(asked);
    facts
}
