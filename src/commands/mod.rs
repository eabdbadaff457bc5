//! The commands of the command line. A command that fails returns the message that its user is shown.

mod audit;
mod backup;
mod check;
mod create_admin;
mod doctor;
mod doubtful_settings;
mod findings;
mod gc;
mod installation;
mod postgres_programs;
mod progress;
mod restore;
mod send_test_mail;
mod serve;
mod signing_secret;

pub use audit::print_audit;
pub use backup::backup;
pub use backup::verify::verify as verify_backup;
pub use check::check;
pub use create_admin::create_admin;
pub use doctor::doctor;
pub use gc::gc;
pub use installation::adopt_data_dir;
pub use restore::restore;
pub use send_test_mail::{mailer, send_test_mail};
pub use serve::serve;

use std::fmt::Display;
use std::io::{self, Write};

use crate::api;
use crate::config::{Config, ShownSetting, UsedSettings};
use crate::db;
use crate::telemetry::logging;

/// Reads the settings that a command uses. Returns them with everything that is wrong with them, one line each.
pub fn read_settings(used: UsedSettings) -> (Config, Vec<String>) {
    Config::from_environment(used, |config| db::check_settings(config).map(drop))
}

/// `cloakroom migrate`: waits for the database and applies pending migrations.
pub fn migrate(config: &Config) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    db::open_and_migrate(config)?;
    println!("The database is up to date.");
    Ok(())
}

/// `cloakroom config`: prints the effective settings, secrets masked.
pub fn print_config(config: &Config) -> Result<(), String> {
    let mut out = io::stdout().lock();
    for ShownSetting { name, value, .. } in &config.shown {
        writeln!(out, "{name}={value}").map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// `cloakroom openapi`: prints the OpenAPI document of a service with these settings.
pub fn print_openapi(config: &Config) -> Result<(), String> {
    writeln!(io::stdout(), "{}", api::openapi_document(config)).map_err(|e| e.to_string())
}

/// Prints a line about what a command did. A reader that closes the pipe early, such as `head`, must not stop the work.
fn print_line(line: impl Display) {
    drop(writeln!(io::stdout(), "{line}"));
}
