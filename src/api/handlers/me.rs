//! The signed-in user's own account.

use crate::api::context::{App, CurrentUser, RequestContext};
use crate::api::middleware::rate_limit::{self, Limit, Subject};
use crate::api::openapi::{NO_CONTENT, Operation, Tag, json};
use crate::auth::password::PasswordCheck;
use crate::db::users::{self, ProfileChange};
use crate::error::{Error, Forbidden, Unique};
use crate::http::input::Input;
use crate::http::params::Params;
use crate::http::response::{self, Message, Response};
use crate::model::audit::RefusedAction;
use crate::model::rules;
use crate::model::user::{Profile, User};

pub const SHOW: Operation = Operation {
    id: "get_my_profile",
    tag: Tag::Account,
    summary: "Show your own account",
    answers: &[json::<Profile>(200, "Your account, and how much it has stored.")],
    ..Operation::EMPTY
};

pub const SHOW_AT_AUTH: Operation = Operation {
    id: "get_current_user",
    tag: Tag::Authentication,
    summary: "Show the user of the access token",
    description: "The same as `GET /api/v1/users/me`.",
    ..SHOW
};

/// `GET /api/v1/auth/me` and `GET /api/v1/users/me`: the account with its `stats`. Authentication has read it already,
/// so this needs no query of its own.
pub fn show(_: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    response::json(200, &Profile::of(user.account()))
}

pub const UPDATE: Operation = Operation {
    id: "update_my_profile",
    tag: Tag::Account,
    summary: "Change your own account",
    description: "Changes the fields that are given. Another e-mail address invalidates the password reset links that \
                  were sent before, and a notice goes to the old address. The service may be configured to require \
                  `current_password` for another e-mail address.",
    inputs: &[&PROFILE],
    answers: &[json::<User>(200, "The account after the change.")],
    errors: |_| {
        vec![
            Error::WrongCurrentPassword,
            Error::NotPermitted(Forbidden::PersonalToken),
            Error::Taken(Unique::Username),
            Error::Taken(Unique::Email),
        ]
    },
    ..Operation::EMPTY
};

static PROFILE: Input<(ProfileChange, Option<String>)> = Input::json(read_profile_change);

/// Reads the fields of an account that its user may change, and the current password.
fn read_profile_change(body: &mut Params) -> (ProfileChange, Option<String>) {
    let change = ProfileChange {
        username: body.optional("username", rules::USERNAME),
        email: body.optional("email", rules::EMAIL),
        name: body.optional("name", rules::NAME),
    };
    body.about("Required for another `email`, if the service is configured so.");
    (change, body.optional("current_password", rules::CURRENT_PASSWORD))
}

/// `PUT /api/v1/users/me`: changes `username`, `email` and `name`, each if it is given. If the settings say so, another
/// `email` must be confirmed with `current_password`.
pub fn update(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let (change, password) = context.read(&PROFILE)?;
    let outcome = change_profile(context, user, change, password);
    record_refusal(context, user, RefusedAction::EmailChange, outcome.as_ref().err());
    response::json(200, &outcome?)
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
        change.email = change.email.filter(|email| *email != user.account().email);
        if change.email.is_some() {
            let limit = Limit::Auth("change-email");
            rate_limit::enforce(context, limit, Subject::User(user.id()))?;
            let password = password.ok_or(Error::WrongCurrentPassword)?;
            version = Some(check_password(context.app, user, &password)?);
        }
    }
    let (db, origin) = (&context.app.db, context.origin());
    let account = users::update_profile(db, user.id(), &change, version, &origin)?;
    // Without a check of the password, only a deletion can have kept the change from being made.
    account.ok_or(version.map_or(Error::UserNotUsable, |_| Error::WrongCurrentPassword))
}

pub const CHANGE_PASSWORD: Operation = Operation {
    id: "change_password",
    tag: Tag::Account,
    summary: "Change your own password",
    description: "Ends your other sessions and all your personal access tokens. The session of this request's access \
                  token goes on.",
    inputs: &[&PASSWORDS],
    answers: &[json::<Message>(200, "The password has been changed.")],
    errors: |_| vec![Error::WrongCurrentPassword, Error::NotPermitted(Forbidden::PersonalToken)],
    ..Operation::EMPTY
};

static PASSWORDS: Input<(String, String)> = Input::json(read_passwords);

/// Reads the current and the new password.
fn read_passwords(body: &mut Params) -> (String, String) {
    body.alias("current_password", "old_password");
    body.about("May also be sent as `old_password`.");
    (
        body.required("current_password", rules::CURRENT_PASSWORD),
        body.required("new_password", rules::PASSWORD),
    )
}

/// `POST /api/v1/users/change-password`: sets a new password and ends the user's other sessions.
pub fn change_password(
    context: &mut RequestContext,
    user: &CurrentUser,
) -> Result<Response, Error> {
    user.require_changeable()?;
    let (current, new) = context.read(&PASSWORDS)?;
    let outcome = replace_password(context, user, &current, &new);
    record_refusal(context, user, RefusedAction::PasswordChange, outcome.as_ref().err());
    outcome?;
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
    let version = check_password(app, user, current)?;
    let hash = app.hasher.hash(new)?;
    if !users::change_password(&app.db, user.id(), version, &hash, user.session(), &origin)? {
        // The password was changed in the meantime, so the given one is no longer the current one.
        return Err(Error::WrongCurrentPassword);
    }
    Ok(())
}

pub const DELETE: Operation = Operation {
    id: "delete_my_account",
    tag: Tag::Account,
    summary: "Delete your own account",
    description: "Erases your personal data, ends your sessions and personal access tokens, and removes your files, as \
                  if an administrator deleted the account.",
    inputs: &[&CURRENT_PASSWORD],
    answers: &[NO_CONTENT],
    errors: |_| {
        vec![
            Error::WrongCurrentPassword,
            Error::LastAdmin,
            Error::NotPermitted(Forbidden::PersonalToken),
        ]
    },
    ..Operation::EMPTY
};

static CURRENT_PASSWORD: Input<String> =
    Input::json(|body| body.required("current_password", rules::CURRENT_PASSWORD));

/// `POST /api/v1/users/me/delete`: deletes the user's own account as an administrator would, confirmed with
/// `current_password`.
pub fn delete(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let password = context.read(&CURRENT_PASSWORD)?;
    let outcome = delete_account(context, user, &password);
    record_refusal(context, user, RefusedAction::UserDelete, outcome.as_ref().err());
    outcome?;
    context.app.wake_background();
    Ok(response::no_content())
}

/// Checks the current password and deletes the account.
fn delete_account(
    context: &RequestContext,
    user: &CurrentUser,
    password: &str,
) -> Result<(), Error> {
    let app = context.app;
    let version = check_password(app, user, password)?;
    if !users::delete(&app.db, user.id(), Some(version), &context.origin())? {
        // The password was changed, or the account deleted, in the meantime.
        return Err(Error::WrongCurrentPassword);
    }
    Ok(())
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

/// Records in the audit log that a change of the user's own account was refused, if `error` says so. Other errors, such
/// as a name that is taken, are no matter of security.
fn record_refusal(
    context: &RequestContext,
    user: &CurrentUser,
    action: RefusedAction,
    error: Option<&Error>,
) {
    let details = match error {
        Some(Error::WrongCurrentPassword) => serde_json::json!({}),
        Some(Error::LastAdmin) => serde_json::json!({ "reason": "last_admin" }),
        _ => return,
    };
    context.record_failure(action, Some(user.id()), Some(user.id()), details);
}
