//! User management (admin).

use serde_json::json;
use uuid::Uuid;

use crate::api::context::RequestContext;
use crate::api::middleware::authenticate::Admin;
use crate::db::users::{self, AccountFields, UserFilter, UserSort};
use crate::error::Error;
use crate::http::fields::Fields;
use crate::http::response::{self, Response};
use crate::model::rules;
use crate::model::user::Role;

/// Most users of one answer (spec.md, Limits), and how many without a word about it.
const LIMIT: (i64, i64) = (100, 20);

/// `POST /api/v1/users`: the created User.
pub fn create(context: &RequestContext, _: &Admin) -> Result<Response, Error> {
    let (described, email, name, password) = context.request.json(|body| {
        (
            described(body),
            body.required("email", rules::email),
            body.required("name", rules::name),
            body.required("password", rules::password),
        )
    })?;
    let account = AccountFields {
        email: Some(email),
        name: Some(name),
        password_hash: Some(context.app.hasher.hash(&password)?),
        ..described
    };
    response::json(201, &users::insert(&context.app.db, &account)?)
}

/// What may be left out in any description of an account.
fn described(body: &mut Fields) -> AccountFields {
    AccountFields {
        username: body.optional("username", rules::username),
        role: body.optional("role", rules::role),
        permissions: body.optional_list("permissions", rules::permissions),
        is_active: body.optional_boolean("is_active"),
        ..AccountFields::default()
    }
}

/// `GET /api/v1/users`: the users that match, from `offset` on.
pub fn list(context: &RequestContext, _: &Admin) -> Result<Response, Error> {
    let sorts =
        [("created_at", UserSort::CreatedAt), ("name", UserSort::Name), ("email", UserSort::Email)];
    let (filter, sort_by, descending, limit, offset) = context.request.query(|query| {
        (
            UserFilter {
                email: query.optional("email", rules::part),
                name: query.optional("name", rules::part),
                search: None,
                role: query.choice("role", &Role::CHOICES),
                is_active: query.optional("is_active", rules::boolean),
                created_after: query.optional("created_after", rules::timestamp),
                created_before: query.optional("created_before", rules::timestamp),
            },
            query.choice("sort_by", &sorts).unwrap_or(UserSort::CreatedAt),
            query.choice("sort_order", &[("asc", false), ("desc", true)]).unwrap_or(true),
            query.integer("limit", LIMIT.1, i64::MIN..=i64::MAX),
            query.integer("offset", 0, i64::MIN..=i64::MAX),
        )
    })?;
    if offset < 0 {
        return Err(Error::OffsetOutOfRange);
    }
    if !(1..=LIMIT.0).contains(&limit) {
        return Err(Error::LimitOutOfRange);
    }
    let (users, total) = users::list(&context.app.db, &filter, sort_by, descending, limit, offset)?;
    response::json(
        200,
        &json!({ "users": users, "total": total, "limit": limit, "offset": offset }),
    )
}

/// `GET /api/v1/users/{user_id}`: the User.
pub fn show(context: &RequestContext, _: &Admin, id: Uuid) -> Result<Response, Error> {
    response::json(200, &users::find(&context.app.db, id)?)
}

/// `PUT /api/v1/users/{user_id}` and `PUT /api/v1/admin/users/{user_id}`: changes what is given.
pub fn update(context: &RequestContext, _: &Admin, id: Uuid) -> Result<Response, Error> {
    let (described, email, name, password) = context.request.json(|body| {
        (
            described(body),
            body.optional("email", rules::email),
            body.optional("name", rules::name),
            body.optional("password", rules::password),
        )
    })?;
    let hash = |password: String| context.app.hasher.hash(&password);
    let change =
        AccountFields { email, name, password_hash: password.map(hash).transpose()?, ..described };
    response::json(200, &users::update_by_admin(&context.app.db, id, &change)?)
}

/// `DELETE /api/v1/users/{user_id}`: hides the account, frees its names, ends its sessions, removes its
/// files.
pub fn delete(context: &RequestContext, _: &Admin, id: Uuid) -> Result<Response, Error> {
    context.app.storage.remove_all(&users::delete(&context.app.db, id)?);
    Ok(response::no_content())
}
