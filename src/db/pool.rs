//! The connection pool: a query costs one round trip, every wait is bounded, and dead connections are replaced without
//! failing a request.
//!
//! A restart of the database leaves a pool full of dead connections, and a client cannot tell that a connection is dead
//! before it uses it. Asking each time would cost a second round trip for every query. So a connection is checked only
//! when it has idled, or when another one was found dead since its last check; and a query that only reads is repeated
//! once where its connection dies under it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postgres::fallible_iterator::FallibleIterator;
use postgres::{Client, Row, RowIter};
use r2d2::PooledConnection;

use super::connector::Connector;
use super::deadline::Deadline;
use super::outage::Outage;
use super::pooled_connection::{ConnectionFactory, DatabaseConnection, SqlParams, TypedParams};
use super::postgres_error::{is_connection_lost, translate};
use crate::error::Error;
use crate::semaphore::{Permit, Semaphore};

/// A connection that has idled longer is checked before it is used. No server restarts faster than this.
const MAX_UNCHECKED_IDLE: Duration = Duration::from_millis(100);
/// A server that does not answer an empty query for this long hangs. Less where the timeout is short.
const MAX_CHECK: Duration = Duration::from_secs(1);
/// Longest pause between two attempts of r2d2 to open a connection. After an outage the service is back that soon.
const MAX_RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Unused connections are closed after this time.
const MAX_IDLE: Duration = Duration::from_secs(600);
/// Most reads of exports that run at once. Fewer where the pool is so small that they would take all its connections.
const MAX_EXPORT_READS: usize = 2;

/// The pool, through which every query runs. It is shared by all threads.
pub struct Database {
    pool: r2d2::Pool<ConnectionFactory>,
    /// One permit for each connection. r2d2 wakes waiting threads in no particular order; the semaphore serves them in
    /// the order in which they came.
    permits: Semaphore,
    /// One permit for each read of an export that may run at the same time.
    export_permits: Semaphore,
    /// Limit of the wait for a connection, and of each statement.
    timeout: Duration,
    /// Connections last checked before this moment are checked before their next use.
    suspect_before: Mutex<Instant>,
    outage: Arc<Outage>,
}

impl Database {
    /// Creates a pool of at most `size` connections. It begins with `first`, if that is given, and opens others when
    /// they are first needed.
    pub fn new(
        connector: Connector,
        first: Option<(Client, Deadline)>,
        size: u32,
        timeout: Duration,
    ) -> Database {
        let outage = Arc::new(Outage::new(connector.server()));
        let first = Mutex::new(first);
        let factory = ConnectionFactory { connector, first, timeout, outage: outage.clone() };
        let pool = r2d2::Pool::builder()
            .max_size(size)
            // A connection in reserve would be opened while the service starts, and delay it.
            .min_idle(Some(0))
            .max_lifetime(None)
            .idle_timeout(Some(MAX_IDLE))
            // Nothing but twice the longest pause between attempts: each check-out says how long it waits.
            .connection_timeout(2 * MAX_RECONNECT_PAUSE)
            // r2d2's own check would be a round trip before every query.
            .test_on_check_out(false)
            // The factory notes failures. r2d2 tries again by itself.
            .error_handler(Box::new(r2d2::NopErrorHandler))
            .build_unchecked(factory);
        let size = size as usize;
        Database {
            pool,
            permits: Semaphore::new(size),
            export_permits: Semaphore::new(MAX_EXPORT_READS.min(size - 1).max(1)),
            timeout,
            suspect_before: Mutex::new(Instant::now()),
            outage,
        }
    }

    /// Runs a query that changes nothing. It is run once more where its connection turns out to be dead.
    pub fn read(&self, sql: &'static str, params: SqlParams) -> Result<Vec<Row>, Error> {
        self.read_within(self.timeout, sql, params)
    }

    /// Like [`Database::read`], but neither the wait for a connection nor the statement may take more than `limit`.
    pub fn read_within(
        &self,
        limit: Duration,
        sql: &'static str,
        params: SqlParams,
    ) -> Result<Vec<Row>, Error> {
        let timeout = limit.min(self.timeout);
        self.read_with(timeout, |connection| connection.query(sql, params, timeout))
    }

    /// Like [`Database::read`], but PostgreSQL plans the query for these parameters, in the same round trip. For
    /// queries with optional filters: a plan that has to fit all values uses no index. The statement may take
    /// `timeout`; `None` is the pool's.
    pub fn read_planned(
        &self,
        sql: &'static str,
        params: TypedParams,
        timeout: Option<Duration>,
    ) -> Result<Vec<Row>, Error> {
        let timeout = timeout.unwrap_or(self.timeout);
        self.read_with(self.timeout, |connection| {
            connection.query_planned(sql, params, timeout, |rows| rows.collect())
        })
    }

    /// Like [`Database::read_planned`], for exports. `take` gets the rows while they arrive, and begins anew where the
    /// query is repeated. It should not wait for anything else, because it holds the connection. Only a few of these
    /// reads run at a time, because they read much, and otherwise could take all connections. Fails with
    /// [`Error::TimedOut`] where the wait for the others or the statement is not over by `deadline`.
    pub fn read_for_export<T>(
        &self,
        sql: &'static str,
        params: TypedParams,
        deadline: Instant,
        take: impl Fn(RowIter) -> Result<T, postgres::Error>,
    ) -> Result<T, Error> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let _permit = self.export_permits.acquire(left()).ok_or(Error::TimedOut)?;
        // Whole seconds, so that the batches of an export have the same timeout, which then is set only once.
        let timeout = Duration::from_secs(left().as_secs() + 1);
        self.read_with(self.timeout, |connection| {
            connection.query_planned(sql, params, timeout, &take)
        })
    }

    /// Runs `query` on a connection for which it waits for at most `wait`, and once more where that turns out to be dead.
    fn read_with<T>(
        &self,
        wait: Duration,
        query: impl Fn(&mut DatabaseConnection) -> Result<T, postgres::Error>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + wait;
        let mut checked_out = self.check_out(deadline)?;
        let connection = &mut checked_out.connection;
        match query(connection) {
            Err(_) if connection.is_dead => {
                self.suspect_older(connection);
                drop(checked_out);
                let checked_out = &mut self.check_out(deadline)?;
                query(&mut checked_out.connection).map_err(|error| self.failure(error))
            }
            outcome => outcome.map_err(|error| self.failure(error)),
        }
    }

    /// Runs a query that changes something, once. Fails with [`Error::OutcomeUnknown`] where the connection dies
    /// under it: the server may have made the change or not, so repeating it could make it twice.
    pub fn write(&self, sql: &'static str, params: SqlParams) -> Result<Vec<Row>, Error> {
        let mut checked_out = self.check_out(Instant::now() + self.timeout)?;
        let connection = &mut checked_out.connection;
        let outcome = connection.query(sql, params, self.timeout);
        outcome.map_err(|error| {
            if !connection.is_dead {
                return translate(error);
            }
            self.suspect_older(connection);
            self.outage.note_broken_connection(&error);
            Error::OutcomeUnknown
        })
    }

    /// Runs `work`, such as a transaction, once on one connection. It may take `timeout`, and so may each of its
    /// statements.
    pub fn run<T>(
        &self,
        timeout: Duration,
        work: impl FnOnce(&mut Client) -> Result<T, postgres::Error>,
    ) -> Result<T, Error> {
        let mut checked_out = self.check_out(Instant::now() + self.timeout)?;
        let outcome = checked_out.connection.run(timeout, |this| work(&mut this.client));
        outcome.map_err(|error| self.failure(error))
    }

    /// Translates the error of a query that is not repeated.
    fn failure(&self, error: postgres::Error) -> Error {
        if is_connection_lost(&error) {
            self.outage.note_broken_connection(&error);
            return Error::Unavailable;
        }
        translate(error)
    }

    /// Takes a connection that is probably alive. Fails with [`Error::Unavailable`] where there is
    /// none by `deadline`.
    fn check_out(&self, deadline: Instant) -> Result<CheckedOut<'_>, Error> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let permit = self.permits.acquire(left()).ok_or(Error::Unavailable)?;
        loop {
            let left = left();
            let mut connection = self.pool.get_timeout(left).map_err(|_| Error::Unavailable)?;
            if self.outage.distrusts_connections() {
                connection.is_dead = true;
                continue;
            }
            if self.is_trusted(&connection) || self.answers(&mut connection, left) {
                return Ok(CheckedOut { connection, permit });
            }
            self.suspect_older(&connection);
        }
    }

    /// Checks a connection for at most `left`. If the server seems to hang, no other connection to it is worth the
    /// wait: all are replaced, perhaps by connections to another host.
    fn answers(&self, connection: &mut DatabaseConnection, left: Duration) -> bool {
        let limit = MAX_CHECK.min(self.timeout / 2);
        let began = Instant::now();
        match connection.check(limit.min(left)) {
            Ok(()) => true,
            Err(error) => {
                if began.elapsed() >= limit {
                    self.outage.note_broken_connection(&error);
                }
                false
            }
        }
    }

    fn is_trusted(&self, connection: &DatabaseConnection) -> bool {
        let suspect_before = *self.suspect_before.lock().unwrap_or_else(PoisonError::into_inner);
        connection.checked_at > suspect_before && connection.used_at.elapsed() < MAX_UNCHECKED_IDLE
    }

    /// Notes that `dead` was found dead: every connection last checked before now is checked before its next use,
    /// because a restart of the database kills all of them. A connection that was already suspect changes nothing.
    fn suspect_older(&self, dead: &DatabaseConnection) {
        let mut suspect_before = self.suspect_before.lock().unwrap_or_else(PoisonError::into_inner);
        if dead.checked_at > *suspect_before {
            *suspect_before = Instant::now();
        }
    }

    /// Whether the database could not be reached at any time since `begin`. If so, the log has the cause already, and
    /// work that failed for it needs no line of its own.
    pub fn was_lost_since(&self, begin: Instant) -> bool {
        self.outage.was_lost_since(begin)
    }

    /// Most connections that may be open.
    pub fn max_open(&self) -> usize {
        self.pool.max_size() as usize
    }

    /// Number of connections that are in use.
    pub fn in_use(&self) -> usize {
        self.permits.in_use()
    }

    /// Number of connections, used or idle.
    pub fn open(&self) -> usize {
        self.pool.state().connections as usize
    }

    /// Number of threads that wait for a connection.
    pub fn waiting(&self) -> usize {
        self.permits.waiting()
    }
}

/// A connection in use. The order of the fields matters: the connection goes back to the pool before the permit is
/// passed on, so that the thread that gets the permit finds a connection.
struct CheckedOut<'a> {
    connection: PooledConnection<ConnectionFactory>,
    #[expect(dead_code, reason = "held until it is dropped, never read")]
    permit: Permit<'a>,
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;
    use postgres::types::Type;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use time::macros::datetime;

    #[test]
    fn a_connection_on_which_a_query_unwound_is_never_used_again() {
        let connector = Connector::new(&crate::config::Config::of_test_database());
        let db = Database::new(connector.expect("a connector"), None, 1, Duration::from_secs(30));
        // A write, because a read would be repeated where its connection dies.
        let process = || {
            let rows = db.write("SELECT pg_backend_pid() AS id", &[]).expect("an answer");
            rows.first().expect("a row").get::<_, i32>("id")
        };
        // In UTC this is in the year 10000. The client library panics over it, halfway through a message.
        let unwritable = datetime!(9999-12-31 23:59:59 -01:00);
        let sql = "SELECT $1::timestamptz";
        let attempts: [&dyn Fn() -> Result<Vec<Row>, Error>; 3] =
            [&|| db.read(sql, &[&unwritable]), &|| db.write(sql, &[&unwritable]), &|| {
                db.read_planned(sql, &[(&unwritable, Type::TIMESTAMPTZ)], None)
            }];
        for attempt in attempts {
            let before = process();
            assert_eq!(process(), before, "the pool has one connection");
            assert!(catch_unwind(AssertUnwindSafe(attempt)).is_err(), "it panics");
            assert_ne!(process(), before);
            assert_eq!(db.in_use(), 0);
        }
    }
}
