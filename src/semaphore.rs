//! A bounded gate that is fair: what is scarce is handed on in the order of asking. A condition
//! variable wakes in no order, and under load its last ones wait many times longer than need be.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A number of semaphore, given out in the order of asking: a waiting thread is handed its permit, so
/// nobody overtakes it and no one waits longer than the line before it.
pub struct Semaphore {
    most: usize,
    state: Mutex<State>,
}

struct State {
    free: usize,
    line: VecDeque<SyncSender<()>>,
}

impl Semaphore {
    /// `most` semaphore at a time.
    pub fn new(most: usize) -> Semaphore {
        Semaphore { most, state: Mutex::new(State { free: most, line: VecDeque::new() }) }
    }

    /// Nothing panics while the lock is held, so a poisoned state would still be sound.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many semaphore are taken.
    pub fn in_use(&self) -> usize {
        self.most - self.state().free
    }

    /// How many wait for one; who gave up a moment ago may still count.
    pub fn waiting(&self) -> usize {
        self.state().line.len()
    }

    /// A permit, or `None` after `wait`.
    pub fn acquire(&self, wait: Duration) -> Option<Permit<'_>> {
        let place: Receiver<()> = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Some(Permit { semaphore: self });
            }
            let (handed, place) = sync_channel(1);
            state.line.push_back(handed);
            place
        };
        match place.recv_timeout(wait) {
            Ok(()) => Some(Permit { semaphore: self }),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                // Under the lock nobody hands over. It may have happened just before: then the permit
                // is ours after all. Made outside the lock, which its drop takes.
                let state = self.state();
                let handed = place.try_recv().is_ok();
                drop(place);
                drop(state);
                handed.then(|| Permit { semaphore: self })
            }
        }
    }
}

/// The right to go on; passed on when dropped.
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.semaphore.state();
        // Who stopped waiting has dropped its end, and sending to it fails.
        while let Some(next) = state.line.pop_front() {
            if next.send(()).is_ok() {
                return;
            }
        }
        state.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_bounded_and_waiting_ends() {
        let semaphore = Semaphore::new(2);
        let first = semaphore.acquire(Duration::ZERO);
        let _second = semaphore.acquire(Duration::ZERO);
        assert!(semaphore.acquire(Duration::from_millis(5)).is_none());
        drop(first);
        assert!(
            semaphore.acquire(Duration::ZERO).is_some(),
            "who gave up left no hole in the line"
        );
    }

    #[test]
    fn turns_are_handed_over_in_the_order_of_asking() {
        let semaphore = Semaphore::new(1);
        let served = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let held = semaphore.acquire(Duration::ZERO);
            for n in 0..10 {
                let (semaphore, served) = (&semaphore, &served);
                scope.spawn(move || {
                    let permit = semaphore.acquire(Duration::from_secs(10));
                    assert!(permit.is_some());
                    served.lock().unwrap_or_else(PoisonError::into_inner).push(n);
                });
                while semaphore.state().line.len() <= n {
                    std::thread::yield_now();
                }
            }
            drop(held);
        });
        let served = served.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(served, (0..10).collect::<Vec<_>>());
    }
}
