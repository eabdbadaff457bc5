//! The signed-in user's own account.

use crate::api::context::{CurrentUser, RequestContext};
use crate::api::openapi::{Operation, Tag, json};
use crate::auth::password::PasswordCheck;
use crate::db::users;
use crate::error::{Error, Unique};
use crate::http::input::Input;
use crate::http::params::Params;
use crate::http::response::{self, Message, Response};
use crate::model::rules;
use crate::model::user::{Profile, User};

pub const SHOW: Operation = Operation {
    id: "get_my_profile",
    tag: Tag::Account,
    summary: "Show your own account",
    answers: &[json::<Profile>(200, "Your account with what it has stored.")],
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
    description: "Changes the fields that are given. Password reset links that were sent before do not work any more \
                  after a change of the e-mail address.",
    inputs: &[&PROFILE],
    answers: &[json::<User>(200, "The account after the change.")],
    errors: |_| {
        vec![Error::NotPermitted, Error::Taken(Unique::Username), Error::Taken(Unique::Email)]
    },
    ..Operation::EMPTY
};

static PROFILE: Input<ProfileChange> = Input::json(read_profile_change);

/// The fields of an account that its user may change.
struct ProfileChange {
    username: Option<String>,
    email: Option<String>,
    name: Option<String>,
}

fn read_profile_change(body: &mut Params) -> ProfileChange {
    ProfileChange {
        username: body.optional("username", rules::USERNAME),
        email: body.optional("email", rules::EMAIL),
        name: body.optional("name", rules::NAME),
    }
}

/// `PUT /api/v1/users/me`: changes `username`, `email` and `name`, each if it is given.
pub fn update(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let ProfileChange { username, email, name } = context.read(&PROFILE)?;
    let account = users::update_profile(
        &context.app.db,
        user.id(),
        username.as_deref(),
        email.as_deref(),
        name.as_deref(),
    )?;
    response::json(200, &account)
}

pub const CHANGE_PASSWORD: Operation = Operation {
    id: "change_password",
    tag: Tag::Account,
    summary: "Change your own password",
    description: "Ends your other sessions; the one of this request's token stays.",
    inputs: &[&PASSWORDS],
    answers: &[json::<Message>(200, "The new password is in force.")],
    errors: |_| vec![Error::WrongCurrentPassword, Error::NotPermitted],
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
    let app = context.app;
    let (stored, version) =
        users::find_credentials(&app.db, user.id())?.ok_or(Error::UserNotUsable)?;
    if app.hasher.check(&current, stored.as_deref())? == PasswordCheck::Wrong {
        return Err(Error::WrongCurrentPassword);
    }
    let hash = app.hasher.hash(&new)?;
    if !users::change_password(&app.db, user.id(), version, &hash, user.session())? {
        // The password was changed in the meantime, so the given one is no longer the current one.
        return Err(Error::WrongCurrentPassword);
    }
    response::message("Password changed successfully")
}
