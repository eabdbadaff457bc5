//! Whether contents can be stored at the moment, found out by storing one byte. A file system that hangs, as one of a
//! network may, holds a thread of the probe's own and nobody who asks.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::semaphore::lock;

/// How long an answer counts.
const MAX_AGE: Duration = Duration::from_secs(5);
/// After this time the file system counts as one that hangs.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Remembers for some seconds whether contents can be stored.
pub(super) struct Probe(Arc<Mutex<ProbeState>>);

struct ProbeState {
    /// When the last attempt began.
    began: Option<Instant>,
    is_running: bool,
    /// Whether the last attempt that ended succeeded. The directories were tried at the start, so this begins as true.
    succeeded: bool,
}

impl ProbeState {
    /// What is known now.
    fn answer(&self) -> bool {
        let hangs = self.is_running && self.began.is_some_and(|at| at.elapsed() >= MAX_WAIT);
        self.succeeded && !hangs
    }
}

impl Probe {
    pub fn new() -> Probe {
        let state = ProbeState { began: None, is_running: false, succeeded: true };
        Probe(Arc::new(Mutex::new(state)))
    }

    /// Returns whether `attempt` succeeded lately. If that is not known, it is made in another thread and waited for.
    /// There is one such thread at a time.
    pub fn check(&self, attempt: impl FnOnce() -> bool + Send + 'static) -> bool {
        let mut state = lock(&self.0);
        if state.is_running || state.began.is_some_and(|at| at.elapsed() < MAX_AGE) {
            return state.answer();
        }
        (state.is_running, state.began) = (true, Some(Instant::now()));
        let (done, is_done) = sync_channel(1);
        let shared = self.0.clone();
        let work = move || {
            let succeeded = attempt();
            let mut state = lock(&shared);
            (state.is_running, state.succeeded) = (false, succeeded);
            // Nobody may be waiting any more.
            let _ = done.try_send(());
        };
        if thread::Builder::new().name("probe".into()).spawn(work).is_err() {
            state.is_running = false;
            return state.answer();
        }
        drop(state);
        let _ = is_done.recv_timeout(MAX_WAIT);
        lock(&self.0).answer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_hangs_is_a_failure_that_nobody_waits_for_twice() {
        let probe = Probe::new();
        let (release, is_released) = sync_channel::<()>(1);
        assert!(!probe.check(move || is_released.recv().is_ok()), "it hangs");
        assert!(!probe.check(|| unreachable!("there is one attempt at a time")));
        assert!(release.send(()).is_ok());
        while lock(&probe.0).is_running {
            thread::yield_now();
        }
        assert!(probe.check(|| unreachable!("the last answer is young")));
    }

    #[test]
    fn an_attempt_that_fails_is_known_at_once() {
        let probe = Probe::new();
        assert!(!probe.check(|| false));
        assert!(!probe.check(|| unreachable!("the last answer is young")));
    }
}
