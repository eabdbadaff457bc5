//! Password hashes: salted scrypt (RFC 7914), stored in the PHC string format.

use std::sync::atomic::{AtomicU64, Ordering};

use scrypt::password_hash::{CustomizedPasswordHasher, PasswordVerifier};
use scrypt::phc::PasswordHash;
use scrypt::{Params, Scrypt};

use super::hash_queue::{HashQueue, HashRequest};
use super::{imported, random_bytes};
use crate::config::ScryptCost;
use crate::error::Error;
use crate::model::text::nfc;

/// Length of a salt in bytes. NIST SP 800-132, 5.1 asks for at least 16.
const SALT_BYTES: usize = 16;
/// Length of a hash in bytes.
const HASH_BYTES: usize = 32;
/// Most passes (the parameter p) in one hash of [`spend_work`]. Each pass adds `128 * r` bytes of memory.
const MAX_PASSES: u64 = 64;

/// The outcome of comparing a password with a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Wrong,
    Right,
    /// The password is right, but its hash was made with other cost parameters than the configured ones, of the
    /// password in another form than NFC, or by another program, and should be replaced.
    RightButOutdated,
}

/// A password that is the one of the account.
#[derive(Debug, PartialEq, Eq)]
pub struct RightPassword {
    /// The hash that is to replace the stored one, if that is outdated.
    pub renewed_hash: Option<String>,
}

/// Hashes and checks passwords, each at the configured cost and with a permit.
pub struct PasswordHasher {
    cost: ScryptCost,
    /// How many hashes run at once.
    parallel: usize,
    /// The work of each check: that of `cost`, or of the most expensive stored hash that this process has checked.
    /// Those that another program made do not count.
    work: AtomicU64,
    /// Who computes a hash, and who waits for that.
    pub queue: HashQueue,
}

impl PasswordHasher {
    /// Makes a hasher that runs at most `parallel` hashes at a time.
    pub fn new(cost: ScryptCost, parallel: usize) -> PasswordHasher {
        let work = AtomicU64::new(cost.work());
        PasswordHasher { cost, parallel, work, queue: HashQueue::new(parallel) }
    }

    /// Hashes a new password, which is in NFC, and returns the PHC string. Fails with [`Error::Unavailable`] if no
    /// permit comes in time.
    pub fn hash(&self, password: &str, request: HashRequest) -> Result<String, Error> {
        let _permit = self.queue.wait(request)?;
        hash(password, random_bytes()?, self.cost).map_err(Error::Internal)
    }

    /// Checks a password against the stored hash, and hashes one anew with the same permit that is right but whose hash
    /// is outdated. Returns `None` if it is wrong, or if there is no stored hash. Fails with [`Error::Unavailable`] if
    /// no permit comes in time.
    ///
    /// Every check takes the same time, so that the time does not reveal whether an account exists, or how old its hash
    /// is; only who knows the password can see that its hash is made anew. The time that a cheaper hash saves, or that
    /// no hash takes, is spent on discarded hashes. A more expensive one cannot be made cheaper: once the process has
    /// checked one, all later checks take as long as that one. A hash that another program made is checked after all
    /// that, so it only takes longer, and makes no other check do so. One that would take more memory than all hashes
    /// that may run at once fails with [`Error::Unavailable`] after the work of every check.
    ///
    /// A password that was not sent in NFC is checked in both forms (RFC 8265, 4.2), with one permit, also if the first
    /// is right: keyboards differ in the form that they type, and a stored hash may be of either.
    pub fn check(
        &self,
        password: &str,
        stored: Option<&str>,
        request: HashRequest,
    ) -> Result<Option<RightPassword>, Error> {
        let stored = stored.unwrap_or_default();
        let turns = imported::turns(stored, self.cost, self.parallel);
        let _permit = self.queue.wait(HashRequest { imported: turns.unwrap_or(0), ..request })?;
        // No password matches the empty text. The work is that of every check.
        let (stored, composed) = (turns.map_or("", |_| stored), nfc(password));
        let mut outcome = self.check_form(&composed, stored)?;
        if composed != password {
            outcome = match (outcome, self.check_form(password, stored)?) {
                (Comparison::Wrong, Comparison::Right) => Comparison::RightButOutdated,
                (Comparison::Wrong, outcome) | (outcome, _) => outcome,
            };
        }
        turns.ok_or(Error::Unavailable)?;
        Ok(match outcome {
            Comparison::Wrong => None,
            Comparison::Right => Some(RightPassword { renewed_hash: None }),
            Comparison::RightButOutdated => {
                let renewed_hash = hash(&composed, random_bytes()?, self.cost).ok();
                Some(RightPassword { renewed_hash })
            }
        })
    }

    /// Checks one form of a password.
    fn check_form(&self, password: &str, stored: &str) -> Result<Comparison, Error> {
        let (check, spent) = compare(password, stored, self.cost);
        let work = self.work.fetch_max(spent, Ordering::Relaxed).max(spent);
        spend_work(password, work - spent, self.cost).map_err(Error::Internal)?;
        let matches = imported::matches(password, stored);
        Ok(if matches { Comparison::RightButOutdated } else { check })
    }
}

fn library_error(error: impl std::fmt::Display) -> String {
    format!("password hash: {error}")
}

/// Hashes a password and returns the PHC string. Takes `128 * r * 2^log_n` bytes of memory while it runs. Every cost
/// that the settings allow is valid.
pub fn hash(password: &str, salt: [u8; SALT_BYTES], cost: ScryptCost) -> Result<String, String> {
    let params = Params::new_with_output_len(cost.log_n, cost.r, cost.p, HASH_BYTES);
    let params = params.map_err(library_error)?;
    let hash = Scrypt::new().hash_password_with_params(password.as_bytes(), &salt, params);
    Ok(hash.map_err(library_error)?.to_string())
}

/// Hashes `password` with the parameters and the salt of `stored`, and compares the two in constant time. Also returns
/// how much work that was ([`ScryptCost::work`]). No password matches a text that is no hash of scrypt, without work.
fn compare(password: &str, stored: &str, cost: ScryptCost) -> (Comparison, u64) {
    let Ok(stored) = PasswordHash::new(stored) else { return (Comparison::Wrong, 0) };
    let Ok(used) = Params::try_from(&stored) else { return (Comparison::Wrong, 0) };
    let used = ScryptCost { log_n: used.log_n(), r: used.r(), p: used.p() };
    let check = if Scrypt::new().verify_password(password.as_bytes(), &stored).is_err() {
        Comparison::Wrong
    } else if used == cost {
        Comparison::Right
    } else {
        Comparison::RightButOutdated
    };
    (check, used.work())
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
        assert_eq!(compare("correct horse", &stored, COST).0, Comparison::Right);
        assert_eq!(compare("Correct horse", &stored, COST).0, Comparison::Wrong);
        let other_cost = ScryptCost { log_n: 5, ..COST };
        assert_eq!(compare("correct horse", &stored, other_cost).0, Comparison::RightButOutdated);
        Ok(())
    }

    #[test]
    fn a_hash_that_openssl_computed_is_known() -> Result<(), String> {
        let (salt, output) =
            ("MDEyMzQ1Njc4OWFiY2RlZg", "OAkZqUBelG6VIYdTJfYSENL5OmZRxMa3GwXn5oFliTg");
        let stored = format!("$scrypt$ln=4,r=8,p=1${salt}${output}");
        assert_eq!(compare("correct horse", &stored, COST).0, Comparison::Right);
        assert_eq!(hash("correct horse", *b"0123456789abcdef", COST)?, stored);
        Ok(())
    }

    /// Twice as expensive as the usual one, with which it is compared.
    #[test]
    #[cfg(feature = "extras")]
    fn the_work_of_a_dearer_hash_becomes_that_of_all_checks_but_not_that_of_an_imported_one()
    -> Result<(), Error> {
        let hasher = PasswordHasher::new(COST, 1);
        let request = HashRequest { is_signed_in: false, network: None, imported: 0 };
        let check = |password, stored: &str| hasher.check(password, Some(stored), request);
        let dearer = hash("correct horse", [1; SALT_BYTES], ScryptCost { p: 2, ..COST });
        let dearer = dearer.map_err(Error::Internal)?;
        let imported = format!("imported:{dearer}");
        let renewed = check("correct horse", &imported)?.and_then(|right| right.renewed_hash);
        let renewed = renewed.unwrap_or_default();
        assert_eq!(check("correct horse", &renewed)?, Some(RightPassword { renewed_hash: None }));
        assert_eq!(check("Correct horse", &imported)?, None);
        assert_eq!(hasher.work.load(Ordering::Relaxed), COST.work());
        assert!(check("correct horse", &dearer)?.is_some_and(|right| right.renewed_hash.is_some()));
        assert_eq!(hasher.work.load(Ordering::Relaxed), 2 * COST.work());
        Ok(())
    }

    #[test]
    fn no_password_matches_text_that_is_no_scrypt_hash() {
        for stored in
            ["", "correct horse", "$scrypt$", "$argon2id$v=19$m=16,t=2,p=1$MTIzNDU2Nzg$AAAA"]
        {
            assert_eq!(compare("correct horse", stored, COST), (Comparison::Wrong, 0));
        }
    }
}
