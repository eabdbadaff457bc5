//! Personal access tokens, which users make for scripts.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::api::context::{Admin, CurrentUser, RequestContext};
use crate::api::openapi::{NO_CONTENT, Operation, Tag, json};
use crate::auth::{personal_token, random_bytes};
use crate::db::personal_tokens::{self, NewPersonalToken};
use crate::error::Error;
use crate::http::input::Input;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::personal_token::PersonalToken;
use crate::model::rules;

/// How long a token is valid if the request for it does not say, in days.
const DEFAULT_DAYS: i64 = 90;

pub const CREATE: Operation = Operation {
    id: "create_personal_token",
    tag: Tag::Authentication,
    summary: "Create a personal access token",
    description: "A token for scripts, which is sent like an access token. Only this response shows it. It acts with \
                  the role that you have at the moment of each request, but cannot change your password or your \
                  account, and cannot manage sessions or personal access tokens; a read-only one is accepted only \
                  for `GET` and `HEAD`. It stays valid after a logout, and ends when it expires, when your password \
                  changes, or when your account is deactivated or deleted. A user has at most 50.",
    inputs: &[&NEW_TOKEN],
    answers: &[json::<CreatedToken>(201, "The new token.")],
    errors: |_| vec![Error::TooManyTokens],
    ..Operation::EMPTY
};

static NEW_TOKEN: Input<NewPersonalToken> = Input::json(read_token);

/// Reads the name of a new token, its lifetime, and whether it is read-only.
fn read_token(body: &mut Params) -> NewPersonalToken {
    let name = body.required("name", rules::TOKEN_NAME);
    body.about("The token expires after this many days. Default 90.");
    // The range fits 32 bits.
    let days = body.integer("expires_in_days", DEFAULT_DAYS, rules::TOKEN_DAYS) as i32;
    body.about("Whether the token is accepted only for `GET` and `HEAD`. Default `false`.");
    NewPersonalToken { name, days, read_only: body.boolean("read_only").unwrap_or(false) }
}

/// A personal access token with its secret text.
#[derive(Serialize, JsonSchema)]
struct CreatedToken {
    #[serde(flatten)]
    stored: PersonalToken,
    /// The text to send as a bearer token. No later response contains it.
    token: String,
}

/// `POST /api/v1/auth/tokens`: makes a personal access token. Only this response holds it.
pub fn create(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    let version = user.credentials_version()?;
    let wanted = context.read(&NEW_TOKEN)?;
    let token = personal_token::encode(random_bytes()?);
    let hash = personal_token::hash(&token)
        .ok_or_else(|| Error::Internal("a new token is not well-formed".into()))?;
    let stored = personal_tokens::insert(&context.app.db, user.id(), version, &wanted, &hash)?;
    response::json(201, &CreatedToken { stored, token })
}

pub const LIST: Operation = Operation {
    id: "list_my_personal_tokens",
    tag: Tag::Authentication,
    summary: "List your personal access tokens",
    description: "Those that have neither ended nor expired, newest first.",
    answers: &[json::<TokenList>(200, "Your tokens.")],
    ..Operation::EMPTY
};

/// `GET /api/v1/auth/tokens`: the user's live tokens, newest first.
pub fn list(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    // The development admin is no account, so nothing is found for it.
    list_response(personal_tokens::list(&context.app.db, user.id())?.unwrap_or_default())
}

pub const DELETE: Operation = Operation {
    id: "delete_my_personal_token",
    tag: Tag::Authentication,
    summary: "End one of your personal access tokens",
    answers: &[NO_CONTENT],
    errors: |_| vec![Error::TokenNotFound],
    ..Operation::EMPTY
};

/// `DELETE /api/v1/auth/tokens/{token_id}`: ends one token of the user.
pub fn delete(
    context: &mut RequestContext,
    user: &CurrentUser,
    id: Uuid,
) -> Result<Response, Error> {
    personal_tokens::delete(&context.app.db, user.id(), id)?;
    Ok(response::no_content())
}

pub const LIST_OF_USER: Operation = Operation {
    id: "list_personal_tokens_of_user",
    tag: Tag::Users,
    summary: "List the personal access tokens of a user",
    description: "Those that have neither ended nor expired, newest first.",
    answers: &[json::<TokenList>(200, "The user's tokens.")],
    errors: |_| vec![Error::UserNotFound],
    ..Operation::EMPTY
};

/// `GET /api/v1/users/{user_id}/tokens`: the live tokens of any user, newest first.
pub fn list_of_user(context: &mut RequestContext, _: &Admin, id: Uuid) -> Result<Response, Error> {
    list_response(personal_tokens::list(&context.app.db, id)?.ok_or(Error::UserNotFound)?)
}

pub const DELETE_ALL_OF_USER: Operation = Operation {
    id: "delete_personal_tokens_of_user",
    tag: Tag::Users,
    summary: "End all personal access tokens of a user",
    answers: &[NO_CONTENT],
    errors: |_| vec![Error::UserNotFound],
    ..Operation::EMPTY
};

/// `DELETE /api/v1/users/{user_id}/tokens`: ends all tokens of any user.
pub fn delete_all_of_user(
    context: &mut RequestContext,
    _: &Admin,
    id: Uuid,
) -> Result<Response, Error> {
    personal_tokens::delete_all(&context.app.db, id)?;
    Ok(response::no_content())
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PersonalTokenList")]
struct TokenList {
    tokens: Vec<PersonalToken>,
}

fn list_response(tokens: Vec<PersonalToken>) -> Result<Response, Error> {
    response::json(200, &TokenList { tokens })
}
