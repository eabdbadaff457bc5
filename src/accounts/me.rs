//! The signed-in user's own account.

use super::proof::{
    Proof, check_password, check_password_in_body, read_optional_proof, read_proof,
};
use super::statements::{self, ProfileChange};
use crate::confirmation;
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::rules;
use crate::model::text::mailed_address;
use crate::model::user::{Profile, User};
use crate::request::context::RequestContext;
use crate::request::identity::{CurrentUser, SignedIn, check_again, json_body};
use crate::request::limits::Limit;

/// `GET /api/v1/auth/me` and `GET /api/v1/users/me`: the account with its `stats`. Authentication has read it already,
/// so this needs no query of its own.
pub fn show(context: &mut RequestContext, user: &SignedIn) -> Result<Response, Error> {
    response::json(200, &Profile::of(&user.account, &context.app.file_quotas()))
}

/// Reads the fields of an account that its user may change, and the current password.
fn read_profile_change(body: &mut Params) -> (ProfileChange, Option<Proof>) {
    let change = ProfileChange {
        username: body.optional("username", rules::username),
        email: body.optional("email", rules::email),
        name: body.optional("name", rules::name),
        ..ProfileChange::default()
    };
    (change, read_optional_proof(body))
}

/// `PUT /api/v1/users/me`: changes `username`, `email` and `name`, each if it is given. If the settings say so, another
/// `email` needs `current_password`, and counts only once its owner has confirmed it.
pub fn update(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let (mut change, proof) = json_body(context, user)?.read(read_profile_change)?;
    context.audits(RefusedAction::EmailChange, Some(user.id()));
    let mut version = None;
    // An address that is not another one is left out of the change. Otherwise, if a parallel request has just changed
    // it, this one would change it back without the password.
    change.email = change.email.filter(|email| *email != user.account.email);
    if context.app.config.email_change_requires_password && change.email.is_some() {
        let limit = Limit::Auth("change-email");
        version = Some(check_password_in_body(context, user, limit, proof.as_ref())?);
    }
    if let Some(email) = change.email.clone().filter(|_| context.app.config.confirms_email()) {
        version = version.or(user.credentials_version);
        let version = version.ok_or(Error::UserNotUsable)?;
        let email = mailed_address(email);
        change.email = Some(email.clone());
        change.sealed_token = Some(confirmation::seal_change(context, user.id(), version, email)?);
    }
    context.request.body.resize_room(rules::USER_MEMORY)?;
    match statements::update_profile(&context.db, user.id(), &change, version, user.sign_in())? {
        Some((account, waits)) => {
            if waits {
                context.app.wake_background(); // which wakes the thread that sends mail
            }
            response::json(200, &User { pending_email: change.email.filter(|_| waits), ..account })
        }
        None => {
            check_again(context, user)?;
            // The account is there, so its credentials have changed since the password was checked, or the request
            // began.
            Err(Error::WrongCurrentPassword)
        }
    }
}

/// `POST /api/v1/users/change-password`: sets a new password and ends the user's other sessions.
pub fn change_password(
    context: &mut RequestContext,
    user: &CurrentUser,
) -> Result<Response, Error> {
    user.require_changeable()?;
    let refused = &context.app.refused_passwords;
    let (current, new) = json_body(context, user)?.read(|body| {
        body.alias("current_password", "old_password");
        (read_proof(body), body.required("new_password", |text| refused.accept(text)))
    })?;
    context.audits(RefusedAction::PasswordChange, Some(user.id()));
    let version = check_password(context, user, &current)?;
    let hash = context.app.hasher.hash(&new, context.hash_request())?;
    let (db, keep) = (&context.db, user.session());
    match statements::change_password(db, user.id(), version, &hash, keep)? {
        true => response::message("Password changed successfully"),
        // The password was changed in the meantime, so the given one is no longer the current one.
        false => Err(Error::WrongCurrentPassword),
    }
}
