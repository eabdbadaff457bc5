//! Opens connections as the settings ask.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::Mutex;
use std::time::Duration;

use postgres::config::Host;
use postgres::error::SqlState;
use postgres::{Client, Config, SimpleQueryMessage};
use r2d2_postgres::PostgresConnectionManager;
use r2d2_postgres::r2d2::ManageConnection as _;

use super::deadline::Deadline;
use super::sql;
use super::tls::TlsSettings;
use crate::config::{self, DATABASE_URLS};
use crate::semaphore::lock;

/// The port of PostgreSQL if the settings name none.
pub const DEFAULT_PORT: u16 = 5432;

/// The beginning of those errors of the `postgres` crate that name an option, and repeat nothing of the text.
const INVALID_VALUE: &str = "invalid value for option `";

/// How to write what would otherwise end a part of a URL.
const ENCODING: &str = "in a user, a password and a parameter of a URL, @ : / ? # % and blanks are written as %40 %3A \
                        %2F %3F %23 %25 %20";

/// What `sslmode` may be. The others that libpq knows verify certificates, which here is another setting's matter.
const SSL_MODES: &str = "sslmode disable, prefer or require; the server's certificate is verified where \
                         CLOAKROOM_DATABASE_CA names a PEM file with its authority";

/// Parses the connection string of the database. On failure: what to tell the operator.
pub fn parse(settings: &config::Config) -> Result<Config, String> {
    parse_text(settings.database_url.expose()).map_err(|(fault, allowed)| {
        format!("{} {fault}; allowed: {allowed}", settings.database_url_variable())
    })
}

/// Parses a connection string. On failure: what is wrong with it, and what is allowed.
///
/// If a password has characters that should have been encoded, any part of the text may be a part of the password:
/// the crate ends a password at the first `@`, so that the rest of it becomes a host, a database or an option. So such
/// texts are refused, and no message repeats any of them.
fn parse_text(text: &str) -> Result<Config, (String, &'static str)> {
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
    if is_url && text.matches('@').count() > 1 {
        return Err((format!("has more than one @: {ENCODING}"), DATABASE_URLS));
    }
    let config: Config = text.parse().map_err(|e| unreadable(&e))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(("names no host".to_owned(), DATABASE_URLS));
    }
    let is_name = |c: char| c.is_alphanumeric() || "-._:%".contains(c);
    let is_host = |host: &Host| !matches!(host, Host::Tcp(name) if !name.chars().all(is_name));
    if !config.get_hosts().iter().all(is_host) {
        return Err((format!("names a host that cannot be one: {ENCODING}"), DATABASE_URLS));
    }
    Ok(config)
}

/// Says why the crate refuses a connection string, and what is allowed, without any of the text.
fn unreadable(error: &postgres::Error) -> (String, &'static str) {
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    let Some(option) = source.strip_prefix(INVALID_VALUE) else {
        let fault = format!(
            "is no PostgreSQL URL or key/value text: it cannot be read, or has an option that is unknown here, such as \
             sslrootcert, in whose place there is CLOAKROOM_DATABASE_CA; {ENCODING}; in key/value text, values with \
             blanks or quotes are written as 'it\\'s one'"
        );
        return (fault, DATABASE_URLS);
    };
    let allowed = match option {
        "sslmode`" => SSL_MODES,
        "target_session_attrs`" => "target_session_attrs any, read-write or read-only",
        _ => DATABASE_URLS,
    };
    (format!("has an {source}"), allowed)
}

/// The same settings with only the host number `n`. The crate cannot remove hosts.
fn with_host(all: &Config, n: usize) -> Config {
    let mut one = Config::new();
    match all.get_hosts().get(n) {
        Some(Host::Tcp(name)) => drop(one.host(name)),
        Some(Host::Unix(directory)) => drop(one.host_path(directory)),
        None => {}
    }
    all.get_hostaddrs().get(n).map(|address| one.hostaddr(*address));
    all.get_ports().get(n).or(all.get_ports().first()).map(|port| one.port(*port));
    all.get_user().map(|user| one.user(user));
    all.get_password().map(|password| one.password(password));
    all.get_dbname().map(|name| one.dbname(name));
    all.get_options().map(|options| one.options(options));
    all.get_application_name().map(|name| one.application_name(name));
    all.get_connect_timeout().map(|timeout| one.connect_timeout(*timeout));
    all.get_tcp_user_timeout().map(|timeout| one.tcp_user_timeout(*timeout));
    all.get_keepalives_interval().map(|interval| one.keepalives_interval(interval));
    all.get_keepalives_retries().map(|retries| one.keepalives_retries(retries));
    one.ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .target_session_attrs(all.get_target_session_attrs())
        .channel_binding(all.get_channel_binding());
    one
}

/// Opens connections to the configured database.
pub struct Connector {
    config: Config,
    /// One for each of several hosts, in their order.
    single_hosts: Vec<Config>,
    /// What begins a session.
    beginning: String,
    timelines: Timelines,
    tls: TlsSettings,
    /// How long a host may take to accept a TCP connection, and again as long for PostgreSQL's handshake on it, before
    /// the next host is tried. A host that hangs must leave time for the others.
    host_timeout: Duration,
}

impl Connector {
    /// Checks the settings of the database without connecting. On failure: what to tell the operator.
    pub fn new(settings: &config::Config) -> Result<Connector, String> {
        let mut config = parse(settings)?;
        if config.get_application_name().is_none() {
            config.application_name("cloakroom");
        }
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()) as u32;
        let share = settings.database_timeout / hosts;
        let host_timeout = config.get_connect_timeout().copied().unwrap_or(share);
        config.connect_timeout(host_timeout);
        let ca = settings.database_ca.as_deref();
        let tls = TlsSettings::new(&mut config, ca, settings.database_url_variable())?;
        let single_hosts = (0..hosts as usize).map(|n| with_host(&config, n)).collect();
        let beginning = beginning(settings.provider.as_ref().map_or("", |it| &it.issuer));
        let timelines = Timelines::default();
        Ok(Connector { config, single_hosts, beginning, timelines, tls, host_timeout })
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

    /// Whether the settings name several hosts.
    pub fn has_several_hosts(&self) -> bool {
        self.single_hosts.len() > 1
    }

    /// Connects to the first host that accepts and is no former primary. Once connected, reads end after `wait`, until
    /// the returned deadline is moved.
    pub fn connect(&self, wait: Duration) -> Result<(Client, Deadline), postgres::Error> {
        match self.connect_to(&self.config, wait) {
            // The crate has stopped at this host, so each is tried alone.
            Err(error) if is_former_primary(&error) && self.has_several_hosts() => {
                let mut others = self.single_hosts.iter();
                others.find_map(|config| self.connect_to(config, wait).ok()).ok_or(error)
            }
            outcome => outcome,
        }
    }

    fn connect_to(
        &self,
        config: &Config,
        wait: Duration,
    ) -> Result<(Client, Deadline), postgres::Error> {
        let deadline = Deadline::new(self.host_timeout);
        let tls = self.tls.make_negotiation(deadline.clone(), self.host_timeout);
        let mut client = PostgresConnectionManager::new(config.clone(), tls).connect()?;
        deadline.set(self.host_timeout);
        client.batch_execute(&self.beginning)?;
        self.timelines.check(timeline(&mut client), &mut client)?;
        deadline.set(wait);
        Ok((client, deadline))
    }
}

/// The highest timeline that a writable server was seen in, by the identifier that a primary and its standbys share. By
/// it a former primary is recognised: if it comes back after a standby was promoted, it accepts writes too, but has
/// none of those that the promoted one has taken. A promotion begins another timeline, with a higher number than any
/// before.
///
/// Timelines are hexadecimal numbers of eight digits, so their texts compare like the numbers.
#[derive(Default)]
struct Timelines(Mutex<HashMap<String, String>>);

impl Timelines {
    /// Fails if the server that `client` is connected to accepts writes in a lower timeline than one that was seen. A
    /// server that does not tell its timeline is not refused, nor is a standby, which tells none.
    fn check(
        &self,
        timeline: Option<(String, String)>,
        client: &mut Client,
    ) -> Result<(), postgres::Error> {
        let Some((system, timeline)) = timeline else { return Ok(()) };
        {
            let mut seen = lock(&self.0);
            let highest = seen.entry(system).or_default();
            if timeline >= *highest {
                *highest = timeline;
                return Ok(());
            }
        }
        // The crate lets nobody else make one of its errors, as which everything here takes a failure to connect.
        client.batch_execute(sql!("db/database/refuse_former_primary"))
    }
}

/// Whether the error is the one that [`Timelines::check`] ends with: a server that is starting has the same SQLSTATE,
/// but not from the routine of `RAISE`.
fn is_former_primary(error: &postgres::Error) -> bool {
    error.as_db_error().is_some_and(|db| {
        db.code() == &SqlState::CANNOT_CONNECT_NOW && db.routine() == Some("exec_stmt_raise")
    })
}

/// The statements that begin a session with the settings that the program relies on, in a transaction that does not
/// depend on those that the database asks for: one that waits for others, or that a standby refuses. They name the
/// issuer by which people sign in, of which the function `account` of the database tells whether an account has an
/// identity.
fn beginning(issuer: &str) -> String {
    let (settings, issuer) = (sql!("db/database/session"), issuer.replace('\'', "''"));
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED;{settings};SET cloakroom.issuer = '{issuer}';COMMIT"
    )
}

/// Returns the identifier and the timeline of the server, if that tells them and accepts writes.
fn timeline(client: &mut Client) -> Option<(String, String)> {
    let messages = client.simple_query(sql!("db/database/timeline")).ok()?;
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })?;
    Some((row.get("system")?.to_owned(), row.get("timeline")?.to_owned()))
}
