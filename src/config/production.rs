//! Refuses to start in production with settings that are convenient for development but unsafe on a public network.

use super::mail::Smtp;
use super::settings::Config;
use super::values::Environment;

/// One line for each setting that must be changed before the service may start in production.
pub fn refusals(config: &Config) -> Vec<String> {
    if config.environment != Environment::Production {
        return Vec::new();
    }
    let sends_mail = matches!(config.smtp, Smtp::Server(_));
    let export_access_is_undecided =
        !config.api_key_enabled && !config.export_require_admin && !config.allow_anonymous_export;
    // For each rule: whether it is broken, what the setting is now, and what to do about it.
    let rules = [
        (
            config.jwt_secret.is_none(),
            "CLOAKROOM_JWT_SECRET is not set",
            "set it to a long random text, the same for every process",
        ),
        (!config.auth_enabled, "CLOAKROOM_AUTH_ENABLED is false", "it must be true"),
        (
            config.test_endpoints_enabled,
            "CLOAKROOM_TEST_ENDPOINTS_ENABLED is true",
            "it must be false: one of them deletes all users",
        ),
        (
            matches!(config.smtp, Smtp::Unset),
            "CLOAKROOM_SMTP_URL is not set",
            "set it to a mail server, or to none to do without password resets",
        ),
        (
            sends_mail && config.mail_from.is_none(),
            "CLOAKROOM_MAIL_FROM is not set",
            "CLOAKROOM_SMTP_URL needs it: set it to the sender of mails",
        ),
        (
            sends_mail && config.password_reset_url.is_none(),
            "CLOAKROOM_PASSWORD_RESET_URL is not set",
            "CLOAKROOM_SMTP_URL needs it: set it to your page that resets passwords, \
             with {token} in it",
        ),
        (
            export_access_is_undecided,
            "CLOAKROOM_EXPORT_REQUIRE_ADMIN is false",
            "say who may export: set it to true, or CLOAKROOM_API_KEY_ENABLED to true, or, \
             to open exports to anyone, CLOAKROOM_ALLOW_ANONYMOUS_EXPORT to true",
        ),
    ];
    let broken = rules.into_iter().filter(|(is_broken, ..)| *is_broken);
    broken.map(|(_, state, remedy)| format!("{state}; in production {remedy}")).collect()
}
