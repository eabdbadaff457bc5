//! Token buckets for rate limits. A full bucket holds `limit` tokens, each request takes one, and tokens come back
//! evenly, `limit` of them in a period, such as a minute.
//!
//! A bucket is stored as one number, the moment at which it will be full again, as in the generic cell rate algorithm
//! (GCRA). Taking a token moves that moment ahead by the interval at which tokens come back. The bucket is empty if the
//! moment would then be more than a period ahead. A bucket whose moment has passed is full, and need not be stored.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::semaphore::lock;

/// Number of maps, each with its own lock. With sixteen, two requests rarely wait for the same one.
const SHARDS: usize = 16;
/// Most buckets in one generation of one shard. With two generations there are at most 2 * 16 * 4096 buckets in all.
const MAX_GENERATION: usize = 4096;

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

/// A part of the buckets, in two generations. After a period, or when the young generation holds too many buckets, it
/// becomes the old one and a new one begins. The previous old generation is dropped with the buckets that were not used
/// since. Normally those are a period old and full again, so nothing is lost. Under a flood of keys generations are
/// shorter and some buckets are forgotten too early, but memory stays bounded.
struct Shard<K> {
    young: HashMap<K, Duration>,
    old: HashMap<K, Duration>,
    began: Duration,
}

/// Token buckets by key, in bounded memory.
pub struct TokenBuckets<K> {
    /// The time in which an empty bucket becomes full.
    period: Duration,
    shards: [Mutex<Shard<K>>; SHARDS],
    hasher: RandomState,
}

impl<K: Hash + Eq> TokenBuckets<K> {
    /// Makes buckets that become full again in `period`. None is stored yet, so all are full.
    pub fn new(period: Duration) -> TokenBuckets<K> {
        let shard = |_| {
            Mutex::new(Shard { young: HashMap::new(), old: HashMap::new(), began: Duration::ZERO })
        };
        TokenBuckets { period, shards: std::array::from_fn(shard), hasher: RandomState::new() }
    }

    /// Takes a token from the bucket of `key`, if it has one. `now` is counted from any fixed start.
    pub fn take(&self, key: K, limit: u32, now: Duration) -> BucketDecision {
        let mut shard = self.shard(&key);
        if now.saturating_sub(shard.began) >= self.period || shard.young.len() >= MAX_GENERATION {
            shard.old = std::mem::take(&mut shard.young);
            shard.began = now;
        }
        let known = shard.young.get(&key).or_else(|| shard.old.get(&key));
        let (full_at, decision) = take(known.copied().unwrap_or_default(), limit, self.period, now);
        shard.young.insert(key, full_at);
        decision
    }

    /// Puts a token back that was taken from the bucket of `key` and was not used after all.
    pub fn give_back(&self, key: K, limit: u32) {
        let shard = &mut *self.shard(&key);
        // A bucket that is not stored is full.
        if let Some(full_at) = shard.young.get_mut(&key).or_else(|| shard.old.get_mut(&key)) {
            *full_at = full_at.saturating_sub(self.interval(limit));
        }
    }

    /// The time in which a token comes back to a bucket that holds so many.
    pub fn interval(&self, limit: u32) -> Duration {
        self.period / limit
    }

    /// Locks the part that holds the bucket of `key`.
    fn shard(&self, key: &K) -> MutexGuard<'_, Shard<K>> {
        lock(&self.shards[self.hasher.hash_one(key) as usize % SHARDS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_full_bucket_gives_its_limit_and_then_refuses() {
        let buckets = TokenBuckets::new(MINUTE);
        for left in (0..5).rev() {
            let d = buckets.take("a", 5, at(100));
            assert_eq!((d.allowed, d.remaining), (true, left));
        }
        let d = buckets.take("a", 5, at(100));
        assert_eq!((d.allowed, d.remaining, d.retry_in, d.full_in), (false, 0, at(12), at(60)));
        assert!(buckets.take("b", 5, at(100)).allowed, "another key has its own bucket");
    }

    #[test]
    fn tokens_come_back_at_even_intervals() {
        let buckets = TokenBuckets::new(MINUTE);
        for _ in 0..5 {
            buckets.take("a", 5, at(0));
        }
        let d = buckets.take("a", 5, at(11));
        assert_eq!((d.allowed, d.retry_in), (false, at(1)));
        assert!(buckets.take("a", 5, at(12)).allowed);
        assert!(!buckets.take("a", 5, at(12)).allowed);
        assert_eq!(buckets.take("a", 5, at(72)).remaining, 4, "full again after a minute");
    }

    #[test]
    fn a_refused_request_takes_no_token() {
        let buckets = TokenBuckets::new(MINUTE);
        for _ in 0..1000 {
            buckets.take("a", 5, at(0));
        }
        assert!(buckets.take("a", 5, at(12)).allowed);
    }

    #[test]
    fn a_token_that_is_given_back_can_be_taken_again_and_no_bucket_holds_more_than_its_limit() {
        let buckets = TokenBuckets::new(MINUTE);
        for _ in 0..5 {
            assert!(buckets.take("a", 5, at(0)).allowed);
        }
        buckets.give_back("a", 5);
        assert!(buckets.take("a", 5, at(0)).allowed);
        assert!(!buckets.take("a", 5, at(0)).allowed);
        // The bucket has become full meanwhile.
        buckets.give_back("a", 5);
        buckets.give_back("a", 5);
        let allowed = (0..10).filter(|_| buckets.take("a", 5, at(61)).allowed).count();
        assert_eq!(allowed, 5);
        buckets.give_back("unknown", 5);
    }

    #[test]
    fn a_longer_period_gives_tokens_back_more_slowly_and_remembers_longer() {
        let buckets = TokenBuckets::new(at(3600));
        for _ in 0..100 {
            assert!(buckets.take("a", 100, at(0)).allowed);
        }
        let d = buckets.take("a", 100, at(10));
        assert_eq!((d.allowed, d.retry_in, d.full_in), (false, at(26), at(3590)));
        let allowed = (36..=3600).filter(|second| buckets.take("a", 100, at(*second)).allowed);
        assert_eq!(allowed.count(), 100, "one every 36 seconds");
    }

    #[test]
    fn a_bucket_in_use_survives_changes_of_generation() {
        let buckets = TokenBuckets::new(MINUTE);
        let allowed = (0..600).filter(|second| buckets.take("a", 5, at(*second)).allowed).count();
        assert_eq!(allowed, 5 + 49, "the first five, then one every twelve seconds");
    }

    #[test]
    fn a_flood_of_keys_does_not_grow_memory() {
        let buckets = TokenBuckets::new(MINUTE);
        for key in 0..1_000_000_u32 {
            buckets.take(key, 5, at(0));
        }
        let kept: usize = buckets
            .shards
            .iter()
            .map(|s| s.lock().map_or(0, |s| s.young.len() + s.old.len()))
            .sum();
        assert!(kept <= 2 * SHARDS * MAX_GENERATION, "{kept}");
    }

    #[test]
    fn a_full_bucket_gives_exactly_its_limit() {
        for limit in [1, 2, 3, 7, 100, 200, 999_983, 1_000_000] {
            let buckets = TokenBuckets::new(MINUTE);
            let allowed = (0..limit + 5).filter(|_| buckets.take((), limit, at(9)).allowed).count();
            assert_eq!(allowed, limit as usize);
        }
    }
}
