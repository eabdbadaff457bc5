//! The handle through which every query runs: reads, which are repeated if their connection dies, and writes, which are
//! not; and the time that all queries of one request may wait together.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use postgres::{Client, Row};
use uuid::Uuid;

use super::connection::{DatabaseConnection, SqlParams, TypedParam};
use super::pool::{Pool, TakenRoom};
use super::postgres_error::{refuses_changes, translate};
use crate::error::Error;

/// How much longer than its request has left a statement may take, so that a request that has waited for nothing needs
/// no other statement timeout than the pool's, which would be a round trip to set.
const STATEMENT_SLACK: Duration = Duration::from_millis(250);

/// Access to the pool, through which every query runs: that of a request, see [`Database::for_request`], or one that
/// everything else shares.
pub struct Database {
    pub pool: Arc<Pool>,
    /// How long the request has waited for the database so far, in nanoseconds; `None` if this is no request's. All
    /// handles of a request share it.
    spent: Option<Arc<AtomicU64>>,
    /// The room that each query takes before it runs.
    room: Option<TakenRoom>,
    /// The user whose changes these are.
    user: Option<Uuid>,
    /// For the events that the statements of changes write: the signed-in account, the client's address, and the value
    /// of `X-Request-ID`. Statements about one's own account or files take the account from their rows instead.
    pub actor: Option<Uuid>,
    pub address: Option<IpAddr>,
    pub request_id: Option<Uuid>,
}

impl Database {
    /// Access for everything that is no request.
    pub fn of(pool: Arc<Pool>) -> Database {
        let (spent, room, user) = (None, None, None);
        Database { pool, spent, room, user, actor: None, address: None, request_id: None }
    }

    /// A handle for one request. Its queries share a single time budget: the statement timeout. Only the time that the
    /// request waits for the database counts, not the time in which it waits for its client or hashes a password.
    pub fn for_request(&self, address: IpAddr, request_id: Uuid) -> Database {
        let (address, request_id) = (Some(address), Some(request_id));
        let spent = Some(Arc::default());
        Database { spent, address, request_id, ..Database::of(self.pool.clone()) }
    }

    /// The same for queries of the request with large results. Each takes this room for its rows and for what is made
    /// of them, once it has a connection. If it must wait for room, it gives the connection back meanwhile, and its
    /// place is then the first in the queue.
    pub fn with_room(&self, room: Option<TakenRoom>) -> Database {
        Database { pool: self.pool.clone(), spent: self.spent.clone(), room, ..*self }
    }

    /// Says whose changes those of the request are. Of one user's only a few run at once, and the
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
        let left = self.pool.timeout.saturating_sub(Duration::from_nanos(spent));
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
        self.read_within(self.pool.timeout, sql, params)
    }

    /// Like [`Database::read`], but may take no longer than `limit`.
    pub fn read_within(
        &self,
        limit: Duration,
        sql: &'static str,
        params: SqlParams,
    ) -> Result<Vec<Row>, Error> {
        self.read_on_connection(limit.min(self.pool.timeout), |connection, time| {
            connection.query(sql, params, time)
        })
    }

    /// Like [`Database::read`], but PostgreSQL plans the query for these parameters, in the same round trip. For
    /// queries with optional filters: a prepared plan has to fit all values, and so uses no index. The statement may
    /// take `timeout`, if that is given.
    pub fn read_unprepared(
        &self,
        sql: &'static str,
        params: &[TypedParam],
        timeout: Option<Duration>,
    ) -> Result<Vec<Row>, Error> {
        self.read_on_connection(self.pool.timeout, |connection, time| {
            connection.query_unprepared(sql, params, timeout.unwrap_or(time))
        })
    }

    /// Runs a query that changes nothing and reads thousands of rows. `query` is given the timeout of its statement,
    /// and is called anew if it is repeated. Only a few of these queries run at a time, because otherwise they could
    /// take all connections. Fails with [`Error::TimedOut`] if the wait for the others or the statement is not over by
    /// `deadline`.
    pub fn read_bulk<T>(
        &self,
        deadline: Instant,
        query: impl Fn(&mut DatabaseConnection, Duration) -> Result<T, postgres::Error>,
    ) -> Result<T, Error> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let _permit = self.pool.bulk_permits.acquire((), left()).ok_or(Error::TimedOut)?;
        let limit = self.pool.timeout;
        let run = |timeout| self.read_on_connection(limit, |it, _| query(it, timeout));
        // At first with the timeout of other statements, because to set a longer one, and back, costs two round trips.
        match run(self.statement_time(deadline, limit)) {
            Err(Error::TimedOut) if !left().is_zero() => run(left()),
            outcome => outcome,
        }
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
            let mut checked_out = self.pool.check_out(self.room.as_ref(), deadline)?;
            let connection = &mut checked_out.connection;
            let error = match run(connection) {
                Err(error) if connection.is_dead => error,
                outcome => return outcome.map_err(|error| translate(&error)),
            };
            let opened_at = connection.opened_at;
            self.pool.health.retire_older(opened_at);
            drop(checked_out);
            let note = |_: &Error| self.pool.health.note_broken(opened_at, &error);
            let connection = &mut self
                .pool
                .check_out(self.room.as_ref(), deadline)
                .inspect_err(note)?
                .connection;
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

    /// Runs a query that notes something, such as the hour in which a token was used, beside a request that only reads:
    /// it goes on without the note where that cannot be stored. `what` is named in the log then.
    #[cfg(feature = "extras")]
    pub fn note(&self, sql: &'static str, params: SqlParams, what: &str) {
        let is_worth_trying = !self.pool.refuses_changes();
        if let Some(Err(error)) = is_worth_trying.then(|| self.write(sql, params)) {
            log::warn!("{what} was not stored: {}", error.cause());
        }
    }

    fn write_of(
        &self,
        user: Option<Uuid>,
        sql: &'static str,
        params: SqlParams,
    ) -> Result<Vec<Row>, Error> {
        self.timed(|deadline| {
            let (_permits, mut checked_out) =
                self.pool.check_out_for_change(user, self.room.as_ref(), deadline)?;
            let connection = &mut checked_out.connection;
            let timeout = self.statement_time(deadline, self.pool.timeout);
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
        let deadline = Instant::now() + self.pool.timeout;
        let (_permits, mut checked_out) =
            self.pool.check_out_for_change(self.user, self.room.as_ref(), deadline)?;
        let connection = &mut checked_out.connection;
        let outcome = connection.run(timeout, |this| work(&mut this.client));
        outcome.map_err(|error| self.failure(connection, &error, Error::Unavailable))
    }

    /// Translates the error of a query that is not repeated. It is `if_dead` if the connection died under the query. A
    /// server that refused it has changed nothing.
    fn failure(
        &self,
        connection: &DatabaseConnection,
        error: &postgres::Error,
        if_dead: Error,
    ) -> Error {
        if refuses_changes(error) {
            self.pool.health.note_refusal();
        }
        if !connection.is_dead {
            return translate(error);
        }
        self.pool.health.note_broken(connection.opened_at, error);
        if_dead
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::db::connector::Connector;
    use postgres::types::Type;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;
    use time::macros::datetime;

    #[test]
    fn all_handles_of_a_request_have_one_budget_of_time() {
        let settings = Config::of_test_database();
        let connector = Connector::new(&settings).expect("a connector");
        let pool = Pool::new(connector, None, &settings);
        let client = IpAddr::from([127, 0, 0, 1]);
        let request = Database::of(pool).for_request(client, Uuid::nil());
        let with_room = request.with_room(None);
        let spend = |db: &Database| db.timed(|_| thread::sleep(Duration::from_millis(20)));
        let left = |db: &Database| db.timed(|deadline| deadline - Instant::now());
        let full = settings.database_timeout;
        spend(&request);
        assert!(left(&with_room) <= full - Duration::from_millis(20));
        spend(&with_room);
        assert!(left(&request) <= full - Duration::from_millis(40));
    }

    #[test]
    fn a_connection_on_which_a_query_unwound_is_never_used_again() {
        let settings = Config { database_pool_size: 1, ..Config::of_test_database() };
        let connector = Connector::new(&settings).expect("a connector");
        let db = Database::of(Pool::new(connector, None, &settings));
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
            assert_eq!(db.pool.in_use(), 0);
        }
    }
}
