//! The signed-in user's own account.

use crate::api::context::RequestContext;
use crate::api::middleware::authenticate::CurrentUser;
use crate::auth::password::Verdict;
use crate::db;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::rules;
use crate::model::user::Profile;

/// `GET /api/v1/auth/me` and `GET /api/v1/users/me`: the full User with `stats`. The user was read
/// with the token's session, so this asks nothing more.
pub fn show(_: &RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    response::json(200, &Profile::of(user.user()))
}

/// `PUT /api/v1/users/me`: changes what is given of `username`, `email` and `name`.
pub fn update(context: &RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let (username, email, name) = context.request.json(|body| {
        (
            body.optional("username", rules::username),
            body.optional("email", rules::email),
            body.optional("name", rules::name),
        )
    })?;
    let user = db::users::update_profile(
        &context.app.db,
        user.user().id,
        username.as_deref(),
        email.as_deref(),
        name.as_deref(),
    )?;
    response::json(200, &user)
}

/// `POST /api/v1/users/change-password`: ends the user's other sessions.
pub fn change_password(context: &RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let (current, new) = context.request.json(|body| {
        body.alias("current_password", "old_password");
        (
            body.required("current_password", rules::given),
            body.required("new_password", rules::password),
        )
    })?;
    let id = user.user().id;
    let (stored, version) =
        db::users::find_credentials(&context.app.db, id)?.ok_or(Error::UserNotUsable)?;
    if context.app.hasher.verify(&current, stored.as_deref())? == Verdict::Wrong {
        return Err(Error::WrongCurrentPassword);
    }
    let hash = context.app.hasher.hash(&new)?;
    if !db::users::change_password(&context.app.db, id, version, &hash, user.session())? {
        // Another change came first, and the current password is current no longer.
        return Err(Error::WrongCurrentPassword);
    }
    response::message("Password changed successfully")
}
