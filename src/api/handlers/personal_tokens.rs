//! Personal access tokens, which users make for scripts.

use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::api::context::{Admin, CurrentUser, RequestContext};
use crate::auth::{personal_token, random_bytes};
use crate::db::personal_tokens::{self, NewPersonalToken};
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::personal_token::PersonalToken;
use crate::model::rules;

/// How long a token is valid whose request does not say so, in days.
const DEFAULT_DAYS: i64 = 90;

/// A new token as only its maker sees it, once.
#[derive(Serialize)]
struct CreatedToken {
    #[serde(flatten)]
    stored: PersonalToken,
    token: String,
}

/// `POST /api/v1/auth/tokens`: makes a personal access token. Only this response holds it.
pub fn create(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let version = user.credentials_version()?;
    let wanted = context.request.json(read_token)?;
    let token = personal_token::encode(random_bytes()?);
    let hash = personal_token::hash(&token)
        .ok_or_else(|| Error::Internal("a new token is not well-formed".into()))?;
    let stored = personal_tokens::insert(&context.app.db, user.id(), version, &wanted, &hash)?;
    response::json(201, &CreatedToken { stored, token })
}

/// Reads the name, the lifetime and the scope of a new token.
fn read_token(body: &mut Params) -> NewPersonalToken {
    NewPersonalToken {
        name: body.required("name", rules::token_name),
        // The range fits 32 bits.
        days: body.integer("expires_in_days", DEFAULT_DAYS, rules::TOKEN_DAYS) as i32,
        read_only: body.boolean("read_only").unwrap_or(false),
    }
}

/// `GET /api/v1/auth/tokens`: the user's live tokens, newest first.
pub fn list(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    // The development admin is no account, so nothing is found for it.
    list_response(personal_tokens::list(&context.app.db, user.id())?.unwrap_or_default())
}

/// `DELETE /api/v1/auth/tokens/{token_id}`: ends one token of the user.
pub fn delete(
    context: &mut RequestContext,
    user: &CurrentUser,
    id: Uuid,
) -> Result<Response, Error> {
    personal_tokens::delete(&context.app.db, user.id(), id)?;
    Ok(response::no_content())
}

/// `GET /api/v1/users/{user_id}/tokens`: the live tokens of any user, newest first.
pub fn list_of_user(context: &mut RequestContext, _: &Admin, id: Uuid) -> Result<Response, Error> {
    list_response(personal_tokens::list(&context.app.db, id)?.ok_or(Error::UserNotFound)?)
}

/// `DELETE /api/v1/users/{user_id}/tokens`: ends all tokens of any user.
pub fn delete_all_of_user(
    context: &mut RequestContext,
    _: &Admin,
    id: Uuid,
) -> Result<Response, Error> {
    personal_tokens::delete_all(&context.app.db, id)?;
    Ok(response::no_content())
}

fn list_response(tokens: Vec<PersonalToken>) -> Result<Response, Error> {
    response::json(200, &json!({ "tokens": tokens }))
}
