//! Refused actions on their way into the audit log. Recording one costs a request no round trip, and a flood of them
//! costs the database no more than a few rows a second.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use super::audit::Failure;
use crate::model::timestamp::Timestamp;

/// Failures of one window that become events of their own. The others of the window are one event for each action,
/// with their number.
const MAX_EVENTS_PER_WINDOW: usize = 50;
const WINDOW: Duration = Duration::from_secs(1);
/// How long failures are gathered before they are written. With the time that writing takes, less than a second.
const GATHERING_TIME: Duration = Duration::from_millis(500);

/// The failures that wait to be written. Any thread adds to it and one takes from it.
pub struct FailureQueue {
    state: Mutex<State>,
    /// Notified when the queue gets its first failure, and when it is closed.
    changed: Condvar,
}

struct State {
    /// At most [`MAX_EVENTS_PER_WINDOW`], also if they cannot be written for a while.
    events: Vec<Failure>,
    /// How many failures of each action there were beyond those, in the present window.
    excess: BTreeMap<&'static str, u64>,
    /// The same of earlier windows, ready to be taken.
    counts: BTreeMap<&'static str, u64>,
    window_began: Instant,
    /// Failures of the window that became events.
    in_window: usize,
    is_closed: bool,
}

impl FailureQueue {
    pub fn new() -> FailureQueue {
        FailureQueue {
            state: Mutex::new(State {
                events: Vec::new(),
                excess: BTreeMap::new(),
                counts: BTreeMap::new(),
                window_began: Instant::now(),
                in_window: 0,
                is_closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Adds a failure. Returns whether it becomes an event of its own, and is not only counted.
    pub fn add(&self, failure: Failure) -> bool {
        let mut state = self.lock();
        let was_empty = state.is_empty();
        let is_event = state.add(failure, Instant::now());
        drop(state);
        if was_empty {
            self.changed.notify_one();
        }
        is_event
    }

    /// Waits until there are failures and the time to gather more of them is over, or until the queue is closed. The
    /// caller may have some that are to be written once more; then only that time is waited for. Returns whether the
    /// queue is closed.
    pub fn wait(&self, has_more: bool) -> bool {
        let is_idle = |state: &mut State| !has_more && !state.is_closed && state.is_empty();
        let state = self.changed.wait_while(self.lock(), is_idle);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let is_open = |state: &mut State| !state.is_closed;
        let waited = self.changed.wait_timeout_while(state, GATHERING_TIME, is_open);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    /// Takes what is to be written now: all events, and the counts of a window that is over.
    pub fn take(&self) -> Vec<Failure> {
        self.lock().take(Instant::now())
    }

    /// Ends the waiting, so that everything is written at once.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.excess.is_empty() && self.counts.is_empty()
    }

    fn is_window_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.window_began) >= WINDOW
    }

    /// Makes what the present window has counted ready to be taken.
    fn end_window(&mut self) {
        for (action, count) in std::mem::take(&mut self.excess) {
            *self.counts.entry(action).or_default() += count;
        }
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
            *self.excess.entry(failure.action).or_default() += 1;
        }
        is_event
    }

    fn take(&mut self, now: Instant) -> Vec<Failure> {
        let mut events = std::mem::take(&mut self.events);
        if self.is_closed || self.is_window_over(now) {
            self.end_window();
        }
        let counts = std::mem::take(&mut self.counts);
        events.extend(counts.into_iter().map(|(action, count)| Failure {
            at: Timestamp::now(),
            id: Uuid::new_v4(),
            action,
            actor_id: None,
            subject_id: None,
            address: None,
            request_id: None,
            details: json!({ "count": count }),
        }));
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(action: &'static str) -> Failure {
        Failure {
            at: Timestamp::now(),
            id: Uuid::new_v4(),
            action,
            actor_id: None,
            subject_id: None,
            address: None,
            request_id: Some(Uuid::new_v4()),
            details: json!({}),
        }
    }

    fn state(window_began: Instant) -> State {
        let (excess, counts) = (BTreeMap::new(), BTreeMap::new());
        State { events: Vec::new(), excess, counts, window_began, in_window: 0, is_closed: false }
    }

    #[test]
    fn fifty_failures_of_a_second_are_events_and_the_rest_is_counted_for_each_action() {
        let began = Instant::now();
        let mut state = state(began);
        let add = |state: &mut State, action, n: u32, now| {
            (0..n).filter(|_| state.add(failure(action), now)).count()
        };
        assert_eq!(add(&mut state, "auth.login", 80, began), 50);
        assert_eq!(add(&mut state, "access.denied", 3, began), 0);
        // The counts wait for the end of the window, in which no more events are taken.
        let half = began + WINDOW / 2;
        assert_eq!(state.take(half).len(), 50);
        assert_eq!(add(&mut state, "auth.login", 7, half), 0);
        assert!(state.take(half).is_empty());
        let over = began + WINDOW;
        let counts: Vec<_> =
            state.take(over).into_iter().map(|event| (event.action, event.details)).collect();
        let expected =
            [("access.denied", json!({ "count": 3 })), ("auth.login", json!({ "count": 37 }))];
        assert_eq!(counts, expected);
        assert_eq!(add(&mut state, "auth.login", 50, over), 50);
    }

    #[test]
    fn the_counts_of_each_second_of_a_long_flood_are_taken_in_the_next_one() {
        let began = Instant::now();
        let mut state = state(began);
        for second in 0..4 {
            for _ in 0..80 {
                state.add(failure("auth.login"), began + WINDOW * second);
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
        let mut state = state(began);
        for second in 0..100 {
            for _ in 0..10 {
                state.add(failure("auth.login"), began + WINDOW * second);
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
            queue.add(failure("auth.login"));
        }
        queue.close();
        assert!(queue.wait(false));
        assert_eq!(queue.take().len(), MAX_EVENTS_PER_WINDOW + 1);
        assert!(queue.take().is_empty());
    }
}
