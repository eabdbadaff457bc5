//! The signed-in user's own account.

use serde_json::json;

use crate::api::context::{CurrentUser, RequestContext};
use crate::auth::password::PasswordCheck;
use crate::db::users;
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::rules;
use crate::model::user::Profile;

/// `GET /api/v1/auth/me` and `GET /api/v1/users/me`: the account with its `stats`. Authentication has read it already,
/// so this needs no query of its own.
pub fn show(_: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    response::json(200, &Profile::of(user.account()))
}

/// `PUT /api/v1/users/me`: changes `username`, `email` and `name`, each if it is given.
pub fn update(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let (username, email, name) = context.request.json(|body| {
        (
            body.optional("username", rules::username),
            body.optional("email", rules::email),
            body.optional("name", rules::name),
        )
    })?;
    let account = users::update_profile(
        &context.app.db,
        user.id(),
        username.as_deref(),
        email.as_deref(),
        name.as_deref(),
        &context.origin(),
    )?;
    response::json(200, &account)
}

/// `POST /api/v1/users/change-password`: sets a new password and ends the user's other sessions.
pub fn change_password(
    context: &mut RequestContext,
    user: &CurrentUser,
) -> Result<Response, Error> {
    user.require_changeable()?;
    let (current, new) = context.request.json(read_passwords)?;
    let outcome = replace_password(context, user, &current, &new);
    if matches!(outcome, Err(Error::WrongCurrentPassword)) {
        let id = Some(user.id());
        context.record_failure(RefusedAction::PasswordChange, id, id, json!({}));
    }
    outcome
}

/// Checks the current password and sets the new one.
fn replace_password(
    context: &RequestContext,
    user: &CurrentUser,
    current: &str,
    new: &str,
) -> Result<Response, Error> {
    let app = context.app;
    let (stored, version) =
        users::find_credentials(&app.db, user.id())?.ok_or(Error::UserNotUsable)?;
    if app.hasher.check(current, stored.as_deref())? == PasswordCheck::Wrong {
        return Err(Error::WrongCurrentPassword);
    }
    let hash = app.hasher.hash(new)?;
    let origin = context.origin();
    if !users::change_password(&app.db, user.id(), version, &hash, user.session(), &origin)? {
        // The password was changed in the meantime, so the given one is no longer the current one.
        return Err(Error::WrongCurrentPassword);
    }
    response::message("Password changed successfully")
}

/// Reads the current and the new password.
fn read_passwords(body: &mut Params) -> (String, String) {
    body.alias("current_password", "old_password");
    (
        body.required("current_password", rules::non_empty),
        body.required("new_password", rules::password),
    )
}
