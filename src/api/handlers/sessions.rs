//! Sessions in sight: which ones a user has, and ending them.

use serde_json::json;
use uuid::Uuid;

use crate::api::context::{Admin, CurrentUser, RequestContext};
use crate::db::sessions;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::session::Session;

/// `GET /api/v1/auth/sessions`: the user's live sessions, newest first.
pub fn list(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    // The development admin is no account, so nothing is found for it.
    list_response(find(context, user.id(), user)?.unwrap_or_default())
}

/// `DELETE /api/v1/auth/sessions/{session_id}`: ends one session of the user.
pub fn end(context: &mut RequestContext, user: &CurrentUser, id: Uuid) -> Result<Response, Error> {
    let app = context.app;
    sessions::end_by_id(&app.db, user.id(), id, app.config.session_max_age)?;
    Ok(response::no_content())
}

/// `GET /api/v1/users/{user_id}/sessions`: the live sessions of any user, newest first.
pub fn list_of_user(
    context: &mut RequestContext,
    admin: &Admin,
    id: Uuid,
) -> Result<Response, Error> {
    list_response(find(context, id, admin.user())?.ok_or(Error::UserNotFound)?)
}

/// `DELETE /api/v1/users/{user_id}/sessions`: ends all sessions of any user.
pub fn end_all_of_user(
    context: &mut RequestContext,
    _: &Admin,
    id: Uuid,
) -> Result<Response, Error> {
    sessions::end_all_of_user(&context.app.db, id)?;
    Ok(response::no_content())
}

/// The live sessions of the account `of`, seen by `viewer`; `None` if there is no such account.
fn find(
    context: &RequestContext,
    of: Uuid,
    viewer: &CurrentUser,
) -> Result<Option<Vec<Session>>, Error> {
    let app = context.app;
    sessions::list(&app.db, of, viewer.session(), app.config.session_max_age)
}

fn list_response(sessions: Vec<Session>) -> Result<Response, Error> {
    response::json(200, &json!({ "sessions": sessions }))
}
