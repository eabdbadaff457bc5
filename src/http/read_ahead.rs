//! A thread that makes the next part of something while the last part is used.

use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use crate::error::Error;

/// Values that a thread of its own makes one after the other. It is at most one value ahead: it waits with that one
/// until it is taken.
pub struct ReadAhead<T> {
    /// `None` after the end.
    values: Option<Receiver<Result<Option<T>, Error>>>,
    /// `None` only while it is dropped.
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> ReadAhead<T> {
    /// Starts a thread that calls `make` until it returns `None` or fails. Fails where no thread can be started.
    pub fn start(
        mut make: impl FnMut() -> Result<Option<T>, Error> + Send + 'static,
    ) -> Result<ReadAhead<T>, Error> {
        let (sender, values) = mpsc::sync_channel(0);
        let run = move || {
            loop {
                let value = make();
                let is_last = !matches!(value, Ok(Some(_)));
                // Sending fails where nobody waits for more.
                if sender.send(value).is_err() || is_last {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("read-ahead".into()).spawn(run).map_err(|e| {
            log::error!("no thread for an export: {e}");
            Error::Unavailable
        })?;
        Ok(ReadAhead { values: Some(values), thread: Some(thread) })
    }

    /// Waits for the next value; `None` is the end, also when it is asked for again.
    pub fn next(&mut self) -> Result<Option<T>, Error> {
        let Some(values) = &self.values else {
            return Ok(None);
        };
        // A thread that panicked says nothing, which must not look like the end.
        let gone = || Err(Error::Internal("the thread that reads ahead is gone".into()));
        let value = values.recv().unwrap_or_else(|_| gone())?;
        if value.is_none() {
            self.values = None;
        }
        Ok(value)
    }
}

impl<T> Drop for ReadAhead<T> {
    /// Waits until the thread has ended, which it does after the value that it makes. So there are never more of these
    /// threads than there are users of them.
    fn drop(&mut self) {
        drop(self.values.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been logged, and `next` has reported it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
#[expect(clippy::expect_used, reason = "a failed expectation fails the test")]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn numbers_up_to(end: u32) -> (Arc<AtomicU32>, ReadAhead<u32>) {
        let made = Arc::new(AtomicU32::new(0));
        let counter = made.clone();
        let next = move || match counter.fetch_add(1, Ordering::SeqCst) {
            number if number < end => Ok(Some(number)),
            _ => Ok(None),
        };
        (made, ReadAhead::start(next).expect("a thread"))
    }

    #[test]
    fn values_come_in_order_and_then_the_end() {
        let (_, mut numbers) = numbers_up_to(3);
        let found = [(); 5].map(|()| numbers.next().expect("no failure"));
        assert_eq!(found, [Some(0), Some(1), Some(2), None, None]);
    }

    #[test]
    fn it_is_at_most_one_value_ahead_and_ends_when_it_is_dropped() {
        let (made, mut numbers) = numbers_up_to(u32::MAX);
        assert_eq!(numbers.next().expect("no failure"), Some(0));
        drop(numbers);
        // The one that was taken, and the one that nobody took.
        assert!(made.load(Ordering::SeqCst) <= 2);
        assert_eq!(Arc::strong_count(&made), 1, "its thread has ended");
    }

    #[test]
    fn a_panic_does_not_look_like_the_end() {
        let mut values = ReadAhead::<u32>::start(|| panic!("on purpose")).expect("a thread");
        assert!(matches!(values.next(), Err(Error::Internal(_))));
    }
}
