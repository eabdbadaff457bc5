//! The deletion of one's own account, links to choose a password, and statistics of each day.

use postgres::Row;
use postgres::types::Type;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::proof::{check_password, read_proof};
use super::statements::{self, ChangeConditions};
use crate::db::{Database, SqlParams, from_row, one_row, sql};
use crate::error::Error;
use crate::http::params::Params;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::request::context::RequestContext;
use crate::request::endpoint::Feature::PasswordResets;
use crate::request::endpoint::Handler::{self, User};
use crate::request::endpoint::{Endpoint, at, is_user_id};
use crate::request::identity::{Admin, CurrentUser, SignedInAdmin, json_body};
use crate::request::limits::Limit::Auth;

/// The endpoints of this file.
pub fn route(method: &str, path: &[&str]) -> Option<Endpoint> {
    #[rustfmt::skip] // One endpoint a line, as in a table.
    let endpoint = match (method, path) {
        ("POST", ["users", "me", "delete"]) => at("/users/me/delete", User(delete)).limit(Auth("delete-account")),
        ("POST", ["users", id, "password-link"]) if is_user_id(id) =>
            at("/users/{user_id}/password-link", Handler::Admin(send_password_link)).part_of(PasswordResets),
        ("DELETE", ["users", id, "identity"]) if is_user_id(id) =>
            at("/users/{user_id}/identity", Handler::Admin(end_identity_of_user)),
        ("GET", ["admin", "stats", "daily"]) => at("/admin/stats/daily", Handler::SignedInAdmin(daily_stats)),
        _ => return None,
    };
    Some(endpoint)
}

/// `POST /api/v1/users/me/delete`: deletes the user's own account as an administrator would, confirmed with
/// `current_password`.
pub fn delete(context: &mut RequestContext, user: &CurrentUser) -> Result<Response, Error> {
    user.require_changeable()?;
    let proof = json_body(context, user)?.read(read_proof)?;
    context.audits(RefusedAction::UserDelete, Some(user.id()));
    let version = check_password(context, user, &proof)?;
    let conditions = ChangeConditions { version: Some(version), spares_admins: false };
    if !statements::delete(&context.db, user.id(), &conditions)? {
        // The password was changed, or the account deleted, in the meantime.
        return Err(Error::WrongCurrentPassword);
    }
    context.app.wake_background();
    Ok(Response::empty(204))
}

/// `POST /api/v1/users/{user_id}/password-link`: mails a link to choose a password: the invitation again if the account
/// has no password and nobody has signed in to it, else one for a forgotten password.
pub fn send_password_link(context: &mut RequestContext, admin: &Admin) -> Result<Response, Error> {
    let id = context.path_id()?;
    let db = &context.db;
    let params: SqlParams = &[&id, &admin.user().id(), &db.address, &db.request_id];
    let rows = db.write(sql!("accounts/queue_password_link"), params)?;
    if !rows.first().ok_or(Error::UserNotFound)?.get::<_, bool>("is_active") {
        return Err(Error::RecipientInactive);
    }
    context.app.wake_background();
    Ok(Response::empty(204))
}

/// `DELETE /api/v1/users/{user_id}/identity`: ends the identity at an OpenID provider of a user, if there is one, and
/// so the sessions that the provider has opened and all personal access tokens.
pub fn end_identity_of_user(context: &mut RequestContext, _: &Admin) -> Result<Response, Error> {
    let id = context.path_id()?;
    match end_identity(&context.db, id, None)? {
        true => Ok(Response::empty(204)),
        false => Err(Error::UserNotFound),
    }
}

/// Ends the identity of an account, whose credentials must be at the version, if one is given. Returns false if they
/// are not, or if there is no such account.
pub fn end_identity(db: &Database, id: Uuid, version: Option<i32>) -> Result<bool, Error> {
    let params: SqlParams = &[&id, &version, &db.actor, &db.address, &db.request_id];
    Ok(!db.write(sql!("accounts/end_identity"), params)?.is_empty())
}

/// Days of the daily statistics if the request does not say how many, and the most that it may ask for.
const DEFAULT_DAYS: i64 = 30;
const MAX_DAYS: i64 = 365;

/// `GET /api/v1/admin/stats/daily`: what came on each of the last days, in UTC, today included, the oldest first.
pub fn daily_stats(context: &mut RequestContext, _: &SignedInAdmin) -> Result<Response, Error> {
    let read = |query: &mut Params| query.integer("days", DEFAULT_DAYS, 1..=MAX_DAYS);
    let days = daily(&context.db, context.request.query().read(read)?)?;
    response::json(200, &json!({ "days": days }))
}

/// What came on one day.
#[derive(Serialize)]
struct DailyStatistics {
    /// As in `2026-01-31`, in UTC.
    date: String,
    /// Accounts that were made and have not been deleted.
    users: i64,
    /// Files that were uploaded and have not been deleted, and their size.
    files: i64,
    bytes: i64,
    sign_ins: i64,
    /// Refused sign-ins, and what was refused because of the role.
    refusals: i64,
}

/// Counts what came on each of the last `days` days, today included, the oldest first.
fn daily(db: &Database, days: i64) -> Result<Vec<DailyStatistics>, Error> {
    let rows = db.read_unprepared(sql!("db/stats/daily"), &[(&days, Type::INT8)], None)?;
    let day = |row: &Row| from_row!(row => DailyStatistics { date, users, files, bytes, sign_ins, refusals });
    Ok(rows.iter().map(day).collect())
}

/// How many accounts have an imported password hash whose check takes over `memory` bytes, and the most that one takes.
pub fn count_imported(db: &Database, memory: u64) -> Result<(u64, u64), Error> {
    let most = i64::try_from(memory).unwrap_or(i64::MAX);
    let row = one_row(db.read(sql!("accounts/count_imported"), &[&most])?)?;
    let number = |column| row.get::<_, i64>(column).unsigned_abs();
    Ok((number("accounts"), number("memory")))
}
