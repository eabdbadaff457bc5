//! What the OpenID provider says of itself, and what follows from that for the accounts. Each start logs it, and
//! `doctor` lists it.

use log::Level::{Error, Info, Warn};

use super::warnings::Finding;
use crate::config::{Config, PasswordLogin};
use crate::db::{Database, one_row, sql};
use crate::error;
use crate::openid::{ALGORITHMS, MAX_AGE, Provider};

/// Asks the provider for its document and its keys, which takes half a minute at most.
pub fn ask(provider: &Provider, config: &Config) -> Vec<Finding> {
    let issuer = &provider.settings.issuer;
    let url = config.public_url.as_deref().unwrap_or_default();
    let register = format!(
        "provider: {issuer} must know the redirect URI {url}/api/v1/auth/oidc/callback of the client {}",
        provider.settings.client_id
    );
    let mut found = vec![(Info, register, "")];
    let known = match provider.metadata(MAX_AGE) {
        Ok(known) => known,
        Err(fault) => {
            let text =
                format!("provider: {issuer} cannot be used: {}; {}", fault.cause, fault.detail);
            let advice = "Check CLOAKROOM_OIDC_ISSUER, which must be exactly what its document names, and \
                          CLOAKROOM_OIDC_CA.";
            found.push((Error, text, advice));
            return found;
        }
    };
    let document = &known.document;
    // Without a list it is RS256 (Discovery, 3).
    let offered = document.algorithms.clone().unwrap_or_else(|| vec!["RS256".to_owned()]);
    let common: Vec<_> = offered.iter().filter(|it| ALGORITHMS.contains(&it.as_str())).collect();
    if common.is_empty() {
        let text = format!(
            "provider: {issuer} signs ID tokens with {offered:?}, and taken are {}",
            ALGORITHMS.join(", ")
        );
        let advice = "Choose one of them for this client at the provider.";
        found.push((Error, text, advice));
    } else {
        let keys = known.key_set.keys.len();
        let text =
            format!("provider: {issuer} has {keys} keys, and may sign ID tokens with {common:?}");
        found.push((Info, text, ""));
    }
    if !document.tells_auth_time() {
        let text = format!("provider: {issuer} does not promise the claim auth_time");
        let advice = "If its ID tokens have none, it cannot take the place of a current password.";
        found.push((Warn, text, advice));
    }
    if document.userinfo_endpoint.is_none() {
        let text = format!("provider: {issuer} has no userinfo_endpoint");
        let advice = "Names and addresses must be in its ID tokens.";
        found.push((Warn, text, advice));
    }
    found
}

/// Counts the accounts that nobody can sign in to by this provider, though they have an identity, or in no way at all.
pub fn count(
    provider: &Provider,
    config: &Config,
    db: &Database,
) -> Result<Vec<Finding>, error::Error> {
    let issuer = &provider.settings.issuer;
    let row = one_row(db.read(sql!("provider/count"), &[issuer])?)?;
    let (elsewhere, locked_out): (i64, i64) = (row.get("elsewhere"), row.get("locked_out"));
    let mut found = Vec::new();
    if elsewhere > 0 {
        let text = format!(
            "provider: {elsewhere} accounts have an identity of another issuer than {issuer}"
        );
        let advice = "Their owners connect the new one under Account, or by a link from a mail.";
        found.push((Warn, text, advice));
    }
    if locked_out > 0 && config.password_login == PasswordLogin::Admins {
        let text = format!("provider: {locked_out} accounts can sign in in no way at all");
        let advice = "CLOAKROOM_PASSWORD_LOGIN is admins, and they have no identity there: a link for a reset connects \
                      one.";
        found.push((Warn, text, advice));
    }
    Ok(found)
}
