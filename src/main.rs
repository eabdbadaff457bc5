//! Cloakroom: accounts and files over HTTP and JSON, on PostgreSQL, without async code of its own.

mod accounts;
mod arguments;
mod auth;
mod background;
mod body_memory;
mod config;
mod db;
mod docs;
mod error;
mod exports;
mod files;
mod http;
mod mail;
mod model;
#[cfg(any(feature = "oidc", feature = "s3"))]
mod outgoing;
mod probe;
mod request;
mod semaphore;
mod serve;
mod server;
mod service;
mod sign_in;
mod storage;
mod supervisor;
mod telemetry;

#[cfg(feature = "tools")]
mod tools;

// The features beyond the specification, and what the core build has in their place.
#[cfg(feature = "extras")]
mod archive;
#[cfg(feature = "extras")]
mod audit;
#[cfg(feature = "extras")]
mod changes;
#[cfg(feature = "extras")]
mod confirmation;
#[cfg(feature = "extras")]
mod folders;
#[cfg(feature = "extras")]
mod links;
#[cfg(feature = "oidc")]
mod openid;
#[cfg(feature = "extras")]
mod partial;
#[cfg(feature = "extras")]
mod personal_tokens;
#[cfg(feature = "oidc")]
mod provider;
#[cfg(feature = "extras")]
mod repeats;
#[cfg(feature = "extras")]
mod second_factor;
#[cfg(feature = "extras")]
mod sessions;
#[cfg(feature = "extras")]
mod undo;
#[cfg(not(feature = "extras"))]
mod without_extras;
#[cfg(not(feature = "oidc"))]
mod without_provider;
#[cfg(not(feature = "extras"))]
use without_extras::{confirmation, folders, repeats, second_factor, undo};
#[cfg(not(feature = "oidc"))]
use without_provider as provider;

use std::iter;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use log::Level;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;

use arguments::{Arguments, Command};
use serve::CommandError;
use telemetry::logging::write_lines;

/// Exits with status 0, with 1 if the command failed, or with 2 if the arguments or the settings are wrong.
fn main() -> ExitCode {
    let command = Arguments::parse().command.unwrap_or(Command::Serve);
    if !matches!(command, Command::Serve) {
        exit_on_signals();
    }
    let outcome = match command {
        Command::Serve => serve::serve(),
        Command::Migrate => serve::migrate(),
        Command::Config { table, sample } => serve::print_config(table, sample),
        Command::CreateAdmin { email, username, reset_second_factor } => {
            serve::create_admin(&email, username.as_deref(), reset_second_factor)
        }
        Command::Openapi => serve::print_openapi(),
        #[cfg(feature = "tools")]
        Command::Tool(tool) => tools::run(tool),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandError::Failed(message)) => {
            write_lines(Level::Error, [format!("cloakroom: {message}")]);
            ExitCode::FAILURE
        }
        Err(CommandError::Settings(faults)) => {
            let heading = "cloakroom cannot start with these settings:".to_owned();
            let faults = faults.iter().map(|fault| format!("  {fault}"));
            write_lines(Level::Error, iter::once(heading).chain(faults));
            ExitCode::from(2)
        }
    }
}

/// Has SIGINT and SIGTERM end the process at once with the status that a shell gives to a process that they kill.
/// Supervisors such as systemd take a death by them for a success, and would have a chain of commands go on.
fn exit_on_signals() {
    for signal in [SIGINT, SIGTERM] {
        // Without a handler, which every system lets these two have, the signal still ends the process.
        let _ = register_conditional_shutdown(signal, 128 + signal, Arc::new(true.into()));
    }
}
