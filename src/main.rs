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

use std::io::{self, Write};
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
            report(&format!("cloakroom: {message}\n"));
            ExitCode::FAILURE
        }
        Err(CommandError::Settings(faults)) => {
            let lines: String = faults.iter().map(|fault| format!("  {fault}\n")).collect();
            report(&format!("cloakroom cannot start with these settings:\n{lines}"));
            ExitCode::from(2)
        }
    }
}

/// Writes to standard error. If nobody reads that, the exit status still says that the command failed.
fn report(text: &str) {
    drop(io::stderr().write_all(text.as_bytes()));
}
