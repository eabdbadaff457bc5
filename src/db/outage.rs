//! Whether the database can be reached, and the two log lines about an outage: one at its begin, one at its end.
//!
//! While a database is down, every request and every background task meets the same failure. Only this file logs it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::postgres_error::describe;

/// What the attempts to connect, and the connections that broke, tell about the database.
pub struct Outage {
    /// Host and port of the server, or of each of several.
    server: String,
    state: Mutex<State>,
    /// Whether connections from before the outage must not be used. See [`Outage::distrusts_connections`].
    distrusts_connections: AtomicBool,
}

struct State {
    is_lost: bool,
    /// When `is_lost` last changed.
    changed_at: Instant,
}

impl Outage {
    /// Creates it for a database that can be reached.
    pub fn new(server: String) -> Outage {
        Outage {
            server,
            state: Mutex::new(State { is_lost: false, changed_at: Instant::now() }),
            distrusts_connections: AtomicBool::new(false),
        }
    }

    /// Notes that a connection was opened, or why not, in an attempt that began at `began`. Attempts overlap, so one
    /// that began before the last change tells nothing new: a slow failure must not end what a success has shown.
    pub fn note_attempt(&self, began: Instant, failure: Option<&postgres::Error>) {
        let mut state = self.lock();
        if began < state.changed_at {
            return;
        }
        match failure {
            Some(error) => self.lose(&mut state, error),
            None if state.is_lost => {
                let seconds = state.changed_at.elapsed().as_secs_f64().round();
                log::info!("the database at {} is back after {seconds} s", self.server);
                *state = State { is_lost: false, changed_at: Instant::now() };
                self.distrusts_connections.store(false, Ordering::Relaxed);
            }
            None => {}
        }
    }

    /// Notes that a connection, which was opened at `opened`, broke under a query that could not be repeated, or that
    /// it hangs. Whether the database is down, the next attempt to connect shows. One from before an outage that is
    /// over tells nothing new: where a server hangs, its connections break later than others are opened.
    pub fn note_broken_connection(&self, opened: Instant, error: &postgres::Error) {
        let mut state = self.lock();
        if !state.is_lost && opened < state.changed_at {
            return;
        }
        self.distrusts_connections.store(true, Ordering::Relaxed);
        self.lose(&mut state, error);
    }

    fn lose(&self, state: &mut State, error: &postgres::Error) {
        if !state.is_lost {
            log::error!("no connection to the database at {}: {}", self.server, describe(error));
            *state = State { is_lost: true, changed_at: Instant::now() };
        }
    }

    /// Whether a connection has broken or hangs, and none has been opened since. Then all others must be replaced: a
    /// server that shuts down ends them one after the other, so one that still answers does not show that the database
    /// is back, and one that hangs is not worth the wait for each of them. It is otherwise where only opening
    /// connections fails, as when the server has too many: those that exist are good.
    pub fn distrusts_connections(&self) -> bool {
        self.distrusts_connections.load(Ordering::Relaxed)
    }

    /// Whether the database was lost at any time since `begin`. Then the log already has the cause of a failure.
    pub fn was_lost_since(&self, begin: Instant) -> bool {
        let state = self.lock();
        state.is_lost || state.changed_at >= begin
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
