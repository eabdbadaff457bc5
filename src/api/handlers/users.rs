//! User management, for administrators.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::paging::{is_descending, page_request};
use crate::api::context::{Admin, RequestContext};
use crate::api::openapi::{NO_CONTENT, Operation, Tag, json};
use crate::db::users::{self, AccountFields, UserFilter, UserSort};
use crate::error::{Error, Unique};
use crate::http::input::Input;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::page::PageRequest;
use crate::model::rules;
use crate::model::user::{Role, User};

pub const CREATE: Operation = Operation {
    id: "create_user",
    tag: Tag::Users,
    summary: "Create an account",
    inputs: &[&NEW_ACCOUNT],
    answers: &[json::<User>(201, "The new account.")],
    errors: |_| vec![Error::Taken(Unique::Username), Error::Taken(Unique::Email)],
    ..Operation::EMPTY
};

/// An account without its password hash, and the password.
static NEW_ACCOUNT: Input<(AccountFields, String)> = Input::json(read_new_account);

fn read_new_account(body: &mut Params) -> (AccountFields, String) {
    let account = AccountFields {
        email: Some(body.required("email", rules::EMAIL)),
        name: Some(body.required("name", rules::NAME)),
        ..read_optional_fields(body)
    };
    (account, body.required("password", rules::PASSWORD))
}

/// `POST /api/v1/users`: creates an account.
pub fn create(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let (account, password) = context.read(&NEW_ACCOUNT)?;
    let password_hash = Some(context.app.hasher.hash(&password)?);
    let account = AccountFields { password_hash, ..account };
    response::json(201, &users::insert(&context.app.db, &account)?)
}

/// Reads the fields that are optional both for a new account and for a change.
fn read_optional_fields(body: &mut Params) -> AccountFields {
    AccountFields {
        username: body.optional("username", rules::USERNAME),
        role: body.optional("role", rules::ROLE),
        permissions: body.list("permissions", rules::PERMISSIONS),
        is_active: body.boolean("is_active"),
        ..AccountFields::default()
    }
}

pub const LIST: Operation = Operation {
    id: "list_users",
    tag: Tag::Users,
    summary: "List accounts",
    description: "Newest first unless the query says otherwise. Accounts that compare equal are sorted by id.",
    inputs: &[&LIST_QUERY],
    answers: &[json::<UserList>(200, "A page of the accounts that match all filters.")],
    errors: |_| vec![Error::OffsetOutOfRange, Error::LimitOutOfRange],
    ..Operation::EMPTY
};

/// The query of a list of accounts.
struct UserListQuery {
    filter: UserFilter,
    sort: UserSort,
    descending: bool,
    page: Result<PageRequest, Error>,
}

static LIST_QUERY: Input<UserListQuery> = Input::query(read_user_list_query);

fn read_user_list_query(query: &mut Params) -> UserListQuery {
    let columns =
        [("created_at", UserSort::CreatedAt), ("name", UserSort::Name), ("email", UserSort::Email)];
    query.about("A part of the e-mail address. Not case-sensitive.");
    let email = query.optional("email", rules::SEARCH_PART);
    query.about("A part of the display name. Not case-sensitive.");
    let name = query.optional("name", rules::SEARCH_PART);
    let (role, is_active) = (query.choice("role", &Role::CHOICES), query.boolean("is_active"));
    query.about("Created at this time or later.");
    let created_after = query.optional("created_after", rules::TIMESTAMP);
    query.about("Created at this time or earlier.");
    let created_before = query.optional("created_before", rules::TIMESTAMP);
    let filter =
        UserFilter { email, name, search: None, role, is_active, created_after, created_before };
    query.about("Default `created_at`.");
    UserListQuery {
        filter,
        sort: query.choice("sort_by", &columns).unwrap_or(UserSort::CreatedAt),
        descending: is_descending(query),
        page: page_request(query),
    }
}

#[derive(Serialize, JsonSchema)]
struct UserList {
    users: Vec<User>,
    /// How many accounts match, on all pages.
    total: i64,
    limit: i64,
    offset: i64,
}

/// `GET /api/v1/users`: a page of accounts, filtered and sorted.
pub fn list(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let UserListQuery { filter, sort, descending, page } = context.read(&LIST_QUERY)?;
    let page = page?;
    let (users, total) = users::list(&context.app.db, &filter, sort, descending, page)?;
    response::json(200, &UserList { users, total, limit: page.size, offset: page.offset })
}

pub const SHOW: Operation = Operation {
    id: "get_user",
    tag: Tag::Users,
    summary: "Show an account",
    answers: &[json::<User>(200, "The account.")],
    errors: |_| vec![Error::UserNotFound],
    ..Operation::EMPTY
};

/// `GET /api/v1/users/{user_id}`: one account.
pub fn show(context: &mut RequestContext, _: &Admin, id: Uuid) -> Result<Response, Error> {
    response::json(200, &users::find(&context.app.db, id)?)
}

pub const UPDATE: Operation = Operation {
    id: "update_user",
    tag: Tag::Users,
    summary: "Change an account",
    description: "Changes the fields that are given. Another role, password or value of `is_active` ends the \
                  account's sessions. Another password and deactivation end its personal access tokens, too.",
    inputs: &[&ACCOUNT_CHANGE],
    answers: &[json::<User>(200, "The account after the change.")],
    errors: |_| {
        vec![
            Error::UserNotFound,
            Error::Taken(Unique::Username),
            Error::Taken(Unique::Email),
            Error::LastAdmin,
        ]
    },
    ..Operation::EMPTY
};

/// The fields that change without the password hash, and the new password.
static ACCOUNT_CHANGE: Input<(AccountFields, Option<String>)> = Input::json(read_account_change);

fn read_account_change(body: &mut Params) -> (AccountFields, Option<String>) {
    let change = AccountFields {
        email: body.optional("email", rules::EMAIL),
        name: body.optional("name", rules::NAME),
        ..read_optional_fields(body)
    };
    (change, body.optional("password", rules::PASSWORD))
}

/// `PUT /api/v1/users/{user_id}` and `PUT /api/v1/admin/users/{user_id}`: changes the fields that are given.
pub fn update(context: &mut RequestContext, admin: &Admin, id: Uuid) -> Result<Response, Error> {
    admin.require_may_change(id)?;
    let (change, password) = context.read(&ACCOUNT_CHANGE)?;
    let password_hash = password.map(|text| context.app.hasher.hash(&text)).transpose()?;
    let change = AccountFields { password_hash, ..change };
    response::json(200, &users::update_by_admin(&context.app.db, id, &change)?)
}

pub const DELETE: Operation = Operation {
    id: "delete_user",
    tag: Tag::Users,
    summary: "Delete an account",
    description: "Erases its personal data, ends its sessions and personal access tokens, frees its username and \
                  e-mail address, and hides its files, public ones too, all at once. The files are removed soon \
                  afterwards.",
    answers: &[NO_CONTENT],
    errors: |_| vec![Error::UserNotFound, Error::LastAdmin],
    ..Operation::EMPTY
};

/// `DELETE /api/v1/users/{user_id}`: marks the account as deleted, frees its username and e-mail address, ends its
/// sessions and hides its files, which the background thread removes.
pub fn delete(context: &mut RequestContext, admin: &Admin, id: Uuid) -> Result<Response, Error> {
    admin.require_may_change(id)?;
    if !users::delete(&context.app.db, id, None)? {
        return Err(Error::UserNotFound);
    }
    context.app.wake_background();
    Ok(response::no_content())
}
