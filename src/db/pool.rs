//! The connection pool: a query costs one round trip, every wait is bounded, and dead connections are replaced without
//! failing a request.
//!
//! From top to bottom: [`Database`] waits for a place and takes a connection of the pool, [`DatabaseConnection`] is one
//! with its prepared statements, [`ConnectionFactory`] opens it for r2d2, and [`Connector`] connects as the settings
//! say. [`Health`] knows whether that succeeds.
//!
//! A restart of the database leaves a pool full of dead connections, and a client cannot tell that a connection is dead
//! before it uses it. Asking each time would cost a second round trip for every query. So a connection is checked only
//! if it has idled. If one is found dead, all older ones are replaced. A query that only reads is repeated once if its
//! connection dies under it.

use std::net::IpAddr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use postgres::fallible_iterator::FallibleIterator;
use postgres::{Client, Row, RowIter};
use r2d2_postgres::r2d2::{self, PooledConnection};
use uuid::Uuid;

use super::connection::{ConnectionFactory, DatabaseConnection, SqlParams, TypedParams};
use super::connector::Connector;
use super::deadline::Deadline;
use super::health::Health;
use super::postgres_error::{refuses_changes, translate};
use crate::body_memory::Room;
use crate::config::Config;
use crate::error::Error;
use crate::semaphore::{Permit, Semaphore};

/// A connection that has idled longer is checked before it is used. No server restarts faster than this.
const MAX_UNCHECKED_IDLE: Duration = Duration::from_millis(100);
/// Longest wait for the answer to an empty query; half the pool's timeout if that is less. After it the server counts
/// as one that hangs.
const MAX_CHECK: Duration = Duration::from_secs(1);
/// Longest pause between two attempts of r2d2 to open a connection, so the service is back that soon after an outage.
const MAX_RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Unused connections are closed after this time.
const MAX_IDLE: Duration = Duration::from_secs(600);
/// Most reads of thousands of rows that run at once; fewer in a small pool, so that they never take all its
/// connections.
const MAX_BULK_READS: usize = 2;
/// Connections that changes leave to reads, in a pool of at least twice as many.
const READ_CONNECTIONS: usize = 2;
/// Changes of one user that run at once. With two, the second is planned and sent while the first is committed.
const MAX_CHANGES_OF_USER: usize = 2;
/// How much longer than its request has left a statement may take, so that a request that has waited for nothing needs
/// no other statement timeout than the pool's, which would be a round trip to set.
const STATEMENT_SLACK: Duration = Duration::from_millis(250);

/// Access to the pool, through which every query runs: that of a request, see [`Database::for_request`], or one that
/// everything else shares.
pub struct Database {
    shared: Arc<Shared>,
    /// How long the request has waited for the database so far, in nanoseconds; `None` if this is no request's.
    spent: Option<AtomicU64>,
    /// The room that each query takes before it runs, and how many bytes that is.
    room: Option<(Arc<Room>, usize)>,
    /// The user whose changes these are.
    user: Option<Uuid>,
    /// For the events that the statements of changes write: the signed-in account, the client's address, and the value
    /// of `X-Request-ID`. Statements about one's own account or files take the account from their rows instead.
    pub actor: Option<Uuid>,
    pub address: Option<IpAddr>,
    pub request_id: Option<Uuid>,
}

/// The pool and its limits, which all threads share.
struct Shared {
    pool: r2d2::Pool<ConnectionFactory>,
    /// One permit for each connection. r2d2 wakes waiting threads in no particular order; the semaphore serves them in
    /// the order in which they came.
    permits: Arc<Semaphore>,
    /// One permit for each change that may run at the same time. If something locks a table, changes to it wait with
    /// a connection each, and without a bound they would stop every read too.
    write_permits: Arc<Semaphore>,
    /// The permits of a user for changes. Most of them lock the user's row, so without a bound they would wait for each
    /// other with a permit of all users each.
    user_permits: Arc<Semaphore<Uuid>>,
    /// One permit for each read of thousands of rows that may run at the same time.
    bulk_permits: Arc<Semaphore>,
    /// Limit of the wait for a connection and of the statement together; those of all queries of a request.
    timeout: Duration,
    health: Arc<Health>,
}

impl Database {
    /// Creates a pool of connections for these settings. It begins with `first`, if that is given, and opens others
    /// when they are first needed.
    pub fn new(
        connector: Connector,
        first: Option<(Client, Deadline)>,
        settings: &Config,
    ) -> Database {
        let (size, timeout) = (settings.database_pool_size, settings.database_timeout);
        let health = Arc::new(Health::new(connector.server()));
        let first = Mutex::new(first);
        let factory = ConnectionFactory { connector, first, timeout, health: health.clone() };
        let pool = r2d2::Pool::builder()
            .max_size(size)
            // A connection in reserve would be opened while the service starts, and delay it.
            .min_idle(Some(0))
            .max_lifetime(None)
            .idle_timeout(Some(MAX_IDLE))
            // r2d2 pauses up to half of this between two attempts. It limits no wait: each check-out passes its own.
            .connection_timeout(2 * MAX_RECONNECT_PAUSE)
            // r2d2's own check would be a round trip before every query.
            .test_on_check_out(false)
            // The factory notes failures. r2d2 tries again by itself.
            .error_handler(Box::new(r2d2::NopErrorHandler))
            .build_unchecked(factory);
        let size = size as usize;
        let reserved = if size >= 2 * READ_CONNECTIONS { READ_CONNECTIONS } else { 0 };
        let shared = Shared {
            pool,
            permits: Semaphore::new(size),
            write_permits: Semaphore::new(size - reserved),
            user_permits: Semaphore::new(MAX_CHANGES_OF_USER),
            bulk_permits: Semaphore::new(MAX_BULK_READS.min(size - 1).max(1)),
            timeout,
            health,
        };
        Database::of(Arc::new(shared))
    }

    fn of(shared: Arc<Shared>) -> Database {
        let (spent, room, user) = (None, None, None);
        Database { shared, spent, room, user, actor: None, address: None, request_id: None }
    }

    /// A handle for one request. Its queries share a single time budget: the statement timeout. Only the time that the
    /// request waits for the database counts, not the time in which it waits for its client or hashes a password.
    pub fn for_request(&self, address: IpAddr, request_id: Uuid) -> Database {
        let (address, request_id) = (Some(address), Some(request_id));
        let spent = Some(AtomicU64::new(0));
        Database { spent, address, request_id, ..Database::of(self.shared.clone()) }
    }

    /// The same for queries of the request with large results. Each takes this room for its rows and for what is made
    /// of them, once it has a connection. If it must wait for room, it gives the connection back meanwhile, and its
    /// place is then the first in the queue.
    pub fn with_room(&self, room: Option<(Arc<Room>, usize)>) -> Database {
        let spent = self.spent.as_ref().map(|spent| AtomicU64::new(spent.load(Relaxed)));
        Database { shared: self.shared.clone(), spent, room, ..*self }
    }

    /// Ends all waits for the changes of a user. From now on a change has its turn at once or not at all.
    pub fn close_turns(&self) {
        self.shared.user_permits.close();
    }

    /// Says whose changes those of the request are. Of one user's at most [`MAX_CHANGES_OF_USER`] run at once, and the
    /// others wait in the order in which they came, without a connection.
    pub fn changes_are_of(&mut self, user: Uuid) {
        self.user = Some(user);
    }

    /// Runs `work`, which waits for the database, and counts its time for the request. It is given the time by which
    /// the request should be done with waiting. Calls may be nested.
    pub fn timed<T>(&self, work: impl FnOnce(Instant) -> T) -> T {
        let began = Instant::now();
        // Relaxed: a request has one thread, and the number guards no other memory.
        let spent = self.spent.as_ref().map_or(0, |spent| spent.load(Relaxed));
        let left = self.shared.timeout.saturating_sub(Duration::from_nanos(spent));
        let outcome = work(began + left);
        if let Some(total) = &self.spent {
            total.store(spent + began.elapsed().as_nanos() as u64, Relaxed);
        }
        outcome
    }

    /// The timeout of a statement that should end by `deadline` and may take `limit`.
    fn statement_time(&self, deadline: Instant, limit: Duration) -> Duration {
        let left = deadline.saturating_duration_since(Instant::now());
        if left + STATEMENT_SLACK < limit { left } else { limit }
    }

    /// Runs a query that changes nothing. It is run once more if its connection turns out to be dead.
    pub fn read(&self, sql: &'static str, params: SqlParams) -> Result<Vec<Row>, Error> {
        self.read_within(self.shared.timeout, sql, params)
    }

    /// Like [`Database::read`], but may take no longer than `limit`.
    pub fn read_within(
        &self,
        limit: Duration,
        sql: &'static str,
        params: SqlParams,
    ) -> Result<Vec<Row>, Error> {
        self.read_on_connection(limit.min(self.shared.timeout), |connection, time| {
            connection.query(sql, params, time)
        })
    }

    /// Like [`Database::read`], but PostgreSQL plans the query for these parameters, in the same round trip. For
    /// queries with optional filters: a prepared plan has to fit all values, and so uses no index. The statement may
    /// take `timeout`, if that is given.
    pub fn read_unprepared(
        &self,
        sql: &'static str,
        params: TypedParams,
        timeout: Option<Duration>,
    ) -> Result<Vec<Row>, Error> {
        self.read_on_connection(self.shared.timeout, |connection, time| {
            connection.query_unprepared(sql, params, timeout.unwrap_or(time), |rows| rows.collect())
        })
    }

    /// Like [`Database::read_unprepared`], for queries of thousands of rows. `take` gets the rows while they arrive,
    /// and is called anew if the query is repeated. It should not wait for anything else, because it holds the
    /// connection. Only a few of these queries run at a time, because otherwise they could take all connections. Fails
    /// with [`Error::TimedOut`] if the wait for the others or the statement is not over by `deadline`.
    pub fn read_bulk<T>(
        &self,
        sql: &'static str,
        params: TypedParams,
        deadline: Instant,
        take: impl Fn(RowIter) -> Result<T, postgres::Error>,
    ) -> Result<T, Error> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let _permit = self.shared.bulk_permits.acquire((), left()).ok_or(Error::TimedOut)?;
        // Whole seconds, so that the batches of an export have the same timeout, which then is set only once.
        let timeout = Duration::from_secs(left().as_secs() + 1);
        self.read_on_connection(self.shared.timeout, |connection, _| {
            connection.query_unprepared(sql, params, timeout, &take)
        })
    }

    /// Runs `query` on a connection, and once more on another one if the first turns out to be dead. The query is given
    /// its statement timeout. Both waits for a connection end within `limit`.
    fn read_on_connection<T>(
        &self,
        limit: Duration,
        query: impl Fn(&mut DatabaseConnection, Duration) -> Result<T, postgres::Error>,
    ) -> Result<T, Error> {
        self.timed(|deadline| {
            let deadline = deadline.min(Instant::now() + limit);
            let run = |connection: &mut DatabaseConnection| {
                query(connection, self.statement_time(deadline, limit))
            };
            let mut checked_out = self.check_out(deadline)?;
            let connection = &mut checked_out.connection;
            let error = match run(connection) {
                Err(error) if connection.is_dead => error,
                outcome => return outcome.map_err(|error| translate(&error)),
            };
            let opened_at = connection.opened_at;
            self.shared.health.retire_older(opened_at);
            drop(checked_out);
            let note = |_: &Error| self.shared.health.note_broken(opened_at, &error);
            let connection = &mut self.check_out(deadline).inspect_err(note)?.connection;
            run(connection).map_err(|error| self.failure(connection, &error, Error::Unavailable))
        })
    }

    /// Runs a query that changes something, once. Fails with [`Error::OutcomeUnknown`] if the connection dies under
    /// it: the server may have made the change or not, so repeating it could make it twice.
    pub fn write(&self, sql: &'static str, params: SqlParams) -> Result<Vec<Row>, Error> {
        self.write_of(self.user, sql, params)
    }

    /// Like [`Database::write`], for a query that makes changes of several users, and waits for the locks of none.
    pub fn write_of_many(&self, sql: &'static str, params: SqlParams) -> Result<Vec<Row>, Error> {
        self.write_of(None, sql, params)
    }

    fn write_of(
        &self,
        user: Option<Uuid>,
        sql: &'static str,
        params: SqlParams,
    ) -> Result<Vec<Row>, Error> {
        self.timed(|deadline| {
            let (_permits, mut checked_out) = self.check_out_for_change(user, deadline)?;
            let connection = &mut checked_out.connection;
            let timeout = self.statement_time(deadline, self.shared.timeout);
            let outcome = connection.query(sql, params, timeout);
            outcome.map_err(|error| self.failure(connection, &error, Error::OutcomeUnknown))
        })
    }

    /// Runs `work`, such as a transaction, once on one connection. It may take `timeout`, and so may each of its
    /// statements.
    pub fn run<T>(
        &self,
        timeout: Duration,
        work: impl FnOnce(&mut Client) -> Result<T, postgres::Error>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + self.shared.timeout;
        let (_permits, mut checked_out) = self.check_out_for_change(self.user, deadline)?;
        let connection = &mut checked_out.connection;
        let outcome = connection.run(timeout, |this| work(&mut this.client));
        outcome.map_err(|error| self.failure(connection, &error, Error::Unavailable))
    }

    /// Translates the error of a query that is not repeated. It is `if_dead` if the connection died under the query.
    fn failure(
        &self,
        connection: &DatabaseConnection,
        error: &postgres::Error,
        if_dead: Error,
    ) -> Error {
        if refuses_changes(error) {
            self.shared.health.note_refusal();
        }
        if !connection.is_dead {
            return translate(error);
        }
        self.shared.health.note_broken(connection.opened_at, error);
        if_dead
    }

    /// Takes a connection for a change of `user`, and the permits for it, which must be dropped last. The user's comes
    /// first, so that whoever waits for that takes nothing from others.
    fn check_out_for_change(
        &self,
        user: Option<Uuid>,
        deadline: Instant,
    ) -> Result<(ChangePermits, CheckedOut), Error> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let own = |user| self.shared.user_permits.acquire(user, left()).ok_or(Error::Unavailable);
        let own = user.map(own).transpose()?;
        let permit = self.shared.write_permits.acquire((), left()).ok_or(Error::Unavailable)?;
        Ok(((permit, own), self.check_out(deadline)?))
    }

    /// Takes a connection that is probably alive, and the room if this is a database with room. Fails with
    /// [`Error::Unavailable`] if there is no connection by `deadline`, or no room within a second.
    fn check_out(&self, deadline: Instant) -> Result<CheckedOut, Error> {
        let left = deadline.saturating_duration_since(Instant::now());
        let connection = self.connect(self.shared.permits.acquire((), left), deadline)?;
        let Some((room, bytes)) = &self.room else { return Ok(connection) };
        if room.try_resize(*bytes) {
            return Ok(connection);
        }
        drop(connection);
        room.resize(*bytes)?;
        let left = deadline.saturating_duration_since(Instant::now());
        self.connect(self.shared.permits.acquire_first((), left), deadline)
    }

    /// Takes a connection for the holder of a permit.
    fn connect(&self, permit: Option<Permit>, deadline: Instant) -> Result<CheckedOut, Error> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let permit = permit.ok_or(Error::Unavailable)?;
        loop {
            let left = left();
            let mut connection =
                self.shared.pool.get_timeout(left).map_err(|_| Error::Unavailable)?;
            if self.shared.health.is_retired(connection.opened_at) {
                // The pool drops it.
                connection.is_dead = true;
                continue;
            }
            if connection.used_at.elapsed() < MAX_UNCHECKED_IDLE
                || self.answers(&mut connection, left)
            {
                return Ok(CheckedOut { connection, _permit: permit });
            }
        }
    }

    /// Checks a connection for at most `left`, and returns whether it lives. If not, all older ones are replaced: after
    /// a restart they are dead too, and if the server hangs, they are not worth the wait, and another host may answer.
    fn answers(&self, connection: &mut DatabaseConnection, left: Duration) -> bool {
        let limit = MAX_CHECK.min(self.shared.timeout / 2);
        let began = Instant::now();
        match connection.check(limit.min(left)) {
            Ok(()) => true,
            Err(error) => {
                if began.elapsed() >= limit {
                    self.shared.health.note_broken(connection.opened_at, &error);
                } else {
                    self.shared.health.retire_older(connection.opened_at);
                }
                false
            }
        }
    }

    /// Whether the database could not be reached at any time since `begin`. If so, the log has the cause already, and
    /// work that failed for it needs no line of its own.
    pub fn was_lost_since(&self, begin: Instant) -> bool {
        self.shared.health.was_lost_since(begin)
    }

    /// Whether the server refused a change lately because it refuses all of them.
    pub fn refuses_changes(&self) -> bool {
        self.shared.health.refuses_changes()
    }

    /// Most connections that may be open.
    pub fn max_open(&self) -> usize {
        self.shared.pool.max_size() as usize
    }

    /// Number of connections that are in use.
    pub fn in_use(&self) -> usize {
        self.shared.permits.in_use()
    }

    /// Number of connections, used or idle.
    pub fn open(&self) -> usize {
        self.shared.pool.state().connections as usize
    }

    /// Number of threads that wait for a connection.
    pub fn waiting(&self) -> usize {
        let Shared { permits, write_permits, user_permits, .. } = &*self.shared;
        permits.waiting() + write_permits.waiting() + user_permits.waiting()
    }
}

/// The permits of a change: one of all, and one of its user.
type ChangePermits = (Permit, Option<Permit<Uuid>>);

/// A connection in use. The order of the fields matters: the connection goes back to the pool before the permit is
/// passed on, so that the thread that gets the permit finds a connection.
struct CheckedOut {
    connection: PooledConnection<ConnectionFactory>,
    _permit: Permit,
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
        let settings = Config { database_pool_size: 1, ..Config::of_test_database() };
        let connector = Connector::new(&settings).expect("a connector");
        let db = Database::new(connector, None, &settings);
        // A write, because a read would be repeated if its connection died.
        let process = || {
            let rows = db.write("SELECT pg_backend_pid() AS id", &[]).expect("an answer");
            rows.first().expect("a row").get::<_, i32>("id")
        };
        // In UTC this is in the year 10000. The client library panics over it, halfway through a message.
        let unwritable = datetime!(9999-12-31 23:59:59 -01:00);
        let sql = "SELECT $1::timestamptz";
        let attempts: [&dyn Fn() -> Result<Vec<Row>, Error>; 3] =
            [&|| db.read(sql, &[&unwritable]), &|| db.write(sql, &[&unwritable]), &|| {
                db.read_unprepared(sql, &[(&unwritable, Type::TIMESTAMPTZ)], None)
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
