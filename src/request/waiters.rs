//! Requests that wait for changes of files. One thread asks the database for all of them, once a second.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use uuid::Uuid;

use crate::db::{Database, sql};
use crate::error::Error;
use crate::semaphore::lock;

/// Most waiting requests of a user's sessions, and as many of the user's personal access tokens.
const MAX_WAITING: usize = 4;

/// The time between two polls of the database.
const PAUSE: Duration = Duration::from_secs(1);

/// Who waits, and for what.
pub struct Waiter {
    pub user: Uuid,
    pub has_personal_token: bool,
    /// The number of the user's latest change that the request has seen.
    pub seen: i64,
}

/// The waiting requests of this process.
pub struct Waiters {
    state: Mutex<State>,
    /// Wakes the thread that asks the database.
    begun: Condvar,
}

struct State {
    /// A number for each request, and how to wake it.
    waiting: HashMap<u64, (Waiter, SyncSender<()>)>,
    next_number: u64,
    /// Most requests that may wait.
    max: usize,
}

impl Waiters {
    /// Until [`Waiters::start`] is called, and after [`Waiters::close`], no request may wait.
    pub fn new() -> Waiters {
        let state = State { waiting: HashMap::new(), next_number: 0, max: 0 };
        Waiters { state: Mutex::new(state), begun: Condvar::new() }
    }

    /// Lets up to `max` requests wait, and starts the thread that asks the database for them.
    pub fn start(self: &Arc<Self>, max: usize, db: Arc<Database>) -> io::Result<()> {
        lock(&self.state).max = max;
        let waiters = self.clone();
        let run = move || while waiters.poll(&db) {};
        thread::Builder::new().name("changes".into()).spawn(run).map(drop)
    }

    /// Ends all waits at once.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.max = 0;
        state.waiting.clear();
    }

    /// Waits until the user has changes that the request has not seen, but not longer than `timeout`, nor after
    /// [`Waiters::close`]. Returns false at once if too many others wait.
    pub fn wait(&self, waiter: Waiter, timeout: Duration) -> bool {
        let (wake, woken) = sync_channel(1);
        let number = {
            let mut state = lock(&self.state);
            let owner = (waiter.user, waiter.has_personal_token);
            let is_same = |(other, _): &&(Waiter, SyncSender<()>)| {
                (other.user, other.has_personal_token) == owner
            };
            if state.waiting.len() >= state.max
                || state.waiting.values().filter(is_same).count() >= MAX_WAITING
            {
                return false;
            }
            let number = state.next_number;
            state.next_number += 1;
            state.waiting.insert(number, (waiter, wake));
            number
        };
        self.begun.notify_one();
        // However the wait ends, the caller queries the database itself.
        let _ = woken.recv_timeout(timeout);
        lock(&self.state).waiting.remove(&number);
        true
    }

    /// How many requests wait.
    pub fn count(&self) -> usize {
        lock(&self.state).waiting.len()
    }

    /// Blocks until a request is waiting, then polls the database once for all of them. Returns false if none may wait
    /// any more.
    fn poll(&self, db: &Database) -> bool {
        let is_idle = |state: &mut State| state.waiting.is_empty();
        let idle = self.begun.wait_while(lock(&self.state), is_idle);
        drop(idle.unwrap_or_else(PoisonError::into_inner));
        thread::sleep(PAUSE);
        let mut users: Vec<Uuid> =
            lock(&self.state).waiting.values().map(|(waiter, _)| waiter.user).collect();
        users.sort_unstable();
        users.dedup();
        // If the database cannot be asked, it is in a second. The log has a line about the outage.
        let latest = latest_changes(db, &users).unwrap_or_default();
        let state = lock(&self.state);
        for (waiter, wake) in state.waiting.values() {
            if latest.get(&waiter.user).is_some_and(|latest| *latest > waiter.seen) {
                // One message is enough.
                let _ = wake.try_send(());
            }
        }
        state.max > 0
    }
}

/// Longest wait for the database of the one query for all requests that wait for changes.
const MAX_LATEST_WAIT: Duration = Duration::from_secs(1);

/// The number of the latest change of the files of each of these users.
fn latest_changes(db: &Database, users: &[Uuid]) -> Result<HashMap<Uuid, i64>, Error> {
    let rows = db.read_within(MAX_LATEST_WAIT, sql!("request/latest_changes"), &[&users])?;
    Ok(rows.iter().map(|row| (row.get("id"), row.get("latest_change"))).collect())
}
