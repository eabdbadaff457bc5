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

/// Syncs are numbered from 1. At most one runs: then `begun` is its number, and `ended` that of the one before. A copy
/// stands for the moment at which it was made.
#[derive(Clone, Copy, Default)]
pub struct Syncs {
    begun: u64,
    ended: u64,
    /// The last one that failed, and why.
    failed: Option<(u64, io::ErrorKind)>,
}

impl DirectorySync {
    pub fn of(directory: PathBuf) -> DirectorySync {
        DirectorySync { directory, state: Mutex::default(), ended: Condvar::new() }
    }

    /// The present moment. Syncs that begin later cover the names that exist now.
    pub fn now(&self) -> Syncs {
        *lock(&self.state)
    }

    /// Waits until a sync that began after this moment has ended, and runs it if no other thread does. Fails if it
    /// failed, or any other that ended since: it may have met the same names, and the kernel reports an error of the
    /// disk only once.
    pub fn wait_since(&self, moment: Syncs) -> io::Result<()> {
        let mut state = lock(&self.state);
        while state.ended <= moment.begun {
            if state.begun > state.ended {
                state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.begun += 1;
            drop(state);
            let outcome = sync_directory(&self.directory);
            state = lock(&self.state);
            state.ended = state.begun;
            if let Err(error) = outcome {
                state.failed = Some((state.ended, error.kind()));
            }
            self.ended.notify_all();
        }
        match state.failed {
            Some((number, kind)) if number > moment.ended => Err(kind.into()),
            _ => Ok(()),
        }
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
        let moment = names.now();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| assert!(names.wait_since(moment).is_ok()));
            }
            lock(&names.state).ended = 1;
            names.ended.notify_all();
        });
        assert_eq!(lock(&names.state).ended, 2);
        assert!(names.wait_since(moment).is_ok());
        assert_eq!(lock(&names.state).begun, 2, "that sync is over already");
        assert!(names.wait_since(names.now()).is_ok());
        assert_eq!(lock(&names.state).ended, 3);
    }

    #[test]
    fn a_sync_that_fails_has_failed_for_all_whose_names_it_may_have_met() {
        let names = DirectorySync::of("/nonexistent".into());
        let before = names.now();
        lock(&names.state).begun = 1;
        let during = names.now();
        *lock(&names.state) = Syncs { begun: 1, ended: 1, failed: Some((1, io::ErrorKind::Other)) };
        let after = names.now();
        assert!(names.wait_since(before).is_err());
        assert_eq!(lock(&names.state).begun, 1, "it waited for that sync only");
        *lock(&names.state) = Syncs { begun: 2, ended: 2, failed: Some((1, io::ErrorKind::Other)) };
        assert!(names.wait_since(during).is_err());
        assert!(names.wait_since(after).is_ok());
        let failed = names.wait_since(names.now());
        assert!(failed.is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
    }
}
