//! The signed-in user's own account.

use super::current_password;
use crate::api::context::RequestContext;
use crate::api::middleware::identity::{CurrentUser, confirm_now, json_body};
use crate::api::middleware::rate_limit::Limit;
use crate::auth::hash_queue::HashPurpose;
use crate::db::users::{self, ChangeConditions, ProfileChange};
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::rules;
use crate::model::user::{Profile, User};

/// `GET /api/v1/auth/me` and `GET /api/v1/users/me`: the account with its `stats`. Authentication has read it already,
/// so this needs no query of its own.
pub fn show(_: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    response::json(200, &Profile::of(&user.account))
}

/// Reads the fields of an account that its user may change, and the current password.
fn read_profile_change(body: &mut Params) -> (ProfileChange, Option<String>) {
    let change = ProfileChange {
        username: body.optional("username", rules::username),
        email: body.optional("email", rules::email),
        name: body.optional("name", rules::name),
    };
    (change, body.optional("current_password", rules::non_empty))
}

/// `PUT /api/v1/users/me`: changes `username`, `email` and `name`, each if it is given. If the settings say so, another
/// `email` must be confirmed with `current_password`.
pub fn update(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let (change, password) = json_body(context, user)?.read(read_profile_change)?;
    let outcome = change_profile(context, user, change, password);
    let account =
        context.recorded(RefusedAction::EmailChange, Some(user.id()), Some(user.id()), outcome)?;
    response::json(200, &account)
}

/// Checks the current password if the change needs it, and makes the change.
fn change_profile(
    context: &mut RequestContext,
    user: &CurrentUser,
    mut change: ProfileChange,
    password: Option<String>,
) -> Result<User, Error> {
    let mut version = None;
    if context.app.config.email_change_requires_password {
        // An address that is not another one is left out of the change. Otherwise, if a parallel request has just
        // changed it, this one would change it back without the password.
        change.email = change.email.filter(|email| *email != user.account.email);
        if change.email.is_some() {
            let limit = Limit::Auth("change-email");
            let password = password.as_deref();
            version = Some(current_password::check_in_body(context, user, limit, password)?);
        }
    }
    let (db, origin) = (&context.db, context.origin());
    match users::update_profile(db, user.id(), &change, version, user.sign_in(), &origin)? {
        Some(account) => Ok(account),
        None => {
            confirm_now(context, user)?;
            // The account is there, so its credentials are no longer those that the password was checked against.
            Err(Error::WrongCurrentPassword)
        }
    }
}

/// Reads the current and the new password.
fn read_passwords(body: &mut Params) -> (String, String) {
    body.alias("current_password", "old_password");
    (
        body.required("current_password", rules::non_empty),
        body.required("new_password", rules::password),
    )
}

/// `POST /api/v1/users/change-password`: sets a new password and ends the user's other sessions.
pub fn change_password(
    context: &mut RequestContext,
    user: &CurrentUser,
) -> Result<Response, Error> {
    user.require_changeable()?;
    let (current, new) = json_body(context, user)?.read(read_passwords)?;
    let outcome = replace_password(context, user, &current, &new);
    context.recorded(RefusedAction::PasswordChange, Some(user.id()), Some(user.id()), outcome)?;
    response::message("Password changed successfully")
}

/// Checks the current password and sets the new one.
fn replace_password(
    context: &RequestContext,
    user: &CurrentUser,
    current: &str,
    new: &str,
) -> Result<(), Error> {
    let (app, origin) = (context.app, context.origin());
    let version = current_password::check(context, user, current)?;
    let hash = app.hasher.hash(new, context.hash_request(HashPurpose::SignedIn))?;
    if !users::change_password(&context.db, user.id(), version, &hash, user.session(), &origin)? {
        // The password was changed in the meantime, so the given one is no longer the current one.
        return Err(Error::WrongCurrentPassword);
    }
    Ok(())
}

/// `POST /api/v1/users/me/delete`: deletes the user's own account as an administrator would, confirmed with
/// `current_password`.
pub fn delete(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let password = json_body(context, user)?
        .read(|body| body.required("current_password", rules::non_empty))?;
    let outcome = delete_account(context, user, &password);
    context.recorded(RefusedAction::UserDelete, Some(user.id()), Some(user.id()), outcome)?;
    context.app.wake_background();
    Ok(response::no_content())
}

/// Checks the current password and deletes the account.
fn delete_account(
    context: &RequestContext,
    user: &CurrentUser,
    password: &str,
) -> Result<(), Error> {
    let version = current_password::check(context, user, password)?;
    let conditions = ChangeConditions { version: Some(version), spares_admins: false };
    if !users::delete(&context.db, user.id(), &conditions, &context.origin())? {
        // The password was changed, or the account deleted, in the meantime.
        return Err(Error::WrongCurrentPassword);
    }
    Ok(())
}
