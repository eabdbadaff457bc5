//! Faults of combinations of settings, each of which may be right alone.

use std::collections::HashSet;

use super::mail::Smtp;
use super::settings::Config;
#[cfg(not(feature = "extras"))]
use super::words::AdminSecondFactor;
use super::words::{HttpServer, PasswordLogin, word};

/// Bytes of the shortest key for second factors: as many as the key of AES-256 has that is made of it.
const MIN_SEAL_KEY: usize = 32;
/// Shortest API key in production, in characters.
const MIN_API_KEY: usize = 16;
/// Fewest different bytes in production of the secret that signs tokens. A random one of 32 bytes or hexadecimal digits
/// has more.
const MIN_SECRET_VARIETY: usize = 10;

/// One line for each setting with which `serve` does not start, wherever it runs.
pub fn refusals(config: &Config) -> Vec<String> {
    let mut refusals = Vec::new();
    let (algorithm, min) = (word(&config.jwt_algorithm), config.jwt_algorithm.min_secret_bytes());
    for (name, secret) in config.signing_secrets().filter(|(_, secret)| secret.len() < min) {
        let length = secret.len();
        refusals
            .push(format!("{name} holds {length} bytes; allowed: at least {min} for {algorithm}"));
    }
    let seal_key = config.seal_keys.iter().map(|key| key.expose().len()).min();
    if let Some(length) = seal_key.filter(|length| *length < MIN_SEAL_KEY) {
        refusals.push(format!(
            "CLOAKROOM_SEAL_KEYS holds a key of {length} bytes; allowed: at least {MIN_SEAL_KEY} bytes each"
        ));
    }
    // That server ends a response whose body fails as if it were whole: a client could not tell a content that the
    // store broke off from a complete one.
    if config.store.is_some() && config.http_server == HttpServer::Rouille {
        refusals.push(
            "CLOAKROOM_STORAGE_URL is set, and CLOAKROOM_HTTP_SERVER is rouille, which cannot break off a download \
             that the store breaks off; use builtin"
                .to_owned(),
        );
    }
    if let Some(provider) = &config.provider {
        let url = config.public_url.as_deref();
        let needed = if provider.issuer.starts_with("https:") { "https" } else { "http" };
        if !config.console || !url.is_some_and(|url| url.starts_with(needed)) {
            refusals.push(format!(
                "CLOAKROOM_OIDC_ISSUER is set, and CLOAKROOM_CONSOLE is off, or CLOAKROOM_PUBLIC_URL is no {needed} \
                 URL; set both, because the provider sends people back to the console there"
            ));
        }
    } else if config.password_login == PasswordLogin::Admins {
        refusals.push(
            "CLOAKROOM_PASSWORD_LOGIN is admins, and others have no other way to sign in; set CLOAKROOM_OIDC_ISSUER"
                .to_owned(),
        );
    }
    refusals
}

/// The settings of features that the core build does not have, if they are used: name and fault.
#[cfg(not(feature = "extras"))]
pub fn extras_in_use(config: &Config) -> impl Iterator<Item = (&'static str, String)> {
    let used = [
        ("CLOAKROOM_EMAIL_CONFIRMATION", config.confirms_email(), "required"),
        (
            "CLOAKROOM_ADMIN_SECOND_FACTOR",
            config.admin_second_factor == AdminSecondFactor::Required,
            "required",
        ),
        ("CLOAKROOM_REFUSED_PASSWORDS", config.refused_passwords.is_some(), "set"),
        ("CLOAKROOM_CONSOLE", config.console, "on"),
        ("CLOAKROOM_PUBLIC_LIST", config.public_list, "on"),
    ];
    let is_of_provider =
        |name: &str| name.starts_with("CLOAKROOM_OIDC_") && !name.ends_with("ISSUER");
    let set =
        config.shown.iter().filter(move |it| is_of_provider(it.name) && it.variable.is_some());
    let used = used.into_iter().chain(set.map(|it| (it.name, true, "set")));
    used.filter(|(_, is_used, _)| *is_used).map(|(name, _, state)| {
        let fault = format!(
            "{name} is {state}, and this is the core build, which does not have that: the cargo feature extras adds \
             it, and the Debian package has it"
        );
        (name, fault)
    })
}

/// One line for each setting with which production refuses to start, whether or not this is production.
pub fn unsafe_in_production(config: &Config) -> Vec<String> {
    let mut refusals = Vec::new();
    // For each rule: whether it is broken, what the setting is now, and what to do about it.
    let mut rule = |is_broken: bool, state: &str, remedy: &str| {
        if is_broken {
            refusals.push(format!("{state}; in production {remedy}"));
        }
    };
    let min = config.jwt_algorithm.min_secret_bytes();
    let remedy = &format!(
        "use a random text of at least {min} bytes, {MIN_SECRET_VARIETY} of them different, the same for every process"
    );
    rule(config.jwt_secret.is_none(), "CLOAKROOM_JWT_SECRET is not set", remedy);
    for (name, secret) in config.signing_secrets() {
        let variety = secret.bytes().collect::<HashSet<_>>().len();
        let state = format!("{name} holds only {variety} different bytes");
        rule(variety < MIN_SECRET_VARIETY, &state, remedy);
    }
    rule(!config.auth_enabled, "CLOAKROOM_AUTH_ENABLED is false", "it must be true");
    rule(
        config.test_endpoints_enabled,
        "CLOAKROOM_TEST_ENDPOINTS_ENABLED is true",
        "it must be false: one of them deletes all users",
    );
    rule(
        matches!(config.smtp, Smtp::Unset),
        "CLOAKROOM_SMTP_URL is not set",
        "set it to a mail server, or to none to do without password resets",
    );
    let sends_mail = matches!(config.smtp, Smtp::Server(_));
    rule(
        sends_mail && config.mail_from.is_none(),
        "CLOAKROOM_MAIL_FROM is not set",
        "CLOAKROOM_SMTP_URL needs it: set it to the sender of mails",
    );
    rule(
        sends_mail && config.password_reset_url.is_none(),
        "CLOAKROOM_PASSWORD_RESET_URL is not set",
        "CLOAKROOM_SMTP_URL needs it: set it to your page that resets passwords, with {token} in it, or use the \
         console's by CLOAKROOM_CONSOLE=on and CLOAKROOM_PUBLIC_URL",
    );
    rule(
        config.confirms_email() && !sends_mail,
        "CLOAKROOM_EMAIL_CONFIRMATION is required, and no mail is sent",
        "set CLOAKROOM_SMTP_URL to a mail server",
    );
    rule(
        config.confirms_email() && config.email_confirmation_url.is_none(),
        "CLOAKROOM_EMAIL_CONFIRMATION_URL is not set",
        "CLOAKROOM_EMAIL_CONFIRMATION needs it: set it to your page that confirms addresses, with {token} in it, or \
         use the console's by CLOAKROOM_CONSOLE=on and CLOAKROOM_PUBLIC_URL",
    );
    rule(
        !config.api_key_enabled && !config.export_access_is_set,
        "CLOAKROOM_EXPORT_REQUIRE_ADMIN is not set",
        "say who may export: set it to true (admins) or to false (all who are signed in), or \
         CLOAKROOM_API_KEY_ENABLED to true, or, to open exports to anyone, CLOAKROOM_ALLOW_ANONYMOUS_EXPORT to true",
    );
    for network in config.trusted_proxies.iter().filter(|network| network.prefix_len() == 0) {
        rule(
            true,
            &format!("CLOAKROOM_TRUSTED_PROXIES holds {network}"),
            "name your proxies: with all addresses trusted, every client can choose its own",
        );
    }
    rule(
        !config.scrypt.is_enough(),
        &format!("CLOAKROOM_SCRYPT is {}", config.scrypt),
        "log2 N must be at least 13 and N x r x p at least 655360, as in 14,8,5 or 17,8,1",
    );
    rule(
        config.api_keys.iter().any(|key| key.expose().chars().count() < MIN_API_KEY),
        &format!("CLOAKROOM_API_KEY holds a key of fewer than {MIN_API_KEY} characters"),
        &format!("each must have at least {MIN_API_KEY}, such as `openssl rand -hex 32` prints"),
    );
    refusals
}
