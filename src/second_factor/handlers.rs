//! Sets up, shows and disables the second factor of one's own account, and makes its recovery codes. Administrators may
//! disable those of others.

use std::time::Duration;

use serde_json::json;

use super::code;
use super::statements;
use super::totp::{Code, TotpSecret, recovery_code};
use crate::accounts::proof::{Proof, check_password, read_proof};
use crate::auth::random_bytes;
use crate::error::{Error, Forbidden};
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::qr::qr_svg;
use crate::model::rules;
use crate::model::second_factor::AcceptedCode;
use crate::model::timestamp::unix_time;
use crate::request::context::RequestContext;
use crate::request::identity::{Admin, CurrentUser, json_body};

/// How long an offered second factor can be confirmed.
const OFFER_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// The number of recovery codes that a user gets.
const RECOVERY_CODES: usize = 10;

/// `GET /api/v1/auth/second-factor`: whether one is on, since when, and how many recovery codes are left.
pub fn show(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let stored = statements::find(&context.db, user.id(), context.client)?;
    let stored = stored.filter(|factor| factor.enabled_at.is_some());
    let shown = json!({
        "enabled": stored.is_some(),
        "enabled_at": stored.as_ref().and_then(|factor| factor.enabled_at),
        "recovery_codes_left": stored.map_or(0, |factor| factor.recovery_codes.len()),
    });
    response::json(200, &shown)
}

/// `POST /api/v1/auth/second-factor`: offers a second factor, in place of one that was offered before. The response has
/// it in the three forms in which authenticator apps take it: the secret in base 32, the URI, and its QR code.
pub fn begin(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let proof = json_body(context, user)?.read(read_proof)?;
    if user.account.second_factor {
        return Err(Error::SecondFactorEnabled);
    }
    context.audits(RefusedAction::SecondFactorEnable, Some(user.id()));
    let version = check_password(context, user, &proof)?;
    let secret = TotpSecret(random_bytes()?);
    let sealed = secret.seal(&context.app.sealing_keys, user.id())?;
    if !statements::begin(&context.db, user.id(), version, &sealed, OFFER_LIFETIME)? {
        // The password was changed in the meantime.
        return Err(Error::WrongCurrentPassword);
    }
    let uri = secret.uri(user.account.username.as_deref().unwrap_or(&user.account.email));
    let offer = json!({ "secret": secret.base32(), "qr_svg": qr_svg(&uri)?, "uri": uri });
    response::json(200, &offer)
}

/// `POST /api/v1/auth/second-factor/confirm`: switches the offered second factor on, ends the user's other sessions,
/// and responds with recovery codes. Wrong codes are not counted: a session may send 30 requests a minute, and an offer
/// lasts 15 minutes.
pub fn confirm(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let code = json_body(context, user)?.read(|body| body.required("code", rules::code))?;
    context.audits(RefusedAction::SecondFactorEnable, Some(user.id()));
    let invalid = Error::InvalidCode { at_login: false };
    let factor = statements::find(&context.db, user.id(), context.client)?;
    let factor = factor.ok_or(Error::SecondFactorNotFound)?;
    if factor.enabled_at.is_some() {
        return Err(Error::SecondFactorEnabled);
    }
    if !factor.is_pending {
        return Err(Error::SecondFactorNotFound);
    }
    let Code::Totp(code) = Code::parse(&code) else { return Err(invalid) };
    let secret = TotpSecret::open(&context.app.sealing_keys, user.id(), &factor.sealed);
    // The key is gone only if the settings were changed within these minutes.
    let secret = secret.ok_or(Error::SecondFactorNotFound)?;
    let step = secret.step_of(&code, unix_time().as_secs()).ok_or_else(|| invalid.clone())?;
    let (codes, hashes) = new_recovery_codes()?;
    let (account, keep) = ((user.id(), user.credentials_version), user.session());
    match statements::confirm(&context.db, account, &factor.sealed, step, &hashes, keep)? {
        true => response::json(200, &json!({ "recovery_codes": codes })),
        // Another one was offered in the meantime.
        false => Err(invalid),
    }
}

/// Reads the current password and a code.
fn read_proofs(body: &mut Params) -> (Proof, String) {
    (read_proof(body), body.required("code", rules::code))
}

/// `POST /api/v1/auth/second-factor/recovery-codes`: replaces all recovery codes.
pub fn renew_codes(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let (proof, code) = json_body(context, user)?.read(read_proofs)?;
    context.audits(RefusedAction::SecondFactorEnable, Some(user.id()));
    let (version, code) = check_proofs(context, user, &proof, &code)?;
    let (codes, hashes) = new_recovery_codes()?;
    match statements::renew_recovery_codes(&context.db, user.id(), version, &code, &hashes)? {
        true => response::json(200, &json!({ "recovery_codes": codes })),
        false => Err(code::refused_code(context, user.id(), false)),
    }
}

/// `DELETE /api/v1/auth/second-factor`: disables it.
pub fn disable(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let (proof, code) = json_body(context, user)?.read(read_proofs)?;
    context.audits(RefusedAction::SecondFactorDisable, Some(user.id()));
    let (version, code) = check_proofs(context, user, &proof, &code)?;
    match statements::disable(&context.db, user.id(), version, &code)? {
        true => Ok(Response::empty(204)),
        false => Err(code::refused_code(context, user.id(), false)),
    }
}

/// Checks the current password, or what takes its place, and then a code. Returns the version of the credentials.
/// After a hundred wrong codes in a row no code is right until the password is another one, as at sign-in.
fn check_proofs(
    context: &mut RequestContext,
    user: &CurrentUser,
    proof: &Proof,
    code: &str,
) -> Result<(i32, AcceptedCode), Error> {
    if !user.account.second_factor {
        return Err(Error::SecondFactorNotFound);
    }
    let version = check_password(context, user, proof)?;
    let factor = statements::find(&context.db, user.id(), context.client)?;
    let factor = factor.ok_or(Error::SecondFactorNotFound)?;
    if factor.is_refused {
        return Err(Error::InvalidCode { at_login: false });
    }
    let code = code::check(context, user.id(), &factor, code, false)?;
    Ok((version, code))
}

/// `DELETE /api/v1/users/{user_id}/second-factor`: disables the second factor of another user, if there is one, and
/// ends all sessions of the user. To disable their own, administrators need the password and a code, see [`disable`]:
/// somebody who finds a browser signed in must not be able to disable it.
pub fn reset(context: &mut RequestContext, admin: &Admin) -> Result<Response, Error> {
    let (id, user) = (context.path_id()?, admin.user());
    // The development admin is not found among the accounts.
    if id == user.id() && user.require_changeable().is_ok() {
        return Err(Error::NotPermitted(Forbidden::OwnSecondFactor));
    }
    statements::reset(&context.db, id)?;
    Ok(Response::empty(204))
}

/// Recovery codes, and their hashes in the same order.
fn new_recovery_codes() -> Result<(Vec<String>, Vec<[u8; 32]>), Error> {
    (0..RECOVERY_CODES).map(|_| Ok(recovery_code(random_bytes()?))).collect()
}
