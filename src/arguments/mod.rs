//! The arguments of the command line. This module names nothing else of the program, so that the manual pages can be
//! made from it without the program.

#[cfg(feature = "tools")]
pub mod tools;

use clap::{Parser, Subcommand};

#[cfg(feature = "tools")]
pub use tools::Tool;

/// The version of the program. `scripts/package` adds the commit that it builds, in `CLOAKROOM_BUILD_VERSION`; other
/// builds name none, so that a commit compiles nothing anew.
pub const VERSION: &str = match option_env!("CLOAKROOM_BUILD_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// Accounts and files over HTTP and JSON, on PostgreSQL.
#[derive(Parser)]
#[command(
    version = VERSION,
    max_term_width = 100,
    after_help = "Settings are environment variables: `cloakroom config` shows them, `cloakroom config --sample` \
                  explains them. \
                  A command looks only at those that it uses.\n\n\
                  Exit status: 0 if all went well, 1 if the command failed, 2 if its arguments or settings are wrong, \
                  130 or 143 if SIGINT or SIGTERM has ended it before; `serve` ends with 0 then."
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
    Config {
        /// Print all settings with their defaults and meanings instead, as a table in Markdown.
        #[arg(long)]
        table: bool,
        /// The same as a file of settings, in which each of them is a comment.
        #[arg(long, conflicts_with = "table")]
        sample: bool,
    },
    /// Print the OpenAPI document of the service with these settings; uses no database.
    Openapi,
    /// Make an admin, or make the account with that e-mail address one.
    ///
    /// The password is that in CLOAKROOM_ADMIN_PASSWORD. If that is not set, it is asked for twice on a terminal, and
    /// otherwise the first line of standard input. Fails if there is none, or the two differ, if the address, the
    /// username or the password is not acceptable, or if another account has the username.
    CreateAdmin {
        /// E-mail address of the account.
        #[arg(long)]
        email: String,
        /// Username of a new account; an existing one keeps its own.
        #[arg(long)]
        username: Option<String>,
        /// Take the second factor of an existing account away, so that the password alone is enough to sign in.
        #[arg(long)]
        reset_second_factor: bool,
    },
    #[cfg(feature = "tools")]
    #[command(flatten)]
    Tool(Tool),
}
