//! The check of `X-API-Key`.

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::config::ApiKeyScope;
use crate::error::Error;
use crate::request::context::RequestContext;

/// Checks the API key of a request, if keys are enabled. Exports always need one then, other endpoints only if
/// `CLOAKROOM_API_KEY_SCOPE` is `all`.
pub fn check(context: &RequestContext, is_export: bool) -> Result<(), Error> {
    let config = &context.app.config;
    let in_scope = is_export || config.api_key_scope == ApiKeyScope::All;
    if !in_scope || !config.api_key_enabled || !config.auth_enabled {
        return Ok(());
    }
    if config.api_keys.is_empty() {
        return Err(Error::ApiKeyMisconfigured);
    }
    let sent = context.request.header("X-API-Key").unwrap_or_default();
    if sent.is_empty() {
        return Err(Error::ApiKeyMissing { is_export });
    }
    // Hashes are compared in constant time, because they have the same length, and with every key. So the time reveals
    // neither the length of a key nor which key was nearly right.
    let sent = Sha256::digest(sent.as_bytes());
    let found = config.api_keys.iter().fold(Choice::from(0), |found, key| {
        found | Sha256::digest(key.expose().as_bytes()).ct_eq(&sent)
    });
    if found.into() { Ok(()) } else { Err(Error::ApiKeyInvalid) }
}
