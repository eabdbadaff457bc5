//! Table `sessions`: one row for each sign-in. Tokens name their session, so ending it revokes them. The row of an
//! ended session stays until the last of its tokens has expired.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use super::audit::AuditOrigin;
use super::pool::SqlParams;
use super::users::from_row;
use super::{Database, one_row, sql};
use crate::error::Error;
use crate::model::user::User;

/// A session to be stored, or the next state of one whose refresh token is used.
pub struct NewSession {
    pub id: Uuid,
    /// The id of the refresh token that is valid from now on.
    pub refresh_id: Uuid,
    /// When the last of its tokens expires.
    pub expires_at: OffsetDateTime,
}

/// Returns the user of an access token, and checks that its session is live, in one round trip. `session` and
/// `issued_at` (Unix time, seconds) are the token's. Fails with [`Error::UserNotUsable`], else with
/// [`Error::InvalidToken`] where the session has ended.
pub fn authenticate(
    db: &Database,
    user: Uuid,
    session: Option<Uuid>,
    issued_at: Option<u64>,
) -> Result<User, Error> {
    let issued_at = issued_at.and_then(|at| i64::try_from(at).ok());
    let rows = db.read(sql!("sessions/authenticate"), &[&user, &session, &issued_at])?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    if row.get("session_is_live") { Ok(from_row(row)) } else { Err(Error::InvalidToken) }
}

/// Signs in where the account is active and its credentials are still at `version`. `renewed_hash` replaces the stored
/// password hash. Returns `None` where the account has changed since its password was checked.
pub fn open(
    db: &Database,
    user: Uuid,
    version: i32,
    renewed_hash: Option<&str>,
    session: &NewSession,
    origin: &AuditOrigin,
) -> Result<Option<User>, Error> {
    let rows = db.write(
        sql!("sessions/open"),
        &[
            &user,
            &version,
            &renewed_hash,
            &session.id,
            &session.refresh_id,
            &session.expires_at,
            &origin.address,
            &origin.request_id,
        ],
    )?;
    Ok(rows.first().map(from_row))
}

/// Creates an account without a username and signs it in. Fails with [`Error::Taken`].
pub fn open_for_new_user(
    db: &Database,
    email: &str,
    name: Option<&str>,
    password_hash: &str,
    session: &NewSession,
    origin: &AuditOrigin,
) -> Result<User, Error> {
    let rows = db.write(
        sql!("users/insert_with_session"),
        &[
            &Uuid::new_v4(),
            &email,
            &name,
            &password_hash,
            &session.id,
            &session.refresh_id,
            &session.expires_at,
            &origin.address,
            &origin.request_id,
        ],
    )?;
    Ok(from_row(&one_row(rows)?))
}

/// Uses refresh token `refresh_id` of the session `next.id`, in one statement. Returns the user and the refresh token
/// that is valid now: `next.refresh_id`, or, where the token was replaced less than `grace` ago, the one that replaced
/// it. A later use ends the session, because somebody has copied the token. Fails with [`Error::UserNotUsable`], else
/// with [`Error::InvalidToken`].
pub fn rotate(
    db: &Database,
    user: Uuid,
    refresh_id: Uuid,
    next: &NewSession,
    grace: Duration,
    origin: &AuditOrigin,
) -> Result<(User, Uuid), Error> {
    let rows = db.write(
        sql!("sessions/rotate"),
        &[
            &user,
            &next.id,
            &refresh_id,
            &next.refresh_id,
            &next.expires_at,
            &grace.as_secs_f64(),
            &origin.address,
            &origin.request_id,
        ],
    )?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    if row.get("was_reused") {
        log::warn!("a refresh token of user {user} was used again: session {} ended", next.id);
    }
    let refresh_id: Option<Uuid> = row.get("refresh_id");
    Ok((from_row(row), refresh_id.ok_or(Error::InvalidToken)?))
}

/// Which sessions of a user a logout ends, seen from the session of the request's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogoutScope {
    All,
    /// Only the request's.
    Local,
    /// All but the request's.
    Others,
}

/// Ends sessions of `user`. `current` is the session of the request's token.
pub fn end(
    db: &Database,
    user: Uuid,
    current: Option<Uuid>,
    scope: LogoutScope,
    origin: &AuditOrigin,
) -> Result<(), Error> {
    let AuditOrigin { address, request_id, .. } = origin;
    let params: SqlParams = &[&user, &current, address, request_id];
    match scope {
        LogoutScope::All => db.write(sql!("sessions/end_all"), &[&user, address, request_id])?,
        LogoutScope::Local => db.write(sql!("sessions/end_one"), params)?,
        LogoutScope::Others => db.write(sql!("sessions/end_others"), params)?,
    };
    Ok(())
}

/// Removes up to ten thousand sessions that have expired. Returns how many it removed.
pub fn sweep(db: &Database) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("sessions/sweep"), &[])?)?.get("removed"))
}
