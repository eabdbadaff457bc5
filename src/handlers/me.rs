//! The signed-in user's own account.

use crate::app::Call;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::middleware::authenticate::Caller;
use crate::model::fields;
use crate::model::user::Profile;
use crate::security::password::Verdict;
use crate::store;

/// `GET /api/v1/auth/me` and `GET /api/v1/users/me`: the full User with `stats`. The user was read
/// with the token's session, so this asks nothing more.
pub fn show(_: &Call, caller: &Caller) -> Result<Response, Error> {
    response::json(200, &Profile::of(caller.user()))
}

/// `PUT /api/v1/users/me`: changes what is given of `username`, `email` and `name`.
pub fn update(call: &Call, caller: &Caller) -> Result<Response, Error> {
    let (username, email, name) = call.request.json(|body| {
        (
            body.optional("username", fields::username),
            body.optional("email", fields::email),
            body.optional("name", fields::name),
        )
    })?;
    let user = store::users::update_profile(
        &call.app.db,
        caller.user().id,
        username.as_deref(),
        email.as_deref(),
        name.as_deref(),
    )?;
    response::json(200, &user)
}

/// `POST /api/v1/users/change-password`: ends the user's other sessions.
pub fn change_password(call: &Call, caller: &Caller) -> Result<Response, Error> {
    let (current, new) = call.request.json(|body| {
        body.alias("current_password", "old_password");
        (
            body.required("current_password", fields::given),
            body.required("new_password", fields::password),
        )
    })?;
    let id = caller.user().id;
    let (stored, version) =
        store::users::find_credentials(&call.app.db, id)?.ok_or(Error::UserNotUsable)?;
    if call.app.hashing.verify(&current, stored.as_deref())? == Verdict::Wrong {
        return Err(Error::WrongCurrentPassword);
    }
    let hash = call.app.hashing.hash(&new)?;
    if !store::users::change_password(&call.app.db, id, version, &hash, caller.session())? {
        // Another change came first, and the current password is current no longer.
        return Err(Error::WrongCurrentPassword);
    }
    response::message("Password changed successfully")
}
