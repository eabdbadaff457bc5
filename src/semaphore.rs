//! A counting semaphore that is fair: permits are handed out in the order of asking. A condition variable wakes its
//! waiters in no particular order, so under load an unlucky one waits many times longer than the others.
//! [`lock`] is how all modules lock a mutex.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks a mutex, even a poisoned one. The value must be consistent whenever code that holds the lock can panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bounds how many threads do something at once. Each key has its own permits; a semaphore with a single bound uses the
/// key `()`.
/// A permit that is dropped goes directly to the thread that has waited longest, so no other thread can overtake it.
pub struct Semaphore<K: Eq + Hash = ()> {
    /// Permits of each key, at least 1.
    size: usize,
    /// Most threads that wait for a permit of one key.
    max_waiting: usize,
    state: Mutex<SemaphoreState<K>>,
}

struct SemaphoreState<K> {
    /// Has only the keys of which a permit is taken, so that clients cannot make it grow with keys of the past.
    keys: HashMap<K, KeyState>,
    next_ticket: u64,
    /// Nobody may wait any more.
    is_closed: bool,
}

#[derive(Default)]
struct KeyState {
    /// Permits that are taken.
    taken: usize,
    /// A ticket and a channel for each waiting thread, in the order of asking. A message means: you have the permit.
    queue: VecDeque<(u64, SyncSender<()>)>,
}

impl<K: Eq + Hash + Clone> Semaphore<K> {
    /// A semaphore with `size` permits for each key, all of them free.
    pub fn new(size: usize) -> Arc<Semaphore<K>> {
        Semaphore::with_queue(size, usize::MAX)
    }

    /// Like [`Semaphore::new`], but at most `max_waiting` threads may wait for each key.
    pub fn with_queue(size: usize, max_waiting: usize) -> Arc<Semaphore<K>> {
        let state = SemaphoreState { keys: HashMap::new(), next_ticket: 0, is_closed: false };
        Arc::new(Semaphore { size, max_waiting, state: Mutex::new(state) })
    }

    /// Waits for a permit of `key`; `None` if none was handed over within `timeout`, or at once if too many wait or the
    /// semaphore is closed.
    pub fn acquire(self: &Arc<Self>, key: K, timeout: Duration) -> Option<Permit<K>> {
        self.acquire_at(key, timeout, VecDeque::push_back)
    }

    /// The same for a thread that had a permit and has given it back for a while: it waits before all others.
    pub fn acquire_first(self: &Arc<Self>, key: K, timeout: Duration) -> Option<Permit<K>> {
        self.acquire_at(key, timeout, VecDeque::push_front)
    }

    fn acquire_at(
        self: &Arc<Self>,
        key: K,
        timeout: Duration,
        join: impl FnOnce(&mut VecDeque<(u64, SyncSender<()>)>, (u64, SyncSender<()>)),
    ) -> Option<Permit<K>> {
        let permit = |key| Some(Permit { semaphore: self.clone(), key });
        let (ticket, receiver) = {
            let mut state = lock(&self.state);
            let (ticket, is_closed) = (state.next_ticket, state.is_closed);
            state.next_ticket += 1;
            let own = state.keys.entry(key.clone()).or_default();
            if own.taken < self.size {
                own.taken += 1;
                return permit(key);
            }
            if is_closed || own.queue.len() >= self.max_waiting {
                return None;
            }
            let (sender, receiver) = sync_channel(1);
            join(&mut own.queue, (ticket, sender));
            (ticket, receiver)
        };
        match receiver.recv_timeout(timeout) {
            Ok(()) => permit(key),
            Err(RecvTimeoutError::Timeout) if self.leave_queue(&key, ticket) => None,
            // The permit was handed over just after the timeout, or else the semaphore was closed.
            Err(_) => receiver.try_recv().ok().and_then(|()| permit(key)),
        }
    }

    /// Ends all waits without a permit. From now on only free permits are given.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.keys.values_mut().for_each(|own| own.queue.clear());
    }

    /// Stops waiting. Returns false if the ticket is not in the queue any more, because its thread has the permit or
    /// the queue was closed.
    fn leave_queue(&self, key: &K, ticket: u64) -> bool {
        let mut state = lock(&self.state);
        let Some(own) = state.keys.get_mut(key) else {
            return false;
        };
        let length = own.queue.len();
        own.queue.retain(|(other, _)| *other != ticket);
        own.queue.len() < length
    }

    /// How many threads wait for a permit.
    pub fn waiting(&self) -> usize {
        lock(&self.state).keys.values().map(|own| own.queue.len()).sum()
    }
}

impl Semaphore {
    /// How many permits are taken.
    pub fn in_use(&self) -> usize {
        lock(&self.state).keys.get(&()).map_or(0, |own| own.taken)
    }
}

/// One of the permits of a [`Semaphore`]. Dropping it hands it on to the next waiting thread, or frees it.
pub struct Permit<K: Eq + Hash = ()> {
    semaphore: Arc<Semaphore<K>>,
    key: K,
}

impl<K: Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut state = lock(&self.semaphore.state);
        let Some(own) = state.keys.get_mut(&self.key) else {
            return;
        };
        if let Some((_, next)) = own.queue.pop_front() {
            // A thread keeps its receiver as long as it is in the queue, so this neither fails nor waits.
            let _ = next.send(());
            return;
        }
        own.taken -= 1;
        if own.taken == 0 {
            state.keys.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_bounded_and_waiting_times_out() {
        let semaphore = Semaphore::new(2);
        let first = semaphore.acquire((), Duration::ZERO);
        let _second = semaphore.acquire((), Duration::ZERO);
        assert!(semaphore.acquire((), Duration::from_millis(5)).is_none());
        assert_eq!(semaphore.waiting(), 0, "a thread that gave up is in no queue");
        drop(first);
        assert!(semaphore.acquire((), Duration::ZERO).is_some());
    }

    #[test]
    fn the_queue_of_a_key_may_have_an_end() {
        let semaphore = Semaphore::with_queue(1, 0);
        let _held = semaphore.acquire("a", Duration::ZERO);
        let began = std::time::Instant::now();
        assert!(semaphore.acquire("a", Duration::from_secs(60)).is_none());
        assert!(began.elapsed() < Duration::from_secs(60));
        assert!(semaphore.acquire("b", Duration::ZERO).is_some());
    }

    #[test]
    fn closing_ends_all_waits_and_leaves_free_permits() {
        let semaphore = Semaphore::new(1);
        std::thread::scope(|scope| {
            let held = semaphore.acquire((), Duration::ZERO);
            let wait = || semaphore.acquire((), Duration::MAX).is_none();
            let waiting = [scope.spawn(wait), scope.spawn(wait)];
            while semaphore.waiting() < waiting.len() {
                std::thread::yield_now();
            }
            semaphore.close();
            assert!(waiting.into_iter().all(|thread| thread.join().is_ok_and(|is_none| is_none)));
            assert!(wait(), "nobody waits from now on");
            assert_eq!(semaphore.in_use(), 1);
            drop(held);
            assert!(semaphore.acquire((), Duration::ZERO).is_some());
        });
        assert_eq!(semaphore.in_use(), 0);
    }

    #[test]
    fn each_key_has_its_own_permits_and_is_forgotten_when_they_are_free() {
        let semaphore = Semaphore::new(1);
        let held = semaphore.acquire("a", Duration::ZERO);
        assert!(semaphore.acquire("a", Duration::ZERO).is_none());
        let other = semaphore.acquire("b", Duration::ZERO);
        assert!(other.is_some());
        assert_eq!(lock(&semaphore.state).keys.len(), 2);
        drop((held, other));
        assert!(lock(&semaphore.state).keys.is_empty());
    }

    #[test]
    fn permits_are_handed_over_in_the_order_of_asking() {
        let semaphore = Semaphore::new(1);
        let served = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let held = semaphore.acquire((), Duration::ZERO);
            for n in 0..10 {
                let (semaphore, served) = (&semaphore, &served);
                scope.spawn(move || {
                    let permit = semaphore.acquire((), Duration::from_secs(10));
                    assert!(permit.is_some());
                    lock(served).push(n);
                });
                while semaphore.waiting() <= n {
                    std::thread::yield_now();
                }
            }
            drop(held);
        });
        let served = served.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(served, (0..10).collect::<Vec<_>>());
    }
}
