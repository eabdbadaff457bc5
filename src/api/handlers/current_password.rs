//! Checks of the current password of signed-in users.

use crate::api::context::RequestContext;
use crate::api::middleware::identity::CurrentUser;
use crate::api::middleware::rate_limit::{self, Caller, Limit};
use crate::auth::hash_queue::HashPurpose;
use crate::auth::password::PasswordCheck;
use crate::db::users;
use crate::error::Error;

/// Checks a user's current password. Returns the version of the credentials it was checked against, which the statement
/// that follows must require, because checking takes long. Fails with [`Error::WrongCurrentPassword`].
pub fn check(context: &RequestContext, user: &CurrentUser, password: &str) -> Result<i32, Error> {
    let app = context.app;
    let hash_request = context.hash_request(HashPurpose::SignedIn);
    let (stored, version) =
        users::find_credentials(&context.db, user.id())?.ok_or(Error::UserNotUsable)?;
    match app.hasher.check(password, stored.as_deref(), hash_request)? {
        PasswordCheck::Wrong => Err(Error::WrongCurrentPassword),
        PasswordCheck::Right | PasswordCheck::RightButOutdated => Ok(version),
    }
}

/// Like [`check`], for a request that needs a password only because of what it changes. So it counts against `limit`
/// here and not by its endpoint, also if it has no password.
pub fn check_in_body(
    context: &mut RequestContext,
    user: &CurrentUser,
    limit: Limit,
    password: Option<&str>,
) -> Result<i32, Error> {
    rate_limit::enforce(context, limit, Caller::User(user))?;
    check(context, user, password.ok_or(Error::WrongCurrentPassword)?)
}
