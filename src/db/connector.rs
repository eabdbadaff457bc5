//! Opens connections as the settings ask.

use std::time::Duration;

use postgres::config::Host;
use postgres::{Client, Config};
use r2d2::ManageConnection as _;
use r2d2_postgres::PostgresConnectionManager;

use super::deadline::Deadline;
use super::postgres_error::describe;
use super::tls::TlsSettings;
use crate::config::{self, is_loopback};

/// The port of PostgreSQL where the settings name none.
pub(super) const DEFAULT_PORT: u16 = 5432;

/// Opens connections to the configured database.
pub struct Connector {
    config: Config,
    tls: TlsSettings,
    /// How long a host may take to open a TCP connection, and again to make it one of PostgreSQL's, before the next
    /// host is tried. A host that hangs must leave time for the others.
    host_timeout: Duration,
}

impl Connector {
    /// Checks the settings of the database without connecting. On failure: what to tell the operator.
    pub fn new(settings: &config::Config) -> Result<Connector, String> {
        let mut config: Config =
            settings.database_url.expose().parse().map_err(|e: postgres::Error| {
                // The message names the option that is wrong and never holds the value of another one.
                format!(
                    "CLOAKROOM_DATABASE_URL is no PostgreSQL URL or key/value text: {}",
                    describe(&e)
                )
            })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("CLOAKROOM_DATABASE_URL names no host".into());
        }
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

    /// Host and port of the server, for messages: `127.0.0.1:5432`, `[::1]:5432` or the path of a socket. Of several
    /// servers all, with commas between them.
    pub fn server(&self) -> String {
        let mut hosts = self.config.get_hosts().to_vec();
        if hosts.is_empty() {
            // Where both are given, the addresses are those of the hosts.
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

    /// Whether every server is on this host.
    pub fn is_local(&self) -> bool {
        let addresses = self.config.get_hostaddrs();
        let is_local = |host: &Host| match host {
            Host::Tcp(name) => is_loopback(name),
            Host::Unix(_) => true,
        };
        // Where both are given, the addresses are those of the hosts.
        if addresses.is_empty() {
            self.config.get_hosts().iter().all(is_local)
        } else {
            addresses.iter().all(|address| address.to_canonical().is_loopback())
        }
    }

    /// Connects to the first host that accepts. Once connected, reads end after `wait`, until the returned deadline is
    /// moved.
    pub fn connect(&self, wait: Duration) -> Result<(Client, Deadline), postgres::Error> {
        let deadline = Deadline::new(self.host_timeout);
        let tls = self.tls.make_handshake(deadline.clone(), self.host_timeout);
        let client = PostgresConnectionManager::new(self.config.clone(), tls).connect()?;
        deadline.set(wait);
        Ok((client, deadline))
    }
}
