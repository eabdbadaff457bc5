//! Counts second factors that are of no use, because no key opens their secrets.

use std::fs;

use postgres::Client;
use uuid::Uuid;

use crate::auth::sealing::SealingKeys;
use crate::config::Config;
use crate::db::second_factors::sealed_after;
use crate::serve::signing_secret;

/// The keys that the service would have with these settings. The secret in the data directory is read, but not made.
pub fn sealing_keys(config: &Config) -> SealingKeys {
    let configured = config.jwt_secret.as_ref().map(|secret| secret.expose().as_bytes().to_vec());
    let secret = configured.or_else(|| fs::read(signing_secret::path(config)).ok());
    signing_secret::sealing_keys(config, secret.as_deref())
}

/// Returns how many accounts have a second factor, or an offer of one that is not over, and of how many of them no key
/// opens the secret.
pub fn count(client: &mut Client, keys: &SealingKeys) -> Result<(usize, usize), postgres::Error> {
    let (mut all, mut unreadable, mut after) = (0, 0, Uuid::nil());
    loop {
        let batch = sealed_after(client, &[], after)?;
        let Some((last, _)) = batch.last() else { return Ok((all, unreadable)) };
        after = *last;
        all += batch.len();
        unreadable +=
            batch.iter().filter(|(user, sealed)| keys.open(*user, sealed).is_none()).count();
    }
}
