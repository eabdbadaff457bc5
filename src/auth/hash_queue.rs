//! The queue for password hashes. By default a hash takes a tenth of a second and 16 MiB, so without a bound a burst of
//! logins would starve everything else. Anyone can have an account, so neither the users who are signed in nor the
//! clients of one address may keep the others from logging in.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::error::Error;
use crate::semaphore::lock;

/// Longest wait for a turn. After that, the request is answered 503.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// Most requests that wait. Any more are answered 503 at once.
const MAX_WAITING: usize = 64;
/// While more requests than this wait, those of one address may be at most [`MAX_WAITING_OF_ADDRESS`].
const CROWDED: usize = 32;
const MAX_WAITING_OF_ADDRESS: usize = 4;
/// Most requests of users who are signed in that wait, so that they leave places to logins.
const MAX_WAITING_SIGNED_IN: usize = 48;

/// A request for a turn.
#[derive(Debug, Clone, Copy)]
pub struct HashRequest {
    /// Whether a signed-in user asks, for instance for a change of the password, and nobody who is about to log in, to
    /// register, or to set a new password after a reset.
    pub is_signed_in: bool,
    /// The client's network, see `client_address::network`; `None` if the client is exempt from limits of an address.
    pub network: Option<IpAddr>,
}

/// Bounds how many hashes run at once. Turns are given in the order of asking, but users who are signed in get at most
/// half of them; if there is only one, they get it when no login waits.
pub struct HashQueue {
    /// Most hashes that run at once.
    size: usize,
    max_wait: Duration,
    state: Mutex<QueueState>,
    /// Wakes all waiting threads, which then check whether it is their turn. They are few, and a hash takes long.
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    running: usize,
    /// How many of those that run are for users who are signed in.
    running_signed_in: usize,
    next_ticket: u64,
    /// In the order of asking.
    waiting: VecDeque<(u64, HashRequest)>,
    /// Nobody may wait any more.
    is_closed: bool,
}

impl HashQueue {
    /// A queue in which at most `size` hashes run at once.
    pub fn new(size: usize) -> HashQueue {
        let state = Mutex::new(QueueState::default());
        HashQueue { size, max_wait: MAX_WAIT, state, changed: Condvar::new() }
    }

    /// How many hashes run, and how many wait for their turn.
    pub fn load(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.running, state.waiting.len())
    }

    /// Ends all waits. From now on a hash begins at once or not at all.
    pub fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    /// Waits for a turn, which lasts until it is dropped. Fails with [`Error::Unavailable`] if the queue is full or
    /// closed, or if the turn does not come in time.
    pub fn wait(&self, request: HashRequest) -> Result<HashTurn<'_>, Error> {
        let mut state = lock(&self.state);
        if !state.admits(request) {
            return Err(Error::Unavailable);
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.waiting.push_back((ticket, request));
        let is_next = |state: &QueueState| state.next(self.size) == Some(ticket);
        let must_wait = |state: &mut QueueState| !state.is_closed && !is_next(state);
        let waited = self.changed.wait_timeout_while(state, self.max_wait, must_wait);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let has_turn = is_next(&state);
        state.waiting.retain(|(other, _)| *other != ticket);
        if !has_turn {
            return Err(Error::Unavailable);
        }
        state.count(request.is_signed_in, true);
        drop(state);
        // There may be a turn for the next one as well.
        self.changed.notify_all();
        Ok(HashTurn { queue: self, is_signed_in: request.is_signed_in })
    }
}

impl QueueState {
    /// Whether the request may wait.
    fn admits(&self, request: HashRequest) -> bool {
        let is_same = |other: &HashRequest| other.network == request.network;
        let of_address = || self.waiting.iter().filter(|(_, other)| is_same(other)).count();
        let may_crowd = request.network.is_none() || of_address() < MAX_WAITING_OF_ADDRESS;
        let signed_in = || self.waiting.iter().filter(|(_, other)| other.is_signed_in).count();
        let leaves_places = !request.is_signed_in || signed_in() < MAX_WAITING_SIGNED_IN;
        let has_place = self.waiting.len() < MAX_WAITING;
        has_place && leaves_places && (self.waiting.len() <= CROWDED || may_crowd)
    }

    /// The ticket of the first request that may begin now; `None` if no request may.
    fn next(&self, size: usize) -> Option<u64> {
        if self.running >= size {
            return None;
        }
        let may_begin = |request: &HashRequest| {
            !request.is_signed_in
                || self.running_signed_in < size / 2
                || (size == 1 && self.waiting.iter().all(|(_, other)| other.is_signed_in))
        };
        self.waiting.iter().find(|(_, request)| may_begin(request)).map(|(ticket, _)| *ticket)
    }

    /// Counts a hash as running if it `begins`; otherwise it has ended.
    fn count(&mut self, is_signed_in: bool, begins: bool) {
        let change = |count: &mut usize| if begins { *count += 1 } else { *count -= 1 };
        change(&mut self.running);
        if is_signed_in {
            change(&mut self.running_signed_in);
        }
    }
}

/// The right to run one hash.
pub struct HashTurn<'a> {
    queue: &'a HashQueue,
    is_signed_in: bool,
}

impl Drop for HashTurn<'_> {
    fn drop(&mut self) {
        lock(&self.queue.state).count(self.is_signed_in, false);
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: HashRequest = HashRequest { is_signed_in: false, network: None };
    const SIGNED_IN: HashRequest = HashRequest { is_signed_in: true, network: None };

    /// Lets `waiting` ask one after the other while `held` has its turn. Returns the order in which they had theirs, by
    /// their places in `waiting`.
    fn order(size: usize, held: HashRequest, waiting: &[HashRequest]) -> Result<Vec<usize>, Error> {
        let (queue, served) = (HashQueue::new(size), Mutex::new(Vec::new()));
        let served_places = || lock(&served);
        std::thread::scope(|scope| {
            let held = queue.wait(held)?;
            for (place, request) in waiting.iter().enumerate() {
                let (queue, served_places) = (&queue, &served_places);
                scope.spawn(move || {
                    let turn = queue.wait(*request);
                    served_places().push(place);
                    drop(turn);
                });
                while queue.load().1 + served_places().len() <= place {
                    std::thread::yield_now();
                }
            }
            drop(held);
            Ok(())
        })?;
        Ok(served_places().clone())
    }

    #[test]
    fn turns_are_given_in_the_order_of_asking_but_users_who_are_signed_in_leave_half_of_them()
    -> Result<(), Error> {
        assert_eq!(order(1, LOGIN, &[LOGIN; 5])?, [0, 1, 2, 3, 4]);
        assert_eq!(order(2, SIGNED_IN, &[SIGNED_IN, SIGNED_IN, LOGIN, LOGIN])?, [2, 3, 0, 1]);
        assert_eq!(order(1, SIGNED_IN, &[SIGNED_IN, SIGNED_IN, LOGIN, LOGIN])?, [2, 3, 0, 1]);
        Ok(())
    }

    #[test]
    fn a_turn_that_does_not_come_in_time_is_given_up() -> Result<(), Error> {
        let queue = HashQueue { max_wait: Duration::from_millis(5), ..HashQueue::new(1) };
        let held = queue.wait(LOGIN)?;
        assert!(matches!(queue.wait(LOGIN), Err(Error::Unavailable)));
        assert_eq!(queue.load(), (1, 0));
        drop(held);
        assert!(queue.wait(SIGNED_IN).is_ok());
        assert_eq!(queue.load(), (0, 0));
        Ok(())
    }

    #[test]
    fn a_closed_queue_lets_nobody_wait() -> Result<(), Error> {
        let queue = HashQueue { max_wait: Duration::MAX, ..HashQueue::new(1) };
        std::thread::scope(|scope| {
            let held = queue.wait(LOGIN)?;
            let waiting = scope.spawn(|| queue.wait(LOGIN).is_err());
            while queue.load().1 == 0 {
                std::thread::yield_now();
            }
            queue.close();
            assert!(waiting.join().is_ok_and(|is_refused| is_refused));
            assert!(matches!(queue.wait(LOGIN), Err(Error::Unavailable)));
            drop(held);
            queue.wait(LOGIN).map(drop)
        })
    }

    #[test]
    fn the_queue_has_an_end_and_no_address_crowds_it() -> Result<(), std::net::AddrParseError> {
        let client = |address: &str| {
            let network = Some(address.parse()?);
            Ok::<_, std::net::AddrParseError>(HashRequest { network, ..LOGIN })
        };
        let (crowd, other) = (client("192.0.2.1")?, client("192.0.2.2")?);
        let mut state = QueueState::default();
        while state.admits(crowd) {
            state.waiting.push_back((0, crowd));
        }
        assert_eq!(state.waiting.len(), 33);
        for _ in 0..4 {
            assert!(state.admits(other));
            state.waiting.push_back((0, other));
        }
        assert!(!state.admits(other));
        while state.admits(LOGIN) {
            state.waiting.push_back((0, LOGIN));
        }
        assert_eq!(state.waiting.len(), 64);
        Ok(())
    }

    #[test]
    fn users_who_are_signed_in_leave_places_to_logins() {
        let mut state = QueueState::default();
        while state.admits(SIGNED_IN) {
            state.waiting.push_back((0, SIGNED_IN));
        }
        assert_eq!(state.waiting.len(), 48);
        while state.admits(LOGIN) {
            state.waiting.push_back((0, LOGIN));
        }
        assert_eq!(state.waiting.len(), 64);
    }
}
