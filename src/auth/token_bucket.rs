//! Token buckets: a bucket holds as many tokens as its limit, a request takes one, and as many as the limit come
//! back in a minute.
//!
//! A bucket is stored as one number: the moment at which it will be full again. Taking a token moves that moment
//! one interval ahead, and the bucket is empty while the moment lies a whole minute ahead. So a bucket that is
//! full again needs no memory.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
/// Number of locks: two requests rarely need the same of sixteen at once.
const SHARDS: usize = 16;
/// Most buckets in a generation of a shard, so at most 2 x 16 x 4096 buckets in all.
const MAX_GENERATION: usize = 4096;

/// What asking a bucket for a token led to.
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
    /// Time until there is a token; zero where there is one.
    pub retry_in: Duration,
}

/// Takes a token, at `now`, from the bucket that is full at `full_at`; both count from one start. Returns the
/// bucket's new `full_at`.
fn take(full_at: Duration, limit: u32, now: Duration) -> (Duration, BucketDecision) {
    let interval = MINUTE / limit;
    let capacity = interval * limit;
    let full_at = full_at.max(now);
    let taken = full_at + interval;
    let allowed = taken - now <= capacity;
    let full_at = if allowed { taken } else { full_at };
    let free = capacity.saturating_sub(full_at - now);
    let decision = BucketDecision {
        allowed,
        limit,
        // The divisor is at least 60 microseconds, because the settings allow limits up to 1,000,000.
        remaining: (free.as_nanos() / interval.as_nanos()) as u32,
        full_in: full_at - now,
        retry_in: interval.saturating_sub(free),
    };
    (full_at, decision)
}

/// Some of the buckets, in two generations. A new generation begins after a minute, or when the young one holds
/// too many buckets, and the old one is dropped: it holds the buckets that nobody asked for since. After a minute
/// those are full, so nothing is lost. Under a flood of keys generations are shorter, some buckets are forgotten
/// too early, and memory stays bounded.
struct Shard<K> {
    young: HashMap<K, Duration>,
    old: HashMap<K, Duration>,
    began: Duration,
}

/// Token buckets by key, in bounded memory.
pub struct TokenBuckets<K> {
    shards: [Mutex<Shard<K>>; SHARDS],
    hasher: RandomState,
}

impl<K: Hash + Eq> TokenBuckets<K> {
    /// Every key's bucket is full.
    pub fn new() -> TokenBuckets<K> {
        let shard = |_| {
            Mutex::new(Shard { young: HashMap::new(), old: HashMap::new(), began: Duration::ZERO })
        };
        TokenBuckets { shards: std::array::from_fn(shard), hasher: RandomState::new() }
    }

    /// Asks the bucket of `key` for a token. `now` counts from any fixed start.
    pub fn take(&self, key: K, limit: u32, now: Duration) -> BucketDecision {
        let shard = &self.shards[self.hasher.hash_one(&key) as usize % SHARDS];
        // Nothing below panics, so a poisoned lock would still guard sound maps.
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if now.saturating_sub(shard.began) >= MINUTE || shard.young.len() >= MAX_GENERATION {
            shard.old = std::mem::take(&mut shard.young);
            shard.began = now;
        }
        let known = shard.young.get(&key).or_else(|| shard.old.get(&key));
        let (full_at, decision) = take(known.copied().unwrap_or_default(), limit, now);
        shard.young.insert(key, full_at);
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_full_bucket_gives_its_limit_and_then_refuses() {
        let buckets = TokenBuckets::new();
        for left in (0..5).rev() {
            let d = buckets.take("a", 5, at(100));
            assert_eq!((d.allowed, d.remaining), (true, left));
        }
        let d = buckets.take("a", 5, at(100));
        assert_eq!((d.allowed, d.remaining, d.retry_in, d.full_in), (false, 0, at(12), at(60)));
        assert!(buckets.take("b", 5, at(100)).allowed, "another key has its own bucket");
    }

    #[test]
    fn a_token_returns_every_limit_th_of_a_minute() {
        let buckets = TokenBuckets::new();
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
    fn a_refusal_takes_nothing() {
        let buckets = TokenBuckets::new();
        for _ in 0..1000 {
            buckets.take("a", 5, at(0));
        }
        assert!(buckets.take("a", 5, at(12)).allowed);
    }

    #[test]
    fn a_bucket_in_use_outlives_generations() {
        let buckets = TokenBuckets::new();
        let allowed = (0..600).filter(|second| buckets.take("a", 5, at(*second)).allowed).count();
        assert_eq!(allowed, 5 + 49, "the first five, then one every twelve seconds");
    }

    #[test]
    fn a_flood_of_keys_does_not_grow_memory() {
        let buckets = TokenBuckets::new();
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
    fn every_limit_gives_exactly_itself() {
        for limit in [1, 2, 3, 7, 100, 200, 999_983, 1_000_000] {
            let buckets = TokenBuckets::new();
            let allowed = (0..limit + 5).filter(|_| buckets.take((), limit, at(9)).allowed).count();
            assert_eq!(allowed, limit as usize);
        }
    }
}
