//! Password hashing for requests: at most as many hashes at once as there are cores, in the order of
//! asking, with a bounded wait. A hash takes tens of milliseconds and megabytes, so without this a
//! burst of logins would starve everything else.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::config::Scrypt;
use crate::error::Error;
use crate::security::password::{self, Verdict};

/// Longest wait for a turn; after that 503.
const WAIT_MOST: Duration = Duration::from_secs(5);

/// Hashes and compares passwords.
pub struct Hashing {
    cost: Scrypt,
    /// A hash of nobody's password: unknown accounts cost what known ones cost.
    dummy: String,
    turns: Turns,
}

impl Hashing {
    /// Hashing at `cost`, `at_once` hashes at a time.
    pub fn new(cost: Scrypt, at_once: usize) -> Result<Hashing, Error> {
        let dummy =
            password::hash(&Uuid::new_v4().to_string(), salt(), cost).map_err(Error::Internal)?;
        Ok(Hashing {
            cost,
            dummy,
            turns: Turns::new(at_once),
        })
    }

    /// The PHC string of a new password.
    pub fn hash(&self, password: &str) -> Result<String, Error> {
        let _turn = self.turns.take(WAIT_MOST).ok_or(Error::Unavailable)?;
        password::hash(password, salt(), self.cost).map_err(Error::Internal)
    }

    /// Compares with the stored hash. Where there is none it does the same work and says `Wrong`.
    pub fn verify(&self, password: &str, stored: Option<&str>) -> Result<Verdict, Error> {
        let _turn = self.turns.take(WAIT_MOST).ok_or(Error::Unavailable)?;
        let verdict = password::verify(password, stored.unwrap_or(&self.dummy), self.cost);
        let verdict = verdict.map_err(Error::Internal)?;
        Ok(if stored.is_some() {
            verdict
        } else {
            Verdict::Wrong
        })
    }
}

/// 122 random bits from the operating system.
fn salt() -> [u8; password::SALT_BYTES] {
    *Uuid::new_v4().as_bytes()
}

/// A number of turns, given out in the order of asking: a waiting thread is handed its turn, so
/// nobody overtakes it and no one waits longer than the line before it.
struct Turns {
    state: Mutex<State>,
}

struct State {
    free: usize,
    line: VecDeque<SyncSender<()>>,
}

impl Turns {
    fn new(free: usize) -> Turns {
        Turns {
            state: Mutex::new(State {
                free,
                line: VecDeque::new(),
            }),
        }
    }

    /// Nothing panics while the lock is held, so a poisoned state would still be sound.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn, or `None` after `wait`.
    fn take(&self, wait: Duration) -> Option<Turn<'_>> {
        let place: Receiver<()> = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Some(Turn { turns: self });
            }
            let (handed, place) = sync_channel(1);
            state.line.push_back(handed);
            place
        };
        match place.recv_timeout(wait) {
            Ok(()) => Some(Turn { turns: self }),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                // Under the lock nobody hands over. It may have happened just before: then the turn
                // is ours after all. Made outside the lock, which its drop takes.
                let state = self.state();
                let handed = place.try_recv().is_ok();
                drop(place);
                drop(state);
                handed.then(|| Turn { turns: self })
            }
        }
    }
}

/// The right to hash; passed on when dropped.
struct Turn<'a> {
    turns: &'a Turns,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
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
        let turns = Turns::new(2);
        let first = turns.take(Duration::ZERO);
        let _second = turns.take(Duration::ZERO);
        assert!(turns.take(Duration::from_millis(5)).is_none());
        drop(first);
        assert!(
            turns.take(Duration::ZERO).is_some(),
            "who gave up left no hole in the line"
        );
    }

    #[test]
    fn turns_are_handed_over_in_the_order_of_asking() {
        let turns = Turns::new(1);
        let served = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let held = turns.take(Duration::ZERO);
            for n in 0..10 {
                let (turns, served) = (&turns, &served);
                scope.spawn(move || {
                    let turn = turns.take(Duration::from_secs(10));
                    assert!(turn.is_some());
                    served
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(n);
                });
                while turns.state().line.len() <= n {
                    std::thread::yield_now();
                }
            }
            drop(held);
        });
        let served = served.into_inner().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(served, (0..10).collect::<Vec<_>>());
    }
}
