//! Token buckets for rate limits. A full bucket holds `limit` tokens, each request takes one, and tokens come back
//! evenly, `limit` of them in a period, such as a minute.
//!
//! A bucket is stored as one number, the moment at which it will be full again, as in the generic cell rate algorithm
//! (GCRA). Taking a token moves that moment ahead by the interval at which tokens come back. The bucket is empty if the
//! moment would then be more than a period ahead. A bucket whose moment has passed is full, and need not be stored.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use crate::semaphore::lock;

/// Number of shards, each with its own lock. With sixteen, two requests rarely wait for the same one.
const SHARDS: usize = 16;
/// Most buckets of one shard, so 114,688 in all: as many as a hash map of 8,192 places takes, with about 50 bytes each.
const MAX_BUCKETS: usize = 7168;

/// The result of asking a bucket for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketDecision {
    /// Whether there was a token.
    pub allowed: bool,
    /// Tokens in a full bucket.
    pub limit: u32,
    /// Tokens left now.
    pub remaining: u32,
    /// Time until the bucket is full again.
    pub full_in: Duration,
    /// Time until there is a token; zero if there is one already.
    pub retry_in: Duration,
}

/// Takes a token at `now` from a bucket that is full at `full_at`, both counted from the same start. Returns the new
/// `full_at` of the bucket.
fn take(
    full_at: Duration,
    limit: u32,
    period: Duration,
    now: Duration,
) -> (Duration, BucketDecision) {
    let interval = period / limit;
    let capacity = interval * limit;
    let full_at = full_at.max(now);
    let taken = full_at + interval;
    let allowed = taken - now <= capacity;
    let full_at = if allowed { taken } else { full_at };
    let free = capacity.saturating_sub(full_at - now);
    let decision = BucketDecision {
        allowed,
        limit,
        // The interval is not zero: the settings allow limits from 1 to 1,000,000, and a site has eight times as much.
        remaining: (free.as_nanos() / interval.as_nanos()) as u32,
        full_in: full_at - now,
        retry_in: interval.saturating_sub(free),
    };
    (full_at, decision)
}

/// A part of the buckets. Once in a period those that are full are dropped. If there are too many, the oldest one of
/// the network with the most goes, which so forgets only what its own requests have made: a flood of addresses of one
/// provider takes nothing from the clients of another.
#[derive(Default)]
struct Shard {
    /// When each bucket is full again, by the hash of its key. Nobody can look for two keys with the same hash, because
    /// the hasher's own key is random.
    full_at: HashMap<u64, Duration>,
    /// The buckets that requests of a network have made, the oldest first.
    made_by: HashMap<IpAddr, VecDeque<u64>>,
    /// All of these networks by the number of their buckets.
    sizes: BTreeSet<(usize, IpAddr)>,
    swept_at: Duration,
}

impl Shard {
    /// Adds a bucket that a request of `network` makes.
    fn insert(&mut self, hash: u64, network: IpAddr, full_at: Duration) {
        if self.full_at.len() >= MAX_BUCKETS {
            self.remove_oldest_of_largest();
        }
        self.full_at.insert(hash, full_at);
        let made = self.made_by.entry(network).or_default();
        self.sizes.remove(&(made.len(), network));
        made.push_back(hash);
        self.sizes.insert((made.len(), network));
    }

    fn remove_oldest_of_largest(&mut self) {
        let Some((size, network)) = self.sizes.pop_last() else { return };
        let oldest = self.made_by.get_mut(&network).and_then(VecDeque::pop_front);
        oldest.map(|hash| self.full_at.remove(&hash));
        match size {
            1 => drop(self.made_by.remove(&network)),
            _ => drop(self.sizes.insert((size - 1, network))),
        }
    }

    /// Drops all buckets that are full. That takes less than a millisecond.
    fn sweep(&mut self, now: Duration) {
        self.full_at.retain(|_, full_at| *full_at > now);
        self.made_by.retain(|_, made| {
            made.retain(|hash| self.full_at.contains_key(hash));
            !made.is_empty()
        });
        self.sizes = self.made_by.iter().map(|(network, made)| (made.len(), *network)).collect();
        self.swept_at = now;
    }
}

/// Token buckets by key, in bounded memory. All keys are of one type.
pub struct TokenBuckets {
    /// The time in which an empty bucket becomes full.
    period: Duration,
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
}

impl TokenBuckets {
    /// Makes buckets that become full again in `period`. None is stored yet, so all are full.
    pub fn new(period: Duration) -> TokenBuckets {
        let shards = std::array::from_fn(|_| Mutex::default());
        TokenBuckets { period, shards, hasher: RandomState::new() }
    }

    /// Takes a token from the bucket of `key`, if it has one, for a request from `network`, see
    /// `client_address::provider_network`. `now` is counted from any fixed start.
    pub fn take(
        &self,
        key: &impl Hash,
        network: IpAddr,
        limit: u32,
        now: Duration,
    ) -> BucketDecision {
        let hash = self.hasher.hash_one(key);
        let mut shard = lock(self.shard(hash));
        if now.saturating_sub(shard.swept_at) >= self.period {
            shard.sweep(now);
        }
        let known = shard.full_at.get_mut(&hash);
        let (full_at, decision) =
            take(known.as_deref().copied().unwrap_or_default(), limit, self.period, now);
        match known {
            Some(known) => *known = full_at,
            None => shard.insert(hash, network, full_at),
        }
        decision
    }

    /// Puts a token back into the bucket of the key with this hash.
    fn give_back(&self, hash: u64, limit: u32) {
        // A bucket that is not stored is full.
        if let Some(full_at) = lock(self.shard(hash)).full_at.get_mut(&hash) {
            *full_at = full_at.saturating_sub(self.interval(limit));
        }
    }

    /// The time in which a token comes back to a bucket that holds so many.
    pub fn interval(&self, limit: u32) -> Duration {
        self.period / limit
    }

    /// The part that holds the bucket of the key with this hash.
    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        &self.shards[hash as usize % SHARDS]
    }
}

/// All buckets of the process, by the time in which an empty one becomes full. Each has memory of its own, so that a
/// flood of one forgets nothing of the others.
pub struct Buckets {
    pub minute: TokenBuckets,
    pub hour: TokenBuckets,
    /// An hour too, for sign-ins without a code: names that no account has are another bucket each.
    pub missing_codes: TokenBuckets,
    pub day: TokenBuckets,
}

impl Buckets {
    /// No bucket is stored yet.
    pub fn new() -> Buckets {
        let buckets = |seconds| TokenBuckets::new(Duration::from_secs(seconds));
        Buckets {
            minute: buckets(60),
            hour: buckets(3600),
            missing_codes: buckets(3600),
            day: buckets(86_400),
        }
    }
}

/// Tokens that were taken for one request. They are given back when this is dropped, unless they count.
pub struct Taken<'a> {
    /// The buckets, the hash of a key, and the number of tokens in its bucket when it is full.
    tokens: Vec<(&'a TokenBuckets, u64, u32)>,
    counts: bool,
}

impl<'a> Taken<'a> {
    /// No token yet. `counts` says whether the tokens count unless [`Taken::give_back`] is called.
    pub fn new(counts: bool) -> Taken<'a> {
        Taken { tokens: Vec::new(), counts }
    }

    /// Adds a token that was taken from the bucket of `key`.
    pub fn add(&mut self, buckets: &'a TokenBuckets, key: &impl Hash, limit: u32) {
        self.tokens.push((buckets, buckets.hasher.hash_one(key), limit));
    }

    /// Lets the tokens count: they stay taken.
    pub fn count(mut self) {
        self.counts = true;
    }

    /// Gives the tokens back.
    #[cfg(feature = "extras")]
    pub fn give_back(mut self) {
        self.counts = false;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.counts {
            self.tokens.drain(..).for_each(|(buckets, hash, limit)| buckets.give_back(hash, limit));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 0, 0));

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_full_bucket_gives_its_limit_and_then_refuses() {
        let buckets = TokenBuckets::new(MINUTE);
        for left in (0..5).rev() {
            let d = buckets.take(&"a", HERE, 5, at(100));
            assert_eq!((d.allowed, d.remaining), (true, left));
        }
        let d = buckets.take(&"a", HERE, 5, at(100));
        assert_eq!((d.allowed, d.remaining, d.retry_in, d.full_in), (false, 0, at(12), at(60)));
        assert!(buckets.take(&"b", HERE, 5, at(100)).allowed, "another key has its own bucket");
    }

    #[test]
    fn tokens_come_back_at_even_intervals() {
        let buckets = TokenBuckets::new(MINUTE);
        for _ in 0..5 {
            buckets.take(&"a", HERE, 5, at(0));
        }
        let d = buckets.take(&"a", HERE, 5, at(11));
        assert_eq!((d.allowed, d.retry_in), (false, at(1)));
        assert!(buckets.take(&"a", HERE, 5, at(12)).allowed);
        assert!(!buckets.take(&"a", HERE, 5, at(12)).allowed);
        assert_eq!(buckets.take(&"a", HERE, 5, at(72)).remaining, 4, "full again after a minute");
    }

    #[test]
    fn a_refused_request_takes_no_token() {
        let buckets = TokenBuckets::new(MINUTE);
        for _ in 0..1000 {
            buckets.take(&"a", HERE, 5, at(0));
        }
        assert!(buckets.take(&"a", HERE, 5, at(12)).allowed);
    }

    #[test]
    fn a_token_that_is_given_back_can_be_taken_again_and_no_bucket_holds_more_than_its_limit() {
        let buckets = TokenBuckets::new(MINUTE);
        let give_back = |key| {
            let mut taken = Taken::new(false);
            taken.add(&buckets, &key, 5);
        };
        for _ in 0..5 {
            assert!(buckets.take(&"a", HERE, 5, at(0)).allowed);
        }
        give_back("a");
        assert!(buckets.take(&"a", HERE, 5, at(0)).allowed);
        assert!(!buckets.take(&"a", HERE, 5, at(0)).allowed);
        // The bucket has become full meanwhile.
        give_back("a");
        give_back("a");
        let allowed = (0..10).filter(|_| buckets.take(&"a", HERE, 5, at(61)).allowed).count();
        assert_eq!(allowed, 5);
        give_back("unknown");
    }

    #[test]
    fn a_longer_period_gives_tokens_back_more_slowly_and_remembers_longer() {
        let buckets = TokenBuckets::new(at(3600));
        for _ in 0..100 {
            assert!(buckets.take(&"a", HERE, 100, at(0)).allowed);
        }
        let d = buckets.take(&"a", HERE, 100, at(10));
        assert_eq!((d.allowed, d.retry_in, d.full_in), (false, at(26), at(3590)));
        let allowed =
            (36..=3600).filter(|second| buckets.take(&"a", HERE, 100, at(*second)).allowed);
        assert_eq!(allowed.count(), 100, "one every 36 seconds");
    }

    #[test]
    fn a_bucket_in_use_survives_sweeps() {
        let buckets = TokenBuckets::new(MINUTE);
        let allowed =
            (0..600).filter(|second| buckets.take(&"a", HERE, 5, at(*second)).allowed).count();
        assert_eq!(allowed, 5 + 49, "the first five, then one every twelve seconds");
    }

    /// A network of its own for each number.
    fn network(n: u32) -> IpAddr {
        Ipv4Addr::from(n << 16).into()
    }

    /// How many buckets are stored. The shards know the same number in each of their ways to find them.
    fn stored(buckets: &TokenBuckets) -> usize {
        let of_shard = |shard: &Mutex<Shard>| {
            let shard = lock(shard);
            let by_network = || shard.made_by.iter().map(|(network, made)| (made.len(), *network));
            assert_eq!(by_network().map(|(size, _)| size).sum::<usize>(), shard.full_at.len());
            assert_eq!(by_network().collect::<BTreeSet<_>>(), shard.sizes);
            shard.full_at.len()
        };
        buckets.shards.iter().map(of_shard).sum()
    }

    #[test]
    fn a_flood_of_keys_does_not_grow_memory_and_idle_buckets_go_after_a_period() {
        for networks in [1, 7, 1_000_000] {
            let buckets = TokenBuckets::new(MINUTE);
            for key in 0..150_000_u32 {
                buckets.take(&key, network(key % networks), 5, at(0));
            }
            let kept = stored(&buckets);
            assert_eq!(kept, SHARDS * MAX_BUCKETS);
            for key in 0..1000 {
                buckets.take(&key, HERE, 5, at(60));
            }
            assert!((1..=1000).contains(&stored(&buckets)));
        }
    }

    #[test]
    fn a_flood_of_one_network_or_of_some_forgets_only_buckets_of_their_own() {
        for networks in [1, 3] {
            let buckets = TokenBuckets::new(MINUTE);
            let others = 0..20_000_u32;
            for key in others.clone() {
                assert!(buckets.take(&key, network(key % 200), 1, at(0)).allowed);
            }
            for key in 1_000_000..1_150_000_u32 {
                buckets.take(&key, network(1000 + key % networks), 1, at(1));
            }
            assert_eq!(stored(&buckets), SHARDS * MAX_BUCKETS);
            for key in others {
                assert!(!buckets.take(&key, network(key % 200), 1, at(2)).allowed, "{key}");
            }
            // Of those of the flood the latest are still there.
            assert!(!buckets.take(&1_149_999, HERE, 1, at(2)).allowed);
            assert!(buckets.take(&1_000_000, HERE, 1, at(2)).allowed);
        }
    }

    #[test]
    fn a_full_bucket_gives_exactly_its_limit() {
        for limit in [1, 2, 3, 7, 100, 200, 999_983, 1_000_000] {
            let buckets = TokenBuckets::new(MINUTE);
            let allowed =
                (0..limit + 5).filter(|_| buckets.take(&(), HERE, limit, at(9)).allowed).count();
            assert_eq!(allowed, limit as usize);
        }
    }
}
