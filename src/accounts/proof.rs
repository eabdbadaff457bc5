//! What a signed-in user proves a request with that a stolen session must not be enough for: the current password, or a
//! code of the OpenID provider in its place.

use super::statements;
use crate::error::Error;
use crate::http::params::Params;
use crate::model::rules;
use crate::provider::code::{self, SentCode};
use crate::request::context::RequestContext;
use crate::request::identity::CurrentUser;
use crate::request::limits::{self, Caller, Limit};

/// What proves a request.
pub enum Proof {
    Password(String),
    /// The code of a fresh sign-in by the OpenID provider.
    Code(SentCode),
}

/// Reads `current_password`, or `oidc` in its place, one of which must be there.
pub fn read_proof(body: &mut Params) -> Proof {
    match code::read(body, "current_password") {
        Some(code) => Proof::Code(code),
        None => Proof::Password(body.required("current_password", rules::non_empty)),
    }
}

/// The same where both may be missing.
pub fn read_optional_proof(body: &mut Params) -> Option<Proof> {
    let code = code::read(body, "current_password").map(Proof::Code);
    code.or_else(|| body.optional("current_password", rules::non_empty).map(Proof::Password))
}

/// Checks a user's current password, or the code in its place. Returns the version of the credentials it was checked
/// against, which the statement that follows must require, because checking takes long. Fails with
/// [`Error::WrongCurrentPassword`] or [`Error::InvalidProviderCode`].
pub fn check_password(
    context: &RequestContext,
    user: &CurrentUser,
    proof: &Proof,
) -> Result<i32, Error> {
    let proven = match proof {
        Proof::Password(password) => Err(password),
        Proof::Code(code) => Ok(code::take(context, code)?),
    };
    let found = statements::find_credentials(&context.db, user.id(), context.client)?;
    let found = found.ok_or(Error::UserNotUsable)?;
    let password = match proven {
        Ok(identity) if found.is_proven_by(&identity) => return Ok(found.version),
        Ok(_) => return Err(Error::InvalidProviderCode),
        Err(password) => password,
    };
    let stored = found.password_hash.as_deref();
    let right = context.app.hasher.check(password, stored, context.hash_request())?;
    right.map(|_| found.version).ok_or(Error::WrongCurrentPassword)
}

/// Like [`check_password`], for a request that needs a password only because of what it changes. So it counts against
/// `limit` here and not by its endpoint, also if it has no password.
pub fn check_password_in_body(
    context: &mut RequestContext,
    user: &CurrentUser,
    limit: Limit,
    proof: Option<&Proof>,
) -> Result<i32, Error> {
    limits::take(context, limit, Caller::User(user))?;
    check_password(context, user, proof.ok_or(Error::WrongCurrentPassword)?)
}
