//! Permits for what whoever has a link causes: lists of many files, and records of files that were sent. They are apart
//! from those of users, so whoever has a link never makes its owner wait.

mod uploads;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

pub use uploads::LinkUpload;
use uploads::LinkUploads;

use crate::error::Error;
use crate::semaphore::{Permit, Rank, Semaphore};

/// How many lists run at a time of all links, and of those that one network has.
const MAX_LISTS: usize = 4;
const MAX_LISTS_OF_NETWORK: usize = 2;
/// Lists that wait for one of a link, of a network, or of all.
const MAX_WAITING: usize = 64;

/// The permits of all links and networks.
pub struct LinkPermits {
    of_links: Arc<Semaphore<Uuid>>,
    of_networks: Arc<Semaphore<IpAddr>>,
    all: Arc<Semaphore>,
    records: Arc<Semaphore<Uuid>>,
    /// The uploads that are under way.
    pub uploads: LinkUploads,
}

/// The permits of a list: the link's, the network's, and one of those of all. They last until they are dropped.
pub type ListPermits = (Permit<Uuid>, Option<Permit<IpAddr>>, Permit);

impl LinkPermits {
    /// No permit is taken yet.
    pub fn new() -> LinkPermits {
        LinkPermits {
            of_links: Semaphore::with_queue(Rank::Link, 1, MAX_WAITING),
            of_networks: Semaphore::with_queue(
                Rank::NetworkLink,
                MAX_LISTS_OF_NETWORK,
                MAX_WAITING,
            ),
            all: Semaphore::with_queue(Rank::AllLinks, MAX_LISTS, MAX_WAITING),
            records: Semaphore::new(Rank::LinkRecord, 1),
            uploads: LinkUploads::default(),
        }
    }

    /// Ends all waits with [`Error::Unavailable`]. From now on a permit is given at once or not at all.
    pub fn close(&self) {
        self.of_links.close();
        self.of_networks.close();
        self.all.close();
        self.records.close();
    }

    /// Waits until no other file is recorded that came by a link of this owner. Fails with [`Error::Unavailable`] if
    /// that takes longer than `timeout`.
    pub fn record(&self, owner: Uuid, timeout: Duration) -> Result<Permit<Uuid>, Error> {
        self.records.acquire(owner, timeout).ok_or(Error::Unavailable)
    }

    /// Waits until no other list of the link runs, and not too many of the network and of all. Fails with
    /// [`Error::Unavailable`] if that takes longer than `timeout`, or at once if too many wait.
    pub fn list(
        &self,
        link: Uuid,
        network: Option<IpAddr>,
        timeout: Duration,
    ) -> Result<ListPermits, Error> {
        let deadline = Instant::now() + timeout;
        let left = || deadline.saturating_duration_since(Instant::now());
        let of_link = self.of_links.acquire(link, left()).ok_or(Error::Unavailable)?;
        let own = |network| self.of_networks.acquire(network, left());
        let of_network = network.map(|network| own(network).ok_or(Error::Unavailable));
        let of_network = of_network.transpose()?;
        Ok((of_link, of_network, self.all.acquire((), left()).ok_or(Error::Unavailable)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Permits are taken at once or not at all, so that nothing waits.
    #[test]
    fn a_link_a_network_and_all_links_have_their_shares() {
        let permits = LinkPermits::new();
        let [one, other] = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])];
        let list =
            |link: u128, network| permits.list(Uuid::from_u128(link), network, Duration::ZERO).ok();
        let first = list(1, Some(one));
        assert!(first.is_some());
        assert!(list(1, Some(other)).is_none(), "one at a time of a link");
        let second = list(2, Some(one));
        assert!(second.is_some());
        assert!(list(3, Some(one)).is_none(), "two of a network");
        let others = [list(3, Some(other)), list(4, None)];
        assert!(others.iter().all(Option::is_some));
        assert!(list(5, None).is_none(), "four of all");
        drop(first);
        assert!(list(1, None).is_some());
    }
}
