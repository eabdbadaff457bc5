//! A directory whose names are synced for several threads at once.

use std::io;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};

use super::file_system::sync_directory;
use crate::semaphore::lock;

/// Makes new names in a directory survive a loss of power. A sync covers all names that were made before it began, so
/// the threads that come while one runs share the next.
pub struct DirectorySync {
    directory: PathBuf,
    state: Mutex<Syncs>,
    ended: Condvar,
}

/// Syncs are numbered from 1. At most one runs: then `begun` is its number, and `ended` that of the one before.
#[derive(Default)]
struct Syncs {
    begun: u64,
    ended: u64,
    /// The last one that failed.
    failed: u64,
}

impl DirectorySync {
    pub fn of(directory: PathBuf) -> DirectorySync {
        DirectorySync { directory, state: Mutex::default(), ended: Condvar::new() }
    }

    /// The number of the last sync that has begun. The later ones cover the names that exist now.
    pub fn last_begun(&self) -> u64 {
        lock(&self.state).begun
    }

    /// Waits until a sync after the one of this number has ended, and begins it if no other thread does. Fails if that
    /// or a later one failed: the kernel reports an error of the disk only once.
    pub fn wait_after(&self, number: u64) -> io::Result<()> {
        let mut state = lock(&self.state);
        while state.ended <= number {
            if state.begun > state.ended {
                state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.begun += 1;
            drop(state);
            let outcome = sync_directory(&self.directory);
            state = lock(&self.state);
            state.ended = state.begun;
            if outcome.is_err() {
                state.failed = state.ended;
            }
            self.ended.notify_all();
            return outcome;
        }
        if state.failed > number {
            return Err(io::Error::other("the directory of contents could not be synced"));
        }
        Ok(())
    }
}
