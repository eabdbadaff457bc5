//! Endpoints for tests of clients (admin). Off unless the settings say otherwise, never in production.

use serde_json::json;
use uuid::Uuid;

use crate::api::context::RequestContext;
use crate::api::middleware::authenticate::Admin;
use crate::db::users::{self, AccountFields};
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::rules;

/// `GET /api/v1/users/test-only/alive`.
pub fn alive(_: &RequestContext, _: &Admin) -> Result<Response, Error> {
    response::json(200, &json!({ "status": "test-only endpoints alive" }))
}

/// `POST /api/v1/users/test-only/create`: a User of whatever is given; what is missing is made up.
pub fn create(context: &RequestContext, _: &Admin) -> Result<Response, Error> {
    let (given, password) = context.request.json(|body| {
        let given = AccountFields {
            username: body.optional("username", rules::test_text),
            email: body.optional("email", rules::test_text),
            name: body.optional("name", rules::test_text),
            role: body.optional("role", rules::role),
            permissions: body.optional_list("permissions", rules::test_permissions),
            is_active: body.optional_boolean("is_active"),
            password_hash: None,
            created_at: body.optional("created_at", rules::timestamp),
            last_login: body.optional("last_login", rules::timestamp),
        };
        (given, body.optional("password", rules::test_text))
    })?;
    let unique = Uuid::new_v4().simple().to_string();
    let made_up = |prefix: &str| format!("{prefix}_{unique}");
    let password = password.unwrap_or_else(|| made_up("password"));
    let account = AccountFields {
        username: given.username.or_else(|| Some(made_up("test"))),
        email: given.email.or_else(|| Some(format!("{unique}@example.com"))),
        name: given.name.or_else(|| Some("Test user".into())),
        password_hash: Some(context.app.hasher.hash(&password)?),
        ..given
    };
    response::json(201, &users::insert(&context.app.db, &account)?)
}

/// `DELETE /api/v1/users/test-only/delete-all`: every account, the user's too.
pub fn delete_all(context: &RequestContext, _: &Admin) -> Result<Response, Error> {
    let (deleted, files) = users::delete_all(&context.app.db)?;
    context.app.storage.remove_all(&files);
    response::json(200, &json!({ "deleted": deleted }))
}

/// `GET /api/v1/users/test-only/count`.
pub fn count(context: &RequestContext, _: &Admin) -> Result<Response, Error> {
    response::json(200, &json!({ "count": users::count(&context.app.db)? }))
}
