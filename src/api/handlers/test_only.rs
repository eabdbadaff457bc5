//! Endpoints that help to test clients. They are disabled by default, and production refuses to start with them.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::api::context::{Admin, RequestContext};
use crate::api::openapi::{Operation, Tag, json};
use crate::db::users::{self, AccountFields};
use crate::error::{Error, Unique};
use crate::http::input::Input;
use crate::http::params::Params;
use crate::http::response::{self, Response, StatusText};
use crate::model::rules;
use crate::model::user::User;

/// What all operations of this file have in common.
const TEST_ONLY: Operation = Operation { tag: Tag::TestOnly, ..Operation::EMPTY };

pub const ALIVE: Operation = Operation {
    id: "test_only_alive",
    summary: "Check whether the test-only endpoints are enabled",
    answers: &[json::<StatusText>(200, "They are enabled.")],
    ..TEST_ONLY
};

/// `GET /api/v1/users/test-only/alive`: responds if these endpoints are enabled.
pub fn alive(_: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    response::status("test-only endpoints alive")
}

pub const CREATE: Operation = Operation {
    id: "test_only_create_user",
    summary: "Create an account for a test",
    description: "The usual rules for values do not apply, except that usernames and e-mail addresses are unique. \
                  Everything that is not given is made up.",
    inputs: &[&ACCOUNT],
    answers: &[json::<User>(201, "The new account.")],
    errors: |_| vec![Error::Taken(Unique::Username), Error::Taken(Unique::Email)],
    ..TEST_ONLY
};

static ACCOUNT: Input<(AccountFields, Option<String>)> = Input::json(read_account);

/// `POST /api/v1/users/test-only/create`: creates an account. The usual rules for values do not apply, and everything
/// that is not given is made up.
pub fn create(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let (given, password) = context.read(&ACCOUNT)?;
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

/// Reads the account and its password.
fn read_account(body: &mut Params) -> (AccountFields, Option<String>) {
    let account = AccountFields {
        username: body.optional("username", rules::TEST_TEXT),
        email: body.optional("email", rules::TEST_TEXT),
        name: body.optional("name", rules::TEST_TEXT),
        role: body.optional("role", rules::ROLE),
        permissions: body.list("permissions", rules::TEST_PERMISSIONS),
        is_active: body.boolean("is_active"),
        password_hash: None,
        created_at: body.optional("created_at", rules::TIMESTAMP),
        last_login: body.optional("last_login", rules::TIMESTAMP),
    };
    (account, body.optional("password", rules::TEST_TEXT))
}

pub const DELETE_ALL: Operation = Operation {
    id: "test_only_delete_all_users",
    summary: "Delete every account, your own too",
    description: "The rule that one active admin stays does not apply.",
    answers: &[json::<Deleted>(200, "All accounts have been deleted.")],
    ..TEST_ONLY
};

#[derive(Serialize, JsonSchema)]
struct Deleted {
    /// How many accounts were deleted.
    deleted: i64,
}

/// `DELETE /api/v1/users/test-only/delete-all`: deletes every account, including the one that asks for it.
pub fn delete_all(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let deleted = users::delete_all(&context.app.db)?;
    context.app.wake_background();
    response::json(200, &Deleted { deleted })
}

pub const COUNT: Operation = Operation {
    id: "test_only_count_users",
    summary: "Count the accounts",
    answers: &[json::<Count>(200, "The number of accounts.")],
    ..TEST_ONLY
};

#[derive(Serialize, JsonSchema)]
struct Count {
    count: i64,
}

/// `GET /api/v1/users/test-only/count`: the number of accounts.
pub fn count(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    response::json(200, &Count { count: users::count(&context.app.db)? })
}
