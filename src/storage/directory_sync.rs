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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_that_come_while_a_sync_runs_share_the_next() {
        let names = DirectorySync::of(env!("CARGO_MANIFEST_DIR").into());
        // One that runs, as far as the others can tell.
        lock(&names.state).begun = 1;
        let number = names.last_begun();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert!(names.wait_after(number).is_ok()));
            }
            lock(&names.state).ended = 1;
            names.ended.notify_all();
        });
        assert_eq!(lock(&names.state).ended, 2);
        assert!(names.wait_after(1).is_ok());
        assert_eq!(lock(&names.state).begun, 2, "that sync is over already");
        assert!(names.wait_after(names.last_begun()).is_ok());
        assert_eq!(lock(&names.state).ended, 3);
    }

    #[test]
    fn a_sync_that_fails_has_failed_for_all_who_waited_for_it() {
        let names = DirectorySync::of("/nonexistent".into());
        assert!(names.wait_after(0).is_err());
        assert!(names.wait_after(0).is_err());
        assert_eq!(lock(&names.state).begun, 1, "the second waited for the same");
    }
}
