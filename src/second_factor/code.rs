//! Checks of the codes of second factors.

use uuid::Uuid;

use super::statements;
use super::totp::{Code, TotpSecret};
use crate::error::Error;
use crate::model::second_factor::{AcceptedCode, StoredSecondFactor};
use crate::model::timestamp::unix_time;
use crate::request::context::RequestContext;
use crate::request::limits;

/// Checks the code of a sign-in whose password was right. Without one it fails with [`Error::SecondFactorRequired`],
/// and the sign-in does not count against the limits of its address: the same client sends it again, with a code.
pub fn check_at_login(
    context: &mut RequestContext,
    user: Uuid,
    factor: &StoredSecondFactor,
    code: Option<&str>,
) -> Result<AcceptedCode, Error> {
    if factor.is_refused {
        return Err(Error::SecondFactorRequired { is_password_refused: true });
    }
    let Some(code) = code else {
        limits::refund_missing_code(context, user);
        return Err(Error::SecondFactorRequired { is_password_refused: false });
    };
    check(context, user, factor, code, true)
}

/// Checks a code, and counts it if it is wrong. The statement that uses it decides whether it is taken: it may have
/// been used before, which counts for nothing, because whoever sends a code twice guesses nothing. Fails with
/// [`Error::InvalidCode`], or with [`Error::RateLimited`] if no code is taken from the client's network for now.
pub fn check(
    context: &mut RequestContext,
    user: Uuid,
    factor: &StoredSecondFactor,
    code: &str,
    at_login: bool,
) -> Result<AcceptedCode, Error> {
    if let Some(wait) = factor.wait {
        return Err(limits::refuse_code(context, wait));
    }
    if let Some(accepted) = accepted(context, user, factor, code)? {
        return Ok(accepted);
    }
    match statements::count_wrong_code(&context.db, user, context.client)? {
        true => Err(Error::InvalidCode { at_login }),
        false => Err(refused_code(context, user, at_login)),
    }
}

/// The error of a code that a statement did not count or did not take, although the second factor was read before. It
/// reads that again, because a limit may be reached since, and a right code must not be told from a wrong one then.
pub fn refused_code(context: &mut RequestContext, user: Uuid, at_login: bool) -> Error {
    let found = statements::find(&context.db, user, context.client);
    match found.map(|found| found.filter(|factor| factor.enabled_at.is_some())) {
        Err(error) => error,
        Ok(None) if at_login => context.bad_credentials(),
        Ok(Some(StoredSecondFactor { is_refused: true, .. })) if at_login => {
            Error::SecondFactorRequired { is_password_refused: true }
        }
        Ok(Some(StoredSecondFactor { is_refused: false, wait: Some(wait), .. })) => {
            limits::refuse_code(context, wait)
        }
        Ok(_) => Error::InvalidCode { at_login },
    }
}

/// The code, if it fits the second factor. If no key opens the secret, one-time passwords cannot be checked and the
/// request fails, but recovery codes work.
fn accepted(
    context: &RequestContext,
    user: Uuid,
    factor: &StoredSecondFactor,
    code: &str,
) -> Result<Option<AcceptedCode>, Error> {
    match Code::parse(code) {
        Code::Totp(code) => {
            let secret = TotpSecret::open(&context.app.sealing_keys, user, &factor.sealed);
            let secret = secret.ok_or_else(|| {
                Error::Internal(format!(
                    "no key of CLOAKROOM_SEAL_KEYS opens the second factor of user {user}"
                ))
            })?;
            let step = secret.step_of(&code, unix_time().as_secs());
            Ok(step.map(AcceptedCode::Totp))
        }
        Code::Recovery(hash) => {
            // Comparing hashes reveals nothing about the code.
            let is_right = factor.recovery_codes.iter().any(|stored| *stored == hash);
            Ok(is_right.then_some(AcceptedCode::Recovery(hash)))
        }
    }
}
