//! Seals the secrets of second factors anew at a start whose settings have another key, and counts those that no key
//! opens.

use std::time::Duration;

use uuid::Uuid;

use super::statements::{Resealed, reseal, sealed_after};
use super::totp::TotpSecret;
use crate::auth::sealing::SealingKeys;
use crate::db::Database;
use crate::error::Error;

/// The longest time for a thousand of them.
const MAX_BATCH_TIME: Duration = Duration::from_secs(60);

/// Seals with the current key what others have sealed, a thousand at a time. Says in the log how many second factors
/// that were, and how many no key opens. If the database takes no changes, the old keys are needed until the next
/// start.
pub fn reseal_all(db: &Database, keys: &SealingKeys) {
    match reseal_batches(db, keys) {
        Ok((0, 0)) => {}
        Ok((changed, 0)) => log::info!("{changed} second factors sealed anew"),
        Ok((changed, unreadable)) => log::warn!(
            "{changed} second factors sealed anew; {unreadable} others are opened by no key of CLOAKROOM_SEAL_KEYS or \
             CLOAKROOM_JWT_SECRET, so only recovery codes serve their users"
        ),
        Err(error) => log::warn!("second factors were not sealed anew: {}", error.cause()),
    }
}

/// Returns how many it has sealed, and how many no key opens.
fn reseal_batches(db: &Database, keys: &SealingKeys) -> Result<(i64, usize), Error> {
    let (mut changed, mut unreadable, mut after) = (0, 0, Uuid::nil());
    loop {
        let batch =
            db.run(MAX_BATCH_TIME, |client| sealed_after(client, keys.current_prefix(), after))?;
        let Some((last, _)) = batch.last() else { return Ok((changed, unreadable)) };
        after = *last;
        let mut resealed = Resealed::default();
        for (user, sealed) in batch {
            let Some(secret) = TotpSecret::open(keys, user, &sealed) else {
                unreadable += 1;
                continue;
            };
            resealed.accounts.push(user);
            resealed.before.push(sealed);
            resealed.after.push(secret.seal(keys, user)?);
        }
        changed += db.run(MAX_BATCH_TIME, |client| reseal(client, &resealed))?;
    }
}

/// Returns how many accounts have a second factor, or an offer of one that is not over, and of how many of them no key
/// opens the secret.
pub fn count_sealed(
    db: &Database,
    keys: &SealingKeys,
    max_time: Duration,
) -> Result<(usize, usize), Error> {
    db.run(max_time, |client| {
        let (mut all, mut unreadable, mut after) = (0, 0, Uuid::nil());
        loop {
            let batch = sealed_after(client, &[], after)?;
            let Some((last, _)) = batch.last() else { return Ok((all, unreadable)) };
            after = *last;
            all += batch.len();
            let is_unreadable =
                |(user, sealed): &&(Uuid, Vec<u8>)| TotpSecret::open(keys, *user, sealed).is_none();
            unreadable += batch.iter().filter(is_unreadable).count();
        }
    })
}
