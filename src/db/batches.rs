//! One query for several threads. While as many queries run as may, what other threads submit meanwhile waits for the
//! first of them to end, and the next query serves all of it. So the more requests there are, the less each of them
//! costs, as with the group commit of a database, and a single one waits no longer than without batches. Sessions are
//! looked up so, and uploads recorded.

use std::mem;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::error::Error;
use crate::semaphore::{Rank, Semaphore, lock};

/// Gathers entries of type `T` that threads submit, and hands each thread the `V` that a query returned for its entry.
pub struct Batches<T, V> {
    /// A permit for each query that may run before an entry waits. With more of them each serves fewer entries, and so
    /// costs more for each, but more cores work on them.
    running: Arc<Semaphore>,
    /// How long an entry waits for the end of a running query. After that its thread starts another query, on another
    /// connection. Otherwise it would wait for two round trips to a distant database, and for seconds if connections
    /// hang.
    max_queued: Duration,
    /// The entries that are in no query yet. The thread of the first one runs a query for all that are there by then.
    queue: Mutex<Vec<Entry<T, V>>>,
}

/// What one thread has submitted, and where it waits for the outcome.
type Entry<T, V> = (T, SyncSender<Result<V, Error>>);

impl<T, V> Batches<T, V> {
    /// At most `max_running` queries run before an entry waits, at least 1.
    pub fn new(max_running: usize, max_queued: Duration) -> Batches<T, V> {
        Batches {
            running: Semaphore::new(Rank::Batch, max_running),
            max_queued,
            queue: Mutex::default(),
        }
    }

    /// Has `value` served by a query, its own or another thread's, and waits for the outcome. `query` returns an
    /// outcome for each of the values, in their order; it begins after this call, so what it reads is never older than
    /// that. If it fails, all its entries fail in the same way.
    pub fn submit(
        &self,
        value: T,
        query: impl FnOnce(&[T]) -> Result<Vec<V>, Error>,
    ) -> Result<V, Error> {
        let (sender, receiver) = sync_channel(1);
        let is_first = {
            let mut queue = lock(&self.queue);
            queue.push((value, sender));
            queue.len() == 1
        };
        if is_first {
            self.run(query);
        }
        // Another thread drops the sender only if its query panicked.
        let panicked = || Error::Internal("the query of another request panicked".into());
        receiver.recv().unwrap_or_else(|_| Err(panicked()))
    }

    /// Runs a query for all entries that are in the queue once a permit is free, and hands out the outcomes.
    fn run(&self, query: impl FnOnce(&[T]) -> Result<Vec<V>, Error>) {
        let permit = self.running.acquire_or_exceed((), self.max_queued);
        let entries = mem::take(&mut *lock(&self.queue));
        let (values, senders): (Vec<T>, Vec<_>) = entries.into_iter().unzip();
        let outcomes = query(&values);
        // The database works on the next entries while these threads wake up.
        drop(permit);
        let mut outcomes = outcomes.map(Vec::into_iter);
        for sender in senders {
            let outcome = match &mut outcomes {
                Ok(outcomes) => outcomes.next().map(Ok),
                Err(error) => Some(Err(error.clone())),
            };
            // The thread waits for it, and the channel has room for it, so this neither fails nor waits.
            outcome.map(|outcome| sender.send(outcome));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

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
                while lock(&batches.queue).len() < 20 {
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
