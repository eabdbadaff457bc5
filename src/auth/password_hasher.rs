//! Password hashing with a bound on how many hashes run at once. By default a hash takes a tenth of a second and
//! 16 MiB, so without a bound a burst of logins would starve everything else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::password::{self, HASH_BYTES, PasswordCheck};
use super::random_bytes;
use crate::config::ScryptCost;
use crate::error::Error;
use crate::semaphore::Semaphore;

/// Longest wait for a permit to hash. After that, the request is answered 503.
const MAX_WAIT: Duration = Duration::from_secs(15);

/// Hashes and checks passwords, each at the configured cost and under a permit.
pub struct PasswordHasher {
    cost: ScryptCost,
    /// Is checked in place of the hash of an account that does not exist, so that both logins take the same time.
    dummy: String,
    /// The work of each check: that of `cost`, or of the most expensive stored hash that this process has checked.
    work: AtomicU64,
    permits: Semaphore,
}

impl PasswordHasher {
    /// Makes a hasher that runs at most `parallel` hashes at a time. Fails only if the operating system gives no random
    /// bytes.
    pub fn new(cost: ScryptCost, parallel: usize) -> Result<PasswordHasher, Error> {
        let output = random_bytes::<HASH_BYTES>()?;
        let dummy = password::dummy(random_bytes()?, output, cost).map_err(Error::Internal)?;
        let work = AtomicU64::new(cost.work());
        Ok(PasswordHasher { cost, dummy, work, permits: Semaphore::new(parallel) })
    }

    /// How many hashes run, and how many wait for a permit.
    pub fn load(&self) -> (usize, usize) {
        (self.permits.in_use(), self.permits.waiting())
    }

    /// Hashes a new password and returns the PHC string. Fails with [`Error::Unavailable`] if no permit is free in
    /// time.
    pub fn hash(&self, password: &str) -> Result<String, Error> {
        let _permit = self.permits.acquire(MAX_WAIT).ok_or(Error::Unavailable)?;
        password::hash(password, random_bytes()?, self.cost).map_err(Error::Internal)
    }

    /// Checks a password against the stored hash. Without a stored hash the result is `Wrong`. Fails with
    /// [`Error::Unavailable`] if no permit is free in time.
    ///
    /// Every check takes the same time, so that the time does not reveal whether an account exists, or how old its hash
    /// is. The time that a cheaper hash saves is spent on discarded hashes. A more expensive one cannot be made
    /// cheaper: once the process has checked one, all later checks take as long as that one.
    pub fn check(&self, password: &str, stored: Option<&str>) -> Result<PasswordCheck, Error> {
        let _permit = self.permits.acquire(MAX_WAIT).ok_or(Error::Unavailable)?;
        let check = password::check(password, stored.unwrap_or(&self.dummy), self.cost);
        let (check, spent) = check.map_err(Error::Internal)?;
        let work = self.work.fetch_max(spent, Ordering::Relaxed).max(spent);
        password::spend_work(password, work - spent, self.cost).map_err(Error::Internal)?;
        Ok(if stored.is_some() { check } else { PasswordCheck::Wrong })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_hash_waits_15_seconds_for_its_permit_and_then_fails() -> Result<(), Error> {
        let hasher = PasswordHasher::new(ScryptCost { log_n: 4, r: 8, p: 1 }, 1)?;
        let held = hasher.permits.acquire(Duration::ZERO);
        let begin = Instant::now();
        assert!(matches!(hasher.check("correct horse", None), Err(Error::Unavailable)));
        let waited = begin.elapsed();
        assert!((15..25).contains(&waited.as_secs()), "{waited:?}");
        drop(held);
        assert!(hasher.check("correct horse", None).is_ok());
        Ok(())
    }
}
