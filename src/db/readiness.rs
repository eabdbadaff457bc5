//! Whether the database answers, for the probes of load balancers, which may be frequent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

use super::{Database, sql};

/// How long an answer counts. However many probes arrive, the database is asked no more often than this.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Remembers for a second whether the database answered.
pub struct Readiness {
    /// When the database last answered or failed to. Locked while it is asked.
    asked_at: Mutex<Option<Instant>>,
    /// The last answer. The database has answered before the service starts, so this begins as true.
    is_ready: AtomicBool,
}

impl Readiness {
    pub fn new() -> Readiness {
        Readiness { asked_at: Mutex::new(None), is_ready: AtomicBool::new(true) }
    }

    /// Whether the database answers. One thread at a time asks it. Meanwhile the others return the last answer, so they
    /// take no connection and do not wait.
    pub fn check(&self, db: &Database) -> bool {
        let asked_at = match self.asked_at.try_lock() {
            Ok(asked_at) => Some(asked_at),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut asked_at) = asked_at
            && asked_at.is_none_or(|at| at.elapsed() >= MAX_AGE)
        {
            let is_ready = db.read(sql!("database/ping"), &[]).is_ok();
            self.is_ready.store(is_ready, Ordering::Relaxed);
            *asked_at = Some(Instant::now());
        }
        self.is_ready.load(Ordering::Relaxed)
    }
}
