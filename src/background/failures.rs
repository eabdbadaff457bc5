//! The thread that writes refused actions to the audit log. It is not the thread of the other tasks, because those may
//! take longer than a failure may wait.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::log_failure;
use crate::db::audit::{self, Failure};
use crate::db::{Database, FailureQueue};
use crate::error::Error;
use crate::telemetry::metrics::Metrics;

/// Writes what is in a queue until it is stopped.
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

    /// Writes what is in the queue and ends the thread. No request may be running any more. If the database does not
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
        let is_written = write(db, metrics, &batch);
        if is_written {
            batch.clear();
        }
        if is_closed {
            let mut rest = batch;
            rest.extend(queue.take());
            if !is_written || !write(db, metrics, &rest) {
                log::error!("{} failures are missing from the audit log", rest.len());
            }
            return;
        }
    }
}

/// Whether the batch needs no other attempt: it is written, or it never can be.
fn write(db: &Database, metrics: &Metrics, batch: &[Failure]) -> bool {
    if batch.is_empty() {
        return true;
    }
    let began = Instant::now();
    let outcome = audit::insert_failures(db, batch);
    if outcome.is_err() {
        metrics.count_audit_write_error();
    }
    match outcome {
        Ok(()) => true,
        Err(Error::Internal(cause)) => {
            metrics.count_audit_lost(batch.len() as u64);
            log::error!("{} failures are missing from the audit log: {cause}", batch.len());
            true
        }
        Err(error) => {
            log_failure(db, "failures for the audit log", began, &error);
            false
        }
    }
}
