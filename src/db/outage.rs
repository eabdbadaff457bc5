//! Whether the database can be reached, which connections may have died with it, and the two log lines about an outage:
//! one at its begin, one at its end. If outages follow one another, as when connections can be opened and break under
//! each change, there are two lines in ten seconds.
//!
//! While a database is down, every request and every background task meets the same failure. Only this file logs it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::postgres_error::describe;
use crate::semaphore::lock;

/// Least time between two lines about the begin of an outage.
const REPORT_PERIOD: Duration = Duration::from_secs(10);
/// How long changes count as refused after one was.
const REFUSAL_PERIOD: Duration = Duration::from_secs(10);

/// The state of the database, as the attempts to connect and the connections that broke have shown it.
pub struct Outage {
    /// Host and port of the server, or of each of several.
    server: String,
    state: Mutex<OutageState>,
}

struct OutageState {
    is_lost: bool,
    /// When `is_lost` last changed.
    changed_at: Instant,
    /// Whether the log says that it is lost.
    is_reported: bool,
    /// When the log last said so.
    reported_at: Option<Instant>,
    /// When the server last refused a change for want of resources, such as disk space, or because it is read-only.
    refused_at: Option<Instant>,
    /// Connections opened before this moment are not used again.
    retired_before: Instant,
}

impl Outage {
    /// Creates it for a database that can be reached.
    pub fn new(server: String) -> Outage {
        let now = Instant::now();
        let state = OutageState {
            is_lost: false,
            changed_at: now,
            is_reported: false,
            reported_at: None,
            refused_at: None,
            retired_before: now,
        };
        Outage { server, state: Mutex::new(state) }
    }

    /// Notes that a connection was opened, or why not, in an attempt that began at `began`. Ignores an attempt that
    /// began before the last change of state: a slow failure must not overrule a later success.
    pub fn note_attempt(&self, began: Instant, failure: Option<&postgres::Error>) {
        let mut state = lock(&self.state);
        if began < state.changed_at {
            return;
        }
        match failure {
            Some(error) => self.lose(&mut state, error),
            None if state.is_lost => {
                if state.is_reported {
                    let seconds = state.changed_at.elapsed().as_secs_f64().round();
                    log::info!("the database at {} is back after {seconds} s", self.server);
                }
                state.is_reported = false;
                (state.is_lost, state.changed_at) = (false, Instant::now());
            }
            None => {}
        }
    }

    /// Notes that a connection, which was opened at `opened`, hangs or broke under a query that could not be repeated.
    /// The next attempt to connect shows whether the database is down. A connection from before an outage that is over
    /// begins no other one: if a server hangs, its connections break later than others are opened.
    pub fn note_broken(&self, opened: Instant, error: &postgres::Error) {
        self.retire_older(opened);
        let mut state = lock(&self.state);
        if opened >= state.changed_at {
            self.lose(&mut state, error);
        }
    }

    fn lose(&self, state: &mut OutageState, error: &postgres::Error) {
        if !state.is_lost {
            (state.is_lost, state.changed_at) = (true, Instant::now());
        }
        let is_due = state.reported_at.is_none_or(|at| at.elapsed() >= REPORT_PERIOD);
        if !state.is_reported && is_due {
            log::error!("no connection to the database at {}: {}", self.server, describe(error));
            (state.is_reported, state.reported_at) = (true, Some(Instant::now()));
        }
    }

    /// Retires all connections that are open now, because one opened at `opened` was found dead: a restart of the
    /// database ends all of them, one after the other, so one that still answers does not show that the others live.
    /// Does nothing if the dead one was retired itself: others have been opened since.
    pub fn retire_older(&self, opened: Instant) {
        let mut state = lock(&self.state);
        if opened > state.retired_before {
            state.retired_before = Instant::now();
        }
    }

    /// Whether a connection opened at `opened` must not be used again.
    pub fn is_retired(&self, opened: Instant) -> bool {
        opened <= lock(&self.state).retired_before
    }

    /// Notes that the server refused a change that it would take at other times.
    pub fn note_refusal(&self) {
        lock(&self.state).refused_at = Some(Instant::now());
    }

    /// Whether the server refused a change lately.
    pub fn refuses_changes(&self) -> bool {
        lock(&self.state).refused_at.is_some_and(|at| at.elapsed() < REFUSAL_PERIOD)
    }

    /// Whether the database was lost at any time since `begin`. Then the log already has the cause of a failure.
    pub fn was_lost_since(&self, begin: Instant) -> bool {
        let state = lock(&self.state);
        state.is_lost || state.changed_at >= begin
    }
}
