//! Endpoints for tests of clients (admin). Off unless the settings say otherwise, never in production.

use serde_json::json;
use uuid::Uuid;

use crate::app::Call;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::middleware::authenticate::Admin;
use crate::model::fields;
use crate::store::accounts::{self, Description};

/// `GET /api/v1/users/test-only/alive`.
pub fn alive(_: &Call, _: &Admin) -> Result<Response, Error> {
    response::json(200, &json!({ "status": "test-only endpoints alive" }))
}

/// `POST /api/v1/users/test-only/create`: a User of whatever is given; what is missing is made up.
pub fn create(call: &Call, _: &Admin) -> Result<Response, Error> {
    let (given, password) = call.request.json(|body| {
        let given = Description {
            username: body.optional("username", fields::test_text),
            email: body.optional("email", fields::test_text),
            name: body.optional("name", fields::test_text),
            role: body.optional("role", fields::role),
            permissions: body.optional_list("permissions", fields::test_permissions),
            is_active: body.optional_boolean("is_active"),
            password_hash: None,
            created_at: body.optional("created_at", fields::timestamp),
            last_login: body.optional("last_login", fields::timestamp),
        };
        (given, body.optional("password", fields::test_text))
    })?;
    let unique = Uuid::new_v4().simple().to_string();
    let made_up = |prefix: &str| format!("{prefix}_{unique}");
    let password = password.unwrap_or_else(|| made_up("password"));
    let account = Description {
        username: given.username.or_else(|| Some(made_up("test"))),
        email: given.email.or_else(|| Some(format!("{unique}@example.com"))),
        name: given.name.or_else(|| Some("Test user".into())),
        password_hash: Some(call.app.hashing.hash(&password)?),
        ..given
    };
    response::json(201, &accounts::insert(&call.app.db, &account)?)
}

/// `DELETE /api/v1/users/test-only/delete-all`: every account, the caller's too.
pub fn delete_all(call: &Call, _: &Admin) -> Result<Response, Error> {
    let (deleted, files) = accounts::delete_all(&call.app.db)?;
    call.app.files.remove_all(&files);
    response::json(200, &json!({ "deleted": deleted }))
}

/// `GET /api/v1/users/test-only/count`.
pub fn count(call: &Call, _: &Admin) -> Result<Response, Error> {
    response::json(200, &json!({ "count": accounts::count(&call.app.db)? }))
}
