//! What `cloakroom doctor` asks the database. It changes nothing, and uses a connection of its own: the pool would try
//! again for a while, and not say why a connection fails.

use std::error::Error as _;
use std::io::ErrorKind;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use postgres::error::SqlState;
use postgres::{Client, Row};

use super::connector::Connector;
use super::installation::{self, DatabaseSide};
use super::migrations::{self, SchemaVersions};
use super::postgres_error::describe;
use super::sql;
use crate::config::Config;

/// How long all of it may take, but for the attempts to connect, each of which has the time that the settings allow.
const MAX_TIME: Duration = Duration::from_secs(10);
/// How often the clocks are compared. The comparison with the shortest round trip counts.
const CLOCK_SAMPLES: usize = 3;

/// Why there is no connection, and what to do about it.
pub struct NoConnection {
    pub reason: String,
    pub advice: &'static str,
}

/// What the database says. What could not be asked has the reason in its place.
pub struct DatabaseFacts {
    /// Such as `17.5`.
    pub version: String,
    /// Host and port as the settings have them; of several servers all.
    pub server: String,
    /// Whether the settings name only this host.
    pub is_local: bool,
    pub clock: Result<ClockDifference, String>,
    pub state: Result<ServerState, String>,
    /// Empty on a standby.
    pub standbys: Result<Vec<Standby>, String>,
    pub schema: Result<SchemaVersions, String>,
    /// `None` if the schema is older than installation ids.
    pub installation: Result<Option<DatabaseSide>, String>,
    /// `None` if the schema is not that of this program.
    pub stored: Result<Option<Stored>, String>,
}

/// The clock of the database compared with that of this process.
pub struct ClockDifference {
    /// Positive if the database is ahead. Exact to half a round trip.
    pub seconds_ahead: f64,
    pub round_trip: Duration,
}

/// The state of the server, the database and the connection, as `sql/database/facts.sql` describes it.
pub struct ServerState {
    pub encoding: String,
    /// The address and port of the server that answered; `None` over a Unix socket.
    pub address: Option<String>,
    pub is_standby: bool,
    pub is_read_only: bool,
    /// `None` if the connection is not encrypted.
    pub tls_version: Option<String>,
    pub available_connections: i32,
    pub open_connections: i64,
    pub settings_off: Vec<String>,
    pub has_checksums: bool,
    /// The standbys that a commit waits for, as PostgreSQL's setting names them; empty if it waits for none.
    pub awaited_standbys: String,
    pub unused_slots: i64,
    pub trigram_version: Option<String>,
    pub has_search_index: bool,
    pub amcheck_version: Option<String>,
}

/// A connected standby. What is `None` may not be seen by this user.
pub struct Standby {
    pub name: String,
    pub state: Option<String>,
    pub sync_state: Option<String>,
    pub bytes_behind: Option<i64>,
}

/// The bytes of all files, and the state of the outbox.
pub struct Stored {
    pub bytes: i64,
    pub mail_waiting: i64,
    pub mail_failed: i64,
    pub mail_oldest: Duration,
}

/// Connects and asks. The settings must be such as [`super::check_settings`] accepts.
pub fn diagnose(settings: &Config) -> Result<DatabaseFacts, NoConnection> {
    let connector = Connector::new(settings).map_err(|reason| NoConnection {
        reason,
        advice: "Correct the settings of the database.",
    })?;
    let server = connector.server();
    let failed = |e: &postgres::Error| {
        let reason = format!("no connection to the database at {server}: {}", describe(e));
        NoConnection { reason, advice: advice(e) }
    };
    let (mut client, _) = connector.connect(MAX_TIME).map_err(|e| failed(&e))?;
    let version = client.query_typed(sql!("database/version"), &[]).map_err(|e| failed(&e))?;
    let state = one_row(&mut client, sql!("database/facts")).map(|row| ServerState::of(&row));
    let is_standby = state.as_ref().is_ok_and(|state| state.is_standby);
    let schema = migrations::schema_versions(&mut client);
    let is_current = schema.as_ref().is_ok_and(|schema| schema.applied == schema.newest);
    Ok(DatabaseFacts {
        version: version.first().map(|row| row.get("version")).unwrap_or_default(),
        server,
        is_local: connector.is_local(),
        clock: compare_clocks(&mut client),
        state,
        standbys: if is_standby { Ok(Vec::new()) } else { standbys(&mut client) },
        schema,
        installation: installation::look_up(&mut client).map_err(|e| describe(&e)),
        stored: if is_current { stored(&mut client).map(Some) } else { Ok(None) },
    })
}

/// What to do about a failed attempt to connect.
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
        // How the client library reports a server that does not fit target_session_attrs.
        (_, Some(ErrorKind::PermissionDenied)) => {
            "target_session_attrs asks for a server that takes writes, and none does: promote a standby, or correct \
             the hosts in CLOAKROOM_DATABASE_URL."
        }
        // How rustls reports a certificate that it does not accept.
        (_, Some(ErrorKind::InvalidData)) => {
            "The server's certificate must be valid for the host in CLOAKROOM_DATABASE_URL, and its authority must be \
             the one in CLOAKROOM_DATABASE_CA."
        }
        _ => {
            "Check the host and the port in CLOAKROOM_DATABASE_URL, whether the server runs, its log, and firewalls."
        }
    }
}

fn one_row(client: &mut Client, sql: &str) -> Result<Row, String> {
    let rows = client.query_typed(sql, &[]).map_err(|e| describe(&e))?;
    rows.into_iter().next().ok_or_else(|| "a query returned no row".to_owned())
}

/// Compares the clocks several times, each in a single round trip, and takes the most exact comparison.
fn compare_clocks(client: &mut Client) -> Result<ClockDifference, String> {
    let mut best: Option<ClockDifference> = None;
    for _ in 0..CLOCK_SAMPLES {
        let (time, begin) = (SystemTime::now(), Instant::now());
        let theirs: f64 = one_row(client, sql!("database/clock"))?.get("seconds");
        let round_trip = begin.elapsed();
        // A clock before 1970 is far off in any case.
        let sent_at = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds_ahead = theirs - (sent_at + round_trip / 2).as_secs_f64();
        if best.as_ref().is_none_or(|best| round_trip < best.round_trip) {
            best = Some(ClockDifference { seconds_ahead, round_trip });
        }
    }
    best.ok_or_else(|| "not compared".to_owned())
}

fn standbys(client: &mut Client) -> Result<Vec<Standby>, String> {
    let rows = client.query_typed(sql!("database/standbys"), &[]).map_err(|e| describe(&e))?;
    let standby = |row: Row| Standby {
        name: row.get("name"),
        state: row.get("state"),
        sync_state: row.get("sync_state"),
        bytes_behind: row.get("bytes_behind"),
    };
    Ok(rows.into_iter().map(standby).collect())
}

fn stored(client: &mut Client) -> Result<Stored, String> {
    let row = one_row(client, sql!("stats/stored"))?;
    let mail_oldest: i64 = row.get("mail_oldest_seconds");
    Ok(Stored {
        bytes: row.get("bytes"),
        mail_waiting: row.get("mail_waiting"),
        mail_failed: row.get("mail_failed"),
        mail_oldest: Duration::from_secs(mail_oldest.try_into().unwrap_or_default()),
    })
}

impl ServerState {
    fn of(row: &Row) -> ServerState {
        ServerState {
            encoding: row.get("encoding"),
            address: row.get("address"),
            is_standby: row.get("is_standby"),
            is_read_only: row.get("is_read_only"),
            tls_version: row.get("tls_version"),
            available_connections: row.get("available_connections"),
            open_connections: row.get("open_connections"),
            settings_off: row.get("settings_off"),
            has_checksums: row.get("has_checksums"),
            awaited_standbys: row.get("awaited_standbys"),
            unused_slots: row.get("unused_slots"),
            trigram_version: row.get("trigram_version"),
            has_search_index: row.get("has_search_index"),
            amcheck_version: row.get("amcheck_version"),
        }
    }
}
