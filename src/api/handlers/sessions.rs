//! Sessions: users list and end their own, administrators those of any user.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::api::context::{Admin, CurrentUser, RequestContext};
use crate::api::openapi::{NO_CONTENT, Operation, Tag, json};
use crate::db::sessions;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::session::Session;

pub const LIST: Operation = Operation {
    id: "list_my_sessions",
    tag: Tag::Authentication,
    summary: "List your sessions",
    description: "The sessions that have neither ended nor expired, newest first, at most 1,000. Each sign-in opens \
                  one.",
    answers: &[json::<SessionList>(200, "Your sessions.")],
    ..Operation::EMPTY
};

/// `GET /api/v1/auth/sessions`: the user's live sessions, newest first.
pub fn list(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    // The development admin is no account, so nothing is found for it.
    list_response(find(context, user.id(), user)?.unwrap_or_default())
}

pub const END: Operation = Operation {
    id: "end_my_session",
    tag: Tag::Authentication,
    summary: "End one of your sessions",
    description: "Its access and refresh tokens are refused from then on.",
    answers: &[NO_CONTENT],
    errors: |_| vec![Error::SessionNotFound],
    ..Operation::EMPTY
};

/// `DELETE /api/v1/auth/sessions/{session_id}`: ends one session of the user.
pub fn end(context: &mut RequestContext, user: &CurrentUser, id: Uuid) -> Result<Response, Error> {
    let app = context.app;
    sessions::end_by_id(&app.db, user.id(), id, app.config.session_max_age)?;
    Ok(response::no_content())
}

pub const LIST_OF_USER: Operation = Operation {
    id: "list_sessions_of_user",
    tag: Tag::Users,
    summary: "List the sessions of a user",
    description: "The sessions that have neither ended nor expired, newest first, at most 1,000.",
    answers: &[json::<SessionList>(200, "The user's sessions.")],
    errors: |_| vec![Error::UserNotFound],
    ..Operation::EMPTY
};

/// `GET /api/v1/users/{user_id}/sessions`: the live sessions of any user, newest first.
pub fn list_of_user(
    context: &mut RequestContext,
    admin: &Admin,
    id: Uuid,
) -> Result<Response, Error> {
    list_response(find(context, id, admin.user())?.ok_or(Error::UserNotFound)?)
}

pub const END_ALL_OF_USER: Operation = Operation {
    id: "end_sessions_of_user",
    tag: Tag::Users,
    summary: "End all sessions of a user",
    answers: &[NO_CONTENT],
    errors: |_| vec![Error::UserNotFound],
    ..Operation::EMPTY
};

/// `DELETE /api/v1/users/{user_id}/sessions`: ends all sessions of any user.
pub fn end_all_of_user(
    context: &mut RequestContext,
    _: &Admin,
    id: Uuid,
) -> Result<Response, Error> {
    sessions::end_all_of_user(&context.app.db, id)?;
    Ok(response::no_content())
}

/// The live sessions of the account `of`; `None` if there is no such account. The session that `viewer`'s request
/// belongs to is marked as the current one.
fn find(
    context: &RequestContext,
    of: Uuid,
    viewer: &CurrentUser,
) -> Result<Option<Vec<Session>>, Error> {
    let app = context.app;
    sessions::list(&app.db, of, viewer.session(), app.config.session_max_age)
}

#[derive(Serialize, JsonSchema)]
struct SessionList {
    sessions: Vec<Session>,
}

fn list_response(sessions: Vec<Session>) -> Result<Response, Error> {
    response::json(200, &SessionList { sessions })
}
