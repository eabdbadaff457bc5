//! Settings with which the service starts, but which are probably not intended. `serve` logs them, `doctor` lists them.

use log::Level::{self, Error, Warn};

use crate::config::{Config, Environment, HttpServer, PasswordLogin, Smtp};
use crate::mail::Mailer;

/// Something that was found out, such as about a setting: its level, which is `Error` if it does not work or loses
/// data, `Warn` if it is probably not intended, and `Info` if all is well; what it is; and what to do, which is empty
/// if all is well or the text says it.
pub type Finding = (Level, String, &'static str);

/// The warnings that apply.
#[derive(Default)]
struct Warnings(Vec<Finding>);

impl Warnings {
    fn warn(&mut self, applies: bool, text: &str, advice: &'static str) {
        self.add(applies, Warn, text, advice);
    }

    fn error(&mut self, applies: bool, text: &str, advice: &'static str) {
        self.add(applies, Error, text, advice);
    }

    fn add(&mut self, applies: bool, level: Level, text: &str, advice: &'static str) {
        if applies {
            self.0.push((level, text.to_owned(), advice));
        }
    }
}

/// The fewest full accounts that the half of the quota for new users is to hold.
const MIN_NEW_USERS: u64 = 4;

/// Issuers where anybody has an account, or may get one.
const PUBLIC_ISSUERS: [&str; 6] = [
    "https://accounts.google.com",
    "https://appleid.apple.com",
    "https://gitlab.com",
    "https://login.microsoftonline.com/common",
    "https://login.microsoftonline.com/consumers",
    "https://login.microsoftonline.com/organizations",
];

/// Returns the warnings about these settings.
pub fn find(config: &Config) -> Vec<Finding> {
    let mut found = Warnings::default();
    anywhere(config, &mut found);
    of_provider(config, &mut found);
    match config.environment {
        Environment::Production => in_production(config, &mut found),
        Environment::Development => in_development(config, &mut found),
    }
    for variable in &config.unknown {
        let advice = "Correct the name or remove the variable; what it holds is ignored.";
        found.warn(true, &variable.warning(), advice);
    }
    found.0
}

/// Settings that contradict each other or do nothing, wherever the service runs.
fn anywhere(config: &Config, found: &mut Warnings) {
    let restrictions = [
        (config.export_require_admin, "CLOAKROOM_EXPORT_REQUIRE_ADMIN"),
        (config.api_key_enabled, "CLOAKROOM_API_KEY_ENABLED"),
    ];
    let restrictions: Vec<_> =
        restrictions.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| *name).collect();
    let is_limited = config.registers() && config.registrations_per_day > 0;
    let mut set = config.shown.iter().filter(|setting| setting.variable.is_some());
    let has_body_memory = set.any(|setting| setting.name == "CLOAKROOM_BODY_MEMORY");
    let new_users_want = MIN_NEW_USERS.saturating_mul(config.user_storage_quota);
    found.error(
        config.api_key_enabled && config.api_keys.is_empty(),
        "CLOAKROOM_API_KEY_ENABLED is true and CLOAKROOM_API_KEY holds no key: what asks for one is answered 500",
        "Set CLOAKROOM_API_KEY to a long random text, such as `openssl rand -hex 32` prints.",
    );
    found.warn(
        config.allow_anonymous_export && !restrictions.is_empty(),
        &format!(
            "CLOAKROOM_ALLOW_ANONYMOUS_EXPORT is true and so is {}: exports are not open to anyone",
            restrictions.join(" and ")
        ),
        "Set CLOAKROOM_ALLOW_ANONYMOUS_EXPORT to false, or the others if exports shall be open.",
    );
    found.warn(
        config.http_server == HttpServer::Rouille && has_body_memory,
        "CLOAKROOM_BODY_MEMORY has no effect, because CLOAKROOM_HTTP_SERVER is rouille",
        "Remove it, or set CLOAKROOM_HTTP_SERVER to builtin.",
    );
    found.warn(
        is_limited && config.young_storage_quota() < new_users_want,
        &format!(
            "CLOAKROOM_STORAGE_QUOTA is less than {} times CLOAKROOM_USER_STORAGE_QUOTA: fewer than \
             {MIN_NEW_USERS} new users can use up the half of it that all share who have registered within seven \
             days",
            2 * MIN_NEW_USERS
        ),
        "Raise it, lower CLOAKROOM_USER_STORAGE_QUOTA, or set CLOAKROOM_REGISTRATION to off.",
    );
}

/// Ways to sign in that are open to everybody, or to nobody.
fn of_provider(config: &Config, found: &mut Warnings) {
    let Some(provider) = &config.provider else { return };
    let is_at = |it: &&str| format!("{}/", provider.issuer).starts_with(&format!("{it}/"));
    let is_public = PUBLIC_ISSUERS.iter().any(is_at);
    found.warn(
        is_public && config.oidc_registration && provider.domains.is_empty(),
        "CLOAKROOM_OIDC_REGISTRATION is on, and anybody can have an account at CLOAKROOM_OIDC_ISSUER: so anybody gets \
         one here",
        "Set CLOAKROOM_OIDC_DOMAINS to the domains of your people, or CLOAKROOM_OIDC_REGISTRATION to off.",
    );
    found.warn(
        is_public && provider.trusts_emails,
        "CLOAKROOM_OIDC_EMAILS is all, and CLOAKROOM_OIDC_ISSUER is not your own: anybody may claim an address there",
        "Set it to verified.",
    );
    found.warn(
        config.password_login == PasswordLogin::Admins && matches!(config.smtp, Smtp::Off),
        "CLOAKROOM_PASSWORD_LOGIN is admins and no mail is sent: nobody but an administrator can connect an account \
         that has no identity, and whoever loses theirs is locked out",
        "Set CLOAKROOM_SMTP_URL to a mail server, or CLOAKROOM_PASSWORD_LOGIN to on.",
    );
}

/// Limits that do not protect a service on a network.
fn in_production(config: &Config, found: &mut Warnings) {
    let is_open = config.registers();
    let is_local = config.listen.ip().is_loopback();
    found.warn(
        !config.rate_limit_enabled,
        "CLOAKROOM_RATE_LIMIT_ENABLED is false: passwords and tokens can be guessed at will",
        "Set it to true.",
    );
    found.warn(
        is_open && config.registrations_per_day == 0,
        "CLOAKROOM_REGISTRATIONS_PER_DAY is 0: anyone may make any number of accounts",
        "Remove it, or set CLOAKROOM_REGISTRATION to off.",
    );
    found.warn(
        config.rate_limit_address == 0,
        "CLOAKROOM_RATE_LIMIT_ADDRESS is 0: each new account has limits of its own",
        "Remove it.",
    );
    found.warn(
        is_local && config.trusted_proxies.is_empty(),
        "CLOAKROOM_TRUSTED_PROXIES is not set and CLOAKROOM_LISTEN is loopback: clients of a proxy are not told \
         apart, and their addresses have no limits",
        "Set it to the address of the proxy, such as 127.0.0.1.",
    );
}

/// What production refuses: a service without authentication, mail that is not sent; and development on a network.
fn in_development(config: &Config, found: &mut Warnings) {
    let address = config.listen;
    let is_local = address.ip().is_loopback();
    found.warn(
        matches!(config.smtp, Smtp::Server(_)) && Mailer::new(config).is_none(),
        "CLOAKROOM_SMTP_URL is set, but CLOAKROOM_MAIL_FROM, CLOAKROOM_EMAIL_CONFIRMATION_URL (if addresses are to \
         be confirmed) or CLOAKROOM_PASSWORD_RESET_URL is not: no mail is sent",
        "Set them; where the console is on, CLOAKROOM_PUBLIC_URL is enough for the links.",
    );
    found.warn(
        !is_local,
        &format!(
            "listening on {address} in development: set CLOAKROOM_ENV=production to face a network"
        ),
        "",
    );
    found.warn(
        !config.auth_enabled && is_local,
        "CLOAKROOM_AUTH_ENABLED is false: every request is an administrator",
        "Set CLOAKROOM_AUTH_ENABLED to true.",
    );
    found.error(
        !config.auth_enabled && !is_local,
        &format!(
            "CLOAKROOM_AUTH_ENABLED IS FALSE AND {address} IS NOT LOOPBACK: ANYONE WHO REACHES IT IS AN ADMIN"
        ),
        "Set CLOAKROOM_AUTH_ENABLED to true.",
    );
}

#[cfg(all(test, feature = "oidc"))]
mod tests {
    use super::*;
    use crate::config::ProviderSettings;

    #[test]
    fn a_provider_of_anybody_and_passwords_that_nobody_can_replace_are_warned_about() {
        const GOOGLE: &str = "https://accounts.google.com";
        const OWN: &str = "https://gitlab.company.example";
        for (issuer, registration, trusts_emails, domains, password_login, expected) in [
            (GOOGLE, true, false, &[][..], PasswordLogin::On, &["CLOAKROOM_OIDC_REGISTRATION"][..]),
            (
                "https://gitlab.com/",
                true,
                false,
                &[],
                PasswordLogin::On,
                &["CLOAKROOM_OIDC_REGISTRATION"],
            ),
            (GOOGLE, true, false, &["example.com"], PasswordLogin::On, &[]),
            (GOOGLE, false, false, &[], PasswordLogin::On, &[]),
            (GOOGLE, false, true, &[], PasswordLogin::On, &["CLOAKROOM_OIDC_EMAILS"]),
            (OWN, true, true, &[], PasswordLogin::On, &[]),
            ("https://gitlab.community.example", true, true, &[], PasswordLogin::On, &[]),
            (OWN, false, false, &[], PasswordLogin::Admins, &["CLOAKROOM_PASSWORD_LOGIN"]),
        ] {
            let provider = ProviderSettings {
                trusts_emails,
                domains: domains.iter().map(ToString::to_string).collect(),
                ..ProviderSettings::of_issuer(issuer)
            };
            let config = Config {
                provider: Some(provider),
                oidc_registration: registration,
                password_login,
                smtp: Smtp::Off,
                ..Config::of_test_database()
            };
            let mut found = Warnings::default();
            of_provider(&config, &mut found);
            let settings = found.0.iter().map(|(_, text, _)| text.split(' ').next());
            assert!(settings.eq(expected.iter().map(|one| Some(*one))), "{issuer} {expected:?}");
        }
    }
}
