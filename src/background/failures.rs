//! The thread that writes refused actions, which the audit log calls failures, to that log. It is not the thread of the
//! other tasks, because those may take longer than a failure may wait.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::attempt;
use crate::auth::failure_channel::FailureChannel;
use crate::db::{self, Database};
use crate::error::Error;
use crate::model::audit::Failure;
use crate::telemetry::metrics::Metrics;

/// How long failures are gathered before they are written. With the time that writing takes, less than a second. Two of
/// these times are a window of the channel.
const GATHERING_TIME: Duration = Duration::from_millis(500);

/// Writes the failures of a channel until it is stopped.
pub struct FailureWriter {
    channel: Arc<FailureChannel>,
    thread: JoinHandle<()>,
}

impl FailureWriter {
    /// Starts the thread.
    pub fn spawn(
        channel: Arc<FailureChannel>,
        db: Arc<Database>,
        metrics: Metrics,
    ) -> io::Result<FailureWriter> {
        let source = channel.clone();
        let work = move || run(&source, |batch| write(&db, &metrics, batch));
        let thread = thread::Builder::new().name("failures".into()).spawn(work)?;
        Ok(FailureWriter { channel, thread })
    }

    /// Writes what still waits and ends the thread. No request may be running any more. If the database does not
    /// answer, the wait ends with the timeout of a query.
    pub fn stop(self) {
        self.channel.close();
        if self.thread.join().is_err() {
            log::error!("the thread that writes failures to the audit log panicked");
        }
    }
}

/// Passes failures to `write` in batches until the channel is closed: half a second and a second after the first one,
/// when its window ends. `write` returns false for a batch that it must be given again. Until it has taken that, no
/// window ends, so only as many failures wait as the channel lets through in one or two.
fn run(channel: &FailureChannel, write: impl Fn(&[Failure]) -> bool) {
    let (mut batch, mut is_open, mut in_window) = (Vec::new(), true, false);
    while is_open {
        if batch.is_empty() && !in_window {
            let Some(first) = channel.receive() else { return };
            batch.push(first);
        }
        in_window = true;
        let mut is_behind = false;
        for ends_window in [false, true] {
            is_open = channel.gather(&mut batch, GATHERING_TIME);
            if !is_open || ends_window && !is_behind {
                batch.extend(channel.end_window());
                in_window = false;
            }
            is_behind = !write(&batch);
            if !is_behind {
                batch.clear();
            }
            if !is_open {
                break;
            }
        }
    }
    if !batch.is_empty() {
        log::error!("{} failures are missing from the audit log", batch.len());
    }
}

/// Writes a batch. Returns false if it must be tried again; true also if it can never be written, which is logged.
fn write(db: &Database, metrics: &Metrics, batch: &[Failure]) -> bool {
    if batch.is_empty() {
        return true;
    }
    let insert = || {
        let outcome = db::audit::insert_failures(db, batch);
        if outcome.is_err() {
            metrics.audit_write_errors.inc();
        }
        if let Err(Error::Internal(cause)) = outcome {
            metrics.audit_lost.inc_by(batch.len() as u64);
            log::error!("{} failures are missing from the audit log: {cause}", batch.len());
            return Ok(());
        }
        outcome
    };
    attempt(db, "failures for the audit log", insert).is_some()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use RefusedAction::*;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::auth::failure_channel::MAX_EVENTS;
    use crate::model::audit::RefusedAction;
    use crate::model::timestamp::Timestamp;
    use crate::semaphore::lock;

    /// Starts a thread that passes failures to `write`.
    fn start(
        write: impl Fn(&[Failure]) -> bool + Send + 'static,
    ) -> (Arc<FailureChannel>, JoinHandle<()>) {
        let channel = Arc::new(FailureChannel::new());
        let source = channel.clone();
        (channel, thread::spawn(move || run(&source, write)))
    }

    /// Adds `number` failures, and returns how many became events.
    fn add(channel: &FailureChannel, action: RefusedAction, number: usize) -> usize {
        let failure = || Failure {
            at: Timestamp::now(),
            id: Uuid::new_v4(),
            action,
            actor_id: None,
            subject_id: None,
            address: None,
            request_id: Some(Uuid::new_v4()),
            details: action.details(),
        };
        (0..number).filter(|_| channel.add(failure())).count()
    }

    #[test]
    fn fifty_failures_of_each_action_in_a_window_are_events_and_the_rest_is_counted() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let log = written.clone();
        let (channel, thread) = start(move |batch| {
            lock(&log).extend(batch.iter().map(|event| (event.action, event.details.clone())));
            true
        });
        assert_eq!(add(&channel, Login, 80), 50);
        assert_eq!(add(&channel, Access, 53), 50);
        assert_eq!(add(&channel, LoginWithoutCode, 52), 50);
        let wait_for = |events| {
            let begin = Instant::now();
            while lock(&written).len() < events && begin.elapsed() < 20 * GATHERING_TIME {
                thread::sleep(GATHERING_TIME / 100);
            }
            assert_eq!(lock(&written).len(), events);
        };
        // The counts wait for the end of the window, in which no more events are taken.
        wait_for(150);
        assert_eq!((add(&channel, Login, 7), add(&channel, PasswordReset, 7)), (0, 7));
        wait_for(160);
        let counts = [
            (Login, json!({ "count": 37 })),
            (LoginWithoutCode, json!({ "count": 2, "reason": "second_factor_required" })),
            (Access, json!({ "count": 3 })),
        ];
        assert_eq!(lock(&written)[157..], counts);
        // The next window ends with the thread, which writes everything at once.
        assert_eq!(add(&channel, Login, 60), 50);
        channel.close();
        assert!(thread.join().is_ok());
        assert_eq!(lock(&written).len(), 160 + 51);
        assert_eq!(lock(&written).last(), Some(&(Login, json!({ "count": 10 }))));
    }

    #[test]
    fn while_nothing_can_be_written_memory_does_not_grow_and_every_failure_is_counted() {
        let (can_write, written) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(0)));
        let (shared, total) = (can_write.clone(), written.clone());
        let (channel, thread) = start(move |batch| {
            let counted = |event: &Failure| event.details["count"].as_u64().unwrap_or(1);
            let is_written = shared.load(Ordering::Relaxed);
            if is_written {
                *lock(&total) += batch.iter().map(counted).sum::<u64>();
            }
            assert!(batch.len() <= MAX_EVENTS + 1);
            is_written
        });
        for _ in 0..5 {
            add(&channel, Login, 100);
            thread::sleep(GATHERING_TIME / 2);
        }
        // The write succeeds when the window would have ended or in its middle: nothing else comes to end it.
        for late in [GATHERING_TIME / 4, 3 * GATHERING_TIME / 4] {
            can_write.store(true, Ordering::Relaxed);
            thread::sleep(3 * GATHERING_TIME + late);
            can_write.store(false, Ordering::Relaxed);
            add(&channel, Login, 100);
            thread::sleep(3 * GATHERING_TIME - late);
        }
        can_write.store(true, Ordering::Relaxed);
        thread::sleep(3 * GATHERING_TIME);
        assert_eq!(*lock(&written), 700);
        channel.close();
        assert!(thread.join().is_ok());
    }

    #[test]
    fn a_full_channel_that_nobody_reads_can_be_closed_and_loses_nothing() {
        let channel = Arc::new(FailureChannel::new());
        while add(&channel, Login, MAX_EVENTS) == MAX_EVENTS {
            channel.end_window();
        }
        let closed = channel.clone();
        let closing = thread::spawn(move || closed.close());
        let begin = Instant::now();
        while !closing.is_finished() {
            assert!(begin.elapsed() < Duration::from_secs(60), "it waits for a reader");
            thread::yield_now();
        }
        let mut batch = Vec::from_iter(channel.receive());
        while channel.gather(&mut batch, Duration::ZERO) {}
        assert!(batch.len() >= 20 * MAX_EVENTS && channel.receive().is_none());
    }
}
