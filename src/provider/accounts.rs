//! What an identity does for an account: signs in, makes one, is joined to one, and leaves it.

use time::OffsetDateTime;
use uuid::Uuid;

use super::code;
use super::statements::{self, Proven};
use crate::accounts::extras::end_identity;
use crate::accounts::proof::{Proof, check_password};
use crate::auth::token_bucket::Taken;
use crate::error::{Error, Unique};
use crate::http::params::Params;
use crate::http::response::Response;
use crate::model::audit::RefusedAction;
use crate::model::identity::Identity;
use crate::model::rules;
use crate::request::context::RequestContext;
use crate::request::identity::{CurrentUser, json_body};
use crate::request::limits::{self, Caller, Limit};
use crate::sign_in;
use crate::sign_in::statements::{LoginAccount, open_for_new_user};

/// `POST /api/v1/auth/oidc/token`: signs in to the account of the identity that a code proves, or makes one. A code
/// that lacks only the second factor may be sent again with one.
pub fn sign_in(context: &mut RequestContext) -> Result<Response, Error> {
    let (sent, otp) = context.request.json()?.read(|body| {
        let sent = code::read_fields(body);
        (sent, body.filter("otp", rules::code))
    })?;
    context.audits(RefusedAction::ProviderLogin, None);
    let proven = code::take_all(context, &sent)?;
    let outcome = open(context, &proven, otp.as_deref());
    if let Err(Error::SecondFactorRequired { .. } | Error::InvalidCode { .. }) = &outcome {
        statements::give_code_back(&context.db, &sent.hash())?;
    }
    outcome
}

/// When a session that is opened now ends at the latest.
fn session_end(context: &RequestContext) -> Option<OffsetDateTime> {
    Some(OffsetDateTime::now_utc() + context.app.config.oidc_session)
}

fn open(
    context: &mut RequestContext,
    proven: &Proven,
    otp: Option<&str>,
) -> Result<Response, Error> {
    let Proven { identity, name, is_admin, .. } = proven;
    if let Some(account) = find(context, identity)? {
        return open_account(context, &account, *is_admin, otp);
    }
    if !context.app.config.oidc_registration {
        return Err(Error::NoAccount);
    }
    let email = identity.email.as_deref().ok_or(Error::EmailNotVerified)?;
    let provider = context.app.config.provider.as_ref().ok_or(Error::FeatureOff)?;
    if !provider.admits(email) {
        return Err(Error::ForeignDomain);
    }
    let limit = Limit::Registrations;
    let is_stranger = !provider.knows_people();
    let attempt = is_stranger.then(|| limits::take(context, limit, Caller::Anonymous));
    let attempt = attempt.transpose()?;
    let session = sign_in::new_session(context, Uuid::new_v4(), session_end(context));
    let (db, name, of) = (&context.db, name.as_deref(), Some((identity, is_stranger)));
    let made = open_for_new_user(db, email, name, None, of, &session)?;
    if made.is_some() {
        attempt.into_iter().for_each(Taken::count);
    }
    match made.filter(|_| *is_admin != Some(true)) {
        Some(user) => {
            context.account_in_log = Some(user.id);
            sign_in::token_response(context.app, 200, &user, &session)
        }
        // It is to be one of an administrator, or another request has made it at the same time.
        None => match find(context, identity)? {
            Some(account) => open_account(context, &account, *is_admin, otp),
            None => Err(Error::Taken(Unique::Email)),
        },
    }
}

fn find(context: &RequestContext, identity: &Identity) -> Result<Option<LoginAccount>, Error> {
    statements::find(&context.db, &identity.issuer, &identity.subject, context.client)
}

fn open_account(
    context: &mut RequestContext,
    account: &LoginAccount,
    is_admin: Option<bool>,
    otp: Option<&str>,
) -> Result<Response, Error> {
    context.account_in_log = Some(account.user.id);
    context.audits(RefusedAction::ProviderLogin, context.account_in_log);
    if !account.user.is_active {
        return Err(Error::InactiveAccount);
    }
    context.db.changes_are_of(account.user.id);
    let code = sign_in::check_code(context, account, otp)?;
    if let Some(is_admin) = is_admin {
        statements::set_role(&context.db, account, is_admin)?;
    }
    let ends_at = session_end(context);
    match sign_in::open_session(context, account, None, code.as_ref(), ends_at) {
        // The account or its identity was changed in the meantime.
        Err(Error::BadCredentials { .. }) => Err(Error::InvalidProviderCode),
        outcome => outcome,
    }
}

/// `POST /api/v1/auth/oidc/join`: joins the identity that a code proves to the user's account.
pub fn join(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let (sent, password) = json_body(context, user)?.read(|body| {
        (code::read_fields(body), body.optional("current_password", rules::non_empty))
    })?;
    context.audits(RefusedAction::IdentityJoin, Some(user.id()));
    let proven = code::take_all(context, &sent)?;
    let version = match (user.account.has_password, password) {
        (false, _) => user.credentials_version.ok_or(Error::UserNotUsable)?,
        (true, None) => return Err(Error::WrongCurrentPassword),
        (true, Some(password)) => check_password(context, user, &Proof::Password(password))?,
    };
    if !proven.may_join {
        return Err(Error::StaleProviderCode);
    }
    match statements::join(&context.db, user.id(), version, &proven.identity)? {
        Some(true) => {
            context.app.wake_background(); // which wakes the thread that sends mail
            Ok(Response::empty(204))
        }
        Some(false) => Err(Error::IdentityPresent),
        // The account was changed in the meantime.
        None => Err(Error::WrongCurrentPassword),
    }
}

/// `DELETE /api/v1/auth/oidc`: ends the identity of the user's account, which needs a password for that.
pub fn leave(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let read = |body: &mut Params| body.required("current_password", rules::non_empty);
    let password = json_body(context, user)?.read(read)?;
    if !user.account.has_identity {
        return Err(Error::IdentityNotFound);
    }
    if !user.account.has_password {
        return Err(Error::PasswordMissing);
    }
    context.audits(RefusedAction::IdentityLeave, Some(user.id()));
    let version = check_password(context, user, &Proof::Password(password))?;
    match end_identity(&context.db, user.id(), Some(version))? {
        true => Ok(Response::empty(204)),
        false => Err(Error::WrongCurrentPassword),
    }
}
