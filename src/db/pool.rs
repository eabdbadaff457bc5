//! The pool: a query costs one round trip, waits are bounded, and connections that died are
//! replaced without failing a request.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, Row, Statement};
use r2d2::{ManageConnection, PooledConnection};
use r2d2_postgres::PostgresConnectionManager;

use super::tls::{Deadline, Linker};
use crate::error::{Error, Unique};
use crate::semaphore::{Permit, Semaphore};

/// A connection that idled longer is checked before it is used. A server cannot restart faster.
const TRUSTED_IDLE: Duration = Duration::from_millis(100);
/// How much longer than the statement timeout an answer may take before the server counts as gone.
const GRACE: Duration = Duration::from_secs(1);

/// Parameters of a query.
pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Parameters of a query that is planned for them, with their types.
pub type TypedParams<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// The database, as store modules see it.
pub struct Database {
    pool: r2d2::Pool<Connections>,
    /// As many as connections: the pool itself wakes those who wait in no order.
    permits: Semaphore,
    wait: Duration,
    /// Connections opened before this moment are not trusted without a check.
    suspect_before: Mutex<Instant>,
}

impl Database {
    /// A pool that opens connections as they are needed.
    pub fn new(
        config: Config,
        linker: Linker,
        size: u32,
        wait: Duration,
    ) -> Result<Database, String> {
        let pool = r2d2::Pool::builder()
            .max_size(size)
            .min_idle(Some(1))
            .max_lifetime(None)
            .idle_timeout(Some(Duration::from_secs(600)))
            .connection_timeout(wait)
            .test_on_check_out(false)
            .error_handler(Box::new(LogErrors))
            .build_unchecked(Connections { config, linker, wait });
        Ok(Database {
            pool,
            permits: Semaphore::new(size as usize),
            wait,
            suspect_before: Mutex::new(Instant::now()),
        })
    }

    /// Runs a query that changes nothing. Where its connection turns out dead it is asked once more.
    pub fn read(&self, sql: &'static str, params: Params) -> Result<Vec<Row>, Error> {
        self.ask(|connection| connection.query(sql, params, self.wait))
    }

    /// Like [`Database::read`], but planned anew for these parameters, in the same round trip, and it
    /// may take `wait`; the ordinary wait where there is none. For queries with optional filters, of
    /// which a plan for all values uses no index.
    pub fn read_planned(
        &self,
        sql: &'static str,
        params: TypedParams,
        wait: Option<Duration>,
    ) -> Result<Vec<Row>, Error> {
        let wait = wait.unwrap_or(self.wait);
        self.ask(|connection| connection.query_planned(sql, params, wait))
    }

    fn ask(
        &self,
        question: impl Fn(&mut Connection) -> Result<Vec<Row>, postgres::Error>,
    ) -> Result<Vec<Row>, Error> {
        let deadline = Instant::now() + self.wait;
        let mut checked_out = self.check_out(deadline)?;
        let connection = &mut checked_out.connection;
        match question(connection) {
            Err(_) if connection.broken => {
                self.retire(connection);
                drop(checked_out);
                question(&mut self.check_out(deadline)?.connection).map_err(meaning)
            }
            outcome => outcome.map_err(meaning),
        }
    }

    /// Runs a query that changes something, once. Where its connection dies under it, nobody knows
    /// what became of the change: [`Error::OutcomeUnknown`].
    pub fn write(&self, sql: &'static str, params: Params) -> Result<Vec<Row>, Error> {
        let mut checked_out = self.check_out(Instant::now() + self.wait)?;
        let connection = &mut checked_out.connection;
        let outcome = connection.query(sql, params, self.wait);
        let error = match outcome {
            Ok(rows) => return Ok(rows),
            Err(error) => error,
        };
        if connection.broken {
            self.retire(connection);
            log::warn!("database: {}", describe(&error));
            return Err(Error::OutcomeUnknown);
        }
        Err(meaning(error))
    }

    /// A connection that answered a moment ago. The first dead one makes all older ones suspect, so
    /// that after a restart of the database each is looked at once, not trusted for being fresh.
    fn check_out(&self, deadline: Instant) -> Result<CheckedOut<'_>, Error> {
        let left = deadline.saturating_duration_since(Instant::now());
        let permit = self.permits.acquire(left).ok_or(Error::Unavailable)?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut connection = self.pool.get_timeout(left).map_err(|_| Error::Unavailable)?;
            let suspect = connection.checked_at
                <= *self.suspect_before.lock().unwrap_or_else(PoisonError::into_inner);
            if !suspect && connection.used_at.elapsed() < TRUSTED_IDLE {
                return Ok(CheckedOut { connection, permit });
            }
            if connection.answers(left) {
                return Ok(CheckedOut { connection, permit });
            }
            self.retire(&connection);
        }
    }

    /// Connections that requests hold.
    pub fn in_use(&self) -> usize {
        self.permits.in_use()
    }

    /// Connections.
    pub fn open(&self) -> usize {
        self.pool.state().connections as usize
    }

    /// Requests that wait for a connection.
    pub fn waiting(&self) -> usize {
        self.permits.waiting()
    }

    fn retire(&self, dead: &Connection) {
        let mut suspect_before = self.suspect_before.lock().unwrap_or_else(PoisonError::into_inner);
        if dead.checked_at > *suspect_before {
            *suspect_before = Instant::now();
        }
    }
}

/// A connection, given back before the permit is passed on.
struct CheckedOut<'a> {
    connection: PooledConnection<Connections>,
    #[expect(dead_code, reason = "held, not looked at")]
    permit: Permit<'a>,
}

/// One connection and the statements prepared on it.
pub struct Connection {
    client: Client,
    /// By the address of the query's text, which is static.
    statements: HashMap<usize, Statement>,
    /// `statement_timeout` as it is set now.
    timeout: Duration,
    deadline: Deadline,
    checked_at: Instant,
    used_at: Instant,
    broken: bool,
}

impl Connection {
    fn query(
        &mut self,
        sql: &'static str,
        params: Params,
        wait: Duration,
    ) -> Result<Vec<Row>, postgres::Error> {
        self.timed(wait, |this| {
            let statement = this.prepared(sql)?;
            this.client.query(&statement, params)
        })
    }

    fn query_planned(
        &mut self,
        sql: &'static str,
        params: TypedParams,
        wait: Duration,
    ) -> Result<Vec<Row>, postgres::Error> {
        self.timed(wait, |this| this.client.query_typed(sql, params))
    }

    /// Runs `work` with `wait` as the statement timeout, and notes how the connection fared.
    fn timed<T>(
        &mut self,
        wait: Duration,
        work: impl FnOnce(&mut Connection) -> Result<T, postgres::Error>,
    ) -> Result<T, postgres::Error> {
        self.deadline.set(wait + GRACE);
        let outcome = self.limit_statements(wait).and_then(|()| work(self));
        self.used_at = Instant::now();
        if let Err(error) = &outcome {
            self.broken = self.client.is_closed() || is_gone(error);
        }
        outcome
    }

    /// Costs a round trip only where another kind of request used the connection before.
    fn limit_statements(&mut self, timeout: Duration) -> Result<(), postgres::Error> {
        if self.timeout != timeout {
            let millis = timeout.as_millis().max(1);
            self.client.batch_execute(&format!("SET statement_timeout = {millis}"))?;
            self.timeout = timeout;
        }
        Ok(())
    }

    /// Prepares `sql` at its first use on this connection.
    fn prepared(&mut self, sql: &'static str) -> Result<Statement, postgres::Error> {
        let key = sql.as_ptr() as usize;
        if let Some(statement) = self.statements.get(&key) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(key, statement.clone());
        Ok(statement)
    }

    fn answers(&mut self, wait: Duration) -> bool {
        self.deadline.set(wait);
        self.broken = self.client.is_valid(wait).is_err();
        self.checked_at = Instant::now();
        !self.broken
    }
}

/// Opens connections for the pool.
struct Connections {
    config: Config,
    linker: Linker,
    wait: Duration,
}

impl ManageConnection for Connections {
    type Connection = Connection;
    type Error = postgres::Error;

    fn connect(&self) -> Result<Connection, postgres::Error> {
        let deadline = Deadline::new(self.wait);
        let hook = self.linker.with_deadline(deadline.clone());
        let client = PostgresConnectionManager::new(self.config.clone(), hook).connect()?;
        let now = Instant::now();
        let mut connection = Connection {
            client,
            statements: HashMap::new(),
            timeout: Duration::MAX,
            deadline,
            checked_at: now,
            used_at: now,
            broken: false,
        };
        // Set here and not as a start-up parameter, which some proxies in between refuse.
        connection.limit_statements(self.wait)?;
        Ok(connection)
    }

    fn is_valid(&self, connection: &mut Connection) -> Result<(), postgres::Error> {
        connection.client.is_valid(self.wait)
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        connection.broken || connection.client.is_closed()
    }
}

/// The pool retries on its own; what it meets is worth a line.
#[derive(Debug)]
struct LogErrors;

impl r2d2::HandleError<postgres::Error> for LogErrors {
    fn handle_error(&self, error: postgres::Error) {
        log::warn!("database connection failed: {}", describe(&error));
    }
}

/// Whether the connection is of no more use: it failed, the server ended it, or it now leads to a
/// standby.
fn is_gone(error: &postgres::Error) -> bool {
    match error.code() {
        Some(code) => [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::READ_ONLY_SQL_TRANSACTION,
        ]
        .contains(code),
        None => {
            error.is_closed() || error.source().is_some_and(|source| source.is::<std::io::Error>())
        }
    }
}

/// Whether trying again later may help. Classes 08 and 53: connection failures, lack of resources.
pub fn is_unavailable(error: &postgres::Error) -> bool {
    let class = error.code().map_or("", |code| &code.code()[..2]);
    is_gone(error) || class == "08" || class == "53"
}

/// What an error of the database means to a request.
fn meaning(error: postgres::Error) -> Error {
    match error.as_db_error() {
        Some(db) if db.code() == &SqlState::UNIQUE_VIOLATION => match db.constraint() {
            Some("users_username_key") => Error::Taken(Unique::Username),
            Some("users_email_key") => Error::Taken(Unique::Email),
            constraint => Error::Internal(format!("unique violation of {constraint:?}")),
        },
        Some(db) if db.constraint() == Some("users_last_admin") => Error::LastAdmin,
        Some(db) if db.code() == &SqlState::QUERY_CANCELED => Error::TimedOut,
        _ if is_unavailable(&error) => {
            log::warn!("database: {}", describe(&error));
            Error::Unavailable
        }
        _ => Error::Internal(describe(&error)),
    }
}

/// The error without its details, which may hold values of a row.
pub fn describe(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{}: {} ({})", db.severity(), db.message(), db.code().code()),
        None => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
