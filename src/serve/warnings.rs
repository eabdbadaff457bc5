//! Settings with which the service starts, but which are probably not intended. `serve` logs them, `doctor` lists them.

use log::Level::{self, Error, Warn};

use crate::config::{Config, Environment, HttpServer, Registration, ShownSetting, Smtp};
use crate::mail::Mailer;

/// A warning about a setting: its level, which is `Error` or `Warn`; the setting and what follows from it; and what to
/// do, which is empty if the text says it.
pub type Warning = (Level, String, &'static str);

/// A warning, and before it whether it applies.
type Rule = (bool, Level, String, &'static str);

/// The fewest full accounts that the half of the quota for new users is to hold.
const MIN_NEW_USERS: u64 = 4;

/// Returns the warnings about these settings.
pub fn find(config: &Config) -> Vec<Warning> {
    let in_environment = match config.environment {
        Environment::Production => in_production(config),
        Environment::Development => in_development(config),
    };
    let rules = anywhere(config).into_iter().chain(in_environment);
    let warnings = rules
        .filter(|(applies, ..)| *applies)
        .map(|(_, level, text, advice)| (level, text, advice));
    let advice = "Correct the name or remove the variable; what it holds is ignored.";
    let misspelt = config.unknown.iter().map(|variable| (Warn, variable.warning(), advice));
    warnings.chain(misspelt).collect()
}

/// Settings that contradict each other or do nothing, wherever the service runs.
fn anywhere(config: &Config) -> Vec<Rule> {
    let restrictions = [
        (config.export_require_admin, "CLOAKROOM_EXPORT_REQUIRE_ADMIN"),
        (config.api_key_enabled, "CLOAKROOM_API_KEY_ENABLED"),
    ];
    let restrictions: Vec<_> =
        restrictions.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| *name).collect();
    let is_limited = config.registration == Registration::Open && config.registrations_per_day > 0;
    let is_body_memory = |setting: &&ShownSetting| setting.name == "CLOAKROOM_BODY_MEMORY";
    let has_body_memory =
        config.shown.iter().find(is_body_memory).is_some_and(|setting| setting.variable.is_some());
    let new_users_want = MIN_NEW_USERS.saturating_mul(config.user_storage_quota);
    vec![
        (
            config.api_key_enabled && config.api_keys.is_empty(),
            Error,
            "CLOAKROOM_API_KEY_ENABLED is true and CLOAKROOM_API_KEY holds no key: what asks for one is answered 500"
                .to_owned(),
            "Set CLOAKROOM_API_KEY to a long random text, such as `openssl rand -hex 32` prints.",
        ),
        (
            config.allow_anonymous_export && !restrictions.is_empty(),
            Warn,
            format!(
                "CLOAKROOM_ALLOW_ANONYMOUS_EXPORT is true and so is {}: exports are not open to anyone",
                restrictions.join(" and ")
            ),
            "Set CLOAKROOM_ALLOW_ANONYMOUS_EXPORT to false, or the others if exports shall be open.",
        ),
        (
            config.http_server == HttpServer::Rouille && has_body_memory,
            Warn,
            "CLOAKROOM_BODY_MEMORY has no effect, because CLOAKROOM_HTTP_SERVER is rouille".to_owned(),
            "Remove it, or set CLOAKROOM_HTTP_SERVER to builtin.",
        ),
        (
            is_limited && config.young_storage_quota() < new_users_want,
            Warn,
            format!(
                "CLOAKROOM_STORAGE_QUOTA is less than {} times CLOAKROOM_USER_STORAGE_QUOTA: fewer than \
                 {MIN_NEW_USERS} new users can use up the half of it that all share who have registered within seven \
                 days",
                2 * MIN_NEW_USERS
            ),
            "Raise it, lower CLOAKROOM_USER_STORAGE_QUOTA, or set CLOAKROOM_REGISTRATION to off.",
        ),
    ]
}

/// Limits that do not protect a service on a network.
fn in_production(config: &Config) -> Vec<Rule> {
    let is_open = config.registration == Registration::Open;
    let is_local = config.listen.ip().is_loopback();
    vec![
        (
            !config.rate_limit_enabled,
            Warn,
            "CLOAKROOM_RATE_LIMIT_ENABLED is false: passwords and tokens can be guessed at will".to_owned(),
            "Set it to true.",
        ),
        (
            is_open && config.registrations_per_day == 0,
            Warn,
            "CLOAKROOM_REGISTRATIONS_PER_DAY is 0: anyone may make any number of accounts".to_owned(),
            "Remove it, or set CLOAKROOM_REGISTRATION to off.",
        ),
        (
            config.rate_limit_address == 0,
            Warn,
            "CLOAKROOM_RATE_LIMIT_ADDRESS is 0: each new account has limits of its own".to_owned(),
            "Remove it.",
        ),
        (
            is_local && config.trusted_proxies.is_empty(),
            Warn,
            "CLOAKROOM_TRUSTED_PROXIES is not set and CLOAKROOM_LISTEN is loopback: clients of a proxy are not told \
             apart, and their addresses have no limits"
                .to_owned(),
            "Set it to the address of the proxy, such as 127.0.0.1.",
        ),
    ]
}

/// What production refuses: a service without authentication, mail that is not sent; and development on a network.
fn in_development(config: &Config) -> Vec<Rule> {
    let address = config.listen;
    let is_local = address.ip().is_loopback();
    vec![
        (
            matches!(config.smtp, Smtp::Server(_)) && Mailer::new(config).is_none(),
            Warn,
            "CLOAKROOM_SMTP_URL is set, but CLOAKROOM_MAIL_FROM, CLOAKROOM_EMAIL_CONFIRMATION_URL (if addresses are to \
             be confirmed) or CLOAKROOM_PASSWORD_RESET_URL is not: no mail is sent"
                .to_owned(),
            "Set them; where the console is on, CLOAKROOM_PUBLIC_URL is enough for the links.",
        ),
        (
            !is_local,
            Warn,
            format!("listening on {address} in development: set CLOAKROOM_ENV=production to face a network"),
            "",
        ),
        (
            !config.auth_enabled && is_local,
            Warn,
            "CLOAKROOM_AUTH_ENABLED is false: every request is an administrator".to_owned(),
            "Set CLOAKROOM_AUTH_ENABLED to true.",
        ),
        (
            !config.auth_enabled && !is_local,
            Error,
            format!(
                "CLOAKROOM_AUTH_ENABLED IS FALSE AND {address} IS NOT LOOPBACK: ANYONE WHO REACHES IT IS AN ADMIN"
            ),
            "Set CLOAKROOM_AUTH_ENABLED to true.",
        ),
    ]
}
