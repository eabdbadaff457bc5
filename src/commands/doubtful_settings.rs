//! Settings with which the service starts, but which are probably not intended. `serve` logs them, `doctor` lists them.

use log::Level;

use crate::config::{Config, Environment, Smtp};
use crate::mail::Mailer;

/// A setting that is allowed, but with which something does not work or is open to everyone.
pub struct DoubtfulSetting {
    /// How bad it is: `Error` or `Warn`.
    pub level: Level,
    /// What is set, and what follows from it.
    pub text: String,
    /// What to do; empty if `text` says it.
    pub advice: &'static str,
}

impl DoubtfulSetting {
    fn new(level: Level, text: impl Into<String>, advice: &'static str) -> DoubtfulSetting {
        DoubtfulSetting { level, text: text.into(), advice }
    }
}

/// Finds all of them.
pub fn find(config: &Config) -> Vec<DoubtfulSetting> {
    let misspelt = config.unknown.iter().map(|variable| {
        let advice = "Correct the name or remove the variable; what it holds is ignored.";
        DoubtfulSetting::new(Level::Warn, variable.warning(), advice)
    });
    missing_key(config)
        .into_iter()
        .chain(contradicting_export_access(config))
        .chain(missing_rate_limits(config))
        .chain(unused_mail_server(config))
        .chain(misspelt)
        .chain(open_access(config))
        .collect()
}

fn missing_key(config: &Config) -> Option<DoubtfulSetting> {
    let is_missing = config.api_key_enabled && config.api_keys.is_empty();
    let text = "CLOAKROOM_API_KEY_ENABLED is true and CLOAKROOM_API_KEY holds no key: \
                what asks for one is answered 500";
    let advice =
        "Set CLOAKROOM_API_KEY to a long random text, such as `openssl rand -hex 32` prints.";
    is_missing.then(|| DoubtfulSetting::new(Level::Error, text, advice))
}

/// Exports that are open to anyone by one setting and restricted by others.
fn contradicting_export_access(config: &Config) -> Option<DoubtfulSetting> {
    let restrictions = [
        (config.export_require_admin, "CLOAKROOM_EXPORT_REQUIRE_ADMIN"),
        (config.api_key_enabled, "CLOAKROOM_API_KEY_ENABLED"),
    ];
    let names: Vec<_> =
        restrictions.into_iter().filter(|(is_on, _)| *is_on).map(|(_, n)| n).collect();
    let text = format!(
        "CLOAKROOM_ALLOW_ANONYMOUS_EXPORT is true and so is {}: exports are not open to anyone",
        names.join(" and ")
    );
    let advice =
        "Set CLOAKROOM_ALLOW_ANONYMOUS_EXPORT to false, or the others if exports shall be open.";
    let contradicts = config.allow_anonymous_export && !names.is_empty();
    contradicts.then(|| DoubtfulSetting::new(Level::Warn, text, advice))
}

fn missing_rate_limits(config: &Config) -> Option<DoubtfulSetting> {
    let are_missing = config.environment == Environment::Production && !config.rate_limit_enabled;
    let text = "CLOAKROOM_RATE_LIMIT_ENABLED is false: passwords and tokens can be guessed at will";
    let advice = "Set it to true.";
    are_missing.then(|| DoubtfulSetting::new(Level::Warn, text, advice))
}

/// A mail server that is not used, because it is not known who sends the mail and what it links to. Production refuses
/// that.
fn unused_mail_server(config: &Config) -> Option<DoubtfulSetting> {
    let is_unused = config.environment == Environment::Development
        && matches!(config.smtp, Smtp::Server(_))
        && Mailer::new(config).is_none();
    let text = "CLOAKROOM_SMTP_URL is set, but CLOAKROOM_MAIL_FROM or CLOAKROOM_PASSWORD_RESET_URL is not: \
                no mail is sent";
    is_unused.then(|| DoubtfulSetting::new(Level::Warn, text, "Set both of them."))
}

/// Where anyone may be an administrator, which production refuses, and where development faces a network.
fn open_access(config: &Config) -> Vec<DoubtfulSetting> {
    let address = config.listen;
    let advice = "Set CLOAKROOM_AUTH_ENABLED to true.";
    if config.environment == Environment::Production {
        return Vec::new();
    }
    if address.ip().is_loopback() {
        let text = "CLOAKROOM_AUTH_ENABLED is false: every request is an administrator";
        let open = DoubtfulSetting::new(Level::Warn, text, advice);
        return if config.auth_enabled { Vec::new() } else { vec![open] };
    }
    let text = format!(
        "listening on {address} in development: set CLOAKROOM_ENV=production to face a network"
    );
    let mut found = vec![DoubtfulSetting::new(Level::Warn, text, "")];
    if !config.auth_enabled {
        let text = format!(
            "CLOAKROOM_AUTH_ENABLED IS FALSE AND {address} IS NOT LOOPBACK: ANYONE WHO REACHES IT IS AN ADMIN"
        );
        found.push(DoubtfulSetting::new(Level::Error, text, advice));
    }
    found
}
