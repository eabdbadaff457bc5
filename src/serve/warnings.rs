//! Settings with which the service starts, but which are probably not intended. `serve` logs them, `doctor` lists them.

use log::Level;

use crate::config::{Config, Environment, Registration, Smtp};
use crate::mail::Mailer;

/// A warning about a setting: its level, which is `Error` or `Warn`; the setting and what follows from it; and what to
/// do, which is empty if the text says it.
pub type Warning = (Level, String, &'static str);

/// Returns the warnings about these settings.
pub fn find(config: &Config) -> Vec<Warning> {
    let environment_warnings = match config.environment {
        Environment::Production => in_production(config),
        Environment::Development => in_development(config),
    };
    let misspelt = config.unknown.iter().map(|variable| {
        let advice = "Correct the name or remove the variable; what it holds is ignored.";
        (Level::Warn, variable.warning(), advice)
    });
    exports(config)
        .into_iter()
        .chain(environment_warnings)
        .chain(patterns_of_types(config))
        .chain(room_for_new_users(config))
        .chain(misspelt)
        .chain(open_access(config))
        .collect()
}

/// Warns about an API key that is missing, and about exports that one setting opens to anyone and others restrict.
fn exports(config: &Config) -> Vec<Warning> {
    let restrictions = [
        (config.export_require_admin, "CLOAKROOM_EXPORT_REQUIRE_ADMIN"),
        (config.api_key_enabled, "CLOAKROOM_API_KEY_ENABLED"),
    ];
    let names: Vec<_> =
        restrictions.into_iter().filter(|(is_on, _)| *is_on).map(|(_, n)| n).collect();
    let mut warnings = Vec::new();
    if config.api_key_enabled && config.api_keys.is_empty() {
        warnings.push((
            Level::Error,
            "CLOAKROOM_API_KEY_ENABLED is true and CLOAKROOM_API_KEY holds no key: what asks for one is answered 500"
                .to_owned(),
            "Set CLOAKROOM_API_KEY to a long random text, such as `openssl rand -hex 32` prints.",
        ));
    }
    if config.allow_anonymous_export && !names.is_empty() {
        let names = names.join(" and ");
        warnings.push((
            Level::Warn,
            format!("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT is true and so is {names}: exports are not open to anyone"),
            "Set CLOAKROOM_ALLOW_ANONYMOUS_EXPORT to false, or the others if exports shall be open.",
        ));
    }
    warnings
}

/// Warns about limits that do not protect a service on a network.
fn in_production(config: &Config) -> Vec<Warning> {
    let is_open = config.registration == Registration::Open;
    let is_behind_unknown_proxy =
        config.listen.ip().is_loopback() && config.trusted_proxies.is_empty();
    let limits = [
        (
            !config.rate_limit_enabled,
            "CLOAKROOM_RATE_LIMIT_ENABLED is false: passwords and tokens can be guessed at will",
            "Set it to true.",
        ),
        (
            is_open && config.registrations_per_day == 0,
            "CLOAKROOM_REGISTRATIONS_PER_DAY is 0: anyone may make any number of accounts",
            "Remove it, or set CLOAKROOM_REGISTRATION to off.",
        ),
        (
            config.rate_limit_address == 0,
            "CLOAKROOM_RATE_LIMIT_ADDRESS is 0: each new account has limits of its own",
            "Remove it.",
        ),
        (
            is_behind_unknown_proxy,
            "CLOAKROOM_TRUSTED_PROXIES is not set and CLOAKROOM_LISTEN is loopback: clients of a proxy are not told \
             apart, and their addresses have no limits",
            "Set it to the address of the proxy, such as 127.0.0.1.",
        ),
    ];
    let weak = limits.into_iter().filter(|(is_weak, ..)| *is_weak);
    weak.map(|(_, text, advice)| (Level::Warn, text.to_owned(), advice)).collect()
}

/// Warns about a mail server that is not used, because the sender or the link is not set. Production refuses that.
fn in_development(config: &Config) -> Vec<Warning> {
    if !matches!(config.smtp, Smtp::Server(_)) || Mailer::new(config).is_some() {
        return Vec::new();
    }
    let text = "CLOAKROOM_SMTP_URL is set, but CLOAKROOM_MAIL_FROM or CLOAKROOM_PASSWORD_RESET_URL is not: no mail is \
                sent";
    let advice =
        "Set both of them; where the console is on, CLOAKROOM_PUBLIC_URL is enough for the second.";
    vec![(Level::Warn, text.to_owned(), advice)]
}

/// Warns about patterns such as `image/*` among the types of uploads. They are valid names of types, which no file has.
fn patterns_of_types(config: &Config) -> Option<Warning> {
    let types = config.allowed_upload_types.iter();
    let patterns: Vec<_> = types.filter(|name| name.contains('*')).collect();
    let text = format!(
        "CLOAKROOM_ALLOWED_UPLOAD_TYPES holds {}: patterns are not supported, so no file is of such a type",
        patterns.join(", ")
    );
    let advice = "List each type, such as image/png.";
    (!patterns.is_empty()).then_some((Level::Warn, text, advice))
}

/// The fewest full accounts that the half of new users is to hold.
const MIN_NEW_USERS: u64 = 4;

/// Warns about a quota of which very few new users can use up the half that they share.
fn room_for_new_users(config: &Config) -> Option<Warning> {
    let is_limited = config.registration == Registration::Open && config.registrations_per_day > 0;
    let wanted = MIN_NEW_USERS.saturating_mul(config.user_storage_quota);
    let text = format!(
        "CLOAKROOM_STORAGE_QUOTA is less than {} times CLOAKROOM_USER_STORAGE_QUOTA: fewer than {MIN_NEW_USERS} new \
         users can use up the half of it that all share who have registered within seven days",
        2 * MIN_NEW_USERS
    );
    let advice =
        "Raise it, lower CLOAKROOM_USER_STORAGE_QUOTA, or set CLOAKROOM_REGISTRATION to off.";
    let is_little = is_limited && config.young_storage_quota() < wanted;
    is_little.then_some((Level::Warn, text, advice))
}

/// Warns about a service without authentication, which production refuses, and about development on a network.
fn open_access(config: &Config) -> Vec<Warning> {
    let (address, advice) = (config.listen, "Set CLOAKROOM_AUTH_ENABLED to true.");
    let is_local = address.ip().is_loopback();
    let mut warnings = Vec::new();
    if config.environment == Environment::Production {
        return warnings;
    }
    if !is_local {
        let text = format!(
            "listening on {address} in development: set CLOAKROOM_ENV=production to face a network"
        );
        warnings.push((Level::Warn, text, ""));
    }
    if !config.auth_enabled && is_local {
        let text = "CLOAKROOM_AUTH_ENABLED is false: every request is an administrator";
        warnings.push((Level::Warn, text.to_owned(), advice));
    } else if !config.auth_enabled {
        let text = format!(
            "CLOAKROOM_AUTH_ENABLED IS FALSE AND {address} IS NOT LOOPBACK: ANYONE WHO REACHES IT IS AN ADMIN"
        );
        warnings.push((Level::Error, text, advice));
    }
    warnings
}
