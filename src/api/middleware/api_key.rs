//! `X-API-Key` (spec.md, Authentication 6 and 7), and who may export without a token.

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::api::context::RequestContext;
use crate::config::{ApiKeyScope, Environment};
use crate::error::Error;

/// Checks the key at an endpoint that is no export.
pub fn check(context: &RequestContext) -> Result<(), Error> {
    match context.app.config.api_key_scope {
        ApiKeyScope::All => compare(context, "API key is required"),
        ApiKeyScope::Exports => Ok(()),
    }
}

/// Checks the key at an export.
pub fn check_at_export(context: &RequestContext) -> Result<(), Error> {
    compare(context, "API key required for export endpoints")
}

fn compare(context: &RequestContext, missing: &'static str) -> Result<(), Error> {
    let config = &context.app.config;
    if !config.api_key_enabled || !config.auth_enabled {
        return Ok(());
    }
    if config.api_keys.is_empty() {
        return Err(Error::ApiKeyMisconfigured);
    }
    let sent = context.request.header("X-API-Key").unwrap_or_default();
    if sent.is_empty() {
        return Err(Error::ApiKeyMissing(missing));
    }
    // Digests, and all of them: the time tells neither how long a key is nor which one was near.
    let sent = Sha256::digest(sent.as_bytes());
    let found = config.api_keys.iter().fold(Choice::from(0), |found, key| {
        found | Sha256::digest(key.expose().as_bytes()).ct_eq(&sent)
    });
    if found.into() { Ok(()) } else { Err(Error::ApiKeyInvalid) }
}

/// Whether exports may come without a token: for anyone where the settings say so, in development for
/// clients on this host.
pub fn may_export_anonymously(context: &RequestContext) -> bool {
    let config = &context.app.config;
    let is_local = || config.environment == Environment::Development && context.request.is_local();
    config.auth_enabled
        && !config.api_key_enabled
        && !config.export_require_admin
        && (config.allow_anonymous_export || is_local())
}
