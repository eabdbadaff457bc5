//! The second factor of one's own account: setting it up, its recovery codes, and taking it away. Administrators may
//! take that of others away.

use std::time::Duration;

use serde::Serialize;

use super::{current_password, qr_code, second_factor_code};
use crate::api::context::RequestContext;
use crate::api::middleware::identity::{Admin, CurrentUser, json_body};
use crate::auth::random_bytes;
use crate::auth::second_factor::{Code, TotpSecret, recovery_code};
use crate::db::second_factors::{self, AcceptedCode};
use crate::error::{Error, Forbidden};
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::rules;
use crate::model::timestamp::{Timestamp, unix_time};

/// How long an offered second factor can be confirmed.
const OFFER_LIFETIME: Duration = Duration::from_secs(15 * 60);
/// The number of recovery codes that a user gets.
const RECOVERY_CODES: usize = 10;

/// The state of the second factor.
#[derive(Serialize)]
struct SecondFactor {
    enabled: bool,
    enabled_at: Option<Timestamp>,
    recovery_codes_left: usize,
}

/// A second factor that is offered, in the three forms in which authenticator apps take it.
#[derive(Serialize)]
struct Offer {
    /// In base 32.
    secret: String,
    uri: String,
    /// The QR code of the URI.
    qr_svg: String,
}

/// Codes that no later response contains.
#[derive(Serialize)]
struct RecoveryCodes {
    recovery_codes: Vec<String>,
}

/// `GET /api/v1/auth/second-factor`: whether one is on, since when, and how many recovery codes are left.
pub fn show(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let stored = second_factors::find(&context.db, user.id(), context.client)?;
    let stored = stored.filter(|factor| factor.enabled_at.is_some());
    let shown = SecondFactor {
        enabled: stored.is_some(),
        recovery_codes_left: stored.as_ref().map_or(0, |factor| factor.recovery_codes.len()),
        enabled_at: stored.and_then(|factor| factor.enabled_at),
    };
    response::json(200, &shown)
}

/// `POST /api/v1/auth/second-factor`: offers a second factor, in place of one that was offered before.
pub fn begin(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let password = json_body(context, user)?
        .read(|body| body.required("current_password", rules::non_empty))?;
    if user.account.second_factor {
        return Err(Error::SecondFactorEnabled);
    }
    let outcome = offer(context, user, &password);
    let secret = recorded(context, RefusedAction::SecondFactorEnable, user, outcome)?;
    let uri = secret.uri(user.account.username.as_deref().unwrap_or(&user.account.email));
    let offer = Offer { secret: secret.base32(), qr_svg: qr_code::svg(&uri)?, uri };
    response::json(200, &offer)
}

/// Checks the current password and stores a new secret.
fn offer(
    context: &RequestContext,
    user: &CurrentUser,
    password: &str,
) -> Result<TotpSecret, Error> {
    let version = current_password::check(context, user, password)?;
    let secret = TotpSecret(random_bytes()?);
    let sealed = context.app.sealing_keys.seal(user.id(), &secret)?;
    match second_factors::begin(&context.db, user.id(), version, &sealed, OFFER_LIFETIME)? {
        true => Ok(secret),
        // The password was changed in the meantime.
        false => Err(Error::WrongCurrentPassword),
    }
}

/// `POST /api/v1/auth/second-factor/confirm`: switches the offered second factor on, ends the user's other sessions,
/// and responds with recovery codes. Wrong codes are not counted: a session may send 30 requests a minute, and an offer
/// lasts 15 minutes.
pub fn confirm(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let code = json_body(context, user)?.read(|body| body.required("code", rules::code))?;
    let outcome = switch_on(context, user, &code);
    let recovery_codes = recorded(context, RefusedAction::SecondFactorEnable, user, outcome)?;
    response::json(200, &RecoveryCodes { recovery_codes })
}

/// Checks the code and switches the second factor on. Returns the recovery codes.
fn switch_on(
    context: &RequestContext,
    user: &CurrentUser,
    code: &str,
) -> Result<Vec<String>, Error> {
    let invalid = Error::InvalidCode { at_sign_in: false };
    let factor = second_factors::find(&context.db, user.id(), context.client)?;
    let factor = factor.ok_or(Error::SecondFactorNotFound)?;
    if factor.enabled_at.is_some() {
        return Err(Error::SecondFactorEnabled);
    }
    if !factor.is_pending {
        return Err(Error::SecondFactorNotFound);
    }
    let Code::Totp(code) = Code::parse(code) else { return Err(invalid) };
    let secret = context.app.sealing_keys.open(user.id(), &factor.sealed);
    // The key is gone only if the settings were changed within these minutes.
    let secret = secret.ok_or(Error::SecondFactorNotFound)?;
    let step = secret.step_of(&code, unix_time().as_secs()).ok_or_else(|| invalid.clone())?;
    let (codes, hashes) = new_recovery_codes()?;
    let (account, keep) = ((user.id(), user.verified_version()), user.session());
    let (db, origin) = (&context.db, context.origin());
    match second_factors::confirm(db, account, &factor.sealed, step, &hashes, keep, &origin)? {
        true => Ok(codes),
        // Another one was offered in the meantime.
        false => Err(invalid),
    }
}

/// Reads the current password and a code.
fn read_proofs(body: &mut Params) -> (String, String) {
    (body.required("current_password", rules::non_empty), body.required("code", rules::code))
}

/// `POST /api/v1/auth/second-factor/recovery-codes`: replaces all recovery codes.
pub fn renew_codes(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let (password, code) = json_body(context, user)?.read(read_proofs)?;
    let outcome = replace_codes(context, user, &password, &code);
    let recovery_codes = recorded(context, RefusedAction::SecondFactorEnable, user, outcome)?;
    response::json(200, &RecoveryCodes { recovery_codes })
}

fn replace_codes(
    context: &mut RequestContext,
    user: &CurrentUser,
    password: &str,
    code: &str,
) -> Result<Vec<String>, Error> {
    let (version, code) = check_proofs(context, user, password, code)?;
    let (codes, hashes) = new_recovery_codes()?;
    let (db, origin) = (&context.db, context.origin());
    match second_factors::renew_recovery_codes(db, user.id(), version, &code, &hashes, &origin)? {
        true => Ok(codes),
        false => Err(second_factor_code::refused_code(context, user.id(), false)),
    }
}

/// `DELETE /api/v1/auth/second-factor`: takes it away.
pub fn disable(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let (password, code) = json_body(context, user)?.read(read_proofs)?;
    let outcome = take_away(context, user, &password, &code);
    recorded(context, RefusedAction::SecondFactorDisable, user, outcome)?;
    Ok(response::no_content())
}

fn take_away(
    context: &mut RequestContext,
    user: &CurrentUser,
    password: &str,
    code: &str,
) -> Result<(), Error> {
    let (version, code) = check_proofs(context, user, password, code)?;
    match second_factors::disable(&context.db, user.id(), version, &code, &context.origin())? {
        true => Ok(()),
        false => Err(second_factor_code::refused_code(context, user.id(), false)),
    }
}

/// Checks the current password, and then a code. Returns the version of the credentials that the password belongs to.
/// After a hundred wrong codes in a row no code is right until the password is another one, as at sign-in.
fn check_proofs(
    context: &mut RequestContext,
    user: &CurrentUser,
    password: &str,
    code: &str,
) -> Result<(i32, AcceptedCode), Error> {
    if !user.account.second_factor {
        return Err(Error::SecondFactorNotFound);
    }
    let version = current_password::check(context, user, password)?;
    let factor = second_factors::find(&context.db, user.id(), context.client)?;
    let factor = factor.ok_or(Error::SecondFactorNotFound)?;
    if factor.is_refused {
        return Err(Error::InvalidCode { at_sign_in: false });
    }
    let code = second_factor_code::check(context, user.id(), &factor, code, false)?;
    Ok((version, code))
}

/// `DELETE /api/v1/users/{user_id}/second-factor`: takes the second factor of another user away, if there is one, and
/// ends all sessions of the user. One's own takes the password and a code, see [`disable`]: whoever finds a browser
/// signed in must not be able to take it away.
pub fn reset(context: &mut RequestContext, admin: &Admin) -> Result<Response, Error> {
    let (id, user) = (context.path_id()?, admin.user());
    // The development admin is not found among the accounts.
    if id == user.id() && user.require_changeable().is_ok() {
        return Err(Error::NotPermitted(Forbidden::OwnSecondFactor));
    }
    second_factors::reset(&context.db, id, &context.origin())?;
    Ok(response::no_content())
}

/// Recovery codes, and their hashes in the same order.
fn new_recovery_codes() -> Result<(Vec<String>, Vec<[u8; 32]>), Error> {
    (0..RECOVERY_CODES).map(|_| Ok(recovery_code(random_bytes()?))).collect()
}

/// Returns the outcome, and records it in the audit log if it is a refusal.
fn recorded<T>(
    context: &RequestContext,
    action: RefusedAction,
    user: &CurrentUser,
    outcome: Result<T, Error>,
) -> Result<T, Error> {
    context.recorded(action, Some(user.id()), Some(user.id()), outcome)
}
