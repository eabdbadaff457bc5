//! The connection of `cloakroom doctor`, and why there is none.

use std::error::Error as _;
use std::io::ErrorKind;
use std::time::Duration;

use postgres::config::Host;
use postgres::error::SqlState;
use postgres::{Client, Row};

use crate::config::{Config, is_loopback};
use crate::db::connector::{Connector, parse};
use crate::db::postgres_error::describe;
use crate::db::sql;

/// How long the whole diagnosis may take, but for the attempts to connect, each of which has the time that the settings
/// allow.
const MAX_TIME: Duration = Duration::from_secs(10);

/// A connection to the database, and how it came about.
pub struct ConnectedServer {
    pub client: Client,
    /// The version of PostgreSQL, such as `17.5`.
    pub version: String,
    /// Host and port as the settings have them; of several servers all.
    pub server: String,
    /// Whether the settings name only this host.
    pub is_local: bool,
}

/// Connects. The settings must be such as [`crate::db::check_settings`] accepts. On failure: the reason, and what to do
/// about it.
pub fn connect(settings: &Config) -> Result<ConnectedServer, (String, &'static str)> {
    let wrong = |reason| (reason, "Correct the settings of the database.");
    let connector = Connector::new(settings).map_err(wrong)?;
    let hosts = parse(settings).map_err(wrong)?;
    let server = connector.server();
    let failed = |e: postgres::Error| {
        let reason = format!("no connection to the database at {server}: {}", describe(&e));
        (reason, advice(&e))
    };
    let (mut client, _) = connector.connect(MAX_TIME).map_err(failed)?;
    let version = client.query_typed(sql!("database/version"), &[]).map_err(failed)?;
    let version = version.first().map(|row| row.get("version")).unwrap_or_default();
    Ok(ConnectedServer { client, version, server, is_local: is_local(&hosts) })
}

/// Whether every server is on this host.
fn is_local(config: &postgres::Config) -> bool {
    let addresses = config.get_hostaddrs();
    let is_local = |host: &Host| match host {
        Host::Tcp(name) => is_loopback(name),
        Host::Unix(_) => true,
    };
    // If both are given, the addresses are those of the hosts.
    if addresses.is_empty() {
        config.get_hosts().iter().all(is_local)
    } else {
        addresses.iter().all(|address| address.to_canonical().is_loopback())
    }
}

/// Returns what to do about a failed attempt to connect.
fn advice(error: &postgres::Error) -> &'static str {
    let io_error = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    match (error.code(), io_error.map(std::io::Error::kind)) {
        (
            Some(&(SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION)),
            _,
        ) => {
            "Check the user and the password in CLOAKROOM_DATABASE_URL, and the server's pg_hba.conf."
        }
        (Some(&SqlState::INVALID_CATALOG_NAME), _) => {
            "Create the database, or correct its name in CLOAKROOM_DATABASE_URL."
        }
        (Some(&SqlState::TOO_MANY_CONNECTIONS), _) => {
            "Lower CLOAKROOM_DATABASE_POOL_SIZE or raise the server's max_connections: each process of the service has \
             a pool of its own."
        }
        (Some(&SqlState::CANNOT_CONNECT_NOW), _) => {
            "The server is starting or stopping: try again in a moment, and read its log."
        }
        // So the client library reports a server that does not fit target_session_attrs.
        (_, Some(ErrorKind::PermissionDenied)) => {
            "target_session_attrs asks for a server that takes writes, and none does: promote a standby, or correct \
             the hosts in CLOAKROOM_DATABASE_URL."
        }
        // So rustls reports a certificate that it does not accept.
        (_, Some(ErrorKind::InvalidData)) => {
            "The server's certificate must be valid for the host in CLOAKROOM_DATABASE_URL, and its authority must be \
             the one in CLOAKROOM_DATABASE_CA."
        }
        _ => {
            "Check the host and the port in CLOAKROOM_DATABASE_URL, whether the server runs, its log, and firewalls."
        }
    }
}

/// Returns the first row of a query that has no parameters.
pub fn one_row(client: &mut Client, sql: &str) -> Result<Row, String> {
    let rows = client.query_typed(sql, &[]).map_err(|e| describe(&e))?;
    rows.into_iter().next().ok_or_else(|| "a query returned no row".to_owned())
}
