//! The uploads by links that are under way in this process: how many there are of each link, and what has come of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use uuid::Uuid;

use crate::db::stats::{QuotaOf, StoredBytes};
use crate::semaphore::lock;

/// Most uploads of a link at once, and of those the most that come from one network of clients.
const MAX_OF_LINK: usize = 8;
const MAX_OF_NETWORK: usize = 4;

/// The uploads of all links.
#[derive(Default)]
pub struct LinkUploads(Mutex<HashMap<Uuid, UploadsOfLink>>);

/// Those of a link: the bytes that count towards what it takes, and the network of the client of each.
struct UploadsOfLink {
    bytes: Arc<StoredBytes>,
    networks: Vec<IpAddr>,
}

/// An upload by a link, which is under way until this is dropped.
pub struct LinkUpload<'a> {
    all: &'a LinkUploads,
    link: Uuid,
    network: IpAddr,
    /// What counts towards the bytes that the link takes.
    pub bytes: Arc<StoredBytes>,
}

impl LinkUploads {
    /// Begins an upload by a link that takes `most` bytes and has received so many. Returns `None` if too many are
    /// under way of the link, or of the client's network.
    pub fn begin(
        &self,
        link: Uuid,
        network: IpAddr,
        (most, received): (u64, u64),
    ) -> Option<LinkUpload<'_>> {
        let mut links = lock(&self.0);
        let of_link = links.entry(link).or_insert_with(|| UploadsOfLink {
            bytes: Arc::new(StoredBytes::with(most, QuotaOf::Link(link), received)),
            networks: Vec::new(),
        });
        let of_network = of_link.networks.iter().filter(|other| **other == network).count();
        if of_link.networks.len() == MAX_OF_LINK || of_network == MAX_OF_NETWORK {
            return None;
        }
        of_link.networks.push(network);
        Some(LinkUpload { all: self, link, network, bytes: of_link.bytes.clone() })
    }

    /// What has come of the uploads of a link that are under way, in bytes.
    pub fn arriving(&self, link: Uuid) -> u64 {
        lock(&self.0).get(&link).map_or(0, |of_link| of_link.bytes.arriving())
    }
}

impl Drop for LinkUpload<'_> {
    fn drop(&mut self) {
        let mut links = lock(&self.all.0);
        let Some(of_link) = links.get_mut(&self.link) else { return };
        let place = of_link.networks.iter().position(|other| *other == self.network);
        place.map(|place| of_link.networks.swap_remove(place));
        if of_link.networks.is_empty() {
            links.remove(&self.link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_eight_places_of_which_a_network_has_four_and_forgets_nothing_that_is_under_way() {
        let uploads = LinkUploads::default();
        let network = |n: u8| IpAddr::from([192, 0, n, 0]);
        let begin = |link: u128, n: u8| uploads.begin(Uuid::from_u128(link), network(n), (100, 0));
        let mut first: Vec<_> = (0..5).map(|_| begin(1, 1)).collect();
        assert!(first.pop().is_some_and(|fifth| fifth.is_none()), "four of a network");
        let others: Vec<_> = (2..7).map(|n| begin(1, n)).collect();
        assert_eq!(others.iter().filter(|other| other.is_some()).count(), 4, "eight of a link");
        assert!(begin(2, 1).is_some(), "another link has places of its own");
        drop(first);
        assert!(begin(1, 1).is_some());
        drop(others);
        assert!(lock(&uploads.0).is_empty());
    }
}
