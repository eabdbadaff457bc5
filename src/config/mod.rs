//! The configuration: environment variables, read and validated once, when the process starts. Only
//! `tools::environment` reads other variables.

mod allocator;
pub mod execution;
mod mail;
mod production;
mod reader;
mod settings;
#[cfg_attr(not(feature = "s3"), path = "without_store.rs")]
mod store;
mod values;
mod words;

pub use allocator::apply_allocator_settings;
pub use mail::{Encryption, MailServer, Smtp, SmtpUser};
pub use reader::{DATABASE_URLS, ShownSetting, UnknownVariable};
pub use settings::Config;
#[cfg(feature = "s3")]
pub use store::{StoreSettings, StoreUrl};
pub use values::{CorsOrigins, ScryptCost, UploadTypes, is_loopback};
pub use words::{
    AdminSecondFactor, Algorithm, ApiKeyScope, Environment, ErrorFormat, HttpServer, LogFormat,
    MetricsAccess, Registration,
};

use std::collections::HashMap;
use std::ffi::OsString;

use reader::{DATABASE_URL, SettingsReader};
use words::word;

/// Bytes of the shortest key for second factors: as many as the key of AES-256 has that is made of it.
const MIN_SEAL_KEY: usize = 32;

/// The settings that a command uses, by the beginnings of their names.
pub type UsedSettings = &'static [&'static str];

/// Every setting. `serve` uses all of them.
pub const ALL_SETTINGS: UsedSettings = &["CLOAKROOM_"];

impl Config {
    /// Reads the environment of this process for a command that uses these settings. Returns the settings and all
    /// faults in them, one line each, so that an operator can correct all at once. If there is a fault, only `cloakroom
    /// doctor` may use the settings, because a setting that was refused has its default. A setting that the command
    /// does not use may hold anything; if it cannot be read, it has its default. Settings that are unsafe in production
    /// are faults only for commands that use all settings.
    ///
    /// `check_database` checks the settings of the database. It runs only if they are used and the URL is set. It is
    /// passed in because only the database module can parse a PostgreSQL URL, and that module depends on this one.
    pub fn from_environment(
        used: UsedSettings,
        check_database: impl FnOnce(&Config) -> Result<(), String>,
    ) -> (Config, Vec<String>) {
        let mut reader = SettingsReader::new(environment());
        let mut config = Config::read(&mut reader);
        config.unknown = reader.unknown_variables();
        let SettingsReader { mut shown, faults, .. } = reader;
        shown.retain(|setting| faults.iter().all(|(name, _)| *name != setting.name));
        config.shown = shown;
        let is_used = |name: &str| used.iter().any(|beginning| name.starts_with(beginning));
        let faults = faults.into_iter().filter(|(name, _)| is_used(name));
        let mut faults: Vec<String> = faults.map(|(_, text)| text).collect();
        if used == ALL_SETTINGS {
            faults.extend(short_secrets(&config));
            faults.extend(short_seal_keys(&config));
            faults.extend(store_behind_rouille(&config));
            if config.environment == Environment::Production {
                faults.extend(config.unsafe_in_production());
            }
        }
        if is_used(DATABASE_URL) && !config.database_url.expose().is_empty() {
            faults.extend(check_database(&config).err());
        }
        config.unknown.retain(|unknown| is_used(unknown.nearest) && !unknown.explain(&mut faults));
        (config, faults)
    }

    /// The variable that holds the connection string of the database, for messages.
    pub fn database_url_variable(&self) -> &'static str {
        let shown = self.shown.iter().find(|setting| setting.name == DATABASE_URL);
        shown.and_then(|setting| setting.variable).unwrap_or(DATABASE_URL)
    }

    /// One line for each setting with which production refuses to start, whether or not this is production.
    pub fn unsafe_in_production(&self) -> Vec<String> {
        production::refusals(self)
    }
}

/// All environment variables of this process.
fn environment() -> HashMap<String, String> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// The file that systemd has made standard output or standard error of what it started, if it is a stream to the
/// journal: its device and inode, as in `8:1234`.
pub fn journal_stream() -> Option<String> {
    std::env::var("JOURNAL_STREAM").ok()
}

/// One line for each configured signing secret that is too short for its algorithm.
fn short_secrets(config: &Config) -> impl Iterator<Item = String> {
    let (algorithm, min) = (word(&config.jwt_algorithm), config.jwt_algorithm.min_secret_bytes());
    config.signing_secrets().filter(move |(_, secret)| secret.len() < min).map(
        move |(name, secret)| {
            let length = secret.len();
            format!("{name} holds {length} bytes; allowed: at least {min} for {algorithm}")
        },
    )
}

/// One line if keys for second factors are too short.
fn short_seal_keys(config: &Config) -> Option<String> {
    let lengths = config.seal_keys.iter().map(|key| key.expose().len());
    let length = lengths.filter(|length| *length < MIN_SEAL_KEY).min()?;
    Some(format!(
        "CLOAKROOM_SEAL_KEYS holds a key of {length} bytes; allowed: at least {MIN_SEAL_KEY} bytes each"
    ))
}

/// One line if a store is to be used with the server of `rouille`. That ends a response whose body fails as if it were
/// whole: a client could not tell a content that the store broke off from a complete one.
fn store_behind_rouille(config: &Config) -> Option<String> {
    let is_refused = config.store.is_some() && config.http_server == HttpServer::Rouille;
    is_refused.then(|| {
        "CLOAKROOM_STORAGE_URL is set, and CLOAKROOM_HTTP_SERVER is rouille, which cannot break off a download that \
         the store breaks off; use builtin"
            .to_owned()
    })
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
