//! Work that runs beside requests, in one thread: password reset messages, and the removal of what has expired or
//! belongs to no record.

pub mod password_resets;
pub mod sweep;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::auth::jwt::SigningKey;
use crate::config::Config;
use crate::db::{self, Database};
use crate::error::Error;
use crate::storage::Storage;

/// How often expired sessions, expired records of used tokens, and contents without a record are removed.
const SWEEP_PERIOD: Duration = Duration::from_secs(3600);
/// How often the thread looks for password reset requests without being woken. Other processes, which cannot wake it,
/// store requests in the same database.
const POLL_PERIOD: Duration = Duration::from_secs(5);

/// What background work uses of the process.
pub struct Background {
    pub config: Arc<Config>,
    pub db: Arc<Database>,
    pub storage: Arc<Storage>,
    /// Signs password reset tokens.
    pub signing_key: Arc<SigningKey>,
}

impl Background {
    /// Starts the thread. A message to the returned sender wakes it at once. The channel holds one message, and another
    /// adds nothing to it, so senders use `try_send` and never block.
    pub fn spawn(self) -> io::Result<SyncSender<()>> {
        let (wake, woken) = sync_channel(1);
        thread::Builder::new().name("background".into()).spawn(move || self.run(&woken))?;
        Ok(wake)
    }

    /// Works until every sender is gone. A panic or a database that is down ends one round of work, not the thread.
    fn run(&self, woken: &Receiver<()>) {
        let mut swept: Option<Instant> = None;
        loop {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                password_resets::deliver(self)?;
                if swept.is_none_or(|at| at.elapsed() >= SWEEP_PERIOD) {
                    db::sessions::sweep(&self.db)?;
                    sweep::remove_orphans(&self.storage, &self.db)?;
                    swept = Some(Instant::now());
                }
                Ok::<_, Error>(())
            }));
            if let Ok(Err(error)) = outcome {
                log::warn!("background work failed, tried again soon: {error:?}");
            }
            if woken.recv_timeout(POLL_PERIOD) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }
}
