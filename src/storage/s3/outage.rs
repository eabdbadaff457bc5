//! Whether the store serves requests, and the two log lines about an outage: one at its begin, one at its end. If
//! outages follow one another, as when only some requests fail, there are two lines in ten seconds.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::semaphore::lock;

/// Least time between two lines about the begin of an outage.
const REPORT_PERIOD: Duration = Duration::from_secs(10);

/// The state of the store, as the last requests have shown it.
#[derive(Default)]
pub struct Outage(Mutex<OutageState>);

#[derive(Default)]
struct OutageState {
    /// When requests began to fail; `None` while they succeed.
    since: Option<Instant>,
    /// Whether the log says that they do.
    is_reported: bool,
    /// When the log last said so.
    reported_at: Option<Instant>,
}

impl Outage {
    /// Notes that a request to the store named `name` failed, and why.
    pub fn note_failure(&self, name: &str, cause: &str) {
        let mut state = lock(&self.0);
        state.since.get_or_insert_with(Instant::now);
        let is_due = state.reported_at.is_none_or(|at| at.elapsed() >= REPORT_PERIOD);
        if !state.is_reported && is_due {
            log::error!("the store {name} does not serve contents: {cause}");
            (state.is_reported, state.reported_at) = (true, Some(Instant::now()));
        }
    }

    /// Notes that a request succeeded.
    pub fn note_success(&self, name: &str) {
        let mut state = lock(&self.0);
        if let Some(since) = state.since.take()
            && std::mem::take(&mut state.is_reported)
        {
            let seconds = since.elapsed().as_secs_f64().round();
            log::info!("the store {name} is back after {seconds} s");
        }
    }
}
