//! Turns of requests to the provider. Whoever has the fewest turns of those who wait gets the next one, so one network
//! that sends many made-up codes makes others wait for no longer than one of its requests takes.

use std::net::IpAddr;
use std::sync::Arc;

use crate::semaphore::{Permit, Policy, Rank, Semaphore, SemaphoreState};

/// Most turns at once. With the request for what the provider says of itself these are sixteen requests.
pub const SIZE: usize = 15;
/// Most requests of a network that wait for a turn, as each of them holds a thread.
const MAX_WAITING: usize = 64;

/// The turns of all networks: IPv4 addresses, and the /48 of IPv6 addresses.
pub type Turns = Arc<Semaphore<IpAddr>>;
/// A turn, until it is dropped.
pub type Turn = Permit<IpAddr>;

struct Fewest;

impl Policy<IpAddr> for Fewest {
    fn may_take(&self, of: &IpAddr, state: &SemaphoreState<IpAddr>) -> bool {
        let taken = |by: &IpAddr| state.taken(|other| usize::from(other == by));
        let own = taken(of);
        state.taken(|_| 1) < SIZE && state.waiting(|other| taken(other) < own) == 0
    }

    fn may_ask(&self, of: &IpAddr, state: &SemaphoreState<IpAddr>) -> bool {
        state.waiting(|other| other == of) < MAX_WAITING
    }
}

pub fn new() -> Turns {
    Semaphore::with_policy(Rank::Provider, Fewest)
}
