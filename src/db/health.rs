//! Whether the database can be used: outages, changes that it refuses, and connections that may have died with it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::postgres_error::describe;
use crate::semaphore::lock;
use crate::telemetry::outage::Outage;

/// How long changes count as refused after one was.
const REFUSAL_PERIOD: Duration = Duration::from_secs(10);

/// What the attempts to connect, and the connections that broke, have shown of the database.
pub struct Health {
    /// Host and port of the server, or of each of several.
    server: String,
    outage: Outage,
    /// When the server last refused a change for want of resources, such as disk space, or because it is read-only.
    refused_at: Mutex<Option<Instant>>,
    /// Connections opened before this moment are not used again.
    retired_before: Mutex<Instant>,
}

impl Health {
    /// Starts in the reachable state.
    pub fn new(server: String) -> Health {
        Health {
            outage: Outage::new(format!("the database at {server}")),
            server,
            refused_at: Mutex::new(None),
            retired_before: Mutex::new(Instant::now()),
        }
    }

    /// Records an attempt to open a connection that began at `began`, and why it failed if it did.
    pub fn note_attempt(&self, began: Instant, failure: Option<&postgres::Error>) {
        match failure {
            Some(error) => self.record_failure(began, error),
            None => self.outage.record_success(began),
        }
    }

    /// Records that a connection, which was opened at `opened`, hangs or broke under a query that could not be
    /// repeated. The next attempt to connect shows whether the database is down. A connection from before an outage
    /// that is over begins no other one: if a server hangs, its connections break later than others are opened.
    pub fn note_broken(&self, opened: Instant, error: &postgres::Error) {
        self.retire_older(opened);
        self.record_failure(opened, error);
    }

    fn record_failure(&self, began: Instant, error: &postgres::Error) {
        let (server, cause) = (&self.server, describe(error));
        let line = format_args!("no connection to the database at {server}: {cause}");
        self.outage.record_failure(began, line);
    }

    /// Retires all connections that are open now, because one opened at `opened` was found dead: a restart of the
    /// database ends all of them, one after the other, so one that still answers does not show that the others live.
    /// Does nothing if the dead one was retired itself: others have been opened since.
    pub fn retire_older(&self, opened: Instant) {
        let mut retired_before = lock(&self.retired_before);
        if opened > *retired_before {
            *retired_before = Instant::now();
        }
    }

    /// Whether a connection opened at `opened` must not be used again.
    pub fn is_retired(&self, opened: Instant) -> bool {
        opened <= *lock(&self.retired_before)
    }

    /// Records that the server refused a change that it would take at other times.
    pub fn note_refusal(&self) {
        *lock(&self.refused_at) = Some(Instant::now());
    }

    /// Whether the server refused a change lately.
    pub fn refuses_changes(&self) -> bool {
        lock(&self.refused_at).is_some_and(|at| at.elapsed() < REFUSAL_PERIOD)
    }

    /// Whether the database was lost at any time since `begin`. Then the log already has the cause of a failure.
    pub fn was_lost_since(&self, begin: Instant) -> bool {
        self.outage.was_lost_since(begin)
    }
}
