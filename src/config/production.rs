//! The production guard: what may be convenient on a desk and must not face strangers (contract, 1).

use super::{Config, Environment, Smtp};

/// One line a refusal: the setting's name and what to do.
pub fn guard(config: &Config, faults: &mut Vec<String>) {
    if config.environment != Environment::Production {
        return;
    }
    let mail = matches!(config.smtp, Smtp::Server(_));
    let exports_are_open =
        !config.api_key_enabled && !config.export_require_admin && !config.allow_anonymous_export;
    let refusals = [
        (
            config.jwt_secret.is_none(),
            "CLOAKROOM_JWT_SECRET is not set; in production set it to a long random text, the same for every process",
        ),
        (!config.auth_enabled, "CLOAKROOM_AUTH_ENABLED is false; in production it must be true"),
        (
            config.test_endpoints_enabled,
            "CLOAKROOM_TEST_ENDPOINTS_ENABLED is true; in production it must be false: one of them deletes all users",
        ),
        (
            matches!(config.smtp, Smtp::Unset),
            "CLOAKROOM_SMTP_URL is not set; in production set it to a mail server, or to none to do without password resets",
        ),
        (
            mail && config.mail_from.is_none(),
            "CLOAKROOM_MAIL_FROM is not set; in production CLOAKROOM_SMTP_URL needs it: set it to the sender of mails",
        ),
        (
            mail && config.password_reset_url.is_none(),
            "CLOAKROOM_PASSWORD_RESET_URL is not set; in production CLOAKROOM_SMTP_URL needs it: set it to your page that resets passwords, with {token} in it",
        ),
        (
            exports_are_open,
            "CLOAKROOM_EXPORT_REQUIRE_ADMIN is false; in production say who may export: set it to true, or CLOAKROOM_API_KEY_ENABLED to true, or, to open exports to anyone, CLOAKROOM_ALLOW_ANONYMOUS_EXPORT to true",
        ),
    ];
    for (refused, what) in refusals {
        if refused {
            faults.push(what.into());
        }
    }
}
