//! Endpoints that help to test clients. They are disabled by default, and production refuses to start with them.

use serde_json::json;
use uuid::Uuid;

use super::handlers::check_role;
use super::statements::{self, AccountFields};
use crate::error::Error;
use crate::http::params::Params;
use crate::http::request::MAX_TEXT_BODY;
use crate::http::response::{self, Response};
use crate::model::rules;
use crate::request::context::RequestContext;
use crate::request::identity::{SignedInAdmin, json_body};

/// `GET /api/v1/users/test-only/alive`: responds if these endpoints are enabled.
pub fn alive(_: &mut RequestContext, _: &SignedInAdmin) -> Result<Response, Error> {
    response::probe("test-only endpoints alive")
}

/// `POST /api/v1/users/test-only/create`: creates an account. The usual rules for values do not apply, and everything
/// that is not given is made up.
pub fn create(context: &mut RequestContext, admin: &SignedInAdmin) -> Result<Response, Error> {
    let body = json_body(context, admin.user())?;
    check_role(admin, &body)?;
    let (given, password) = body.read(read_account)?;
    let unique = Uuid::new_v4().simple().to_string();
    let made_up = |prefix: &str| format!("{prefix}_{unique}");
    let password = password.unwrap_or_else(|| made_up("password"));
    let hash_request = context.hash_request();
    let account = AccountFields {
        username: given.username.or_else(|| Some(made_up("test"))),
        email: given.email.or_else(|| Some(format!("{unique}@example.com"))),
        name: given.name.or_else(|| Some("Test user".into())),
        password_hash: Some(context.app.hasher.hash(&password, hash_request)?),
        ..given
    };
    context.request.body.resize_room(2 * MAX_TEXT_BODY as usize)?;
    response::json(201, &statements::insert(&context.db, &account, admin.user().sign_in())?)
}

/// Reads the account and its password.
fn read_account(body: &mut Params) -> (AccountFields, Option<String>) {
    let account = AccountFields {
        username: body.optional("username", rules::test_text),
        email: body.optional("email", rules::test_text),
        name: body.optional("name", rules::test_text),
        role: body.optional("role", rules::role),
        permissions: body.list("permissions", rules::test_permissions),
        is_active: body.boolean("is_active"),
        created_at: body.optional("created_at", rules::timestamp),
        last_login: body.optional("last_login", rules::timestamp),
        ..AccountFields::default()
    };
    (account, body.optional("password", rules::test_text))
}

/// `DELETE /api/v1/users/test-only/delete-all`: deletes every account, including the one that asks for it.
pub fn delete_all(context: &mut RequestContext, admin: &SignedInAdmin) -> Result<Response, Error> {
    admin.require_session()?;
    let deleted = statements::delete_all(&context.db)?;
    context.app.wake_background();
    response::json(200, &json!({ "deleted": deleted }))
}

/// `GET /api/v1/users/test-only/count`: the number of accounts, under both of its names.
pub fn count(context: &mut RequestContext, _: &SignedInAdmin) -> Result<Response, Error> {
    let count = statements::count(&context.db)?;
    response::json(200, &json!({ "count": count, "total": count }))
}
