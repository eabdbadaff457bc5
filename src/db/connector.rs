//! Opens connections as the settings ask.

use std::error::Error as _;
use std::time::Duration;

use postgres::config::Host;
use postgres::{Client, Config};
use r2d2::ManageConnection as _;
use r2d2_postgres::PostgresConnectionManager;

use super::deadline::Deadline;
use super::tls::TlsSettings;
use crate::config;

/// The port of PostgreSQL if the settings name none.
pub const DEFAULT_PORT: u16 = 5432;

/// The beginning of those errors of the `postgres` crate that name an option, and repeat nothing of the text.
const INVALID_VALUE: &str = "invalid value for option `";

/// Parses the text of `CLOAKROOM_DATABASE_URL`. On failure: what to tell the operator.
///
/// If a password has characters that should have been encoded, any part of the text may be a part of the password:
/// the crate ends a password at the first `@`, so that the rest of it becomes a host, a database or an option. So such
/// texts are refused, and no message repeats any of them.
pub fn parse(text: &str) -> Result<Config, String> {
    const NAME: &str = "CLOAKROOM_DATABASE_URL";
    const ENCODING: &str = "in a user, a password and a parameter of a URL, @ : / ? # % and blanks are written as %40 \
                            %3A %2F %3F %23 %25 %20";
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
    if is_url && text.matches('@').count() > 1 {
        return Err(format!("{NAME} has more than one @: {ENCODING}"));
    }
    let config: Config = text.parse().map_err(|e: postgres::Error| {
        let source = e.source().map(ToString::to_string);
        let source = source.filter(|source| source.starts_with(INVALID_VALUE));
        let fault = source.unwrap_or_else(|| {
            format!(
                "it cannot be read, or has an option that is unknown here, such as sslrootcert; {ENCODING}; in \
                 key/value text, values with blanks or quotes are written as 'it\\'s one'"
            )
        });
        format!("{NAME} is no PostgreSQL URL or key/value text: {fault}")
    })?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(format!("{NAME} names no host"));
    }
    let is_name = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
    let is_host = |host: &Host| !matches!(host, Host::Tcp(name) if !name.chars().all(is_name));
    if !config.get_hosts().iter().all(is_host) {
        return Err(format!("{NAME} names a host that cannot be one: {ENCODING}"));
    }
    Ok(config)
}

/// Opens connections to the configured database.
pub struct Connector {
    config: Config,
    tls: TlsSettings,
    /// How long a host may take to accept a TCP connection, and again as long for PostgreSQL's handshake on it, before
    /// the next host is tried. A host that hangs must leave time for the others.
    host_timeout: Duration,
}

impl Connector {
    /// Checks the settings of the database without connecting. On failure: what to tell the operator.
    pub fn new(settings: &config::Config) -> Result<Connector, String> {
        let mut config = parse(settings.database_url.expose())?;
        if config.get_application_name().is_none() {
            config.application_name("cloakroom");
        }
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()) as u32;
        let share = settings.database_timeout / hosts;
        let host_timeout = config.get_connect_timeout().copied().unwrap_or(share);
        config.connect_timeout(host_timeout);
        let tls = TlsSettings::new(&mut config, settings.database_ca.as_deref())
            .map_err(|e| format!("CLOAKROOM_DATABASE_CA or CLOAKROOM_DATABASE_URL: {e}"))?;
        Ok(Connector { config, tls, host_timeout })
    }

    /// Host and port of the server, for messages: `127.0.0.1:5432`, `[::1]:5432` or the path of a socket. Several
    /// servers are all named, with commas between them.
    pub fn server(&self) -> String {
        let mut hosts = self.config.get_hosts().to_vec();
        if hosts.is_empty() {
            let addresses = self.config.get_hostaddrs().iter();
            hosts = addresses.map(|address| Host::Tcp(address.to_string())).collect();
        }
        let ports = self.config.get_ports();
        let servers = hosts.iter().enumerate().map(|(n, host)| {
            // There is one port for each host, one for all, or none.
            let port = ports.get(n).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
            match host {
                Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Unix(directory) => format!("{}/.s.PGSQL.{port}", directory.display()),
            }
        });
        servers.collect::<Vec<_>>().join(", ")
    }

    /// Connects to the first host that accepts. Once connected, reads end after `wait`, until the returned deadline is
    /// moved.
    pub fn connect(&self, wait: Duration) -> Result<(Client, Deadline), postgres::Error> {
        let deadline = Deadline::new(self.host_timeout);
        let tls = self.tls.make_negotiation(deadline.clone(), self.host_timeout);
        let client = PostgresConnectionManager::new(self.config.clone(), tls).connect()?;
        deadline.set(wait);
        Ok((client, deadline))
    }
}
