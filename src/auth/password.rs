//! Password hashes: salted scrypt (RFC 7914), stored in the PHC string format.

use std::sync::atomic::{AtomicU64, Ordering};

use scrypt::password_hash::{CustomizedPasswordHasher, PasswordVerifier};
use scrypt::phc::{ALG_ID, Output, PasswordHash, Salt};
use scrypt::{Params, Scrypt};

use super::hash_queue::{HashQueue, HashRequest};
use super::random_bytes;
use crate::config::ScryptCost;
use crate::error::Error;
use crate::model::text::nfc;

/// Length of a salt in bytes. NIST SP 800-132, 5.1 asks for at least 16.
const SALT_BYTES: usize = 16;
/// Length of a hash in bytes.
const HASH_BYTES: usize = 32;
/// Most passes (the parameter p) in one hash of [`spend_work`]. Each pass adds `128 * r` bytes of memory.
const MAX_PASSES: u64 = 64;

/// The outcome of checking a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordCheck {
    Wrong,
    Right,
    /// The password is right, but its hash was made with other cost parameters than the configured ones, or of the
    /// password in another form than NFC, and should be replaced.
    RightButOutdated,
}

/// Hashes and checks passwords, each at the configured cost and with a permit.
pub struct PasswordHasher {
    cost: ScryptCost,
    /// Is checked in place of the hash of an account that does not exist, so that both logins take the same time.
    dummy: String,
    /// The work of each check: that of `cost`, or of the most expensive stored hash that this process has checked.
    work: AtomicU64,
    /// Who computes a hash, and who waits for that.
    pub queue: HashQueue,
}

impl PasswordHasher {
    /// Makes a hasher that runs at most `parallel` hashes at a time. Fails only if the operating system gives no random
    /// bytes.
    pub fn new(cost: ScryptCost, parallel: usize) -> Result<PasswordHasher, Error> {
        let output = random_bytes::<HASH_BYTES>()?;
        let dummy = dummy_hash(random_bytes()?, output, cost).map_err(Error::Internal)?;
        let work = AtomicU64::new(cost.work());
        Ok(PasswordHasher { cost, dummy, work, queue: HashQueue::new(parallel) })
    }

    /// Hashes a new password, which is in NFC, and returns the PHC string. Fails with [`Error::Unavailable`] if no
    /// permit comes in time.
    pub fn hash(&self, password: &str, request: HashRequest) -> Result<String, Error> {
        let _permit = self.queue.wait(request)?;
        hash(password, random_bytes()?, self.cost).map_err(Error::Internal)
    }

    /// Hashes a password anew whose hash is outdated, if a permit is free: nobody waits, or is refused, because of
    /// that. Otherwise the hash stays until the next sign-in.
    pub fn renew(&self, password: &str, request: HashRequest) -> Option<String> {
        let _permit = self.queue.take_free(request)?;
        hash(&nfc(password), random_bytes().ok()?, self.cost).ok()
    }

    /// Checks a password against the stored hash. Without a stored hash the result is `Wrong`. Fails with
    /// [`Error::Unavailable`] if no permit comes in time.
    ///
    /// Every check takes the same time, so that the time does not reveal whether an account exists, or how old its hash
    /// is. The time that a cheaper hash saves is spent on discarded hashes. A more expensive one cannot be made
    /// cheaper: once the process has checked one, all later checks take as long as that one.
    ///
    /// A password that was not sent in NFC is checked in both forms (RFC 8265, 4.2), with one permit, also if the first
    /// is right: keyboards differ in the form that they type, and a stored hash may be of either.
    pub fn check(
        &self,
        password: &str,
        stored: Option<&str>,
        request: HashRequest,
    ) -> Result<PasswordCheck, Error> {
        let _permit = self.queue.wait(request)?;
        let composed = nfc(password);
        let check = self.check_form(&composed, stored)?;
        if composed == password {
            return Ok(check);
        }
        Ok(match (check, self.check_form(password, stored)?) {
            (PasswordCheck::Wrong, PasswordCheck::Wrong) => PasswordCheck::Wrong,
            (PasswordCheck::Wrong, _) => PasswordCheck::RightButOutdated,
            (check, _) => check,
        })
    }

    /// Checks one form of a password.
    fn check_form(&self, password: &str, stored: Option<&str>) -> Result<PasswordCheck, Error> {
        let outcome = compare(password, stored.unwrap_or(&self.dummy), self.cost);
        let (check, spent) = outcome.map_err(Error::Internal)?;
        let work = self.work.fetch_max(spent, Ordering::Relaxed).max(spent);
        spend_work(password, work - spent, self.cost).map_err(Error::Internal)?;
        Ok(if stored.is_some() { check } else { PasswordCheck::Wrong })
    }
}

fn library_error(error: impl std::fmt::Display) -> String {
    format!("password hash: {error}")
}

/// The cost in the library's own type. Every cost that the settings allow is valid.
fn params(cost: ScryptCost) -> Result<Params, String> {
    Params::new_with_output_len(cost.log_n, cost.r, cost.p, HASH_BYTES).map_err(library_error)
}

/// Hashes a password and returns the PHC string. Takes `128 * r * 2^log_n` bytes of memory while it runs.
pub fn hash(password: &str, salt: [u8; SALT_BYTES], cost: ScryptCost) -> Result<String, String> {
    let hash = Scrypt::new().hash_password_with_params(password.as_bytes(), &salt, params(cost)?);
    Ok(hash.map_err(library_error)?.to_string())
}

/// Makes a PHC string that no password matches, provided that `output` is random. Checking against it takes as long as
/// against a real hash, but making it takes no time, so that it does not delay the start of the process.
fn dummy_hash(
    salt: [u8; SALT_BYTES],
    output: [u8; HASH_BYTES],
    cost: ScryptCost,
) -> Result<String, String> {
    let hash = PasswordHash {
        algorithm: ALG_ID,
        version: None,
        params: params(cost)?.try_into().map_err(library_error)?,
        salt: Some(Salt::new(&salt).map_err(library_error)?),
        hash: Some(Output::new(&output).map_err(library_error)?),
    };
    Ok(hash.to_string())
}

/// Hashes `password` with the parameters and the salt of `stored`, and compares the two in constant time. Also returns
/// how much work that was ([`ScryptCost::work`]). Fails if `stored` is not a PHC string.
fn compare(password: &str, stored: &str, cost: ScryptCost) -> Result<(PasswordCheck, u64), String> {
    let stored = PasswordHash::new(stored).map_err(library_error)?;
    let Ok(used) = Params::try_from(&stored) else {
        // The hash of another algorithm, which no password matches.
        return Ok((PasswordCheck::Wrong, 0));
    };
    let used = ScryptCost { log_n: used.log_n(), r: used.r(), p: used.p() };
    let check = if Scrypt::new().verify_password(password.as_bytes(), &stored).is_err() {
        PasswordCheck::Wrong
    } else if used == cost {
        PasswordCheck::Right
    } else {
        PasswordCheck::RightButOutdated
    };
    Ok((check, used.work()))
}

/// Takes as much time as hashes of this `work` ([`ScryptCost::work`]), to within a thousandth of one hash at `cost`, by
/// computing hashes whose results are discarded. They take hardly more memory than one hash at that cost.
fn spend_work(password: &str, work: u64, cost: ScryptCost) -> Result<(), String> {
    let negligible = cost.work() / 1000;
    let mut left = work;
    let mut output = [0; HASH_BYTES];
    // As many passes of the full size as fit, then smaller ones for the rest.
    for log_n in (1..=cost.log_n).rev() {
        let pass = ScryptCost { log_n, p: 1, ..cost }.work();
        while left >= pass && left > negligible {
            let passes = (left / pass).min(MAX_PASSES);
            let params = Params::new(log_n, cost.r, passes as u32).map_err(library_error)?;
            scrypt::scrypt(password.as_bytes(), b"", &params, &mut output)
                .map_err(library_error)?;
            left -= passes * pass;
        }
    }
    std::hint::black_box(output);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: ScryptCost = ScryptCost { log_n: 4, r: 8, p: 1 };

    #[test]
    fn the_right_password_is_told_from_the_wrong_one_and_from_an_outdated_hash()
    -> Result<(), String> {
        let stored = hash("correct horse", [1; SALT_BYTES], COST)?;
        assert!(stored.starts_with("$scrypt$ln=4,r=8,p=1$"), "{stored}");
        assert_eq!(compare("correct horse", &stored, COST)?.0, PasswordCheck::Right);
        assert_eq!(compare("Correct horse", &stored, COST)?.0, PasswordCheck::Wrong);
        let other_cost = ScryptCost { log_n: 5, ..COST };
        assert_eq!(
            compare("correct horse", &stored, other_cost)?.0,
            PasswordCheck::RightButOutdated
        );
        Ok(())
    }

    #[test]
    fn a_hash_that_openssl_computed_is_known() -> Result<(), String> {
        let (salt, output) =
            ("MDEyMzQ1Njc4OWFiY2RlZg", "OAkZqUBelG6VIYdTJfYSENL5OmZRxMa3GwXn5oFliTg");
        let stored = format!("$scrypt$ln=4,r=8,p=1${salt}${output}");
        assert_eq!(compare("correct horse", &stored, COST)?.0, PasswordCheck::Right);
        assert_eq!(hash("correct horse", *b"0123456789abcdef", COST)?, stored);
        Ok(())
    }

    #[test]
    fn a_dummy_is_a_hash_of_the_configured_cost() -> Result<(), String> {
        let dummy = dummy_hash([1; SALT_BYTES], [2; 32], COST)?;
        let real = hash("correct horse", [1; SALT_BYTES], COST)?;
        let (kind, salt) = ("$scrypt$ln=4,r=8,p=1$", "AQEBAQEBAQEBAQEBAQEBAQ$");
        assert!(dummy.starts_with(&format!("{kind}{salt}")), "{dummy}");
        assert!(real.starts_with(&format!("{kind}{salt}")) && real.len() == dummy.len(), "{real}");
        assert_eq!(compare("correct horse", &dummy, COST)?.0, PasswordCheck::Wrong);
        Ok(())
    }

    #[test]
    fn no_password_matches_text_that_is_no_scrypt_hash() {
        for stored in
            ["", "correct horse", "$scrypt$", "$argon2id$v=19$m=16,t=2,p=1$MTIzNDU2Nzg$AAAA"]
        {
            let check = compare("correct horse", stored, COST);
            assert!(check.is_err() || check == Ok((PasswordCheck::Wrong, 0)), "{stored}");
        }
    }
}
