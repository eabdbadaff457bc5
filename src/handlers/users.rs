//! User management (admin).

use serde_json::json;
use uuid::Uuid;

use crate::app::Call;
use crate::error::Error;
use crate::http::fields::Fields;
use crate::http::response::{self, Response};
use crate::middleware::authenticate::Admin;
use crate::model::fields;
use crate::model::user::Role;
use crate::store::accounts::{self, Description, Filter, SortBy};

/// Most users of one answer (spec.md, Limits), and how many without a word about it.
const LIMIT: (i64, i64) = (100, 20);

/// `POST /api/v1/users`: the created User.
pub fn create(call: &Call, _: &Admin) -> Result<Response, Error> {
    let (described, email, name, password) = call.request.json(|body| {
        (
            described(body),
            body.required("email", fields::email),
            body.required("name", fields::name),
            body.required("password", fields::password),
        )
    })?;
    let account = Description {
        email: Some(email),
        name: Some(name),
        password_hash: Some(call.app.hashing.hash(&password)?),
        ..described
    };
    response::json(201, &accounts::insert(&call.app.db, &account)?)
}

/// What may be left out in any description of an account.
fn described(body: &mut Fields) -> Description {
    Description {
        username: body.optional("username", fields::username),
        role: body.optional("role", fields::role),
        permissions: body.optional_list("permissions", fields::permissions),
        is_active: body.optional_boolean("is_active"),
        ..Description::default()
    }
}

/// `GET /api/v1/users`: the users that match, from `offset` on.
pub fn list(call: &Call, _: &Admin) -> Result<Response, Error> {
    let sorts =
        [("created_at", SortBy::CreatedAt), ("name", SortBy::Name), ("email", SortBy::Email)];
    let (filter, sort_by, descending, limit, offset) = call.request.query(|query| {
        (
            Filter {
                email: query.optional("email", fields::part),
                name: query.optional("name", fields::part),
                search: None,
                role: query.choice("role", &Role::CHOICES),
                is_active: query.optional("is_active", fields::boolean),
                created_after: query.optional("created_after", fields::timestamp),
                created_before: query.optional("created_before", fields::timestamp),
            },
            query.choice("sort_by", &sorts).unwrap_or(SortBy::CreatedAt),
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
    let (users, total) = accounts::list(&call.app.db, &filter, sort_by, descending, limit, offset)?;
    response::json(
        200,
        &json!({ "users": users, "total": total, "limit": limit, "offset": offset }),
    )
}

/// `GET /api/v1/users/{user_id}`: the User.
pub fn show(call: &Call, _: &Admin, id: Uuid) -> Result<Response, Error> {
    response::json(200, &accounts::find(&call.app.db, id)?)
}

/// `PUT /api/v1/users/{user_id}` and `PUT /api/v1/admin/users/{user_id}`: changes what is given.
pub fn update(call: &Call, _: &Admin, id: Uuid) -> Result<Response, Error> {
    let (described, email, name, password) = call.request.json(|body| {
        (
            described(body),
            body.optional("email", fields::email),
            body.optional("name", fields::name),
            body.optional("password", fields::password),
        )
    })?;
    let hash = |password: String| call.app.hashing.hash(&password);
    let change =
        Description { email, name, password_hash: password.map(hash).transpose()?, ..described };
    response::json(200, &accounts::update(&call.app.db, id, &change)?)
}

/// `DELETE /api/v1/users/{user_id}`: hides the account, frees its names, ends its sessions, removes its
/// files.
pub fn delete(call: &Call, _: &Admin, id: Uuid) -> Result<Response, Error> {
    call.app.files.remove_all(&accounts::delete(&call.app.db, id)?);
    Ok(response::no_content())
}
