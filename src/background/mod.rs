//! Work that runs beside requests. One thread sends mail, one writes failures to the audit log, and another does
//! everything else, which is requests for password resets and the removal of what has expired, was deleted, or belongs
//! to no record.

pub mod failures;
mod outbox;
mod password_resets;
mod removals;
pub mod sweep;

pub use outbox::OutboxSender;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::db::{self, Database};
use crate::error::Error;
use crate::storage::Storage;

/// How often the tasks that remove what has expired, and contents without a record, are run.
const SWEEP_PERIOD: Duration = Duration::from_secs(3600);
/// How often the thread looks for work without being woken. Other processes, which cannot wake it, leave work in the
/// same database. A task that failed is tried again after this time too.
const POLL_PERIOD: Duration = Duration::from_secs(5);

/// Whether a task has work left. A task may do a limited part of its work at a time.
pub enum Progress {
    Done,
    More,
}

/// A part of the background work, independent of the others.
struct Task {
    /// Names the task in the log.
    name: &'static str,
    /// The time between two runs, where the first has finished the work.
    period: Duration,
    run: fn(&Background) -> Result<Progress, Error>,
}

/// All tasks, the most urgent first. Those that remove records do a limited part at a time, so that none waits long for
/// another; only the last one reads whole directories, once an hour.
const TASKS: [Task; 9] = [
    Task { name: "password resets", period: Duration::ZERO, run: password_resets::queue_messages },
    Task { name: "files of deleted users", period: Duration::ZERO, run: removals::remove_some },
    Task {
        name: "expired sessions",
        period: SWEEP_PERIOD,
        run: |background| db::sessions::sweep(&background.db).map(Progress::after_batch),
    },
    Task {
        name: "expired personal tokens",
        period: SWEEP_PERIOD,
        run: |background| db::personal_tokens::sweep(&background.db).map(Progress::after_batch),
    },
    Task {
        name: "networks of former sign-ins",
        period: SWEEP_PERIOD,
        run: |background| db::sessions::sweep_networks(&background.db).map(Progress::after_batch),
    },
    Task {
        name: "used reset tokens",
        period: SWEEP_PERIOD,
        run: |background| db::resets::sweep(&background.db).map(Progress::after_batch),
    },
    Task {
        name: "mail given up",
        period: SWEEP_PERIOD,
        run: |background| db::outbox::sweep(&background.db).map(Progress::after_batch),
    },
    Task {
        name: "old audit events",
        period: SWEEP_PERIOD,
        run: |background| {
            db::audit::sweep(&background.db, background.config.audit_days)
                .map(Progress::after_batch)
        },
    },
    Task { name: "contents without a record", period: SWEEP_PERIOD, run: sweep::run },
];

impl Progress {
    /// The progress after a batch that removed so many rows: unless it found nothing to remove, there may be more.
    fn after_batch(removed: i64) -> Progress {
        if removed > 0 { Progress::More } else { Progress::Done }
    }
}

/// What background work uses of the process.
pub struct Background {
    pub config: Arc<Config>,
    pub db: Arc<Database>,
    pub storage: Arc<Storage>,
    /// Wakes the thread that sends mail.
    pub wake_mail: SyncSender<()>,
}

impl Background {
    /// Starts the thread. A message to the returned sender wakes it at once. The channel holds one message, and another
    /// adds nothing to it, so senders use `try_send` and never block.
    pub fn spawn(self) -> io::Result<SyncSender<()>> {
        let (wake, woken) = sync_channel(1);
        thread::Builder::new().name("background".into()).spawn(move || self.run(&woken))?;
        Ok(wake)
    }

    /// Works until every sender is gone. The tasks take turns as long as any of them has work left. One that fails or
    /// panics is tried again later and does not keep the others from running.
    fn run(&self, woken: &Receiver<()>) {
        let mut due = TASKS.map(|_| Instant::now());
        loop {
            let mut has_more = false;
            for (task, due) in TASKS.iter().zip(&mut due) {
                if *due > Instant::now() {
                    continue;
                }
                let began = Instant::now();
                match catch_unwind(AssertUnwindSafe(|| (task.run)(self))) {
                    Ok(Ok(Progress::More)) => has_more = true,
                    Ok(Ok(Progress::Done)) => *due = Instant::now() + task.period,
                    Ok(Err(error)) => {
                        log_failure(&self.db, task.name, began, &error);
                        *due = Instant::now() + POLL_PERIOD;
                    }
                    Err(_) => {
                        log_panic(task.name);
                        *due = Instant::now() + POLL_PERIOD;
                    }
                }
            }
            let wait = if has_more { Duration::ZERO } else { POLL_PERIOD };
            if woken.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }
}

/// Logs that work which began at `began` failed and is tried again, with its cause; not if that is an outage of the
/// database, which has its own line.
fn log_failure(db: &Database, task: &str, began: Instant, error: &Error) {
    let is_outage = matches!(error, Error::Unavailable | Error::OutcomeUnknown);
    if !(is_outage && db.was_lost_since(began)) {
        log::warn!("background task failed, tried again soon: {task}: {}", error.cause());
    }
}

/// Logs which work panicked. What the panic says is a line before.
fn log_panic(task: &str) {
    log::error!("background task panicked, tried again soon: {task}");
}
