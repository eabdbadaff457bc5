//! Work that runs beside requests. One thread sends mail, and one writes failures to the audit log. A third one takes
//! away contents that have no record any more, for which it may wait for a store. A fourth one does everything else: it
//! looks up the accounts of password resets, marks the sessions that ended together, writes the events that stand for
//! many changes, adds up the rows of totals, and removes expired records, and those of deleted users and files.

#[cfg(feature = "extras")]
mod abandoned;
pub mod failures;
mod outbox;
pub mod sweep;

pub use outbox::OutboxSender;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Once};
use std::thread;
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::db::{self, Database};
use crate::error::Error;
use crate::model::timestamp::unix_time;
use crate::sign_in::statements as sign_in;
use crate::storage::Storage;

/// How often expired records and contents without a record are looked for.
const SWEEP_PERIOD: Duration = Duration::from_secs(3600);
/// How often uploads that have ended are looked for.
#[cfg(feature = "extras")]
const LOOK_PERIOD: Duration = Duration::from_secs(60);
/// How often the threads look for work without being woken. Other processes, which cannot wake it, leave work in the
/// same database. A task that failed is tried again after this time too.
const POLL_PERIOD: Duration = Duration::from_secs(5);

/// How many times as long as a turn of all its tasks a thread rests after it, if there is more to do. So a backlog of a
/// million records takes a fifth of a core from requests, for a minute or two.
const REST: u32 = 4;
/// The same for contents: their thread mostly waits for a store, and a user's thousand files are to go in a minute.
const CONTENT_REST: u32 = 1;
/// Most records that a statement removes or changes, a few hundredths of a second of work. Each transaction is short,
/// and requests that need the same locks or cores do not wait long. Uploads wait for a removal of files.
const MAX_BATCH: i64 = 1000;
/// Most contents that are removed in a turn, each of which may be a request to a store.
const MAX_CONTENTS: i64 = 100;

/// Does a limited part of a task, at most as many records as the number says, and returns how many it removed or
/// changed: 0 if nothing is left.
type Run = dyn Fn(&Background, i64) -> Result<i64, Error> + Send;

/// A part of the background work, independent of the others.
struct Task {
    /// The name in the log.
    name: &'static str,
    /// How long the thread waits to look for more once nothing is left.
    pause: Duration,
    /// The most records at a time, or 1 if the task has a limit of its own.
    batch: i64,
    run: Box<Run>,
}

fn task(
    name: &'static str,
    pause: Duration,
    batch: i64,
    run: impl Fn(&Background, i64) -> Result<i64, Error> + Send + 'static,
) -> Task {
    Task { name, pause, batch, run: Box::new(run) }
}

/// The tasks that use the database and the local disk alone, the most urgent first. Each does a limited part at a time,
/// so that none waits long for another.
#[rustfmt::skip] // One row a task, as in a table.
fn tasks() -> Vec<Task> {
    let mut tasks = vec![
        task("version of the schema", Duration::ZERO, 1, |work, _| stop_if_schema_is_unsuited(&work.db)),
        task("a server that takes changes", Duration::ZERO, 1,
            |work, _| work.db.pool.leave_read_only_server().map(|()| 0)),
        // Before the next one, so that two minutes after an event a request has one of its own.
        task("events of password resets", Duration::ZERO, MAX_BATCH,
            |work, limit| db::outbox::insert_counted(&work.db, limit)),
        task("password resets", Duration::ZERO, 1, |work, _| queue_password_resets(work)),
        task("records of deleted users and files", Duration::ZERO, MAX_BATCH,
            |work, limit| db::contents::remove_records(&work.db, &work.config, limit)),
        task("sessions that ended together", Duration::ZERO, MAX_BATCH,
            |work, limit| sign_in::end_epoch(&work.db, limit)),
        task("events of many changes", Duration::ZERO, MAX_BATCH,
            |work, limit| db::audit::insert_skipped(&work.db, limit)),
        task("rows of totals", Duration::ZERO, MAX_BATCH, |work, limit| db::stats::fold_totals(&work.db, limit)),
        task("old audit events", SWEEP_PERIOD, MAX_BATCH,
            |work, limit| db::audit::sweep(&work.db, work.config.audit_days, limit)),
    ];
    tasks.extend(OLD_RECORDS.map(|(name, table, at, age)| {
        task(name, SWEEP_PERIOD, MAX_BATCH, move |work, limit| db::sweep(&work.db, table, at, age, limit))
    }));
    tasks
}

/// Records that are removed with time: the name of the task, the table, a column with a time, or the first one in a
/// column, and how long after it they are of no use any more.
const OLD_RECORDS: [(&str, &str, &str, &str); 11] = [
    ("expired sessions", "sessions", "expires_at", "0 days"),
    ("expired personal tokens", "personal_tokens", "expires_at", "0 days"),
    ("expired links", "file_links", "expires_at", "0 days"),
    ("old idempotency keys", "idempotency_keys", "created_at", "1 day"),
    ("networks of former sign-ins", "sign_in_networks", "last_sign_in_at", "30 days"),
    ("used reset tokens", "used_password_reset_tokens", "expires_at", "0 days"),
    // No cookie has their states any more.
    ("sign-ins by a provider", "provider_sign_ins", "used_at", "15 minutes"),
    ("mail given up", "outbox", "failed_at", "30 days"),
    // These count what happens within a day.
    ("counts of reset messages", "password_reset_messages", "sent_at[1]", "1 day"),
    ("counts of mail", "mail_counts", "queued_at[1]", "1 day"),
    ("counts of changes", "own_changes", "hour", "1 day"),
];

/// The tasks that ask a store, or read whole directories. They have a thread of their own, because a slow store may
/// keep it for minutes.
#[rustfmt::skip]
fn content_tasks() -> Vec<Task> {
    vec![
        task("contents of deleted files", Duration::ZERO, MAX_CONTENTS,
            |work, limit| sweep::remove_deleted(&work.storage, &work.db, work.config.trash_days, limit)),
        task("contents without a record", SWEEP_PERIOD, 1, |work, _| sweep::run(work)),
        #[cfg(feature = "extras")]
        task("uploads whose time is over", LOOK_PERIOD, MAX_BATCH, abandoned::expire),
        #[cfg(feature = "extras")]
        task("bytes of no upload", LOOK_PERIOD, 1, |work, _| abandoned::sweep(work)),
    ]
}

/// The two threads of these tasks, with the parts of the process that they use.
pub struct Background {
    pub config: Arc<Config>,
    pub db: Arc<Database>,
    pub storage: Arc<Storage>,
    /// Wakes the thread that sends mail.
    pub wake_mail: SyncSender<()>,
}

impl Background {
    /// Starts the threads. A message to the returned sender wakes the one that does not wait for contents at once. The
    /// channel holds one message, and another adds nothing to it, so senders use `try_send` and never block.
    pub fn spawn(self) -> io::Result<SyncSender<()>> {
        let (wake, woken) = sync_channel(1);
        let (keep_open, never_woken) = sync_channel(0);
        let work = Arc::new(self);
        let of_contents = work.clone();
        let run = move || of_contents.run(&content_tasks(), CONTENT_REST, &never_woken);
        thread::Builder::new().name("contents".into()).spawn(run)?;
        let run = move || {
            work.run(&tasks(), REST, &woken);
            drop(keep_open); // which ends the other thread
        };
        thread::Builder::new().name("background".into()).spawn(run)?;
        Ok(wake)
    }

    /// Works until every sender is gone. The tasks take turns as long as any of them has work left, with a rest after
    /// each turn. A task that fails or panics is tried again later and does not keep the others from running.
    ///
    /// Work that a request has left begins at the next full second. So the time of the client's next request does not
    /// tell how much work it is, which depends on whether an account has the address that was typed.
    fn run(&self, tasks: &[Task], rest: u32, woken: &Receiver<()>) {
        let mut states: Vec<_> = tasks.iter().map(|row| (Instant::now(), row.batch)).collect();
        loop {
            let (began, mut has_more) = (Instant::now(), false);
            for (task, (due, batch)) in tasks.iter().zip(&mut states) {
                if *due > Instant::now() {
                    continue;
                }
                match attempt(&self.db, task.name, || self.run_batch(task, batch)) {
                    Some(0) => (*due, *batch) = (Instant::now() + task.pause, task.batch),
                    Some(_) => has_more = true,
                    None => *due = Instant::now() + POLL_PERIOD,
                }
            }
            let rest = (rest * began.elapsed()).min(POLL_PERIOD);
            let wait = if has_more { rest } else { POLL_PERIOD };
            match woken.recv_timeout(wait) {
                Ok(()) => thread::sleep(until_next_second(unix_time())),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Does one batch of a task. If that takes longer than the statement timeout, as on a slow disk, the next ones have
    /// half as many records: a batch of fixed size would fail again each time, and nothing would ever be removed.
    fn run_batch(&self, task: &Task, batch: &mut i64) -> Result<i64, Error> {
        match (task.run)(self, *batch) {
            Err(Error::TimedOut) if *batch > 1 => {
                *batch /= 2;
                log::info!(
                    "background task took too long, goes on with {batch} records at a time: {}",
                    task.name
                );
                Ok(1) // There is more to do.
            }
            outcome => outcome,
        }
    }
}

/// The time from `now`, which counts from 1970, to the next full second.
fn until_next_second(now: Duration) -> Duration {
    Duration::from_secs(now.as_secs() + 1) - now
}

/// Stops the process as SIGTERM does, if a newer program has changed the database into one that does not suit this one:
/// what it would go on to read and write may mean something else by now. The exit status is 0, so that a supervisor
/// does not start it again, which the start would refuse.
fn stop_if_schema_is_unsuited(db: &Database) -> Result<i64, Error> {
    /// A second signal would end requests that are under way.
    static STOP: Once = Once::new();
    if let Some(reason) = db::migrations::find_unsuited(db)? {
        STOP.call_once(|| {
            log::error!("stops: {reason}");
            if let Err(error) = signal_hook::low_level::raise(signal_hook::consts::SIGTERM) {
                log::error!("SIGTERM: {error}");
            }
        });
    }
    Ok(0)
}

/// Turns up to a hundred requests for password resets into messages in the outbox, or drops them. A handler only stores
/// the address that was typed; here it is looked up. So the time of the response does not tell whether an account has
/// the address (OWASP, "Forgot Password Cheat Sheet"). Wakes the thread that sends mail, also for what handlers have
/// queued.
fn queue_password_resets(work: &Background) -> Result<i64, Error> {
    let requests = db::outbox::queue_messages(&work.db)?;
    // If the channel is full, the thread is about to look for messages anyway.
    let _ = work.wake_mail.try_send(());
    Ok(requests)
}

/// Does some work. Returns `None`, and logs why, if it failed or panicked and is to be tried again.
fn attempt<T>(db: &Database, name: &str, work: impl FnOnce() -> Result<T, Error>) -> Option<T> {
    let began = Instant::now();
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => return Some(done),
        Ok(Err(error)) => log_error(db, name, began, &error),
        // The panic has logged its own text.
        Err(_) => log::error!("background task panicked, tried again soon: {name}"),
    }
    None
}

/// Logs that work which began at `began` failed and is tried again, with its cause. Logs nothing if the cause is an
/// outage of the database or of the store, or that the database refuses changes, which have their own lines.
fn log_error(db: &Database, name: &str, began: Instant, error: &Error) {
    let has_line = match error {
        Error::Unavailable | Error::OutcomeUnknown => {
            db.pool.was_lost_since(began) || db.pool.refuses_changes()
        }
        Error::StoreUnavailable => true,
        _ => false,
    };
    if !has_line {
        log::warn!("background task failed, tried again soon: {name}: {}", error.cause());
    }
}
