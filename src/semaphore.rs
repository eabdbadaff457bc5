//! A counting semaphore that is fair: permits are handed out in the order of asking. A condition variable wakes its
//! waiters in no particular order, so under load an unlucky one waits many times longer than the others.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bounds how many threads do something at once. A permit that is dropped goes directly to the thread that has waited
/// longest, so no other thread can overtake it.
pub struct Semaphore {
    size: usize,
    state: Mutex<SemaphoreState>,
}

struct SemaphoreState {
    free: usize,
    /// One channel per waiting thread, in the order of asking. A message means: you have the permit.
    queue: VecDeque<SyncSender<()>>,
}

impl Semaphore {
    /// A semaphore with `size` permits, all of them free.
    pub fn new(size: usize) -> Semaphore {
        let state = SemaphoreState { free: size, queue: VecDeque::new() };
        Semaphore { size, state: Mutex::new(state) }
    }

    /// No code panics while it holds this lock, so a poisoned state would still be consistent.
    fn state(&self) -> MutexGuard<'_, SemaphoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many permits are taken.
    pub fn in_use(&self) -> usize {
        self.size - self.state().free
    }

    /// How many threads wait for a permit. Threads whose wait has timed out count until the queue reaches them.
    pub fn waiting(&self) -> usize {
        self.state().queue.len()
    }

    /// Waits for a permit; `None` where none was handed over within `timeout`.
    pub fn acquire(&self, timeout: Duration) -> Option<Permit<'_>> {
        let receiver = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Some(Permit { semaphore: self });
            }
            let (sender, receiver) = sync_channel(1);
            state.queue.push_back(sender);
            receiver
        };
        if receiver.recv_timeout(timeout).is_ok() {
            return Some(Permit { semaphore: self });
        }
        // The permit may have been handed over just after the timeout. Permits are handed over under the lock, so it is
        // held here until the receiver is dropped: from then on sending to this thread fails.
        let state = self.state();
        let was_handed_over = receiver.try_recv().is_ok();
        drop(receiver);
        drop(state);
        // Only now: a permit takes the lock when it is dropped.
        was_handed_over.then(|| Permit { semaphore: self })
    }
}

/// One of the permits of a [`Semaphore`]. Dropping it hands it on to the next waiting thread, or frees it.
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut state = self.semaphore.state();
        while let Some(next) = state.queue.pop_front() {
            // Sending fails where that thread has stopped waiting and dropped its receiver.
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
    fn permits_are_bounded_and_waiting_times_out() {
        let semaphore = Semaphore::new(2);
        let first = semaphore.acquire(Duration::ZERO);
        let _second = semaphore.acquire(Duration::ZERO);
        assert!(semaphore.acquire(Duration::from_millis(5)).is_none());
        drop(first);
        assert!(
            semaphore.acquire(Duration::ZERO).is_some(),
            "a thread that gave up does not block the queue"
        );
    }

    #[test]
    fn permits_are_handed_over_in_the_order_of_asking() {
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
                while semaphore.state().queue.len() <= n {
                    std::thread::yield_now();
                }
            }
            drop(held);
        });
        let served = served.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(served, (0..10).collect::<Vec<_>>());
    }
}
