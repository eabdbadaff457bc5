//! Password hashing for requests: at most as many hashes run at once as there are cores. A hash takes tens of
//! milliseconds and 16 MiB, so a burst of logins without this bound would starve everything else.

use std::time::Duration;

use super::password::{self, HASH_BYTES, PasswordCheck};
use super::random_bytes;
use crate::config::Scrypt;
use crate::error::Error;
use crate::semaphore::Semaphore;

/// Longest wait for a permit to hash. After that the request is answered 503.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Hashes and checks passwords.
pub struct PasswordHasher {
    cost: Scrypt,
    /// Stands in for the hash of an account that does not exist, so that looking for one takes the same time.
    dummy: String,
    permits: Semaphore,
}

impl PasswordHasher {
    /// Hashes at `cost`, at most `parallel` at a time. Fails only without randomness.
    pub fn new(cost: Scrypt, parallel: usize) -> Result<PasswordHasher, Error> {
        let output = random_bytes::<HASH_BYTES>()?;
        let dummy = password::dummy(random_bytes()?, output, cost).map_err(Error::Internal)?;
        Ok(PasswordHasher { cost, dummy, permits: Semaphore::new(parallel) })
    }

    /// How many hashes run, and how many wait for a permit.
    pub fn load(&self) -> (usize, usize) {
        (self.permits.in_use(), self.permits.waiting())
    }

    /// The PHC string of a new password. Fails with [`Error::Unavailable`] where no permit is free in time.
    pub fn hash(&self, password: &str) -> Result<String, Error> {
        let _permit = self.permits.acquire(MAX_WAIT).ok_or(Error::Unavailable)?;
        password::hash(password, random_bytes()?, self.cost).map_err(Error::Internal)
    }

    /// Checks a password against the stored hash. Where there is no stored hash it does the same work, so that
    /// the time does not tell whether an account exists, and the answer is `Wrong`.
    pub fn check(&self, password: &str, stored: Option<&str>) -> Result<PasswordCheck, Error> {
        let _permit = self.permits.acquire(MAX_WAIT).ok_or(Error::Unavailable)?;
        let check = password::check(password, stored.unwrap_or(&self.dummy), self.cost);
        let check = check.map_err(Error::Internal)?;
        Ok(if stored.is_some() { check } else { PasswordCheck::Wrong })
    }
}
