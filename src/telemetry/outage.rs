//! Whether another server can be reached, such as that of the database, and the two log lines about an outage: one at
//! its begin, one at its end. If outages follow one another, as when only some requests fail, there are two lines in
//! ten seconds.
//!
//! While a server is down, every request and every background task meets the same failure. Only this file logs it.

use std::fmt::Arguments;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::semaphore::lock;

/// Least time between two lines about the begin of an outage.
const REPORT_PERIOD: Duration = Duration::from_secs(10);

/// The state of a server, as attempts to use it have shown it.
pub struct Outage {
    /// The server, for the line about the end.
    name: String,
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
}

impl Outage {
    /// Starts in the reachable state.
    pub fn new(name: String) -> Outage {
        let changed_at = Instant::now();
        let state =
            OutageState { is_lost: false, changed_at, is_reported: false, reported_at: None };
        Outage { name, state: Mutex::new(state) }
    }

    /// Records a failed attempt that began at `began`. `line` says so in the log, and why. Ignores an attempt that
    /// began before the last change of state: a slow failure must not overrule a later success.
    pub fn record_failure(&self, began: Instant, line: Arguments) {
        let mut state = lock(&self.state);
        if began < state.changed_at {
            return;
        }
        if !state.is_lost {
            (state.is_lost, state.changed_at) = (true, Instant::now());
        }
        let is_due = state.reported_at.is_none_or(|at| at.elapsed() >= REPORT_PERIOD);
        if !state.is_reported && is_due {
            log::error!("{line}");
            (state.is_reported, state.reported_at) = (true, Some(Instant::now()));
        }
    }

    /// Records a successful attempt. Ignores one that began before the last change of state.
    pub fn record_success(&self, began: Instant) {
        let mut state = lock(&self.state);
        if !state.is_lost || began < state.changed_at {
            return;
        }
        if std::mem::take(&mut state.is_reported) {
            let seconds = state.changed_at.elapsed().as_secs_f64().round();
            log::info!("{} is back after {seconds} s", self.name);
        }
        (state.is_lost, state.changed_at) = (false, Instant::now());
    }

    /// Whether the server was lost at any time since `begin`. Then the log already has the cause of a failure.
    pub fn was_lost_since(&self, begin: Instant) -> bool {
        let state = lock(&self.state);
        state.is_lost || state.changed_at >= begin
    }
}
