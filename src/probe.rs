//! Finds out whether something can be used, such as the database or a directory, for everybody who asks, however many
//! they are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::semaphore::lock;

/// Remembers the outcome of an attempt for some time, and shares it. An attempt that hangs, as on the file system of a
/// network, holds a thread of its own and nobody who asks.
pub struct Probe<T> {
    state: Arc<Mutex<ProbeState<T>>>,
    /// What an attempt has shown that takes too long or panics.
    failure: T,
    max_age: Duration,
    max_wait: Duration,
}

struct ProbeState<T> {
    /// When the last attempt began.
    began: Option<Instant>,
    is_running: bool,
    /// The outcome of the last attempt that ended.
    outcome: T,
}

impl<T: Copy + Send + 'static> Probe<T> {
    /// The outcome is `first` until there was an attempt. It counts for `max_age` since the begin of the attempt, and
    /// after `max_wait` the attempt counts as one that hangs. One that hangs or panics is a `failure`.
    pub fn new(first: T, failure: T, max_age: Duration, max_wait: Duration) -> Probe<T> {
        let state = ProbeState { began: None, is_running: false, outcome: first };
        Probe { state: Arc::new(Mutex::new(state)), failure, max_age, max_wait }
    }

    /// Returns the last outcome, if it still counts. Otherwise makes the attempt in another thread and waits for it.
    /// There is one such thread at a time; meanwhile the others who ask are given the last outcome.
    pub fn check(&self, attempt: impl FnOnce() -> T + Send + 'static) -> T {
        let mut state = lock(&self.state);
        if state.is_running || state.began.is_some_and(|at| at.elapsed() < self.max_age) {
            return self.known(&state);
        }
        (state.is_running, state.began) = (true, Some(Instant::now()));
        let (done, is_done) = sync_channel(1);
        let (shared, failure) = (self.state.clone(), self.failure);
        let work = move || {
            // A panic has logged its own text.
            let outcome = catch_unwind(AssertUnwindSafe(attempt)).unwrap_or(failure);
            let mut state = lock(&shared);
            (state.is_running, state.outcome) = (false, outcome);
            // Nobody may be waiting any more.
            let _ = done.try_send(());
        };
        if thread::Builder::new().name("probe".into()).spawn(work).is_err() {
            state.is_running = false;
            return self.known(&state);
        }
        drop(state);
        let _ = is_done.recv_timeout(self.max_wait);
        self.known(&lock(&self.state))
    }

    /// What is known now.
    fn known(&self, state: &ProbeState<T>) -> T {
        let hangs = state.is_running && state.began.is_some_and(|at| at.elapsed() >= self.max_wait);
        if hangs { self.failure } else { state.outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_WAIT: Duration = Duration::from_millis(100);

    #[test]
    fn an_attempt_that_hangs_is_a_failure_that_nobody_waits_for_twice() {
        let probe = Probe::new(true, false, Duration::from_secs(60), MAX_WAIT);
        let (release, is_released) = sync_channel::<()>(1);
        assert!(!probe.check(move || is_released.recv().is_ok()), "it hangs");
        assert!(!probe.check(|| unreachable!("there is one attempt at a time")));
        assert!(release.send(()).is_ok());
        while lock(&probe.state).is_running {
            thread::yield_now();
        }
        assert!(probe.check(|| unreachable!("the last outcome is young")));
    }

    #[test]
    fn an_attempt_that_panics_is_a_failure_and_the_next_one_is_made() {
        let probe = Probe::new(true, false, Duration::ZERO, Duration::from_secs(60));
        assert!(!probe.check(|| unreachable!("as for a fault of the program")));
        assert!(probe.check(|| true));
    }

    #[test]
    fn an_outcome_is_known_at_once_until_it_is_old() {
        const LONG: Duration = Duration::from_secs(60);
        for (max_age, second) in [(LONG, 2), (Duration::ZERO, 3)] {
            let probe = Probe::new(0, 1, max_age, LONG);
            assert_eq!(probe.check(|| 2), 2);
            assert_eq!(probe.check(|| 3), second);
        }
    }
}
