//! `cloakroom doctor`: looks at everything that the service depends on, and says what is wrong and what to do about it.
//! It changes nothing. What is wrong with one thing does not keep it from looking at the others.

mod data_directory;
mod limits;
mod mail_server;

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::database::connect::connect;
use super::database::diagnosis::{self, DatabaseFacts};
use super::findings::{Findings, Level};
use crate::config::{ALL_SETTINGS, Config, Environment, Registration, ShownSetting};
use crate::db;
use crate::serve::{ignore_file_size_signal, warnings};

/// The longest wait for a server. Both have shorter limits of their own, but not for looking up their names.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// The longest wait for a single connection to the database, if the settings allow longer ones.
const MAX_CONNECT: Duration = Duration::from_secs(5);

/// Prints the findings. `all` lists the settings with defaults too. Settings that are refused have their defaults for
/// the rest. Fails if there are faults.
pub fn doctor(all: bool) -> Result<(), String> {
    let (mut config, refused) = Config::from_environment(ALL_SETTINGS, db::check_settings);
    ignore_file_size_signal()?;
    let mut findings = Findings::default();
    judge_settings(&mut findings, &config, &refused, all);
    config.database_timeout = config.database_timeout.min(MAX_CONNECT);
    let config = Arc::new(config);
    let facts = judge_database(&mut findings, &config);
    data_directory::judge(&mut findings, &config, &facts);
    limits::judge(&mut findings, &config);
    mail_server::judge(&mut findings, &config, facts.stored.as_ref());
    findings.finish()
}

/// Lists the settings, those with their defaults only if `all` is true, and then what is wrong with them.
fn judge_settings(findings: &mut Findings, config: &Config, refused: &[String], all: bool) {
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
    for fault in refused {
        findings.fault(format_args!("setting: {fault}"), "");
    }
    for (level, text, advice) in warnings::find(config) {
        let is_fault = level == log::Level::Error;
        let level = if is_fault { Level::Fault } else { Level::Warning };
        findings.report(level, format_args!("setting: {text}"), advice);
    }
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

/// Runs `work` on a thread of its own, which may hang until the process ends. Returns `None` if it takes too long.
fn within_max_wait<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    let work = move || drop(sender.send(work()));
    thread::Builder::new().spawn(work).ok()?;
    receiver.recv_timeout(MAX_WAIT).ok()
}
