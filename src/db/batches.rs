//! One query for several threads. While as many queries run as may, what other threads submit meanwhile waits for the
//! first of them to end, and the next query serves all of it. So the more requests there are, the less each of them
//! costs, as with the group commit of a database, and a single one waits no longer than without batches. Sessions are
//! looked up so, and uploads recorded.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::semaphore::lock;

/// Gathers entries of type `T` that threads submit, and hands each thread the `V` that a query returned for its entry.
pub struct Batches<T, V> {
    /// How many queries may run before an entry waits, at least 1. With more of them each serves fewer entries, and so
    /// costs more for each, but more cores work on them.
    max_running: usize,
    /// How long an entry waits for the end of a running query. After that its thread starts another query, on another
    /// connection. Otherwise it would wait for two round trips to a distant database, and for seconds if connections
    /// hang.
    max_queued: Duration,
    state: Mutex<BatchesState<T, V>>,
}

struct BatchesState<T, V> {
    /// The entries that are in no query yet.
    queue: Vec<Arc<Entry<T, V>>>,
    /// How many queries run. More than `max_running` if entries have waited too long.
    running: usize,
}

/// What one thread has submitted.
struct Entry<T, V> {
    value: T,
    thread: Thread,
    outcome: Mutex<Option<Result<V, Error>>>,
}

impl<T, V> Entry<T, V> {
    /// Hands the thread its outcome.
    fn finish(&self, outcome: Result<V, Error>) {
        *lock(&self.outcome) = Some(outcome);
        self.thread.unpark();
    }
}

impl<T: Clone, V> Batches<T, V> {
    pub fn new(max_running: usize, max_queued: Duration) -> Batches<T, V> {
        let state = BatchesState { queue: Vec::new(), running: 0 };
        Batches { max_running, max_queued, state: Mutex::new(state) }
    }

    /// Has `value` served by a query, its own or another thread's, and waits for the outcome. `query` returns an
    /// outcome for each of the values, in their order; it begins after this call, so what it reads is never older than
    /// that. If it fails, all its entries fail in the same way.
    pub fn submit(
        &self,
        value: T,
        query: impl Fn(&[T]) -> Result<Vec<V>, Error>,
    ) -> Result<V, Error> {
        let entry = Arc::new(Entry { value, thread: thread::current(), outcome: Mutex::new(None) });
        let deadline = Instant::now() + self.max_queued;
        let mut state = lock(&self.state);
        state.queue.push(entry.clone());
        loop {
            match self.next_step(state, &entry, deadline) {
                Step::Query(turn, batch) => batch.run(turn, &query),
                Step::Wait(rest) => thread::park_timeout(rest),
                Step::WaitForOther => thread::park(),
            }
            if let Some(outcome) = lock(&entry.outcome).take() {
                return outcome;
            }
            state = lock(&self.state);
        }
    }

    fn next_step(
        &self,
        mut state: MutexGuard<BatchesState<T, V>>,
        entry: &Arc<Entry<T, V>>,
        deadline: Instant,
    ) -> Step<'_, T, V> {
        if !state.queue.first().is_some_and(|first| Arc::ptr_eq(first, entry)) {
            return Step::WaitForOther;
        }
        let rest = deadline.saturating_duration_since(Instant::now());
        if state.running >= self.max_running && !rest.is_zero() {
            return Step::Wait(rest);
        }
        state.running += 1;
        Step::Query(Turn(self), Batch { entries: mem::take(&mut state.queue) })
    }
}

/// The next action of a thread that waits for its outcome.
enum Step<'a, T, V> {
    /// Its entry is the first in the queue: it runs a query for all that are there.
    Query(Turn<'a, T, V>, Batch<T, V>),
    /// Its entry is the first in the queue, and waits this long for the end of a running query.
    Wait(Duration),
    /// Another thread's query has its entry, or will have it, because that thread's own comes first in the queue.
    WaitForOther,
}

/// The right to run a query. When it is dropped, the next query may begin.
struct Turn<'a, T, V>(&'a Batches<T, V>);

impl<T, V> Drop for Turn<'_, T, V> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.running -= 1;
        let next = state.queue.first().cloned();
        // Before the other thread wakes up, and takes the lock itself.
        drop(state);
        if let Some(next) = next {
            next.thread.unpark();
        }
    }
}

/// The entries of one query. When it is dropped, each of them has an outcome.
struct Batch<T, V> {
    /// Those that have no outcome yet.
    entries: Vec<Arc<Entry<T, V>>>,
}

impl<T: Clone, V> Batch<T, V> {
    fn run(mut self, turn: Turn<T, V>, query: impl Fn(&[T]) -> Result<Vec<V>, Error>) {
        let values: Vec<T> = self.entries.iter().map(|entry| entry.value.clone()).collect();
        let outcome = query(&values);
        // The database works on the next entries while these threads wake up.
        drop(turn);
        match outcome {
            Ok(outcomes) => {
                let finish = |(entry, outcome): (Arc<Entry<T, V>>, V)| entry.finish(Ok(outcome));
                self.entries.drain(..).zip(outcomes).for_each(finish);
            }
            Err(error) => self.entries.drain(..).for_each(|one| one.finish(Err(error.clone()))),
        }
    }
}

impl<T, V> Drop for Batch<T, V> {
    fn drop(&mut self) {
        // Some are left only if the query panicked.
        for entry in self.entries.drain(..) {
            entry.finish(Err(Error::Internal("the query of another request panicked".into())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Longer than any test takes.
    const HOUR: Duration = Duration::from_secs(3600);

    /// A query that finds ten times each key.
    fn tens(keys: &[u32]) -> Result<Vec<u32>, Error> {
        Ok(keys.iter().map(|key| key * 10).collect())
    }

    #[test]
    fn so_many_queries_run_at_once_and_what_is_submitted_meanwhile_shares_the_next_one() {
        for max in [1, 4] {
            let (batches, queries) = (Batches::new(max, HOUR), AtomicUsize::new(0));
            // The first queries run all at once. One of them ends before the others.
            let (asked, one, others) = (Barrier::new(max + 1), Barrier::new(2), Barrier::new(max));
            let served: Vec<bool> = thread::scope(|scope| {
                let (batches, asked, queries) = (&batches, &asked, &queries);
                for n in 0..max {
                    let end = if n == 0 { &one } else { &others };
                    let first = move |keys: &[u32]| {
                        asked.wait();
                        end.wait();
                        tens(keys)
                    };
                    scope.spawn(move || assert!(matches!(batches.submit(0, first), Ok(0))));
                }
                asked.wait();
                let second = move |keys: &[u32]| {
                    queries.fetch_add(1, Ordering::Relaxed);
                    tens(keys)
                };
                let submit = |key| {
                    let ten = move || batches.submit(key, second);
                    scope.spawn(move || matches!(ten(), Ok(ten) if ten == key * 10))
                };
                let waiting: Vec<_> = (1..=20).map(submit).collect();
                while lock(&batches.state).queue.len() < 20 {
                    thread::yield_now();
                }
                one.wait();
                let served =
                    waiting.into_iter().map(|thread| thread.join().unwrap_or(false)).collect();
                others.wait();
                served
            });
            assert_eq!(served, [true; 20], "at most {max} at once");
            assert_eq!(queries.into_inner(), 1, "at most {max} at once");
        }
    }

    #[test]
    fn nothing_waits_for_a_query_that_hangs() {
        let batches = Batches::new(1, Duration::from_millis(2));
        let (asked, done) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let hanging = |keys: &[u32]| {
                    asked.wait();
                    done.wait();
                    tens(keys)
                };
                assert!(matches!(batches.submit(1, hanging), Ok(10)));
            });
            asked.wait();
            assert!(matches!(batches.submit(2, tens), Ok(20)));
            done.wait();
        });
    }

    #[test]
    fn a_failed_query_fails_its_entries_and_no_later_one() {
        let batches = Batches::new(1, Duration::from_millis(2));
        assert!(matches!(batches.submit(1, |_| Err(Error::TimedOut)), Err(Error::TimedOut)));
        let panicking = AssertUnwindSafe(|| batches.submit(1, |_| panic!("on purpose")));
        assert!(catch_unwind(panicking).is_err());
        assert!(matches!(batches.submit(1, tens), Ok(10)));
    }
}
