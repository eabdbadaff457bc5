//! Lookups of several threads in one query. While a query runs, the lookups that come meanwhile wait for it, and the
//! next query answers all of them. So the more requests there are, the less each of them costs, as with the group
//! commit of a database, and a single one waits no longer than without batches. A query may also change something: then
//! what is looked up is the outcome.

use std::mem;
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::semaphore::lock;

/// Lookups by `K` that find a `V`.
pub struct Batches<K, V> {
    /// How long a lookup waits for the end of the running query. After that its thread starts another query, on another
    /// connection. Otherwise it would wait for two round trips to a distant database, and for seconds if a connection
    /// hangs.
    max_queued: Duration,
    state: Mutex<BatchesState<K, V>>,
}

struct BatchesState<K, V> {
    /// The lookups that no query has asked for yet.
    queue: Vec<Arc<Lookup<K, V>>>,
    /// How many queries run.
    running: usize,
}

/// The lookup of one thread.
struct Lookup<K, V> {
    key: K,
    thread: Thread,
    outcome: Mutex<Option<Result<V, Error>>>,
}

impl<K, V> Lookup<K, V> {
    /// Hands the thread its outcome.
    fn finish(&self, outcome: Result<V, Error>) {
        *lock(&self.outcome) = Some(outcome);
        self.thread.unpark();
    }
}

impl<K: Clone, V> Batches<K, V> {
    pub fn new(max_queued: Duration) -> Batches<K, V> {
        let state = BatchesState { queue: Vec::new(), running: 0 };
        Batches { max_queued, state: Mutex::new(state) }
    }

    /// Looks up `key`. `query` returns a value for each of the keys, in their order; it begins after this call, so the
    /// value is never older than that. If it fails, all its lookups fail in the same way.
    pub fn look_up(
        &self,
        key: K,
        query: impl Fn(&[K]) -> Result<Vec<V>, Error>,
    ) -> Result<V, Error> {
        let lookup = Arc::new(Lookup { key, thread: thread::current(), outcome: Mutex::new(None) });
        let deadline = Instant::now() + self.max_queued;
        lock(&self.state).queue.push(lookup.clone());
        loop {
            match self.next_step(&lookup, deadline) {
                Step::Query(turn, batch) => batch.run(turn, &query),
                Step::Wait(rest) => thread::park_timeout(rest),
                Step::WaitForOther => thread::park(),
            }
            if let Some(outcome) = lock(&lookup.outcome).take() {
                return outcome;
            }
        }
    }

    fn next_step(&self, lookup: &Arc<Lookup<K, V>>, deadline: Instant) -> Step<'_, K, V> {
        let mut state = lock(&self.state);
        if !state.queue.first().is_some_and(|first| Arc::ptr_eq(first, lookup)) {
            return Step::WaitForOther;
        }
        let rest = deadline.saturating_duration_since(Instant::now());
        if state.running > 0 && !rest.is_zero() {
            return Step::Wait(rest);
        }
        state.running += 1;
        Step::Query(Turn(self), Batch { lookups: mem::take(&mut state.queue) })
    }
}

/// The next action of a thread that waits for its lookup.
enum Step<'a, K, V> {
    /// Its lookup is the first in the queue: it runs a query for all that are there.
    Query(Turn<'a, K, V>, Batch<K, V>),
    /// Its lookup is the first in the queue, and waits this long for the running query.
    Wait(Duration),
    /// Another thread's query has its lookup, or will have it, because that thread's own comes first in the queue.
    WaitForOther,
}

/// The right to run a query. When it is dropped, the next query may begin.
struct Turn<'a, K, V>(&'a Batches<K, V>);

impl<K, V> Drop for Turn<'_, K, V> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.running -= 1;
        if let Some(next) = state.queue.first() {
            next.thread.unpark();
        }
    }
}

/// Lookups that one query asks for. When it is dropped, each of them has an outcome.
struct Batch<K, V> {
    /// Those that have no outcome yet.
    lookups: Vec<Arc<Lookup<K, V>>>,
}

impl<K: Clone, V> Batch<K, V> {
    fn run(mut self, turn: Turn<K, V>, query: impl Fn(&[K]) -> Result<Vec<V>, Error>) {
        let keys: Vec<K> = self.lookups.iter().map(|lookup| lookup.key.clone()).collect();
        let found = query(&keys);
        // The database works on the next lookups while these threads wake up.
        drop(turn);
        match found {
            Ok(values) => {
                let finish = |(lookup, value): (Arc<Lookup<K, V>>, V)| lookup.finish(Ok(value));
                self.lookups.drain(..).zip(values).for_each(finish);
            }
            Err(error) => self.lookups.drain(..).for_each(|one| one.finish(Err(error.clone()))),
        }
    }
}

impl<K, V> Drop for Batch<K, V> {
    fn drop(&mut self) {
        // Some are left only if the query panicked.
        for lookup in self.lookups.drain(..) {
            lookup.finish(Err(Error::Internal("the query of another request panicked".into())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A query that finds ten times each key.
    fn tens(keys: &[u32]) -> Result<Vec<u32>, Error> {
        Ok(keys.iter().map(|key| key * 10).collect())
    }

    #[test]
    fn lookups_that_come_during_a_query_share_the_next_one() {
        let (batches, queries) = (Batches::new(Duration::from_secs(60)), AtomicUsize::new(0));
        let asked = Barrier::new(2);
        thread::scope(|scope| {
            let (batches, asked, queries) = (&batches, &asked, &queries);
            let first = move |keys: &[u32]| {
                asked.wait();
                while lock(&batches.state).queue.len() < 20 {
                    thread::yield_now();
                }
                tens(keys)
            };
            scope.spawn(move || assert!(matches!(batches.look_up(0, first), Ok(0))));
            asked.wait();
            let second = move |keys: &[u32]| {
                queries.fetch_add(1, Ordering::Relaxed);
                tens(keys)
            };
            for key in 1..=20 {
                let look_up = move || batches.look_up(key, second);
                scope.spawn(move || assert!(matches!(look_up(), Ok(ten) if ten == key * 10)));
            }
        });
        assert_eq!(queries.into_inner(), 1);
    }

    #[test]
    fn a_lookup_does_not_wait_for_a_query_that_hangs() {
        let batches = Batches::new(Duration::from_millis(2));
        let (asked, done) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let hanging = |keys: &[u32]| {
                    asked.wait();
                    done.wait();
                    tens(keys)
                };
                assert!(matches!(batches.look_up(1, hanging), Ok(10)));
            });
            asked.wait();
            assert!(matches!(batches.look_up(2, tens), Ok(20)));
            done.wait();
        });
    }

    #[test]
    fn a_failed_query_fails_its_lookups_and_no_later_one() {
        let batches = Batches::new(Duration::from_millis(2));
        assert!(matches!(batches.look_up(1, |_| Err(Error::TimedOut)), Err(Error::TimedOut)));
        let panicking = AssertUnwindSafe(|| batches.look_up(1, |_| panic!("on purpose")));
        assert!(catch_unwind(panicking).is_err());
        assert!(matches!(batches.look_up(1, tens), Ok(10)));
    }
}
