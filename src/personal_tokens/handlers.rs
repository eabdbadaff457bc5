//! Personal access tokens, which users make for scripts.

use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::json;

use super::statements::{self, NewPersonalToken, PersonalToken};
use crate::auth::{personal_token, random_bytes};
use crate::error::{Error, Forbidden};
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::user::TokenScope;
use crate::model::{problems, rules};
use crate::request::context::RequestContext;
use crate::request::identity::{Admin, CurrentUser, json_body};
use crate::request::personal_token::SCOPES;

/// How long a token is valid, in days, and how long if the request for it does not say.
const DAYS: RangeInclusive<i64> = 1..=365;
const DEFAULT_DAYS: i64 = 90;
/// Characters of the name of a token.
const NAME_LENGTH: RangeInclusive<usize> = 1..=100;

/// Reads the name of a new token, its lifetime, and its scope, of which `read_only` is the older form.
fn read_token(body: &mut Params) -> NewPersonalToken {
    let name = body.required("name", |text| rules::trimmed(text, NAME_LENGTH));
    // The range fits 32 bits.
    let days = body.integer("expires_in_days", DEFAULT_DAYS, DAYS) as i32;
    let scope = body.choice("scope", &SCOPES);
    let is_read_only = body.boolean("read_only").unwrap_or(false);
    if is_read_only && scope.is_some_and(|scope| scope != TokenScope::Read) {
        body.add_error("read_only", problems::not_beside("another scope than read"));
    }
    let older = if is_read_only { TokenScope::Read } else { TokenScope::All };
    NewPersonalToken { name, days, scope: scope.unwrap_or(older) }
}

/// A personal access token with its secret text.
#[derive(Serialize)]
struct CreatedToken {
    #[serde(flatten)]
    stored: PersonalToken,
    /// The text to send as a bearer token. No later response contains it.
    token: String,
}

/// `POST /api/v1/auth/tokens`: makes a personal access token. Only this response holds it.
pub fn create(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let (sign_in, version) = user
        .sign_in()
        .zip(user.credentials_version)
        .ok_or(Error::NotPermitted(Forbidden::PersonalToken))?;
    let wanted = json_body(context, user)?.read(read_token)?;
    let token = personal_token::encode(random_bytes()?);
    let hash = personal_token::hash(&token)
        .ok_or_else(|| Error::Internal("a new token is not well-formed".into()))?;
    let owner = (user.id(), version, sign_in);
    let stored = statements::insert(&context.db, owner, &wanted, &hash)?;
    response::json(201, &CreatedToken { stored, token })
}

/// `GET /api/v1/auth/tokens`: the user's live tokens, newest first.
pub fn list(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    // The development admin is no account, so nothing is found for it.
    let tokens = statements::list(&context.db, user.id())?.unwrap_or_default();
    response::json(200, &json!({ "tokens": tokens }))
}

/// `DELETE /api/v1/auth/tokens/{token_id}`: ends one token of the user.
pub fn delete(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let id = context.path_id()?;
    statements::delete(&context.db, user.id(), id)?;
    Ok(Response::empty(204))
}

/// `GET /api/v1/users/{user_id}/tokens`: the live tokens of any user, newest first.
pub fn list_of_user(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let id = context.path_id()?;
    let tokens = statements::list(&context.db, id)?.ok_or(Error::UserNotFound)?;
    response::json(200, &json!({ "tokens": tokens }))
}

/// `DELETE /api/v1/users/{user_id}/tokens`: ends all tokens of any user.
pub fn delete_all_of_user(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let id = context.path_id()?;
    statements::delete_all(&context.db, id)?;
    Ok(Response::empty(204))
}
