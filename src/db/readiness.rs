//! What the database can be used for, for the probes of load balancers, which may be frequent.

use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

use super::{Database, one_row, sql};
use crate::semaphore::lock;

/// How long an answer counts. However many probes arrive, the database is asked no more often than this.
const MAX_AGE: Duration = Duration::from_secs(1);

/// What the database can be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseState {
    /// It does not answer.
    Lost,
    /// It answers, and refuses changes: it is a standby, was made read-only, or has no room left.
    ReadOnly,
    Writable,
}

/// Remembers for a second what the database answered.
pub struct Readiness {
    /// When the database last answered or failed to. Locked while it is asked.
    asked_at: Mutex<Option<Instant>>,
    /// The last answer. The service has written to the database before it listens, so this begins as writable.
    state: Mutex<DatabaseState>,
}

impl Readiness {
    pub fn new() -> Readiness {
        Readiness { asked_at: Mutex::new(None), state: Mutex::new(DatabaseState::Writable) }
    }

    /// What the database can be used for. One thread at a time asks it. Meanwhile the others return the last answer, so
    /// they take no connection and do not wait.
    pub fn check(&self, db: &Database) -> DatabaseState {
        let asked_at = match self.asked_at.try_lock() {
            Ok(asked_at) => Some(asked_at),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut asked_at) = asked_at
            && asked_at.is_none_or(|at| at.elapsed() >= MAX_AGE)
        {
            let state = ask(db);
            *lock(&self.state) = state;
            *asked_at = Some(Instant::now());
        }
        *lock(&self.state)
    }
}

fn ask(db: &Database) -> DatabaseState {
    match db.read(sql!("database/ping"), &[]).and_then(one_row) {
        Err(_) => DatabaseState::Lost,
        Ok(row) if row.get("is_read_only") || db.refuses_changes() => DatabaseState::ReadOnly,
        Ok(_) => DatabaseState::Writable,
    }
}
