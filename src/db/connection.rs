//! One connection of the pool: its prepared statements, the deadlines of its queries, and how it is opened.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use postgres::types::{ToSql, Type};
use postgres::{Client, Row, RowIter, Statement};
use r2d2_postgres::r2d2::ManageConnection;

use super::connector::Connector;
use super::deadline::Deadline;
use super::health::Health;
use super::postgres_error::{is_connection_lost, is_stale_plan};
use crate::semaphore::lock;

/// How much longer than the statement timeout an answer may take before the server counts as gone. With the slack of
/// the pool it is a second.
const ANSWER_GRACE: Duration = Duration::from_millis(750);

/// Parameters of a query.
pub type SqlParams<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A parameter of a query that is planned for its values, with its type.
pub type TypedParam<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection and the statements prepared on it.
pub struct DatabaseConnection {
    pub client: Client,
    /// By [`key`].
    statements: HashMap<usize, Statement>,
    /// The current value of `statement_timeout` on the server.
    statement_timeout: Duration,
    deadline: Deadline,
    pub opened_at: Instant,
    /// When the last query ended, or when the connection was opened.
    pub used_at: Instant,
    /// Also true while a query runs, so that it stays true if the query panics.
    pub is_dead: bool,
}

impl DatabaseConnection {
    /// Runs a query that is prepared at its first use. `timeout` is its statement timeout.
    pub fn query(
        &mut self,
        sql: &'static str,
        params: SqlParams,
        timeout: Duration,
    ) -> Result<Vec<Row>, postgres::Error> {
        self.run_prepared(sql, timeout, |client, statement| client.query(statement, params))
    }

    /// Like [`DatabaseConnection::query`], but `read` is given each row when it arrives, while the server still looks
    /// for the next ones, so that they are never all in memory.
    pub fn query_rows<T>(
        &mut self,
        sql: &'static str,
        params: SqlParams,
        timeout: Duration,
        read: impl Fn(RowIter) -> Result<T, postgres::Error>,
    ) -> Result<T, postgres::Error> {
        self.run_prepared(sql, timeout, |client, statement| {
            read(client.query_raw(statement, params.iter().copied())?)
        })
    }

    /// Runs `query` with the statement of `sql`, and once more if its plan has become stale by a change of the schema.
    /// PostgreSQL says so before the first row.
    fn run_prepared<T>(
        &mut self,
        sql: &'static str,
        timeout: Duration,
        query: impl Fn(&mut Client, &Statement) -> Result<T, postgres::Error>,
    ) -> Result<T, postgres::Error> {
        self.run(timeout, |this| {
            let statement = this.prepare(sql)?;
            match query(&mut this.client, &statement) {
                Err(error) if is_stale_plan(&error) => {
                    this.statements.remove(&key(sql));
                    let statement = this.prepare(sql)?;
                    query(&mut this.client, &statement)
                }
                outcome => outcome,
            }
        })
    }

    /// Runs a query that is planned for its parameters.
    pub fn query_unprepared(
        &mut self,
        sql: &'static str,
        params: &[TypedParam],
        timeout: Duration,
    ) -> Result<Vec<Row>, postgres::Error> {
        self.run(timeout, |this| this.client.query_typed(sql, params))
    }

    /// Like [`DatabaseConnection::query_unprepared`], but `read` is given each row when it arrives.
    pub fn query_rows_unprepared<T>(
        &mut self,
        sql: &'static str,
        params: &[TypedParam],
        timeout: Duration,
        read: impl FnOnce(RowIter) -> Result<T, postgres::Error>,
    ) -> Result<T, postgres::Error> {
        self.run(timeout, |this| read(this.client.query_typed_raw(sql, params.iter().cloned())?))
    }

    /// Runs `query` with `timeout` as its statement timeout, and notes whether the connection survived. One on which
    /// `query` panics counts as dead: the client may have half a message in its buffer, which would garble the next.
    pub fn run<T>(
        &mut self,
        timeout: Duration,
        query: impl FnOnce(&mut DatabaseConnection) -> Result<T, postgres::Error>,
    ) -> Result<T, postgres::Error> {
        self.deadline.set(timeout + ANSWER_GRACE);
        self.is_dead = true;
        let outcome = self.set_timeouts(timeout).and_then(|()| query(self));
        self.used_at = Instant::now();
        self.is_dead = outcome
            .as_ref()
            .is_err_and(|error| self.client.is_closed() || is_connection_lost(error));
        outcome
    }

    /// Costs a round trip only if the last query on this connection had another timeout. No wait for a lock may take
    /// more than half of it: whatever locks a table for long is none of the service's own statements, so those that
    /// wait for it give up while others, which do not need the table, can still have their connections in time.
    fn set_timeouts(&mut self, timeout: Duration) -> Result<(), postgres::Error> {
        if self.statement_timeout != timeout {
            // 0 would mean no timeout.
            let millis = timeout.as_millis().max(1);
            let lock_millis = (millis / 2).max(1);
            self.client.batch_execute(&format!(
                "SET statement_timeout = {millis}; SET lock_timeout = {lock_millis}"
            ))?;
            self.statement_timeout = timeout;
        }
        Ok(())
    }

    /// Returns the statement of `sql`, which is prepared at its first use on this connection.
    fn prepare(&mut self, sql: &'static str) -> Result<Statement, postgres::Error> {
        if let Some(statement) = self.statements.get(&key(sql)) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(key(sql), statement.clone());
        Ok(statement)
    }

    /// Asks the server for an empty answer, which must come within `wait`.
    pub fn check(&mut self, wait: Duration) -> Result<(), postgres::Error> {
        self.deadline.set(wait);
        self.is_dead = true;
        let outcome = self.client.is_valid(wait);
        self.is_dead = outcome.is_err();
        outcome
    }
}

/// The key of a prepared statement: the address of its text, which is static. Cheaper than hashing the text.
fn key(sql: &'static str) -> usize {
    sql.as_ptr() as usize
}

/// Opens connections for r2d2 and tells it which ones to discard.
pub struct ConnectionFactory {
    pub connector: Arc<Connector>,
    /// A connection that is open already, until the pool asks for its first one.
    pub first: Mutex<Option<(Client, Deadline)>>,
    pub timeout: Duration,
    pub health: Arc<Health>,
}

impl ConnectionFactory {
    fn open(&self) -> Result<DatabaseConnection, postgres::Error> {
        let first = lock(&self.first).take();
        let (client, deadline) = match first {
            Some(connection) => connection,
            None => self.connector.connect(self.timeout)?,
        };
        deadline.set(self.timeout);
        let now = Instant::now();
        let mut connection = DatabaseConnection {
            client,
            statements: HashMap::new(),
            statement_timeout: Duration::MAX,
            deadline,
            opened_at: now,
            used_at: now,
            is_dead: false,
        };
        // A statement and not a start-up parameter, because connection poolers such as PgBouncer refuse unknown ones.
        connection.set_timeouts(self.timeout)?;
        Ok(connection)
    }
}

impl ManageConnection for ConnectionFactory {
    type Connection = DatabaseConnection;
    type Error = postgres::Error;

    fn connect(&self) -> Result<DatabaseConnection, postgres::Error> {
        let began = Instant::now();
        let outcome = self.open();
        self.health.note_attempt(began, outcome.as_ref().err());
        // Later than the end of an outage, if this attempt has ended one.
        let opened_at = Instant::now();
        outcome.map(|connection| DatabaseConnection { opened_at, ..connection })
    }

    fn is_valid(&self, connection: &mut DatabaseConnection) -> Result<(), postgres::Error> {
        connection.client.is_valid(self.timeout)
    }

    fn has_broken(&self, connection: &mut DatabaseConnection) -> bool {
        connection.is_dead || connection.client.is_closed()
    }
}
