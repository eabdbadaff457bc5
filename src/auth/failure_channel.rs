//! Refused actions, which the audit log calls failures, on their way to the thread that writes them. Recording one
//! costs a request no round trip, and a flood of them costs the database no more than a few rows a second.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::json;
use uuid::Uuid;

use crate::model::audit::{Failure, RefusedAction};
use crate::model::timestamp::Timestamp;
use crate::semaphore::lock;

/// The number of failures of one action in one window that become events of their own. The others of the window are one
/// event, which tells their number.
pub const MAX_EVENTS: usize = 50;
/// Failures that the channel has room for: more than all actions may send in two windows.
const MAX_WAITING: usize = 1000;

/// A bounded channel. Any thread adds failures to it, and one receives them.
pub struct FailureChannel {
    /// `None` once the channel is closed.
    sender: Mutex<Option<SyncSender<Failure>>>,
    receiver: Mutex<Receiver<Failure>>,
    /// The failures of each action in the present window. Each action is counted for itself, so that a flood of one,
    /// which anybody with an account can cause, does not hide the others.
    counts: Mutex<BTreeMap<RefusedAction, WindowCounts>>,
}

#[derive(Default)]
struct WindowCounts {
    /// Failures that were sent, at most [`MAX_EVENTS`].
    events: usize,
    /// The others.
    excess: u64,
}

impl FailureChannel {
    pub fn new() -> FailureChannel {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let (sender, receiver) = (Mutex::new(Some(sender)), Mutex::new(receiver));
        FailureChannel { sender, receiver, counts: Mutex::default() }
    }

    /// Sends a failure, or only counts it, if its action has had its events in this window or the channel is full.
    /// Returns whether it becomes an event of its own.
    pub fn add(&self, failure: Failure) -> bool {
        let mut counts = lock(&self.counts);
        let counts = counts.entry(failure.action).or_default();
        let send = |sender: &SyncSender<_>| sender.try_send(failure).is_ok();
        let is_event = counts.events < MAX_EVENTS && lock(&self.sender).as_ref().is_some_and(send);
        if is_event {
            counts.events += 1;
        } else {
            counts.excess += 1;
        }
        is_event
    }

    /// Waits for the next failure; `None` once the channel is closed and empty.
    pub fn receive(&self) -> Option<Failure> {
        lock(&self.receiver).recv().ok()
    }

    /// Adds to `batch` all that comes within `time`. Returns false, at once, when the channel is closed and empty.
    pub fn gather(&self, batch: &mut Vec<Failure>, time: Duration) -> bool {
        let (receiver, deadline) = (lock(&self.receiver), Instant::now() + time);
        loop {
            match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(failure) => batch.push(failure),
                Err(error) => return error == RecvTimeoutError::Timeout,
            }
        }
    }

    /// Begins a new window. Returns an event for each action of which failures of the last one were only counted.
    pub fn end_window(&self) -> Vec<Failure> {
        let counts = std::mem::take(&mut *lock(&self.counts));
        let excess = counts.into_iter().filter(|(_, counts)| counts.excess > 0);
        let event = |(action, counts): (RefusedAction, WindowCounts)| {
            let mut details = action.details();
            details["count"] = json!(counts.excess);
            Failure {
                at: Timestamp::now(),
                id: Uuid::new_v4(),
                action,
                actor_id: None,
                subject_id: None,
                address: None,
                request_id: None,
                details,
            }
        };
        excess.map(event).collect()
    }

    /// Ends the waiting once what was sent before is received. Never waits itself, also if the channel is full and
    /// nobody receives any more.
    pub fn close(&self) {
        lock(&self.sender).take();
    }
}
