//! Finds PostgreSQL's own programs, `pg_dump` and `pg_restore`, and runs them with the settings of the service.

use std::env;
use std::ffi::OsString;
use std::iter;
use std::net::IpAddr;
use std::os::unix::ffi::OsStringExt;
use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use postgres::Config;
use postgres::config::{ChannelBinding, Host, SslMode, TargetSessionAttrs};

use super::files::AtPath;
use crate::config;
use crate::db::connector::{DEFAULT_PORT, parse};

/// An environment variable.
type Variable = (&'static str, OsString);

/// Prepares a run of `program` on the configured database: `pg_dump` or `pg_restore`, of the major version of the
/// server. It runs in the root directory, its input is closed, and it never asks for a password. Its environment holds
/// the settings of the database and nothing else of this process's but the search path and the language. On failure:
/// what to tell the operator.
///
/// A newer program does not do, though `pg_dump` reads older servers: its dump may not be readable by the server's own
/// `pg_restore`, and a newer `pg_restore` sets parameters that the server does not know.
pub fn command(
    config: &config::Config,
    program: &str,
    server_version: &str,
) -> Result<Command, String> {
    let major = major_version(server_version).ok_or_else(|| {
        format!("PostgreSQL has the version {server_version:?}, which is no version")
    })?;
    let settings =
        variables(&parse(config)?, config.database_ca.as_deref(), config.database_timeout)?;
    let prepare = |path: &Path| {
        let mut command = Command::new(path);
        command.env_clear().envs(inherited()).envs(settings.iter().cloned());
        // A program that cannot enter the directory it is started in, such as another user's home, complains about it.
        command.stdin(Stdio::null()).current_dir("/");
        command
    };
    // Debian has a directory for each version, other systems have one version in the `PATH`.
    let of_debian = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut others = Vec::new();
    for directory in iter::once(of_debian).chain(env::split_paths(&path)) {
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

/// The variables of this process that the programs may see: where they find programs and libraries, and the language of
/// their messages. No secret is among them.
fn inherited() -> impl Iterator<Item = Variable> {
    let names = ["PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_MESSAGES"];
    names.into_iter().filter_map(|name| Some((name, env::var_os(name)?)))
}

/// Returns the environment variables with which the programs connect as this program does (PostgreSQL manual, libpq,
/// Environment Variables). All settings are in variables, because every user of the machine can read the arguments of a
/// process. Everything that libpq would add by itself is turned off: it tries no GSSAPI, and finds no passwords,
/// certificates or services in a home directory. On failure: what to tell the operator.
fn variables(
    config: &Config,
    ca: Option<&Path>,
    default_timeout: Duration,
) -> Result<Vec<Variable>, String> {
    let timeout = config.get_connect_timeout().copied().unwrap_or(default_timeout);
    let target_session = match config.get_target_session_attrs() {
        TargetSessionAttrs::ReadWrite => "read-write",
        TargetSessionAttrs::ReadOnly => "read-only",
        _ => "any",
    };
    let channel_binding = match config.get_channel_binding() {
        ChannelBinding::Disable => "disable",
        ChannelBinding::Require => "require",
        _ => "prefer",
    };
    let ssl_mode = match config.get_ssl_mode() {
        _ if ca.is_some() => "verify-full",
        SslMode::Disable => "disable",
        SslMode::Prefer => "prefer",
        // A mode that is not known here is stricter.
        _ => "require",
    };
    let authority = ca.map(|ca| path::absolute(ca).at(ca)).transpose()?;
    let hosts = list(config.get_hosts(), |host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(directory) => directory.display().to_string(),
    });
    // A port for each host, or one for all.
    let ports =
        list(config.get_ports(), u16::to_string).unwrap_or_else(|| DEFAULT_PORT.to_string());
    let variables: [(_, Option<OsString>); 15] = [
        ("HOME", Some("/nonexistent".into())),
        ("PGGSSENCMODE", Some("disable".into())),
        ("PGCONNECT_TIMEOUT", Some(timeout.as_secs().to_string().into())),
        ("PGTARGETSESSIONATTRS", Some(target_session.into())),
        ("PGCHANNELBINDING", Some(channel_binding.into())),
        ("PGSSLMODE", Some(ssl_mode.into())),
        ("PGSSLROOTCERT", authority.map(PathBuf::into_os_string)),
        ("PGHOST", hosts.map(OsString::from)),
        ("PGHOSTADDR", list(config.get_hostaddrs(), IpAddr::to_string).map(OsString::from)),
        ("PGPORT", Some(ports.into())),
        ("PGUSER", config.get_user().map(OsString::from)),
        ("PGPASSWORD", config.get_password().map(|bytes| OsString::from_vec(bytes.to_vec()))),
        ("PGDATABASE", config.get_dbname().map(OsString::from)),
        ("PGOPTIONS", config.get_options().map(OsString::from)),
        ("PGAPPNAME", config.get_application_name().map(OsString::from)),
    ];
    Ok(variables.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

/// The items with commas between them; `None` if there are none.
fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> Option<String> {
    let texts: Vec<String> = items.iter().map(text).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;

    /// The variables for a URL or key/value text, as `NAME=value` in order, without those that are always the same.
    fn set(text: &str, ca: Option<&str>) -> Vec<String> {
        let config: Config = text.parse().expect("settings");
        let found = variables(&config, ca.map(Path::new), Duration::from_secs(5));
        let all = found.expect("variables").into_iter();
        let all = all.map(|(name, value)| format!("{name}={}", value.to_string_lossy()));
        let constant = [
            "HOME=/nonexistent",
            "PGGSSENCMODE=disable",
            "PGCONNECT_TIMEOUT=5",
            "PGTARGETSESSIONATTRS=any",
            "PGCHANNELBINDING=prefer",
            "PGSSLMODE=prefer",
        ];
        let mut all: Vec<_> = all.filter(|v| !constant.contains(&v.as_str())).collect();
        all.sort();
        all
    }

    #[test]
    fn a_url_and_key_value_text_become_the_same_variables() {
        let all =
            ["PGDATABASE=d", "PGHOST=db.example", "PGPASSWORD=p w'@", "PGPORT=5433", "PGUSER=u"];
        assert_eq!(set("postgres://u:p%20w'%40@db.example:5433/d", None), all);
        assert_eq!(set(r"user=u password='p w\'@' host=db.example port=5433 dbname=d", None), all);
    }

    #[test]
    fn each_setting_has_its_variable() {
        for (text, ca, expected) in [
            ("host=a", None, &["PGHOST=a", "PGPORT=5432"][..]),
            (
                "postgres://a:1,[::1]:2/?target_session_attrs=read-write&connect_timeout=9",
                None,
                &[
                    "PGCONNECT_TIMEOUT=9",
                    "PGHOST=a,::1",
                    "PGPORT=1,2",
                    "PGTARGETSESSIONATTRS=read-write",
                ],
            ),
            ("hostaddr=10.0.0.1,::2 port=7", None, &["PGHOSTADDR=10.0.0.1,::2", "PGPORT=7"]),
            ("host=a hostaddr=10.0.0.1", None, &["PGHOST=a", "PGHOSTADDR=10.0.0.1", "PGPORT=5432"]),
            ("host=/run/postgresql", None, &["PGHOST=/run/postgresql", "PGPORT=5432"]),
            (
                "host=a sslmode=require channel_binding=require",
                None,
                &["PGCHANNELBINDING=require", "PGHOST=a", "PGPORT=5432", "PGSSLMODE=require"],
            ),
            ("host=a sslmode=disable", None, &["PGHOST=a", "PGPORT=5432", "PGSSLMODE=disable"]),
            (
                "host=a sslmode=disable",
                Some("/ca.pem"),
                &["PGHOST=a", "PGPORT=5432", "PGSSLMODE=verify-full", "PGSSLROOTCERT=/ca.pem"],
            ),
            (
                "host=a application_name=x options='-c geqo=off'",
                None,
                &["PGAPPNAME=x", "PGHOST=a", "PGOPTIONS=-c geqo=off", "PGPORT=5432"],
            ),
        ] {
            assert_eq!(set(text, ca), expected, "{text}");
        }
    }
}
