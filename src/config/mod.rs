//! The configuration: environment variables, read and validated once, when the process starts.

mod checks;
mod derived;
mod mail;
mod memory_limit;
mod printed;
mod provider;
mod reader;
mod settings;
mod store;
mod values;
mod words;

pub use mail::{Encryption, MailServer, Smtp, SmtpUser};
pub use printed::{markdown_table, sample};
#[cfg(feature = "oidc")]
pub use provider::{ProviderSettings, is_provider_url};
pub use reader::{DATABASE_URLS, ShownSetting, UnknownVariable};
pub use settings::Config;
#[cfg(feature = "s3")]
pub use store::{StoreSettings, StoreUrl};
#[cfg(all(test, feature = "s3"))]
pub use values::Secret;
pub use values::{CorsOrigins, ScryptCost, UploadTypes, is_loopback, is_media_type, is_token};
#[cfg(test)]
pub use words::EmailConfirmation;
#[cfg(test)]
pub use words::Registration;
pub use words::{
    AdminSecondFactor, Algorithm, ApiKeyScope, Environment, ErrorFormat, HttpServer, LogFormat,
    LogoutStatus, MetricsAccess, PasswordLogin,
};

use std::collections::HashMap;
use std::ffi::OsString;

use reader::{DATABASE_URL, SettingsReader};

/// The settings that a command uses. Faults in others do not matter to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum UsedSettings {
    /// Every one, as `serve` does. Those that are unsafe in production are faults too.
    All,
    /// All but those of the database.
    WithoutDatabase,
    /// Those of the database and the contents, of quotas and of password hashes.
    Installation,
    /// Those, and what decides which files are taken.
    #[cfg(feature = "tools")]
    Files,
}

impl UsedSettings {
    fn include(self, name: &str) -> bool {
        let of_installation =
            ["DATABASE_", "DATA_DIR", "STORAGE_", "TRASH_DAYS", "USER_", "SCRYPT", "REFUSED_"];
        let name = name.trim_start_matches("CLOAKROOM_");
        match self {
            UsedSettings::All => true,
            UsedSettings::WithoutDatabase => !name.starts_with("DATABASE_"),
            UsedSettings::Installation => of_installation.iter().any(|it| name.starts_with(it)),
            #[cfg(feature = "tools")]
            UsedSettings::Files => {
                let of_files = ["MAX_UPLOAD_SIZE", "ALLOWED_UPLOAD_TYPES", "REGISTRATIONS_PER_DAY"];
                of_files.contains(&name) || UsedSettings::Installation.include(name)
            }
        }
    }
}

impl Config {
    /// Reads the environment of this process for a command that uses these settings. Returns the settings and all
    /// faults in them, one line each, so that an operator can correct all at once. If there is a fault, only `cloakroom
    /// doctor` may use the settings, because a setting that was refused has its default. A setting that the command
    /// does not use may hold anything; if it cannot be read, it has its default.
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
        let faults = faults.into_iter().filter(|(name, _)| used.include(name));
        let mut faults: Vec<String> = faults.map(|(_, text)| text).collect();
        #[cfg(not(feature = "extras"))]
        faults.extend(
            checks::extras_in_use(&config)
                .filter_map(|(name, fault)| used.include(name).then_some(fault)),
        );
        if used == UsedSettings::All {
            faults.extend(checks::refusals(&config));
            if config.environment == Environment::Production {
                faults.extend(checks::unsafe_in_production(&config));
            }
        }
        if used.include(DATABASE_URL) && !config.database_url.expose().is_empty() {
            faults.extend(check_database(&config).err());
        }
        config.unknown.retain(|unknown| used.include(unknown.nearest));
        (config, faults)
    }

    /// The variable that holds the connection string of the database, for messages.
    pub fn database_url_variable(&self) -> &'static str {
        let shown = self.shown.iter().find(|setting| setting.name == DATABASE_URL);
        shown.and_then(|setting| setting.variable).unwrap_or(DATABASE_URL)
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
