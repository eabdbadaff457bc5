//! Refused actions on their way into the audit log. Recording one costs a request no round trip, and a flood of them
//! costs the database no more than a few rows a second. Each [`RefusedAction`] is counted for itself, so that a flood
//! of one, which anybody with an account can cause, does not hide the others.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use crate::model::audit::{Failure, RefusedAction};
use crate::model::timestamp::Timestamp;
use crate::semaphore::lock;

/// The number of failures of one action in one window that become events of their own. The others of the window are one
/// event, which tells their number.
const MAX_EVENTS_PER_WINDOW: usize = 50;
const WINDOW: Duration = Duration::from_secs(1);
/// How long failures are gathered before they are written. With the time that writing takes, less than a second.
const GATHERING_TIME: Duration = Duration::from_millis(500);

/// The failures that wait to be written. Any thread adds to it and one takes from it.
pub struct FailureQueue {
    state: Mutex<FailureQueueState>,
    /// Notified when the queue gets its first failure, and when it is closed.
    changed: Condvar,
}

#[derive(Default)]
struct FailureQueueState {
    failures: BTreeMap<RefusedAction, ActionFailures>,
    is_closed: bool,
}

/// The failures of one action.
struct ActionFailures {
    /// At most [`MAX_EVENTS_PER_WINDOW`], however long they cannot be written.
    events: Vec<Failure>,
    /// The number of the others in the present window.
    excess: u64,
    /// The number of the others in earlier windows, which may be taken.
    count: u64,
    window_began: Instant,
    /// Failures of the window that became events.
    in_window: usize,
}

impl FailureQueue {
    pub fn new() -> FailureQueue {
        FailureQueue { state: Mutex::default(), changed: Condvar::new() }
    }

    /// Adds a failure. Returns whether it becomes an event of its own, and is not only counted.
    pub fn add(&self, failure: Failure) -> bool {
        let mut state = lock(&self.state);
        let was_empty = state.is_empty();
        let is_event = state.add(failure, Instant::now());
        drop(state);
        if was_empty {
            self.changed.notify_one();
        }
        is_event
    }

    /// Waits until the queue has a failure, and then for [`GATHERING_TIME`], in which others may join it. A caller that
    /// `has_more` waits only for the latter: it holds failures that could not be written. A closed queue ends both
    /// waits. Returns whether it is closed.
    pub fn wait(&self, has_more: bool) -> bool {
        let is_idle =
            |state: &mut FailureQueueState| !has_more && !state.is_closed && state.is_empty();
        let state = self.changed.wait_while(lock(&self.state), is_idle);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let is_open = |state: &mut FailureQueueState| !state.is_closed;
        let waited = self.changed.wait_timeout_while(state, GATHERING_TIME, is_open);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    /// Takes the failures to write now: all events, and the counts of windows that are over.
    pub fn take(&self) -> Vec<Failure> {
        lock(&self.state).take(Instant::now())
    }

    /// Ends the waiting, so that everything is written at once.
    pub fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_one();
    }
}

impl FailureQueueState {
    fn is_empty(&self) -> bool {
        self.failures.values().all(ActionFailures::is_empty)
    }

    fn add(&mut self, failure: Failure, now: Instant) -> bool {
        let failures = self.failures.entry(failure.action);
        failures.or_insert_with(|| ActionFailures::new(now)).add(failure, now)
    }

    fn take(&mut self, now: Instant) -> Vec<Failure> {
        let mut taken = Vec::new();
        for (&action, failures) in &mut self.failures {
            taken.append(&mut failures.events);
            let count = failures.take_count(now, self.is_closed);
            let mut details = action.details();
            details["count"] = json!(count);
            taken.extend((count > 0).then(|| Failure {
                at: Timestamp::now(),
                id: Uuid::new_v4(),
                action,
                actor_id: None,
                subject_id: None,
                address: None,
                request_id: None,
                details,
            }));
        }
        taken
    }
}

impl ActionFailures {
    fn new(window_began: Instant) -> ActionFailures {
        ActionFailures { events: Vec::new(), excess: 0, count: 0, window_began, in_window: 0 }
    }

    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.excess == 0 && self.count == 0
    }

    fn is_window_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.window_began) >= WINDOW
    }

    /// Lets the count of the present window be taken.
    fn end_window(&mut self) {
        self.count += std::mem::take(&mut self.excess);
    }

    fn add(&mut self, failure: Failure, now: Instant) -> bool {
        if self.is_window_over(now) {
            self.end_window();
            self.window_began = now;
            self.in_window = 0;
        }
        let is_event =
            self.in_window < MAX_EVENTS_PER_WINDOW && self.events.len() < MAX_EVENTS_PER_WINDOW;
        if is_event {
            self.in_window += 1;
            self.events.push(failure);
        } else {
            self.excess += 1;
        }
        is_event
    }

    /// Takes the number of failures that are no events, in the windows that are over or `of_all`.
    fn take_count(&mut self, now: Instant, of_all: bool) -> u64 {
        if of_all || self.is_window_over(now) {
            self.end_window();
        }
        std::mem::take(&mut self.count)
    }
}

#[cfg(test)]
mod tests {
    use RefusedAction::*;

    use super::*;

    fn failure(action: RefusedAction) -> Failure {
        Failure {
            at: Timestamp::now(),
            id: Uuid::new_v4(),
            action,
            actor_id: None,
            subject_id: None,
            address: None,
            request_id: Some(Uuid::new_v4()),
            details: action.details(),
        }
    }

    #[test]
    fn fifty_failures_of_each_action_a_second_are_events_and_the_rest_is_counted() {
        let began = Instant::now();
        let mut state = FailureQueueState::default();
        let add = |state: &mut FailureQueueState, action, n: u32, now| {
            (0..n).filter(|_| state.add(failure(action), now)).count()
        };
        assert_eq!(add(&mut state, Login, 80, began), 50);
        assert_eq!(add(&mut state, Access, 53, began), 50);
        assert_eq!(add(&mut state, LoginWithoutCode, 52, began), 50);
        // The counts wait for the end of the window, in which no more events are taken.
        let half = began + WINDOW / 2;
        assert_eq!(state.take(half).len(), 150);
        assert_eq!(add(&mut state, Login, 7, half), 0);
        assert_eq!(add(&mut state, PasswordReset, 7, half), 7);
        assert_eq!(state.take(half).len(), 7);
        let over = began + WINDOW;
        let counts: Vec<_> =
            state.take(over).into_iter().map(|event| (event.action, event.details)).collect();
        let expected = [
            (Login, json!({ "count": 37 })),
            (LoginWithoutCode, json!({ "count": 2, "reason": "second_factor_required" })),
            (Access, json!({ "count": 3 })),
        ];
        assert_eq!(counts, expected);
        assert_eq!(add(&mut state, Login, 50, over), 50);
    }

    #[test]
    fn the_counts_of_each_second_of_a_long_flood_are_taken_in_the_next_one() {
        let began = Instant::now();
        let mut state = FailureQueueState::default();
        for second in 0..4 {
            for _ in 0..80 {
                state.add(failure(Login), began + WINDOW * second);
            }
            let taken = state.take(began + WINDOW * second + WINDOW / 2);
            let counts: Vec<_> = taken.iter().skip(50).map(|event| &event.details).collect();
            let expected = if second == 0 { vec![] } else { vec![json!({ "count": 30 })] };
            assert_eq!(counts, expected.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_queue_does_not_grow_while_nothing_takes_from_it() {
        let began = Instant::now();
        let mut state = FailureQueueState::default();
        for second in 0..100 {
            for _ in 0..10 {
                state.add(failure(Login), began + WINDOW * second);
            }
        }
        let events = state.take(began + WINDOW * 100);
        assert_eq!(events.len(), MAX_EVENTS_PER_WINDOW + 1);
        assert_eq!(events[MAX_EVENTS_PER_WINDOW].details, json!({ "count": 950 }));
    }

    #[test]
    fn a_closed_queue_gives_everything_at_once() {
        let queue = FailureQueue::new();
        for _ in 0..60 {
            queue.add(failure(Login));
        }
        queue.close();
        assert!(queue.wait(false));
        assert_eq!(queue.take().len(), MAX_EVENTS_PER_WINDOW + 1);
        assert!(queue.take().is_empty());
    }
}
