//! What the document takes from the settings: which of its conditions hold, and the figures in its texts.

use std::collections::HashMap;
use std::time::Duration;

use crate::config::{
    AdminSecondFactor, ApiKeyScope, Config, Environment, ErrorFormat, Registration, Smtp,
};

/// Names that texts have in braces, and what replaces them.
pub type Figures = Vec<(&'static str, String)>;

/// Whether each condition of `x-if` holds.
pub fn conditions(config: &Config) -> HashMap<&'static str, bool> {
    let needs_key = config.auth_enabled && config.api_key_enabled;
    let is_development = config.environment == Environment::Development;
    let may_export = config.allow_anonymous_export || is_development;
    HashMap::from([
        ("admin_second_factor", config.admin_second_factor == AdminSecondFactor::Required),
        ("api_key_enabled", config.api_key_enabled),
        ("api_key_for_all", needs_key && config.api_key_scope == ApiKeyScope::All),
        ("api_key_for_exports", needs_key),
        ("auth", config.auth_enabled),
        ("docs", config.docs),
        ("envelope", config.error_format == ErrorFormat::Envelope),
        ("export_by_anyone", may_export && !config.export_require_admin && !needs_key),
        ("export_is_refused_to_some", config.export_require_admin || !config.auth_enabled),
        ("mail", !matches!(config.smtp, Smtp::Off)),
        ("password_for_email", config.email_change_requires_password),
        ("public_url", config.public_url.is_some()),
        ("rate_limits", config.rate_limit_enabled),
        ("registration", config.registration == Registration::Open),
        ("test_endpoints", config.test_endpoints_enabled),
    ])
}

/// The figures of these settings. Those that have names of others in them come first.
pub fn figures(config: &Config) -> Figures {
    let types: Vec<_> = config.allowed_upload_types.iter().collect();
    let days = |lifetime: Duration| counted(lifetime.as_secs() / 86_400, "day");
    let minutes = |lifetime: Duration| counted(lifetime.as_secs() / 60, "minute");
    let mut figures: Figures = TEXTS.map(|(name, text)| (name, text.trim_end().to_owned())).into();
    figures.extend([
        ("{error_body}", error_body(config.error_format).to_owned()),
        ("{rate_limits}", rate_limits(config)),
        ("{access_token_lifetime}", minutes(config.access_token_lifetime)),
        ("{allowed_upload_types}", types.join(", ")),
        ("{audit_days}", counted(config.audit_days.into(), "day")),
        ("{export_max_rows}", config.export_max_rows.to_string()),
        ("{exporters}", exporters(config)),
        ("{largest_file}", size(config.max_upload_size)),
        ("{largest_file_bytes}", config.max_upload_size.to_string()),
        ("{password_reset_lifetime}", minutes(config.password_reset_lifetime)),
        ("{public_url}", config.public_url.clone().unwrap_or_default()),
        ("{refresh_reuse}", counted(config.refresh_reuse.as_secs(), "second")),
        ("{refresh_token_lifetime}", days(config.refresh_token_lifetime)),
        ("{session_max_age}", days(config.session_max_age)),
        ("{user_file_quota}", config.user_file_quota.to_string()),
        ("{user_storage_quota}", size(config.user_storage_quota)),
        ("{user_storage_quota_bytes}", config.user_storage_quota.to_string()),
        ("{young_accounts}", young_accounts(config)),
        ("{version}", env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    figures.extend([
        ("{rate_limit_admin}", config.rate_limit_admin.to_string()),
        ("{rate_limit_auth}", config.rate_limit_auth.to_string()),
        ("{rate_limit_general}", config.rate_limit_general.to_string()),
        ("{rate_limit_upload}", config.rate_limit_upload.to_string()),
    ]);
    figures.extend([("{audit_csv}", AUDIT_CSV.to_owned()), ("{users_csv}", USERS_CSV.to_owned())]);
    figures
}

/// Texts and code that are longer than a line, in files of their own. So the code of `x-codeSamples` is read, checked
/// and run like other code.
const TEXTS: [(&str, &str); 15] = [
    ("{text/audit.md}", include_str!("text/audit.md")),
    ("{text/errors.md}", include_str!("text/errors.md")),
    ("{text/introduction.md}", include_str!("text/introduction.md")),
    ("{text/limits.md}", include_str!("text/limits.md")),
    ("{text/lists.md}", include_str!("text/lists.md")),
    ("{text/requests.md}", include_str!("text/requests.md")),
    ("{code/audit.py}", include_str!("code/audit.py")),
    ("{code/audit.sh}", include_str!("code/audit.sh")),
    ("{code/audit.ts}", include_str!("code/audit.ts")),
    ("{code/download.py}", include_str!("code/download.py")),
    ("{code/download.sh}", include_str!("code/download.sh")),
    ("{code/download.ts}", include_str!("code/download.ts")),
    ("{code/upload.py}", include_str!("code/upload.py")),
    ("{code/upload.sh}", include_str!("code/upload.sh")),
    ("{code/upload.ts}", include_str!("code/upload.ts")),
];

/// An export of a user.
const USERS_CSV: &str = "id,username,email,name,role,is_active,created_at,updated_at,last_login,\
    total_uploads,total_storage_used\r\n\
    0b8f6c1e-5a0d-4c57-9d0b-2f4f1f3c7a10,ann,ann@example.com,Ann Lee,user,true,\
    2026-01-05T09:30:00.000000Z,2026-01-31T08:15:42.123456Z,2026-01-31T08:15:42.123456Z,1,28\r\n";

/// An export of an event of the audit log.
const AUDIT_CSV: &str = "id,at,action,outcome,actor_id,subject_type,subject_id,address,request_id,details\r\n\
    f4d2b6a8-0c13-4e57-a9bd-7e6f5d4c3b2a,2026-01-31T12:00:00.000000Z,file.upload,success,\
    0b8f6c1e-5a0d-4c57-9d0b-2f4f1f3c7a10,file,c7a1e9d4-3b52-4f6a-8e0d-91b2c3d4e5f6,203.0.113.7,\
    2f1e0d9c-8b7a-4695-8473-625140312f1e,\"{\"\"file_size\"\":28}\"\r\n";

/// The body of an error, and where its hint is.
fn error_body(format: ErrorFormat) -> &'static str {
    match format {
        ErrorFormat::Detail => {
            "`{\"detail\": \"Rate limit exceeded\", \"error_code\": \"RATE_LIMITED\", \
             \"reason\": \"RATE_LIMITED\", \"hint\": \"Try again in 12 seconds.\"}`."
        }
        ErrorFormat::Envelope => {
            "`{\"error\": {\"code\": \"RATE_LIMITED\", \"reason\": \"RATE_LIMITED\", \
             \"message\": \"Rate limit exceeded\", \"details\": [{\"hint\": \"Try again in 12 seconds.\"}], \
             \"timestamp\": \"...\"}}`. Without field errors and hint, `details` is null."
        }
    }
}

/// How often endpoints may be called.
fn rate_limits(config: &Config) -> String {
    if !config.rate_limit_enabled {
        return "There are no rate limits but one: after ten wrong codes of a second factor in an hour, further ones \
                for the account from the same network are refused with 429."
            .to_owned();
    }
    let mut text = include_str!("text/rate_limits.md").trim_end().to_owned();
    if config.rate_limit_address > 0 {
        text += &format!(
            " Anonymous callers and accounts younger than seven days together may send {} requests a minute from an \
             address.",
            config.rate_limit_address
        );
    }
    if config.registration == Registration::Open && config.registrations_per_day > 0 {
        text +=
            &format!(" An address may register {} accounts a day.", config.registrations_per_day);
    }
    text
}

/// What young accounts may store together, where that is limited.
fn young_accounts(config: &Config) -> String {
    if config.registrations_per_day == 0 {
        return String::new();
    }
    format!(
        " Accounts younger than seven days that registered themselves may have {} together.",
        size(config.young_storage_quota())
    )
}

/// Who may export the accounts. `api::middleware::identity::exporters` and the pipeline decide.
fn exporters(config: &Config) -> String {
    let key = if config.api_key_enabled { " with an API key" } else { "" };
    let who = if !config.auth_enabled {
        "Whoever reaches the service may export, because authentication is switched off."
    } else if config.export_require_admin {
        return format!("Administrators{key} may export.");
    } else if config.api_key_enabled {
        "Every signed-in user with an API key may export."
    } else if config.allow_anonymous_export {
        "Anyone may export. A token that is sent must be valid."
    } else if config.environment == Environment::Development {
        "Every signed-in user may export, and without a token whoever calls from the service's own host."
    } else {
        "Every signed-in user may export."
    };
    who.to_owned()
}

/// A number and what it counts.
fn counted(number: u64, unit: &str) -> String {
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

/// A number of bytes in the largest binary unit in which it is whole.
fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => counted(bytes, "byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::audit::ACTIONS;

    #[test]
    fn the_table_of_the_audit_log_has_a_row_for_each_action() {
        let rows =
            include_str!("text/audit.md").lines().filter_map(|line| line.strip_prefix("| `"));
        let actions: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
        assert_eq!(actions, ACTIONS);
    }

    #[test]
    fn sizes_are_written_in_the_largest_unit_in_which_they_are_whole() {
        for (bytes, expected) in [
            (1, "1 byte"),
            (1000, "1000 bytes"),
            (1024, "1 KiB"),
            (10 << 20, "10 MiB"),
            ((1 << 30) + (1 << 20), "1025 MiB"),
            (1 << 40, "1024 GiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn the_document_says_who_may_export() {
        type Change = fn(&mut Config);
        let changes: [(Change, &str); 6] = [
            (|_| {}, "without a token whoever calls from the service's own host"),
            (
                |config| config.environment = Environment::Production,
                "Every signed-in user may export.",
            ),
            (|config| config.allow_anonymous_export = true, "Anyone may export."),
            (|config| config.api_key_enabled = true, "Every signed-in user with an API key"),
            (|config| config.export_require_admin = true, "Administrators may export."),
            (|config| config.auth_enabled = false, "authentication is switched off"),
        ];
        for (change, expected) in changes {
            let mut config = Config::of_test_database();
            change(&mut config);
            let text = exporters(&config);
            assert!(text.contains(expected), "{text}");
        }
    }
}
