//! The arguments of the command line. This module names nothing else of the program, so that the manual pages can be
//! made from it without the program.

#[cfg(feature = "tools")]
pub mod tools;

use clap::{Parser, Subcommand};

#[cfg(feature = "tools")]
pub use tools::Tool;

/// Accounts and files over HTTP and JSON, on PostgreSQL.
#[derive(Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "Settings are environment variables: `cloakroom config` shows them, scripts/README.md (in the Debian package /usr/share/doc/cloakroom/README.md) explains them. \
                  A command asks only for those that it uses.\n\n\
                  Exit status: 0 if all went well, 1 if the command failed, 2 if its arguments or settings are wrong."
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve HTTP, after bringing the database's schema up to date; also what happens with no command.
    Serve,
    /// Bring the database's schema up to date.
    Migrate,
    /// Print the effective settings, secrets masked; fail if `serve` would refuse them.
    Config,
    /// Print the OpenAPI document of the service with these settings; uses no database.
    Openapi,
    #[cfg(feature = "tools")]
    #[command(flatten)]
    Tool(Tool),
}
