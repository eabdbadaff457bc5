//! The check of `X-API-Key`, and who may export without a token.

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::api::context::RequestContext;
use crate::config::{ApiKeyScope, Environment};
use crate::error::Error;

/// Checks the key of a request, where the settings ask for one: always at an export, elsewhere by the configured
/// scope.
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
        return Err(Error::ApiKeyMissing(match is_export {
            true => "API key required for export endpoints",
            false => "API key is required",
        }));
    }
    // Digests of equal length are compared, and with every key, so that the time tells neither how long a key is
    // nor which one was nearly right.
    let sent = Sha256::digest(sent.as_bytes());
    let found = config.api_keys.iter().fold(Choice::from(0), |found, key| {
        found | Sha256::digest(key.expose().as_bytes()).ct_eq(&sent)
    });
    if found.into() { Ok(()) } else { Err(Error::ApiKeyInvalid) }
}

/// Whether this export needs no token: it carries no `Authorization`, no setting asks for a key or an administrator, and
/// the settings open exports to anyone, or it is development and the client is on this host.
pub fn may_export_anonymously(context: &RequestContext) -> bool {
    let (config, request) = (&context.app.config, &context.request);
    let is_local = || config.environment == Environment::Development && request.is_local();
    config.auth_enabled
        && !config.api_key_enabled
        && !config.export_require_admin
        && request.header("Authorization").is_none()
        && (config.allow_anonymous_export || is_local())
}
