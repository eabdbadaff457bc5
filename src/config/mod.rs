//! The configuration: environment variables, read and validated once, when the process starts. Nothing else in
//! the program reads the environment.

mod allocator;
mod mail;
mod networks;
mod production;
mod reader;
mod settings;
mod values;

pub use allocator::apply_allocator_settings;
pub use mail::{Encryption, MailCredentials, MailServer, Smtp};
pub use networks::is_loopback;
pub use reader::{ShownSetting, UnknownVariable};
pub use settings::Config;
pub use values::{
    Algorithm, ApiKeyScope, CorsOrigins, Environment, ErrorFormat, HttpServer, LogFormat,
    MetricsAccess, ScryptCost,
};

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use reader::SettingsReader;
use values::Choice;

/// The settings that a command uses, by the beginnings of their names.
pub type UsedSettings = &'static [&'static str];

/// Every setting: what `serve` uses.
pub const ALL_SETTINGS: UsedSettings = &["CLOAKROOM_"];

impl Config {
    /// Reads the environment of this process for a command that uses these settings. Returns them with everything that
    /// is wrong with them, one line each, so that an operator can correct all of it at once. If there is anything, only
    /// `cloakroom doctor` may use the settings: what was refused has its default. A setting that is not used may hold
    /// anything; where it cannot be read it has its default. What is unsafe in production is refused to commands that
    /// use all settings.
    ///
    /// `check_database` checks the settings of the database, and runs only where they are used and its URL is set. It
    /// is passed in because only the database module knows what a PostgreSQL URL is, and that module depends on this
    /// one.
    pub fn from_environment(
        used: UsedSettings,
        check_database: impl FnOnce(&Config) -> Result<(), String>,
    ) -> (Config, Vec<String>) {
        let mut reader = SettingsReader::new(environment());
        let mut config = Config::read(&mut reader);
        config.unknown = reader.unknown_variables();
        let SettingsReader { mut shown, faults, .. } = reader;
        shown.retain(|setting| faults.iter().all(|fault| fault.setting != setting.name));
        config.shown = shown;
        let is_used = |name: &str| used.iter().any(|beginning| name.starts_with(beginning));
        let faults = faults.into_iter().filter(|fault| is_used(fault.setting));
        let mut faults: Vec<String> = faults.map(|fault| fault.text).collect();
        if used == ALL_SETTINGS {
            faults.extend(short_secrets(&config));
            if config.environment == Environment::Production {
                faults.extend(config.unsafe_in_production());
            }
        }
        if is_used("CLOAKROOM_DATABASE_URL") && !config.database_url.expose().is_empty() {
            faults.extend(check_database(&config).err());
        }
        config.unknown.retain(|unknown| is_used(unknown.nearest) && !unknown.explain(&mut faults));
        (config, faults)
    }

    /// One line for each setting with which production refuses to start, also where this is no production.
    pub fn unsafe_in_production(&self) -> Vec<String> {
        production::refusals(self)
    }
}

#[cfg(test)]
impl Config {
    /// The defaults, with the database of `scripts/test`, for the few unit tests that need one.
    pub fn of_test_database() -> Config {
        let url = std::env::var("CLOAKROOM_TEST_DATABASE_URL");
        let url = url.unwrap_or_else(|_| panic!("run the tests with scripts/test"));
        let variables = [("CLOAKROOM_DATABASE_URL".to_owned(), url)];
        Config::read(&mut SettingsReader::new(variables.into()))
    }
}

/// All environment variables of this process.
fn environment() -> HashMap<String, String> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// The variables that programs started by this one may see: where they find programs and libraries, and the language
/// of their messages. No secret is among them.
pub fn inherited_by_programs() -> Vec<(&'static str, OsString)> {
    let names = ["PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_MESSAGES"];
    names.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))).collect()
}

/// The directories in which programs are searched for.
pub fn program_directories() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// One line for each configured signing secret that is too short for its algorithm.
fn short_secrets(config: &Config) -> impl Iterator<Item = String> {
    let (algorithm, min) = (config.jwt_algorithm.word(), config.jwt_algorithm.min_secret_bytes());
    config.signing_secrets().filter(move |(_, secret)| secret.len() < min).map(
        move |(name, secret)| {
            let length = secret.len();
            format!("{name} holds {length} bytes; allowed: at least {min} for {algorithm}")
        },
    )
}
