//! A counting semaphore that is fair: permits are handed out in the order of asking. A condition variable wakes its
//! waiters in no particular order, so under load an unlucky one waits many times longer than the others.
//! [`Rank`] is the order of all waits, and [`lock`] is how all modules lock a mutex.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks a mutex, even a poisoned one. The value must be consistent whenever code that holds the lock can panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a thread may wait for, in the order in which it may have several of them at a time: with a permit of one rank
/// it waits only for a later one, so no two threads wait for each other. `src/README.md` says how many permits each
/// has, and how long a wait may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    #[cfg(feature = "oidc")]
    Provider,
    #[cfg(feature = "oidc")]
    ProviderDocument,
    Hash,
    UserSearch,
    NetworkSearch,
    PublicSearch,
    Search,
    AllAccounts,
    #[cfg(feature = "extras")]
    Link,
    #[cfg(feature = "extras")]
    NetworkLink,
    #[cfg(feature = "extras")]
    AllLinks,
    #[cfg(feature = "extras")]
    LinkRecord,
    Export,
    NetworkExport,
    Batch,
    BulkRead,
    UserChange,
    Change,
    /// Bytes of `body_memory` are no permit: their wait is one, but who has some may wait for anything.
    Bytes,
    Connection,
}

impl Rank {
    /// Panics in a debug build if the thread has a permit of this rank or a later one, with which it may not wait.
    pub fn assert_order(self) {
        #[cfg(debug_assertions)]
        HELD.with_borrow(|held| assert!(held.iter().all(|it| *it < self), "{self:?}: {held:?}"));
    }
}

#[cfg(debug_assertions)]
thread_local! {
    /// The ranks of the permits that the thread has. It drops all of them itself.
    static HELD: std::cell::RefCell<Vec<Rank>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Bounds how many threads do something at once. Each thread asks for a permit with a key, such as the id of a user; a
/// semaphore with a single bound uses the key `()`.
/// A permit that is dropped goes directly to the thread that has waited longest of those that may have it, so no other
/// thread that may have it can overtake that one. One that weighs as much as several may go to several.
pub struct Semaphore<K = ()> {
    rank: Rank,
    policy: Box<dyn Policy<K>>,
    state: Mutex<SemaphoreState<K>>,
}

/// Who may have a permit of a semaphore, and who may ask for one.
pub trait Policy<K>: Send + Sync {
    /// Whether a thread with this key may have a permit now.
    fn may_take(&self, key: &K, state: &SemaphoreState<K>) -> bool;

    /// Whether a thread with this key may ask for a permit. Otherwise it is refused without a wait.
    fn may_ask(&self, key: &K, state: &SemaphoreState<K>) -> bool;
}

/// Each key has the same number of permits of its own.
struct PerKey {
    /// Permits of each key, at least 1.
    size: usize,
    /// Most threads that wait for a permit of one key.
    max_waiting: usize,
}

impl<K: Eq + Hash> Policy<K> for PerKey {
    fn may_take(&self, key: &K, state: &SemaphoreState<K>) -> bool {
        state.taken.get(key).is_none_or(|taken| *taken < self.size)
    }

    fn may_ask(&self, key: &K, state: &SemaphoreState<K>) -> bool {
        self.max_waiting == usize::MAX
            || self.may_take(key, state)
            || state.waiting(|other| other == key) < self.max_waiting
    }
}

/// The permits that are taken, and the threads that wait for one.
pub struct SemaphoreState<K> {
    /// The permits of each key. Has only keys of which one is taken, so that clients cannot make it grow with keys of
    /// the past.
    taken: HashMap<K, usize>,
    /// In the order of asking.
    queue: VecDeque<Waiting<K>>,
    next_ticket: u64,
    /// Nobody may wait any more.
    is_closed: bool,
}

/// A thread that waits. A message means: you have the permit.
struct Waiting<K> {
    ticket: u64,
    key: K,
    wake: SyncSender<()>,
}

impl<K: Eq + Hash> SemaphoreState<K> {
    /// No permit is taken.
    pub fn new() -> SemaphoreState<K> {
        SemaphoreState {
            taken: HashMap::new(),
            queue: VecDeque::new(),
            next_ticket: 0,
            is_closed: false,
        }
    }

    /// What the permits that are taken weigh together. A permit of a key weighs what `weight` says of it: 0 or 1 to
    /// count those of some keys, more if a thread needs as much as several others.
    pub fn taken(&self, weight: impl Fn(&K) -> usize) -> usize {
        self.taken.iter().map(|(key, taken)| weight(key) * taken).sum()
    }

    /// How many threads wait with these keys.
    pub fn waiting(&self, is_counted: impl Fn(&K) -> bool) -> usize {
        self.queue.iter().filter(|waiting| is_counted(&waiting.key)).count()
    }

    /// Counts a permit of this key as taken.
    pub fn take(&mut self, key: K) {
        *self.taken.entry(key).or_default() += 1;
    }

    /// Adds a thread to the queue, before or behind all others. Returns its ticket and the way in which it is woken.
    pub fn join(&mut self, key: K, is_first: bool) -> (u64, Receiver<()>) {
        let (wake, woken) = sync_channel(1);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let waiting = Waiting { ticket, key, wake };
        match is_first {
            true => self.queue.push_front(waiting),
            false => self.queue.push_back(waiting),
        }
        (ticket, woken)
    }

    /// Removes a thread from the queue. Returns false if it is not there any more, because it has the permit or the
    /// queue was closed.
    fn leave(&mut self, ticket: u64) -> bool {
        let place = self.queue.iter().position(|waiting| waiting.ticket == ticket);
        place.and_then(|place| self.queue.remove(place)).is_some()
    }
}

impl<K: Eq + Hash + Clone + 'static> Semaphore<K> {
    /// A semaphore with `size` permits for each key, all of them free.
    pub fn new(rank: Rank, size: usize) -> Arc<Semaphore<K>> {
        Semaphore::with_queue(rank, size, usize::MAX)
    }

    /// Like [`Semaphore::new`], but at most `max_waiting` threads may wait for each key.
    pub fn with_queue(rank: Rank, size: usize, max_waiting: usize) -> Arc<Semaphore<K>> {
        Semaphore::with_policy(rank, PerKey { size, max_waiting })
    }

    pub fn with_policy(rank: Rank, policy: impl Policy<K> + 'static) -> Arc<Semaphore<K>> {
        let state = Mutex::new(SemaphoreState::new());
        Arc::new(Semaphore { rank, policy: Box::new(policy), state })
    }

    /// Waits for a permit of `key`; `None` if none was handed over within `timeout`, or at once if the key may not ask
    /// for one or the semaphore is closed. A thread that would not wait may have permits of any rank.
    pub fn acquire(self: &Arc<Self>, key: K, timeout: Duration) -> Option<Permit<K>> {
        self.acquire_at(key, timeout, false)
    }

    /// The same for a thread that had a permit and has given it back for a while: it waits before all others.
    pub fn acquire_first(self: &Arc<Self>, key: K, timeout: Duration) -> Option<Permit<K>> {
        self.acquire_at(key, timeout, true)
    }

    /// The same for a thread that goes on without a free permit when `timeout` is over. Then more permits are taken
    /// than there are, and the next one is free once so many have been dropped.
    pub fn acquire_or_exceed(self: &Arc<Self>, key: K, timeout: Duration) -> Permit<K> {
        self.acquire(key.clone(), timeout).unwrap_or_else(|| {
            lock(&self.state).take(key.clone());
            self.permit(key)
        })
    }

    fn acquire_at(
        self: &Arc<Self>,
        key: K,
        timeout: Duration,
        is_first: bool,
    ) -> Option<Permit<K>> {
        if !timeout.is_zero() {
            self.rank.assert_order();
        }
        let (ticket, woken) = {
            let mut state = lock(&self.state);
            if !self.policy.may_ask(&key, &state) {
                return None;
            }
            if self.policy.may_take(&key, &state) {
                state.take(key.clone());
                return Some(self.permit(key));
            }
            if state.is_closed {
                return None;
            }
            state.join(key.clone(), is_first)
        };
        match woken.recv_timeout(timeout) {
            Ok(()) => Some(self.permit(key)),
            Err(RecvTimeoutError::Timeout) if lock(&self.state).leave(ticket) => None,
            // The permit was handed over just after the timeout, or else the semaphore was closed.
            Err(_) => woken.try_recv().ok().map(|()| self.permit(key)),
        }
    }

    fn permit(self: &Arc<Self>, key: K) -> Permit<K> {
        #[cfg(debug_assertions)]
        HELD.with_borrow_mut(|held| held.push(self.rank));
        Permit { semaphore: self.clone(), key }
    }
}

impl<K: Eq + Hash> Semaphore<K> {
    /// Ends all waits without a permit. From now on only free permits are given.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.queue.clear();
    }

    /// How many threads wait for a permit.
    pub fn waiting(&self) -> usize {
        lock(&self.state).waiting(|_| true)
    }

    /// How many permits are taken.
    pub fn in_use(&self) -> usize {
        lock(&self.state).taken(|_| 1)
    }
}

/// One of the permits of a [`Semaphore`]. Dropping it hands it on to the next waiting threads, or frees it.
pub struct Permit<K: Eq + Hash + Clone = ()> {
    semaphore: Arc<Semaphore<K>>,
    key: K,
}

impl<K: Eq + Hash + Clone> Drop for Permit<K> {
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        HELD.with_borrow_mut(|held| {
            let place = held.iter().rposition(|rank| *rank == self.semaphore.rank);
            place.map(|place| held.remove(place))
        });
        let mut state = lock(&self.semaphore.state);
        match state.taken.get_mut(&self.key) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(state.taken.remove(&self.key)),
        }
        let policy = &self.semaphore.policy;
        let next = |state: &SemaphoreState<K>| {
            state.queue.iter().position(|next| policy.may_take(&next.key, state))
        };
        while let Some(Waiting { key, wake, .. }) =
            next(&state).and_then(|next| state.queue.remove(next))
        {
            state.take(key);
            // A thread keeps its receiver as long as it is in the queue, so this neither fails nor waits.
            let _ = wake.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether another thread waits for a permit in vain: one with a permit may not wait for another of its rank.
    fn waits_in_vain(semaphore: &Arc<Semaphore<&'static str>>, timeout: Duration) -> bool {
        let wait = || semaphore.acquire("a", timeout).is_none();
        std::thread::scope(|scope| scope.spawn(wait).join().is_ok_and(|is_none| is_none))
    }

    #[test]
    fn permits_are_bounded_and_waiting_times_out() {
        let semaphore = Semaphore::new(Rank::Hash, 2);
        let first = semaphore.acquire("a", Duration::ZERO);
        let _second = semaphore.acquire("a", Duration::ZERO);
        assert!(waits_in_vain(&semaphore, Duration::from_millis(5)));
        assert_eq!(semaphore.waiting(), 0, "a thread that gave up is in no queue");
        drop(first);
        assert!(semaphore.acquire("a", Duration::ZERO).is_some());
    }

    #[test]
    fn the_queue_of_a_key_may_have_an_end() {
        let semaphore = Semaphore::with_queue(Rank::Hash, 1, 0);
        let _held = semaphore.acquire("a", Duration::ZERO);
        let began = std::time::Instant::now();
        assert!(waits_in_vain(&semaphore, Duration::from_secs(60)));
        assert!(began.elapsed() < Duration::from_secs(60));
        assert!(semaphore.acquire("b", Duration::ZERO).is_some());
    }

    #[test]
    fn closing_ends_all_waits_and_leaves_free_permits() {
        let semaphore = Semaphore::new(Rank::Hash, 1);
        std::thread::scope(|scope| {
            let held = semaphore.acquire("a", Duration::ZERO);
            let wait = || waits_in_vain(&semaphore, Duration::MAX);
            let waiting = [scope.spawn(wait), scope.spawn(wait)];
            while semaphore.waiting() < waiting.len() {
                std::thread::yield_now();
            }
            semaphore.close();
            assert!(waiting.into_iter().all(|thread| thread.join().is_ok_and(|is_none| is_none)));
            assert!(wait(), "nobody waits from now on");
            assert_eq!(semaphore.in_use(), 1);
            drop(held);
            assert!(semaphore.acquire("a", Duration::ZERO).is_some());
        });
        assert_eq!(semaphore.in_use(), 0);
    }

    #[test]
    fn each_key_has_its_own_permits_and_is_forgotten_when_they_are_free() {
        let semaphore = Semaphore::new(Rank::Hash, 1);
        let held = semaphore.acquire("a", Duration::ZERO);
        assert!(semaphore.acquire("a", Duration::ZERO).is_none());
        let other = semaphore.acquire("b", Duration::ZERO);
        assert!(other.is_some());
        assert_eq!(lock(&semaphore.state).taken.len(), 2);
        drop((held, other));
        assert!(lock(&semaphore.state).taken.is_empty());
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic = "BulkRead: [Connection]")]
    fn a_thread_waits_only_for_what_is_of_a_later_rank() {
        let [bulk, connection] = [Rank::BulkRead, Rank::Connection].map(|it| Semaphore::new(it, 1));
        for (first, second) in [(&bulk, &connection), (&connection, &bulk)] {
            let first = first.acquire((), Duration::MAX);
            let second = second.acquire((), Duration::MAX);
            assert!(first.is_some() && second.is_some());
        }
    }

    #[test]
    fn permits_are_handed_over_in_the_order_of_asking() {
        let semaphore = Semaphore::new(Rank::Hash, 1);
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
