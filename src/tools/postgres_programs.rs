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
    let candidates = candidates(program, major, environment::program_directories());
    let found = search(candidates, major, |path| {
        let output = prepare(path).arg("--version").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    });
    let path = found.map_err(|found| {
        format!(
            "{program} of PostgreSQL {major} is needed, because the server has version {server_version}, but {found}: \
             install it, on Debian with `apt-get install postgresql-client-{major}`"
        )
    })?;
    let mut command = prepare(&path);
    command.arg("--no-password");
    Ok(command)
}

/// Where the program may be: Debian has a directory for each version, other systems have one version in the `PATH`.
fn candidates(program: &str, major: u32, path: Vec<PathBuf>) -> Vec<PathBuf> {
    let of_debian = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
    iter::once(of_debian).chain(path).map(|directory| directory.join(program)).collect()
}

/// The first candidate of this major version. `ask` returns the line that a program prints about its version, or `None`
/// if there is none. On failure: what was found.
fn search(
    candidates: Vec<PathBuf>,
    major: u32,
    ask: impl Fn(&Path) -> Option<String>,
) -> Result<PathBuf, String> {
    let mut others = Vec::new();
    for path in candidates {
        let Some(line) = ask(&path) else { continue };
        // As in `pg_dump (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
        let version = line.split_once(") ").map_or("", |(_, version)| version);
        if major_version(version) == Some(major) {
            return Ok(path);
        }
        let version = version.split(' ').next().filter(|version| !version.is_empty());
        others.push(format!("{} has version {}", path.display(), version.unwrap_or("unknown")));
    }
    let nothing = format!("there is none in /usr/lib/postgresql/{major}/bin and in the PATH");
    Err(if others.is_empty() { nothing } else { others.join(", ") })
}

/// The number that a version begins with: 15 in `15.14` and in `15beta1`.
pub fn major_version(version: &str) -> Option<u32> {
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches for version 15 where these programs are found, one candidate each; `None` is a missing one.
    fn search_in(lines: &[Option<&str>]) -> Result<PathBuf, String> {
        let candidates = (0..lines.len()).map(|n| PathBuf::from(n.to_string())).collect();
        search(candidates, 15, |path| {
            let n: usize = path.to_str()?.parse().ok()?;
            lines.get(n).copied().flatten().map(str::to_owned)
        })
    }

    #[test]
    fn the_first_program_of_the_servers_major_version_is_taken() {
        let (old, right) =
            ("pg_dump (PostgreSQL) 14.2", "pg_dump (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)");
        let beta = "pg_dump (PostgreSQL) 15beta1";
        assert_eq!(search_in(&[Some(right), Some(right)]), Ok("0".into()));
        assert_eq!(search_in(&[None, Some(old), Some(beta)]), Ok("2".into()));
    }

    #[test]
    fn where_none_serves_the_message_says_what_there_is() {
        let none = "there is none in /usr/lib/postgresql/15/bin and in the PATH";
        for (lines, message) in [
            (&[None, None][..], none),
            (&[], none),
            (
                &[Some("pg_dump (PostgreSQL) 16.1"), Some("")],
                "0 has version 16.1, 1 has version unknown",
            ),
            (&[Some("1.5")], "0 has version unknown"),
        ] {
            assert_eq!(search_in(lines), Err(message.into()));
        }
    }

    #[test]
    fn candidates_are_in_the_directory_of_the_version_and_then_in_the_path() {
        let found = candidates("pg_dump", 15, vec!["/a".into(), "/b".into()]);
        assert_eq!(
            found,
            ["/usr/lib/postgresql/15/bin/pg_dump", "/a/pg_dump", "/b/pg_dump"].map(PathBuf::from)
        );
    }
}
