//! The queue for password hashes. By default a hash takes a tenth of a second and 16 MiB, so without a bound a burst of
//! logins would starve everything else. Anyone can have an account, so neither the users who are signed in nor the
//! clients of one address may keep the others from logging in.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::semaphore::{Permit, Policy, Rank, Semaphore, SemaphoreState};

/// Longest wait for a permit. After that, the request is answered 503.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// Most requests that wait. Any more are answered 503 at once.
const MAX_WAITING: usize = 64;
/// While more requests than this wait, those of one address may be at most [`MAX_WAITING_OF_ADDRESS`].
const CROWDED: usize = 32;
const MAX_WAITING_OF_ADDRESS: usize = 4;
/// Most requests of users who are signed in that wait, so that they leave places to logins.
const MAX_WAITING_SIGNED_IN: usize = 48;
/// Most checks of imported hashes that wait, because these may be slow.
const MAX_WAITING_IMPORTED: usize = 16;

/// A request for a permit, which takes one turn of the queue, or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HashRequest {
    /// Whether the request is authenticated. Such requests yield to logins.
    pub is_signed_in: bool,
    /// The client's network, see `client_address::network`; `None` if the client is exempt from limits of an address.
    pub network: Option<IpAddr>,
    /// The turns that the check of an imported hash takes; 0 for any other hash, which takes one.
    pub imported: usize,
}

/// Bounds how many hashes run at once.
pub struct HashQueue(Arc<Semaphore<HashRequest>>);

impl HashQueue {
    /// A queue in which at most `size` hashes run at once.
    pub fn new(size: usize) -> HashQueue {
        HashQueue(Semaphore::with_policy(Rank::Hash, HashPolicy { size }))
    }

    /// How many hashes run, and how many wait for a permit.
    pub fn load(&self) -> (usize, usize) {
        (self.0.in_use(), self.0.waiting())
    }

    /// Ends all waits. From now on a hash begins at once or not at all.
    pub fn close(&self) {
        self.0.close();
    }

    /// Waits for the permit to run one hash. Fails with [`Error::Unavailable`] if the queue is full or closed, or if
    /// the permit does not come in time.
    pub fn wait(&self, request: HashRequest) -> Result<Permit<HashRequest>, Error> {
        self.0.acquire(request, MAX_WAIT).ok_or(Error::Unavailable)
    }
}

/// Permits are given in the order of asking, but users who are signed in get at most half of the turns, and checks of
/// imported hashes, which may take as long and as much memory as the programs that made these chose, a quarter. A
/// request that takes more is alone among those of its kind, and is let in only while no login with a hash of this
/// program waits: it may wait in vain. So whoever knows the name of such an account delays others by one check at a
/// time.
struct HashPolicy {
    /// All turns: most hashes that run at once.
    size: usize,
}

impl Policy<HashRequest> for HashPolicy {
    fn may_take(&self, request: &HashRequest, state: &SemaphoreState<HashRequest>) -> bool {
        let turns = |it: &HashRequest| it.imported.max(1);
        let own_logins_wait = || state.waiting(|it| !it.is_signed_in && it.imported == 0) > 0;
        let fits = |taken, most| taken + turns(request) <= most || taken == 0 && !own_logins_wait();
        let signed_in = state.taken(|it| usize::from(it.is_signed_in) * turns(it));
        state.taken(turns) + turns(request) <= self.size
            && (request.imported == 0 || fits(state.taken(|it| it.imported), self.size / 4))
            && (!request.is_signed_in || fits(signed_in, self.size / 2))
    }

    fn may_ask(&self, request: &HashRequest, state: &SemaphoreState<HashRequest>) -> bool {
        let waiting = state.waiting(|_| true);
        let of_address = state.waiting(|other| other.network == request.network);
        let signed_in = state.waiting(|other| other.is_signed_in);
        let imported = state.waiting(|other| other.imported > 0);
        let may_crowd = request.network.is_none() || of_address < MAX_WAITING_OF_ADDRESS;
        waiting < MAX_WAITING
            && (waiting <= CROWDED || may_crowd)
            && (!request.is_signed_in || signed_in < MAX_WAITING_SIGNED_IN)
            && (request.imported == 0 || imported < MAX_WAITING_IMPORTED)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::semaphore::lock;

    const LOGIN: HashRequest = HashRequest { is_signed_in: false, network: None, imported: 0 };
    const SIGNED_IN: HashRequest = HashRequest { is_signed_in: true, ..LOGIN };

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
        let queue = HashQueue::new(1);
        let held = queue.wait(LOGIN)?;
        let wait = || queue.0.acquire(LOGIN, Duration::from_millis(5)).is_none();
        assert!(std::thread::scope(|scope| scope.spawn(wait).join()).is_ok_and(|is_none| is_none));
        assert_eq!(queue.load(), (1, 0));
        drop(held);
        assert!(queue.wait(SIGNED_IN).is_ok());
        assert_eq!(queue.load(), (0, 0));
        Ok(())
    }

    #[test]
    fn a_closed_queue_lets_nobody_wait() -> Result<(), Error> {
        let queue = HashQueue::new(1);
        std::thread::scope(|scope| {
            let held = queue.wait(LOGIN)?;
            let waiting = scope.spawn(|| queue.0.acquire(LOGIN, Duration::MAX).is_none());
            while queue.load().1 == 0 {
                std::thread::yield_now();
            }
            queue.close();
            assert!(waiting.join().is_ok_and(|is_refused| is_refused));
            assert!(queue.0.acquire(LOGIN, Duration::ZERO).is_none());
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
        let (policy, mut state) = (HashPolicy { size: 1 }, SemaphoreState::new());
        while policy.may_ask(&crowd, &state) {
            drop(state.join(crowd, false));
        }
        assert_eq!(state.waiting(|_| true), 33);
        for _ in 0..4 {
            assert!(policy.may_ask(&other, &state));
            drop(state.join(other, false));
        }
        assert!(!policy.may_ask(&other, &state));
        while policy.may_ask(&LOGIN, &state) {
            drop(state.join(LOGIN, false));
        }
        assert_eq!(state.waiting(|_| true), 64);
        Ok(())
    }

    /// Whether a request may have a permit while others have theirs.
    fn may_take(size: usize, taken: &[HashRequest], request: HashRequest) -> bool {
        let mut state = SemaphoreState::new();
        taken.iter().for_each(|request| state.take(*request));
        HashPolicy { size }.may_take(&request, &state)
    }

    #[test]
    fn checks_of_imported_hashes_have_a_quarter_of_the_turns_or_are_alone_among_them() {
        let imported = |turns| HashRequest { imported: turns, ..LOGIN };
        // One that takes all turns waits until nobody has one, and nobody takes one beside it.
        assert!(may_take(4, &[], imported(4)) && !may_take(4, &[LOGIN], imported(4)));
        assert!(!may_take(4, &[imported(4)], LOGIN) && !may_take(4, &[], imported(5)));
        // One that takes fewer leaves the others to other hashes, but not to a second one.
        assert!(may_take(4, &[LOGIN], imported(3)) && may_take(4, &[imported(3)], LOGIN));
        assert!(!may_take(4, &[imported(1)], imported(1)) && may_take(4, &[imported(1)], LOGIN));
        assert!(
            may_take(8, &[imported(1)], imported(1)) && !may_take(8, &[imported(1)], imported(2))
        );
        assert!(!may_take(8, &[imported(1), imported(1)], imported(1)));
        assert!(may_take(1, &[], imported(1)) && !may_take(1, &[LOGIN], imported(1)));
        // Users who are signed in get half of the turns with these too.
        let signed_in = HashRequest { imported: 2, ..SIGNED_IN };
        assert!(may_take(4, &[], signed_in) && !may_take(4, &[signed_in], SIGNED_IN));
        assert!(may_take(4, &[signed_in], LOGIN));
        let much = HashRequest { imported: 3, ..SIGNED_IN };
        assert!(may_take(4, &[], much) && !may_take(8, &[SIGNED_IN; 2], much));
    }

    #[test]
    fn a_request_that_takes_more_than_its_part_is_let_in_while_no_login_waits() {
        let imported = |turns| HashRequest { imported: turns, ..LOGIN };
        for (size, request) in [
            (4, imported(2)),
            (1, imported(1)),
            (1, SIGNED_IN),
            (4, HashRequest { imported: 3, ..SIGNED_IN }),
        ] {
            let (policy, mut state) = (HashPolicy { size }, SemaphoreState::new());
            for others in [SIGNED_IN, imported(1)] {
                drop(state.join(others, false));
            }
            assert!(policy.may_take(&request, &state), "{request:?}");
            drop(state.join(LOGIN, false));
            assert!(!policy.may_take(&request, &state), "{request:?}");
            assert!(policy.may_take(&LOGIN, &state));
        }
    }

    #[test]
    fn checks_of_imported_hashes_leave_places_to_others() {
        let imported = HashRequest { imported: 1, ..LOGIN };
        let (policy, mut state) = (HashPolicy { size: 1 }, SemaphoreState::new());
        while policy.may_ask(&imported, &state) {
            drop(state.join(imported, false));
        }
        assert_eq!(state.waiting(|_| true), 16);
        assert!(policy.may_ask(&LOGIN, &state));
    }

    #[test]
    fn a_check_that_takes_several_turns_leaves_them_to_as_many() -> Result<(), Error> {
        let large = HashRequest { imported: 3, ..LOGIN };
        let (queue, served) = (HashQueue::new(3), Mutex::new(0));
        std::thread::scope(|scope| {
            let held = queue.wait(large)?;
            for _ in 0..3 {
                scope.spawn(|| {
                    let turn = queue.wait(LOGIN);
                    *lock(&served) += 1;
                    while *lock(&served) < 3 {
                        std::thread::yield_now();
                    }
                    drop(turn);
                });
            }
            while queue.load().1 < 3 {
                std::thread::yield_now();
            }
            drop(held);
            Ok::<_, Error>(())
        })?;
        assert_eq!((*lock(&served), queue.load()), (3, (0, 0)));
        Ok(())
    }

    #[test]
    fn users_who_are_signed_in_leave_places_to_logins() {
        let (policy, mut state) = (HashPolicy { size: 1 }, SemaphoreState::new());
        while policy.may_ask(&SIGNED_IN, &state) {
            drop(state.join(SIGNED_IN, false));
        }
        assert_eq!(state.waiting(|_| true), 48);
        while policy.may_ask(&LOGIN, &state) {
            drop(state.join(LOGIN, false));
        }
        assert_eq!(state.waiting(|_| true), 64);
    }
}
