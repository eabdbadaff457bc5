//! Sessions: users list and end their own, administrators those of any user.

use serde_json::json;

use super::statements;
use crate::auth::jwt::{Claims, TokenType};
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::rules::{MAX_SESSIONS, MAX_USER_AGENT};
use crate::model::timestamp::unix_time;
use crate::request::context::RequestContext;
use crate::request::identity::{Admin, CurrentUser};

/// The most memory that a list takes, in bytes, see [`rules::FILE_MEMORY`](crate::model::rules::FILE_MEMORY).
const LIST_MEMORY: usize = MAX_SESSIONS as usize * (2 * 4 * MAX_USER_AGENT + 1024);

/// How long a view token is valid.
const VIEW_SECONDS: u64 = 300;

/// `GET /api/v1/auth/sessions`: the user's live sessions, newest first.
pub fn list(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    // The development admin is no account, so nothing is found for it.
    let max_age = context.app.config.session_max_age;
    let db = context.database_with_room(LIST_MEMORY);
    let sessions = statements::list(&db, user.id(), user.session(), max_age)?;
    let sessions = sessions.unwrap_or_default();
    response::json(200, &json!({ "sessions": sessions }))
}

/// `DELETE /api/v1/auth/sessions/{session_id}`: ends one session of the user.
pub fn end(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let id = context.path_id()?;
    let max_age = context.app.config.session_max_age;
    statements::end_by_id(&context.db, user.id(), id, max_age)?;
    Ok(Response::empty(204))
}

/// `GET /api/v1/users/{user_id}/sessions`: the live sessions of any user, newest first.
pub fn list_of_user(context: &mut RequestContext, admin: &Admin) -> Result<Response, Error> {
    let id = context.path_id()?;
    let (current, max_age) = (admin.user().session(), context.app.config.session_max_age);
    let db = context.database_with_room(LIST_MEMORY);
    let sessions = statements::list(&db, id, current, max_age)?;
    let sessions = sessions.ok_or(Error::UserNotFound)?;
    response::json(200, &json!({ "sessions": sessions }))
}

/// `DELETE /api/v1/users/{user_id}/sessions`: ends all sessions of any user.
pub fn end_all_of_user(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let id = context.path_id()?;
    statements::end_all_of_user(&context.db, id)?;
    Ok(Response::empty(204))
}

/// `POST /api/v1/auth/view-token`: a token that opens contents of files in the address of a request, for
/// [`VIEW_SECONDS`], unless the session ends before.
pub fn view_token(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let sign_in = user.sign_in();
    let token = context.app.signing_keys.sign(Claims {
        user: user.id(),
        role: user.account.role,
        token_type: TokenType::View,
        session: sign_in.and_then(|sign_in| sign_in.session),
        // When this was decides whether an access token without a session has ended.
        issued_at: sign_in.and_then(|sign_in| sign_in.issued_at),
        expires_at: unix_time().as_secs() + VIEW_SECONDS,
        ..Claims::default()
    })?;
    response::json(200, &json!({ "token": token, "expires_in": VIEW_SECONDS }))
}
