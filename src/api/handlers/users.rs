//! User management, for administrators.

use serde_json::json;
use uuid::Uuid;

use super::paging::{is_descending, list_query};
use crate::api::context::{Admin, RequestContext};
use crate::db::users::{self, AccountFields, UserFilter, UserSort};
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::rules;
use crate::model::user::Role;

/// `POST /api/v1/users`: creates an account.
pub fn create(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let (account, password) = context.request.json(|body| {
        let account = AccountFields {
            email: Some(body.required("email", rules::email)),
            name: Some(body.required("name", rules::name)),
            ..read_optional_fields(body)
        };
        (account, body.required("password", rules::password))
    })?;
    let password_hash = Some(context.app.hasher.hash(&password)?);
    let account = AccountFields { password_hash, ..account };
    response::json(201, &users::insert(&context.app.db, &account, &context.origin())?)
}

/// Reads the fields that are optional both for a new account and for a change.
fn read_optional_fields(body: &mut Params) -> AccountFields {
    AccountFields {
        username: body.optional("username", rules::username),
        role: body.optional("role", rules::role),
        permissions: body.list("permissions", rules::permissions),
        is_active: body.boolean("is_active"),
        ..AccountFields::default()
    }
}

/// The query of a list of accounts.
struct UserListQuery {
    filter: UserFilter,
    sort: UserSort,
    descending: bool,
}

/// `GET /api/v1/users`: a page of accounts, filtered and sorted.
pub fn list(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let (UserListQuery { filter, sort, descending }, page) =
        list_query(&context.request, read_user_list_query)?;
    let (users, total) = users::list(&context.app.db, &filter, sort, descending, page)?;
    let body = json!({ "users": users, "total": total, "limit": page.size, "offset": page.offset });
    response::json(200, &body)
}

fn read_user_list_query(query: &mut Params) -> UserListQuery {
    let columns =
        [("created_at", UserSort::CreatedAt), ("name", UserSort::Name), ("email", UserSort::Email)];
    UserListQuery {
        filter: UserFilter {
            email: query.optional("email", rules::search_part),
            name: query.optional("name", rules::search_part),
            search: None,
            role: query.choice("role", &Role::CHOICES),
            is_active: query.boolean("is_active"),
            created_after: query.optional("created_after", rules::timestamp),
            created_before: query.optional("created_before", rules::timestamp),
        },
        sort: query.choice("sort_by", &columns).unwrap_or(UserSort::CreatedAt),
        descending: is_descending(query),
    }
}

/// `GET /api/v1/users/{user_id}`: one account.
pub fn show(context: &mut RequestContext, _: &Admin, id: Uuid) -> Result<Response, Error> {
    response::json(200, &users::find(&context.app.db, id)?)
}

/// `PUT /api/v1/users/{user_id}` and `PUT /api/v1/admin/users/{user_id}`: changes the fields that are given.
pub fn update(context: &mut RequestContext, _: &Admin, id: Uuid) -> Result<Response, Error> {
    let (change, password) = context.request.json(|body| {
        let change = AccountFields {
            email: body.optional("email", rules::email),
            name: body.optional("name", rules::name),
            ..read_optional_fields(body)
        };
        (change, body.optional("password", rules::password))
    })?;
    let password_hash = password.map(|text| context.app.hasher.hash(&text)).transpose()?;
    let change = AccountFields { password_hash, ..change };
    let user = users::update_by_admin(&context.app.db, id, &change, &context.origin())?;
    response::json(200, &user)
}

/// `DELETE /api/v1/users/{user_id}`: marks the account as deleted, frees its username and e-mail address, ends its
/// sessions and hides its files, which the background thread removes.
pub fn delete(context: &mut RequestContext, _: &Admin, id: Uuid) -> Result<Response, Error> {
    let outcome = users::delete(&context.app.db, id, &context.origin());
    if matches!(outcome, Err(Error::LastAdmin)) {
        context.record_failure(RefusedAction::UserDelete, context.account, Some(id), json!({}));
    }
    outcome?;
    context.app.wake_background();
    Ok(response::no_content())
}
