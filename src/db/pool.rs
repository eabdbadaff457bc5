//! The connection pool: a query costs one round trip, every wait is bounded, and dead connections are replaced without
//! failing a request.
//!
//! From top to bottom: [`Pool`] waits for a permit and takes a connection, [`DatabaseConnection`] is one
//! with its prepared statements, [`ConnectionFactory`] opens it for r2d2, and [`Connector`] connects as the settings
//! say. [`Health`] knows whether that succeeds.
//!
//! A restart of the database leaves a pool full of dead connections, and a client cannot tell that a connection is dead
//! before it uses it. Asking each time would cost a second round trip for every query. So a connection is checked only
//! if it has idled. If one is found dead, all older ones are replaced. A query that only reads is repeated once if its
//! connection dies under it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use postgres::Client;
use r2d2_postgres::r2d2::{self, PooledConnection};
use uuid::Uuid;

use super::connection::{ConnectionFactory, DatabaseConnection};
use super::connector::Connector;
use super::deadline::Deadline;
use super::health::Health;
use super::sql;
use crate::body_memory::Room;
use crate::config::Config;
use crate::error::Error;
use crate::semaphore::{Permit, Rank, Semaphore};

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

/// The pool and its limits, which all threads share.
pub struct Pool {
    connections: r2d2::Pool<ConnectionFactory>,
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
    pub bulk_permits: Arc<Semaphore>,
    /// Limit of the wait for a connection and of the statement together; those of all queries of a request.
    pub timeout: Duration,
    pub health: Arc<Health>,
    connector: Arc<Connector>,
}

/// The room that a query takes before it runs, and how many bytes that is.
pub type TakenRoom = (Arc<Room>, usize);

impl Pool {
    /// Creates a pool of connections for these settings. It begins with `first`, if that is given, and opens others
    /// when they are first needed.
    pub fn new(
        connector: Connector,
        first: Option<(Client, Deadline)>,
        settings: &Config,
    ) -> Arc<Pool> {
        let (size, timeout) = (settings.database_pool_size, settings.database_timeout);
        let health = Arc::new(Health::new(connector.server()));
        let (connector, first) = (Arc::new(connector), Mutex::new(first));
        let factory = ConnectionFactory {
            connector: connector.clone(),
            first,
            timeout,
            health: health.clone(),
        };
        let connections = r2d2::Pool::builder()
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
        Arc::new(Pool {
            connections,
            permits: Semaphore::new(Rank::Connection, size),
            write_permits: Semaphore::new(Rank::Change, size - reserved),
            user_permits: Semaphore::new(Rank::UserChange, MAX_CHANGES_OF_USER),
            bulk_permits: Semaphore::new(Rank::BulkRead, MAX_BULK_READS.min(size - 1).max(1)),
            timeout,
            health,
            connector,
        })
    }

    /// Ends all waits for the changes of a user. From now on a change gets its permit at once or not at all.
    pub fn close_changes(&self) {
        self.user_permits.close();
    }

    /// Takes a connection for a change of `user`, and the permits for it, which must be dropped last. The user's comes
    /// first, so that whoever waits for that takes nothing from others.
    pub fn check_out_for_change(
        &self,
        user: Option<Uuid>,
        room: Option<&TakenRoom>,
        deadline: Instant,
    ) -> Result<(ChangePermits, CheckedOut), Error> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let own = |user| self.user_permits.acquire(user, left()).ok_or(Error::Unavailable);
        let own = user.map(own).transpose()?;
        let permit = self.write_permits.acquire((), left()).ok_or(Error::Unavailable)?;
        Ok(((permit, own), self.check_out(room, deadline)?))
    }

    /// Takes a connection that is probably alive, and then the room, if there is one to take. Fails with
    /// [`Error::Unavailable`] if there is no connection by `deadline`, or no room within a second.
    pub fn check_out(
        &self,
        room: Option<&TakenRoom>,
        deadline: Instant,
    ) -> Result<CheckedOut, Error> {
        let left = deadline.saturating_duration_since(Instant::now());
        let connection = self.connect(self.permits.acquire((), left), deadline)?;
        let Some((room, bytes)) = room else { return Ok(connection) };
        if room.try_resize(*bytes) {
            return Ok(connection);
        }
        drop(connection);
        room.resize(*bytes)?;
        let left = deadline.saturating_duration_since(Instant::now());
        self.connect(self.permits.acquire_first((), left), deadline)
    }

    /// Takes a connection for the holder of a permit.
    fn connect(&self, permit: Option<Permit>, deadline: Instant) -> Result<CheckedOut, Error> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let permit = permit.ok_or(Error::Unavailable)?;
        loop {
            let left = left();
            let mut connection =
                self.connections.get_timeout(left).map_err(|_| Error::Unavailable)?;
            if self.health.is_retired(connection.opened_at) {
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
        let limit = MAX_CHECK.min(self.timeout / 2);
        let began = Instant::now();
        match connection.check(limit.min(left)) {
            Ok(()) => true,
            Err(error) => {
                if began.elapsed() >= limit {
                    self.health.note_broken(connection.opened_at, &error);
                } else {
                    self.health.retire_older(connection.opened_at);
                }
                false
            }
        }
    }

    /// Whether the database could not be reached at any time since `begin`. If so, the log has the cause already, and
    /// work that failed for it needs no line of its own.
    pub fn was_lost_since(&self, begin: Instant) -> bool {
        self.health.was_lost_since(begin)
    }

    /// Whether the server refused a change lately because it refuses all of them.
    pub fn refuses_changes(&self) -> bool {
        self.health.refuses_changes()
    }

    /// Replaces all connections if their server has become read-only and another of several hosts takes changes, as
    /// after a planned change of roles in which the former primary goes on to serve reads. Otherwise they stay: reads
    /// go on, and new connections would be no better. Does nothing unless a change was refused lately.
    pub fn leave_read_only_server(&self) -> Result<(), Error> {
        if !self.refuses_changes() || !self.connector.has_several_hosts() {
            return Ok(());
        }
        // The other host may take its time to answer, so nothing is checked out by then.
        let (opened_at, used) = {
            let mut used = self.check_out(None, Instant::now() + self.timeout)?;
            let connection = &mut used.connection;
            let is_read_only = connection.run(self.timeout, |it| is_read_only(&mut it.client));
            (connection.opened_at, is_read_only)
        };
        let other = || is_read_only(&mut self.connector.connect(self.timeout)?.0);
        if matches!(used, Ok(true)) && matches!(other(), Ok(false)) {
            log::warn!("another host of {} takes changes now", self.connector.server());
            self.health.retire_older(opened_at);
        }
        Ok(())
    }

    /// Most connections that may be open.
    pub fn max_open(&self) -> usize {
        self.connections.max_size() as usize
    }

    /// Number of connections that are in use.
    pub fn in_use(&self) -> usize {
        self.permits.in_use()
    }

    /// Number of connections, used or idle.
    pub fn open(&self) -> usize {
        self.connections.state().connections as usize
    }

    /// Number of threads that wait for a connection.
    pub fn waiting(&self) -> usize {
        let Pool { permits, write_permits, user_permits, .. } = self;
        permits.waiting() + write_permits.waiting() + user_permits.waiting()
    }
}

/// Whether the server takes no changes, because it is a standby or was made read-only.
fn is_read_only(client: &mut Client) -> Result<bool, postgres::Error> {
    Ok(client.query_one(sql!("db/database/ping"), &[])?.get("is_read_only"))
}

/// The permits of a change: one of all, and one of its user.
pub type ChangePermits = (Permit, Option<Permit<Uuid>>);

/// A connection in use. The order of the fields matters: the connection goes back to the pool before the permit is
/// passed on, so that the thread that gets the permit finds a connection.
pub struct CheckedOut {
    pub connection: PooledConnection<ConnectionFactory>,
    _permit: Permit,
}
