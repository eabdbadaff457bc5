//! Cloakroom: accounts and files over HTTP and JSON, on PostgreSQL, without async code of its own.

mod api;
mod arguments;
mod auth;
mod background;
mod commands;
mod config;
mod db;
mod error;
mod http;
mod mail;
mod model;
mod semaphore;
mod server;
mod storage;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use config::{ALL_SETTINGS, UnknownVariable, UsedSettings};

impl Command {
    /// The settings that the command uses. Faults of others are none of its business.
    fn used_settings(&self) -> UsedSettings {
        match self {
            Command::Serve | Command::Config | Command::Doctor { .. } => ALL_SETTINGS,
            Command::Migrate | Command::Audit { .. } => &["CLOAKROOM_DATABASE_"],
            Command::CreateAdmin { .. } => &["CLOAKROOM_DATABASE_", "CLOAKROOM_SCRYPT"],
            Command::Gc { .. } => {
                &["CLOAKROOM_DATABASE_", "CLOAKROOM_DATA_DIR", "CLOAKROOM_TRASH_DAYS"]
            }
            Command::Check { .. } => &[
                "CLOAKROOM_DATABASE_",
                "CLOAKROOM_DATA_DIR",
                "CLOAKROOM_STORAGE_QUOTA",
                "CLOAKROOM_USER_STORAGE_QUOTA",
                "CLOAKROOM_USER_FILE_QUOTA",
            ],
            Command::Backup { verify: true, .. } => &[],
            Command::Backup { .. } | Command::Restore { .. } | Command::AdoptDataDir { .. } => {
                &["CLOAKROOM_DATABASE_", "CLOAKROOM_DATA_DIR"]
            }
            Command::SendTestMail { .. } => {
                &["CLOAKROOM_SMTP_URL", "CLOAKROOM_MAIL_FROM", "CLOAKROOM_PASSWORD_RESET_URL"]
            }
            // What the document depends on.
            Command::Openapi => &[
                "CLOAKROOM_ENV",
                "CLOAKROOM_DOCS",
                "CLOAKROOM_AUTH_ENABLED",
                "CLOAKROOM_API_KEY",
                "CLOAKROOM_EXPORT_REQUIRE_ADMIN",
                "CLOAKROOM_ALLOW_ANONYMOUS_EXPORT",
                "CLOAKROOM_ALLOWED_UPLOAD_TYPES",
                "CLOAKROOM_RATE_LIMIT_ENABLED",
                "CLOAKROOM_TEST_ENDPOINTS_ENABLED",
                "CLOAKROOM_ERROR_FORMAT",
                "CLOAKROOM_SMTP_URL",
            ],
        }
    }
}

/// Exits with status 0, with 1 if the command failed, or with 2 if the arguments or the settings are wrong.
fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let command = arguments.command.unwrap_or(Command::Serve);
    if matches!(command, Command::Serve) {
        config::apply_allocator_settings();
    }
    let (config, mut faults) = commands::read_settings(command.used_settings());
    // Wrong settings are among what `doctor` looks for.
    if !faults.is_empty() && !matches!(command, Command::Doctor { .. }) {
        faults.extend(config.unknown.iter().map(UnknownVariable::warning));
        return refuse_settings(&faults);
    }
    let outcome = match command {
        Command::Serve => commands::serve(config),
        Command::Migrate => commands::migrate(&config),
        Command::Config => commands::print_config(&config),
        Command::Openapi => commands::print_openapi(&config),
        Command::Doctor { all } => commands::doctor(config, &faults, all),
        Command::Gc { confirm } => commands::gc(&config, confirm),
        Command::Check { sample, repair } => commands::check(&config, sample, repair),
        Command::Backup { directory, verify: true, .. } => commands::verify_backup(&directory),
        Command::Backup { directory, keep, .. } => commands::backup(&config, &directory, keep),
        Command::Restore { backup, skip_damaged } => {
            commands::restore(&config, &backup, skip_damaged)
        }
        Command::Audit { since } => commands::print_audit(&config, since),
        Command::AdoptDataDir { id } => commands::adopt_data_dir(&config, id),
        Command::CreateAdmin { email, username } => {
            commands::create_admin(&config, &email, username.as_deref())
        }
        Command::SendTestMail { to } => match commands::mailer(&config) {
            Ok(mailer) => commands::send_test_mail(&config, &mailer, &to),
            Err(faults) => return refuse_settings(&faults),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("cloakroom: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Says what is wrong with the settings, and returns the status for it.
fn refuse_settings(faults: &[String]) -> ExitCode {
    eprintln!("cloakroom cannot start with these settings:");
    for fault in faults {
        eprintln!("  {fault}");
    }
    ExitCode::from(2)
}
