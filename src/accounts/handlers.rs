//! User management, for administrators.

use serde::Serialize;
use uuid::Uuid;

use super::proof::{Proof, check_password_in_body, read_optional_proof};
use super::statements::{self, AccountFields, ChangeConditions, SORT_COLUMNS, UserFilter};
use crate::auth::refused_passwords::RefusedPasswords;
use crate::config::Smtp;
use crate::db::like_pattern;
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::page::PageRequest;
use crate::model::user::{Role, User};
use crate::model::{problems, rules};
use crate::request::context::RequestContext;
use crate::request::identity::{SignedInAdmin, check_again, json_body};
use crate::request::limits::Limit;

/// Reads a new account and its password. If its owner is invited, and so chooses the password, there is none.
fn read_new_account(
    body: &mut Params,
    refused: &RefusedPasswords,
) -> (AccountFields, Option<String>) {
    let is_invited = body.boolean("invite").unwrap_or(false) && !body.has("password");
    let account = AccountFields {
        email: Some(body.required("email", rules::email)),
        name: Some(body.required("name", |text| rules::non_empty(&rules::name(text)?))),
        is_invited,
        ..read_optional_fields(body)
    };
    if is_invited {
        if account.is_active == Some(false) {
            body.add_error("is_active", problems::NOT_INACTIVE);
        }
        return (account, None);
    }
    (account, Some(body.required("password", |text| refused.accept(text))))
}

/// `POST /api/v1/users`: creates an account. With `invite` and without a password its owner gets a mail with a link to
/// choose one.
pub fn create(context: &mut RequestContext, admin: &SignedInAdmin) -> Result<Response, Error> {
    let body = json_body(context, admin.user())?;
    check_role(admin, &body)?;
    let (account, password) =
        body.read(|body| read_new_account(body, &context.app.refused_passwords))?;
    let hasher = &context.app.hasher;
    if password.is_none() && matches!(context.app.config.smtp, Smtp::Off) {
        return Err(Error::FeatureOff);
    }
    let hash = |password: String| hasher.hash(&password, context.hash_request());
    let password_hash = password.map(hash).transpose()?;
    let account = AccountFields { password_hash, ..account };
    context.request.body.resize_room(rules::USER_MEMORY)?;
    let created = statements::insert(&context.db, &account, admin.user().sign_in())?;
    let path = format!("/api/v1/users/{}", created.id);
    Ok(response::json(201, &created)?.with_header("Location", path))
}

/// Fails with [`Error::NotPermitted`] if the body makes an administrator and the request has a personal access token.
pub fn check_role(admin: &SignedInAdmin, body: &Params) -> Result<(), Error> {
    match body.sent_text("role") {
        Some(role) if role == Role::Admin.name() => admin.require_session().map(drop),
        _ => Ok(()),
    }
}

/// Fails with [`Error::NotPermitted`] if the account is an administrator's and the request has a personal access token.
/// The statement that makes the change looks at the role once more, because it may have changed meanwhile.
fn check_account(context: &RequestContext, admin: &SignedInAdmin, id: Uuid) -> Result<(), Error> {
    if !admin.has_personal_token() {
        return Ok(());
    }
    match statements::find(&context.db, id) {
        Ok(user) if user.role == Role::Admin => admin.require_session().map(drop),
        Ok(_) | Err(Error::UserNotFound) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads the fields that are optional both for a new account and for a change.
fn read_optional_fields(body: &mut Params) -> AccountFields {
    AccountFields {
        username: body.optional("username", rules::username),
        role: body.optional("role", rules::role),
        permissions: body.list("permissions", rules::permissions),
        is_active: body.boolean("is_active"),
        storage_quota: body.quota("storage_quota"),
        file_quota: body.quota("file_quota"),
        ..AccountFields::default()
    }
}

/// Reads the filter of a list of accounts. `/users`, `/admin/users` and exports take the same, but that the characters
/// `wildcards` in `email` may stand for any run of characters.
pub fn read_filter(query: &mut Params, wildcards: &str) -> UserFilter {
    let part = |text: &str| rules::search_part(text).map(|part| like_pattern(&part, ""));
    UserFilter {
        email: query
            .filter("email", |text| Ok(like_pattern(&rules::search_part(text)?, wildcards))),
        name: query.filter("name", part),
        search: query.filter("search", part),
        text: query.filter("text", part),
        ids: query.filter("ids", rules::ids),
        role: query.filter("role", rules::role).map(Role::name),
        is_active: read_is_active(query),
        created_after: query.filter("created_after", rules::timestamp).map(|at| at.0),
        created_before: query.filter("created_before", rules::timestamp).map(|at| at.0),
    }
}

/// Reads the filter `is_active`, of which `active` is another name.
fn read_is_active(query: &mut Params) -> Option<bool> {
    let is_active = query.filter("is_active", rules::boolean);
    let active = query.filter("active", rules::boolean);
    if is_active.zip(active).is_some_and(|(one, other)| one != other) {
        query.add_error("active", problems::not_the_same_as("is_active"));
    }
    is_active.or(active)
}

/// The accounts of the page that the query asks for, how many match on all pages, and which page it is.
pub fn find_page(context: &RequestContext) -> Result<(Vec<User>, i64, PageRequest), Error> {
    let columns = SORT_COLUMNS.map(|column| (column, column));
    let (filter, sort, descending, page) = context.request.query().read(|query| {
        let (filter, sort) = (read_filter(query, ""), query.choice("sort_by", &columns));
        (filter, sort.unwrap_or("created_at"), query.is_descending(), query.page())
    })?;
    let page = page?;
    let timeout = context.app.config.database_timeout;
    let all_accounts = || context.app.permits.all_accounts(timeout);
    let _permit = filter.reads_all(sort).then(all_accounts).transpose()?;
    let db = context.database_with_room(page.size as usize * rules::USER_MEMORY);
    let (users, total) = statements::list(&db, &filter, sort, descending, page)?;
    Ok((users, total, page))
}

#[derive(Serialize)]
struct UserList {
    users: Vec<User>,
    /// How many accounts match, on all pages.
    total: i64,
    limit: i64,
    offset: i64,
}

/// `GET /api/v1/users`: a page of accounts, filtered and sorted.
pub fn list(context: &mut RequestContext, _: &SignedInAdmin) -> Result<Response, Error> {
    let (users, total, page) = find_page(context)?;
    response::json(200, &UserList { users, total, limit: page.size, offset: page.offset })
}

/// `GET /api/v1/users/{user_id}`: one account.
pub fn show(context: &mut RequestContext, _: &SignedInAdmin) -> Result<Response, Error> {
    let id = context.path_id()?;
    response::json(200, &statements::find(&context.db, id)?)
}

/// A change of an account by an administrator.
struct AccountChange {
    /// Without the password hash.
    fields: AccountFields,
    password: Option<String>,
    proof: Option<Proof>,
}

fn read_account_change(body: &mut Params, refused: &RefusedPasswords) -> AccountChange {
    let fields = AccountFields {
        email: body.optional("email", rules::email),
        name: body.optional("name", rules::name),
        ..read_optional_fields(body)
    };
    let password = body.optional("password", |text| refused.accept(text));
    AccountChange { fields, password, proof: read_optional_proof(body) }
}

/// `PUT /api/v1/users/{user_id}` and `PUT /api/v1/admin/users/{user_id}`: changes the fields that are given.
pub fn update(context: &mut RequestContext, admin: &SignedInAdmin) -> Result<Response, Error> {
    let id = context.path_id()?;
    check_account(context, admin, id)?;
    let body = json_body(context, admin.user())?;
    check_role(admin, &body)?;
    let mut change = body.read(|body| read_account_change(body, &context.app.refused_passwords))?;
    let version = confirm_own_change(context, admin, id, &mut change)?;
    let hash_request = context.hash_request();
    let hash = |text: String| context.app.hasher.hash(&text, hash_request);
    let password_hash = change.password.map(hash).transpose()?;
    let fields = AccountFields { password_hash, ..change.fields };
    let conditions = ChangeConditions { version, spares_admins: admin.has_personal_token() };
    context.request.body.resize_room(rules::USER_MEMORY)?;
    let (db, sign_in) = (&context.db, admin.user().sign_in());
    let user = statements::update_by_admin(db, id, &fields, &conditions, sign_in)?;
    let Some(user) = user else {
        // The administrator may have been signed out while the password was hashed.
        check_again(context, admin.user())?;
        // If a password was checked, the account was found, and its credentials have changed since.
        return Err(version.map_or(Error::UserNotFound, |_| Error::WrongCurrentPassword));
    };
    response::json(200, &user)
}

/// Checks the current password if administrators change the password or the e-mail address of their own account:
/// whoever finds a browser signed in must not be able to take the account over. Returns the version of the credentials
/// that it was checked against.
fn confirm_own_change(
    context: &mut RequestContext,
    admin: &SignedInAdmin,
    id: Uuid,
    change: &mut AccountChange,
) -> Result<Option<i32>, Error> {
    let user = admin.user();
    // The development admin is not found among the accounts.
    if id != user.id() || user.require_changeable().is_err() {
        return Ok(None);
    }
    // An address that is not another one is left out of the change. Otherwise, if a parallel request has just changed
    // it, this one would change it back without the password.
    let email = change.fields.email.take();
    change.fields.email = email.filter(|email| *email != user.account.email);
    if change.password.is_none() && change.fields.email.is_none() {
        return Ok(None);
    }
    let (limit, proof) = (Limit::Auth("change-own-account"), change.proof.as_ref());
    let action = match change.password {
        Some(_) => RefusedAction::PasswordChange,
        None => RefusedAction::EmailChange,
    };
    // A refusal of the change itself, which comes later, is no event.
    check_password_in_body(context, &admin.require_session()?, limit, proof)
        .inspect_err(|error| context.record_refusal(action, Some(id), error))
        .map(Some)
}

/// `DELETE /api/v1/users/{user_id}`: marks the account as deleted, frees its username and e-mail address, ends its
/// sessions and hides its files, which the background thread removes.
pub fn delete(context: &mut RequestContext, admin: &SignedInAdmin) -> Result<Response, Error> {
    let id = context.path_id()?;
    check_account(context, admin, id)?;
    let conditions = ChangeConditions { version: None, spares_admins: admin.has_personal_token() };
    context.audits(RefusedAction::UserDelete, Some(id));
    if !statements::delete(&context.db, id, &conditions)? {
        return Err(Error::UserNotFound);
    }
    context.app.wake_background();
    Ok(Response::empty(204))
}
