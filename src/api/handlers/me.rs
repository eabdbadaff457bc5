//! The signed-in user's own account.

use crate::api::context::{App, CurrentUser, RequestContext};
use crate::api::middleware::rate_limit::{self, Limit, Subject};
use crate::auth::password::PasswordCheck;
use crate::db::users::{self, ProfileChange};
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::rules;
use crate::model::user::Profile;

/// `GET /api/v1/auth/me` and `GET /api/v1/users/me`: the account with its `stats`. Authentication has read it already,
/// so this needs no query of its own.
pub fn show(_: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    response::json(200, &Profile::of(user.account()))
}

/// `PUT /api/v1/users/me`: changes `username`, `email` and `name`, each if it is given. If the settings say so, another
/// `email` must be confirmed with `current_password`.
pub fn update(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let asks_for_password = context.app.config.email_change_requires_password;
    let (mut change, password) = context.request.json(|body| {
        let change = ProfileChange {
            username: body.optional("username", rules::username),
            email: body.optional("email", rules::email),
            name: body.optional("name", rules::name),
        };
        let password =
            asks_for_password.then(|| body.optional("current_password", rules::non_empty));
        (change, password.flatten())
    })?;
    let mut version = None;
    if asks_for_password {
        // An address that is not another one is left out of the change. Otherwise, if a parallel request has just
        // changed it, this one would change it back without the password.
        change.email = change.email.filter(|email| *email != user.account().email);
        if change.email.is_some() {
            let limit = Limit::Auth("change-email");
            rate_limit::enforce(context, limit, Subject::User(user.id()))?;
            let password = password.ok_or(Error::WrongCurrentPassword)?;
            version = Some(check_password(context.app, user, &password)?);
        }
    }
    let account = users::update_profile(&context.app.db, user.id(), &change, version)?;
    // Without a check of the password, only a deletion can have kept the change from being made.
    let refusal = version.map_or(Error::UserNotUsable, |_| Error::WrongCurrentPassword);
    response::json(200, &account.ok_or(refusal)?)
}

/// `POST /api/v1/users/change-password`: sets a new password and ends the user's other sessions.
pub fn change_password(
    context: &mut RequestContext,
    user: &CurrentUser,
) -> Result<Response, Error> {
    user.require_changeable()?;
    let (current, new) = context.request.json(read_passwords)?;
    let app = context.app;
    let version = check_password(app, user, &current)?;
    let hash = app.hasher.hash(&new)?;
    if !users::change_password(&app.db, user.id(), version, &hash, user.session())? {
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

/// `POST /api/v1/users/me/delete`: deletes the user's own account as an administrator would, confirmed with
/// `current_password`.
pub fn delete(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let password =
        context.request.json(|body| body.required("current_password", rules::non_empty))?;
    let app = context.app;
    let version = check_password(app, user, &password)?;
    if !users::delete(&app.db, user.id(), Some(version))? {
        // The password was changed, or the account deleted, in the meantime.
        return Err(Error::WrongCurrentPassword);
    }
    app.wake_background();
    Ok(response::no_content())
}

/// Checks the user's current password. Returns the version of the credentials it was checked against, which the
/// statement that follows must require, because checking takes long. Fails with [`Error::WrongCurrentPassword`].
fn check_password(app: &App, user: &CurrentUser, password: &str) -> Result<i32, Error> {
    let (stored, version) =
        users::find_credentials(&app.db, user.id())?.ok_or(Error::UserNotUsable)?;
    match app.hasher.check(password, stored.as_deref())? {
        PasswordCheck::Wrong => Err(Error::WrongCurrentPassword),
        PasswordCheck::Right | PasswordCheck::RightButOutdated => Ok(version),
    }
}
