//! Permits: how much of what is expensive one user, or one client network, may run at a time. Others wait.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::body_memory::Owner;
use crate::error::Error;
use crate::semaphore::{Permit, Rank, Semaphore};

/// Running exports of a user, or of a network if nobody is signed in. Each keeps the connection of its client, with its
/// thread, and a batch of rows in memory until the client has read them; no connection to the database.
const MAX_EXPORTS: usize = 2;
/// Running exports of all users of a network together: accounts are free, networks are not.
const MAX_EXPORTS_OF_NETWORK: usize = 8;

/// Searches that wait for one of a user, of a network, or of all. Each holds a connection of its client, which cannot
/// be closed to make room for others while it waits.
const MAX_WAITING_SEARCHES: usize = 64;

/// How many account lists without a usable index may run concurrently. Each reads all accounts, with all cores of the
/// database's machine, and other lists should not wait for them.
const MAX_LISTS_OF_ALL_ACCOUNTS: usize = 2;

/// The permits of all users and networks.
pub struct Permits {
    exports: Arc<Semaphore<Owner>>,
    exports_of_networks: Arc<Semaphore<IpAddr>>,
    searches: Arc<Semaphore<Uuid>>,
    searches_of_networks: Arc<Semaphore<IpAddr>>,
    public_searches: Arc<Semaphore>,
    all_searches: Arc<Semaphore>,
    lists_of_all_accounts: Arc<Semaphore>,
}

/// The permits of an export: the owner's, and one of those of the network. They last until they are dropped, as the
/// others do.
pub type ExportPermits = (Permit<Owner>, Option<Permit<IpAddr>>);

/// The permits of a search: the user's, the network's, that of searches for published files, and one of those of all.
pub type SearchPermits = (Permit<Uuid>, Option<Permit<IpAddr>>, Option<Permit>, Permit);

impl Permits {
    /// No permit is taken yet. At most `max_searches` searches run at a time.
    pub fn new(max_searches: usize) -> Permits {
        let max_lists = MAX_LISTS_OF_ALL_ACCOUNTS.min(max_searches);
        let max = MAX_WAITING_SEARCHES;
        Permits {
            exports: Semaphore::new(Rank::Export, MAX_EXPORTS),
            exports_of_networks: Semaphore::new(Rank::NetworkExport, MAX_EXPORTS_OF_NETWORK),
            searches: Semaphore::with_queue(Rank::UserSearch, 1, max),
            searches_of_networks: Semaphore::with_queue(Rank::NetworkSearch, 1, max),
            public_searches: Semaphore::with_queue(Rank::PublicSearch, 1, max),
            all_searches: Semaphore::with_queue(Rank::Search, max_searches, max),
            lists_of_all_accounts: Semaphore::with_queue(Rank::AllAccounts, max_lists, max),
        }
    }

    /// Ends all waits with [`Error::Unavailable`]. From now on a permit is given at once or not at all.
    pub fn close(&self) {
        self.exports.close();
        self.exports_of_networks.close();
        self.searches.close();
        self.searches_of_networks.close();
        self.public_searches.close();
        self.all_searches.close();
        self.lists_of_all_accounts.close();
    }

    /// Waits until `owner` may begin an export, and so may the network. Fails with [`Error::TimedOut`] if that takes
    /// longer than `deadline`.
    pub fn export(
        &self,
        owner: Owner,
        network: Option<IpAddr>,
        deadline: Instant,
    ) -> Result<ExportPermits, Error> {
        let left = || deadline.saturating_duration_since(Instant::now());
        let refusal = || if left().is_zero() { Error::TimedOut } else { Error::Unavailable };
        let own = self.exports.acquire(owner, left()).ok_or_else(refusal)?;
        let of_network = |network| self.exports_of_networks.acquire(network, left());
        let of_network = network.map(|network| of_network(network).ok_or_else(refusal));
        Ok((own, of_network.transpose()?))
    }

    /// Waits until no other search of the user runs, nor one of the network, nor, if it is one for published files,
    /// another of these, and not too many of all users. Fails with
    /// [`Error::Unavailable`] if that takes longer than `timeout`, or at once if too many wait. A search reads all
    /// files of the user, which takes seconds of the database's time if there are many.
    pub fn search(
        &self,
        user: Uuid,
        network: Option<IpAddr>,
        is_public: bool,
        timeout: Duration,
    ) -> Result<SearchPermits, Error> {
        let deadline = Instant::now() + timeout;
        let left = || deadline.saturating_duration_since(Instant::now());
        // The user's comes first: so one user stands in the queue of a network, or of all, at most once.
        let of_user = self.searches.acquire(user, left()).ok_or(Error::Unavailable)?;
        let own = |network| self.searches_of_networks.acquire(network, left());
        let of_network = network.map(|network| own(network).ok_or(Error::Unavailable));
        let of_network = of_network.transpose()?;
        let any =
            |semaphore: &Arc<Semaphore>| semaphore.acquire((), left()).ok_or(Error::Unavailable);
        let public = is_public.then(|| any(&self.public_searches)).transpose()?;
        Ok((of_user, of_network, public, any(&self.all_searches)?))
    }

    /// Waits until few enough lists run for which all accounts are read. Fails with [`Error::Unavailable`] if that
    /// takes longer than `timeout`, or at once if too many wait.
    pub fn all_accounts(&self, timeout: Duration) -> Result<Permit, Error> {
        self.lists_of_all_accounts.acquire((), timeout).ok_or(Error::Unavailable)
    }
}
