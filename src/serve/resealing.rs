//! Second factors that an old key has sealed: they are sealed anew at the start, so that the old key is needed no
//! longer.

use std::time::Duration;

use uuid::Uuid;

use crate::auth::sealing::SealingKeys;
use crate::db::Database;
use crate::db::second_factors::{self, Resealed};
use crate::error::Error;

/// The longest time for a thousand of them.
const MAX_BATCH_TIME: Duration = Duration::from_secs(60);

/// Seals with the current key what others have sealed, a thousand at a time. Says in the log how many second factors
/// that were, and how many no key opens. If the database takes no changes, the old keys are needed until the next start.
pub fn reseal(db: &Database, keys: &SealingKeys) {
    match reseal_all(db, keys) {
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
fn reseal_all(db: &Database, keys: &SealingKeys) -> Result<(i64, usize), Error> {
    let (mut changed, mut unreadable, mut after) = (0, 0, Uuid::nil());
    loop {
        let batch = db.run(MAX_BATCH_TIME, |client| {
            second_factors::sealed_after(client, keys.current_prefix(), after)
        })?;
        let Some((last, _)) = batch.last() else { return Ok((changed, unreadable)) };
        after = *last;
        let mut resealed = Resealed::default();
        for (user, sealed) in batch {
            let Some(secret) = keys.open(user, &sealed) else {
                unreadable += 1;
                continue;
            };
            resealed.accounts.push(user);
            resealed.before.push(sealed);
            resealed.after.push(keys.seal(user, &secret)?);
        }
        changed += db.run(MAX_BATCH_TIME, |client| second_factors::reseal(client, &resealed))?;
    }
}
