//! The thread that writes refused actions, which the audit log calls failures, to that log. It is not the thread of the
//! other tasks, because those may take longer than a failure may wait.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::log_error;
use crate::auth::failure_queue::FailureQueue;
use crate::db::{Database, audit};
use crate::error::Error;
use crate::model::audit::Failure;
use crate::telemetry::metrics::Metrics;

/// Writes the failures of a queue until it is stopped.
pub struct FailureWriter {
    queue: Arc<FailureQueue>,
    thread: JoinHandle<()>,
}

impl FailureWriter {
    /// Starts the thread.
    pub fn spawn(
        queue: Arc<FailureQueue>,
        db: Arc<Database>,
        metrics: Metrics,
    ) -> io::Result<FailureWriter> {
        let source = queue.clone();
        let work = move || run(&source, &db, &metrics);
        let thread = thread::Builder::new().name("failures".into()).spawn(work)?;
        Ok(FailureWriter { queue, thread })
    }

    /// Writes the rest of the queue and ends the thread. No request may be running any more. If the database does not
    /// answer, the wait ends with the timeout of a query.
    pub fn stop(self) {
        self.queue.close();
        if self.thread.join().is_err() {
            log::error!("the thread that writes failures to the audit log panicked");
        }
    }
}

/// Writes in batches until the queue is closed. A batch that could not be written is kept and tried again, while the
/// queue keeps itself bounded.
fn run(queue: &FailureQueue, db: &Database, metrics: &Metrics) {
    let mut batch = Vec::new();
    loop {
        let is_closed = queue.wait(!batch.is_empty());
        if batch.is_empty() {
            batch = queue.take();
        }
        let is_done = write(db, metrics, &batch);
        if is_done {
            batch.clear();
        }
        if is_closed {
            batch.extend(queue.take());
            if !is_done || !write(db, metrics, &batch) {
                log::error!("{} failures are missing from the audit log", batch.len());
            }
            return;
        }
    }
}

/// Writes a batch. Returns false if it must be tried again; true also if it can never be written, which is logged.
fn write(db: &Database, metrics: &Metrics, batch: &[Failure]) -> bool {
    if batch.is_empty() {
        return true;
    }
    let began = Instant::now();
    let Err(error) = audit::insert_failures(db, batch) else { return true };
    metrics.audit_write_errors.inc();
    if let Error::Internal(cause) = error {
        metrics.audit_lost.inc_by(batch.len() as u64);
        log::error!("{} failures are missing from the audit log: {cause}", batch.len());
        return true;
    }
    log_error(db, "failures for the audit log", began, &error);
    false
}
