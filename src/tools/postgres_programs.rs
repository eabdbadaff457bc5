//! Finds PostgreSQL's own programs, `pg_dump` and `pg_restore`, and runs them with the settings of the service.

use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::database::client_programs;
use super::environment;
use crate::config::Config;

/// Prepares a run of `program` on the configured database: `pg_dump` or `pg_restore`, of the major version of the
/// server. It runs in the root directory, its input is closed, and it never asks for a password. Its environment holds
/// the settings of the database and nothing else of this process's but the search path and the language. On failure:
/// what to tell the operator.
///
/// A newer program does not do, though `pg_dump` reads older servers: its dump may not be readable by the server's own
/// `pg_restore`, and a newer `pg_restore` sets parameters that the server does not know.
pub fn command(config: &Config, program: &str, server_version: &str) -> Result<Command, String> {
    let major = major_version(server_version).ok_or_else(|| {
        format!("PostgreSQL has the version {server_version:?}, which is no version")
    })?;
    let environment =
        [environment::inherited_by_programs(), client_programs::environment(config)?].concat();
    let prepare = |path: &Path| {
        let mut command = Command::new(path);
        command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        // A program that cannot enter the directory it is started in, such as another user's home, complains about it.
        command.stdin(Stdio::null()).current_dir("/");
        command
    };
    // Debian has a directory for each version, other systems have one version in the `PATH`.
    let of_debian = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
    let mut others = Vec::new();
    for directory in iter::once(of_debian).chain(environment::program_directories()) {
        let path = directory.join(program);
        let Ok(output) = prepare(&path).arg("--version").output() else { continue };
        // As in `pg_dump (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
        let line = String::from_utf8_lossy(&output.stdout);
        let version = line.split_once(") ").map_or("unknown", |(_, version)| version.trim());
        if major_version(version) == Some(major) {
            let mut command = prepare(&path);
            command.arg("--no-password");
            return Ok(command);
        }
        others.push(format!(", {} has version {version}", path.display()));
    }
    Err(format!(
        "{program} of PostgreSQL {major} is needed, because the server has version {server_version}, but there is none \
         in /usr/lib/postgresql/{major}/bin and in the PATH{}: install it, on Debian with `apt-get install \
         postgresql-client-{major}`",
        others.concat()
    ))
}

/// The number that a version begins with: 15 in `15.14` and in `15beta1`.
pub fn major_version(version: &str) -> Option<u32> {
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version.get(..end)?.parse().ok()
}
