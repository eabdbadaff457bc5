//! Cloakroom: accounts and files over HTTP and JSON, on PostgreSQL, without async code of its own.

mod api;
mod arguments;
mod auth;
mod background;
mod config;
mod db;
mod error;
mod http;
mod mail;
mod model;
mod semaphore;
mod serve;
mod server;
mod storage;
mod telemetry;
#[cfg(feature = "tools")]
mod tools;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use serve::CommandError;

/// Exits with status 0, with 1 if the command failed, or with 2 if the arguments or the settings are wrong.
fn main() -> ExitCode {
    let outcome = match Arguments::parse().command.unwrap_or(Command::Serve) {
        Command::Serve => serve::serve(),
        Command::Migrate => serve::migrate(),
        Command::Config => serve::print_config(),
        Command::Openapi => serve::print_openapi(),
        #[cfg(feature = "tools")]
        Command::Tool(tool) => tools::run(tool),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandError::Failed(message)) => {
            eprintln!("cloakroom: {message}");
            ExitCode::FAILURE
        }
        Err(CommandError::Settings(faults)) => {
            eprintln!("cloakroom cannot start with these settings:");
            for fault in faults {
                eprintln!("  {fault}");
            }
            ExitCode::from(2)
        }
    }
}
