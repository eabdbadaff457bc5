//! Password hashing for requests: at most as many hashes at once as there are cores, in the order of
//! asking, with a bounded wait. A hash takes tens of milliseconds and megabytes, so without this a
//! burst of logins would starve everything else.

use std::time::Duration;

use uuid::Uuid;

use crate::auth::password::{self, Verdict};
use crate::config::Scrypt;
use crate::error::Error;
use crate::semaphore::Semaphore;

/// Longest wait for a permit; after that 503.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Hashes and compares passwords.
pub struct PasswordHasher {
    cost: Scrypt,
    /// A hash of nobody's password: unknown accounts cost what known ones cost.
    dummy: String,
    permits: Semaphore,
}

impl PasswordHasher {
    /// PasswordHasher at `cost`, `at_once` hashes at a time.
    pub fn new(cost: Scrypt, at_once: usize) -> Result<PasswordHasher, Error> {
        let mut output = [0; 32];
        output[..16].copy_from_slice(&salt());
        output[16..].copy_from_slice(&salt());
        let dummy = password::dummy(salt(), output, cost).map_err(Error::Internal)?;
        Ok(PasswordHasher { cost, dummy, permits: Semaphore::new(at_once) })
    }

    /// How many run, and how many wait for a permit.
    pub fn load(&self) -> (usize, usize) {
        (self.permits.in_use(), self.permits.waiting())
    }

    /// The PHC string of a new password.
    pub fn hash(&self, password: &str) -> Result<String, Error> {
        let _permit = self.permits.acquire(MAX_WAIT).ok_or(Error::Unavailable)?;
        password::hash(password, salt(), self.cost).map_err(Error::Internal)
    }

    /// Compares with the stored hash. Where there is none it does the same work and says `Wrong`.
    pub fn verify(&self, password: &str, stored: Option<&str>) -> Result<Verdict, Error> {
        let _permit = self.permits.acquire(MAX_WAIT).ok_or(Error::Unavailable)?;
        let verdict = password::verify(password, stored.unwrap_or(&self.dummy), self.cost);
        let verdict = verdict.map_err(Error::Internal)?;
        Ok(if stored.is_some() { verdict } else { Verdict::Wrong })
    }
}

/// 122 random bits from the operating system.
fn salt() -> [u8; password::SALT_BYTES] {
    *Uuid::new_v4().as_bytes()
}
