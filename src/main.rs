//! Cloakroom: accounts and files over HTTP and JSON, on PostgreSQL, without async code of its own.

mod api;
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
use std::time::Duration;

use clap::{Parser, Subcommand};

use config::{ALL_SETTINGS, UsedSettings};

/// Accounts and files over HTTP and JSON, on PostgreSQL.
#[derive(Parser)]
#[command(
    version,
    after_help = "Settings are environment variables: `cloakroom config` shows them, README.md explains them. \
                  A command asks only for those that it uses.\n\n\
                  Exit status: 0 if all went well, 1 if the command failed, 2 if its arguments or settings are wrong."
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve HTTP, after bringing the database's schema up to date; also what happens with no command.
    Serve,
    /// Bring the database's schema up to date.
    Migrate,
    /// Print the effective settings, secrets masked; fail if `serve` would refuse them.
    Config,
    /// Print the OpenAPI document of the service with these settings; uses no database.
    Openapi,
    /// Make an admin, or make the account with that e-mail address one.
    ///
    /// The password is that in CLOAKROOM_ADMIN_PASSWORD. If that is not set, it is asked for twice on a terminal, and
    /// otherwise the first line of standard input.
    CreateAdmin {
        /// E-mail address of the account.
        #[arg(long)]
        email: String,
        /// Username of a new account; an existing one keeps its own.
        #[arg(long)]
        username: Option<String>,
    },
    /// Move file contents that no record owns, older than an hour, to the trash; name files whose content is missing.
    ///
    /// Fails if a content is missing, or, unless --confirm is given, if over 5 % of all contents and more than 20 have
    /// no record; then it moves none.
    Gc {
        /// Move contents without a record also where they are over 5 % of all.
        #[arg(long)]
        confirm: bool,
    },
    /// Print the audit log, the oldest event first.
    Audit {
        /// How far to go back: a number and m, h or d, for minutes, hours or days.
        #[arg(long, default_value = "1d", value_parser = commands::parse_age)]
        since: Duration,
    },
    /// Make the data directory the database's, after a refusal that named both ids.
    AdoptDataDir {
        /// Installation id that the data directory holds, or `none`.
        #[arg(value_parser = commands::parse_expected_id)]
        id: commands::ExpectedId,
    },
    /// Send a test message and show the dialogue with the mail server; uses no database.
    SendTestMail {
        /// E-mail address of the recipient.
        #[arg(long)]
        to: String,
    },
}

impl Command {
    /// The settings that the command uses. Faults of others are none of its business.
    fn used_settings(&self) -> UsedSettings {
        match self {
            Command::Serve | Command::Config => ALL_SETTINGS,
            Command::Migrate | Command::Audit { .. } => &["CLOAKROOM_DATABASE_"],
            Command::CreateAdmin { .. } => &["CLOAKROOM_DATABASE_", "CLOAKROOM_SCRYPT"],
            Command::Gc { .. } => {
                &["CLOAKROOM_DATABASE_", "CLOAKROOM_DATA_DIR", "CLOAKROOM_TRASH_DAYS"]
            }
            Command::AdoptDataDir { .. } => &["CLOAKROOM_DATABASE_", "CLOAKROOM_DATA_DIR"],
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
    let config = match commands::read_settings(command.used_settings()) {
        Ok(config) => config,
        Err(faults) => return refuse_settings(&faults),
    };
    let outcome = match command {
        Command::Serve => commands::serve(config),
        Command::Migrate => commands::migrate(&config),
        Command::Config => commands::print_config(&config),
        Command::Openapi => commands::print_openapi(&config),
        Command::Gc { confirm } => commands::gc(&config, confirm),
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
