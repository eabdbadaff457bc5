//! Lists and ends single sessions.

use std::net::IpAddr;
use std::time::Duration;

use postgres::Row;
use serde::Serialize;
use uuid::Uuid;

use crate::db::{Database, SqlParams, from_row, sql};
use crate::error::Error;
use crate::model::rules::MAX_SESSIONS;
use crate::model::timestamp::Timestamp;

/// A session that has not ended.
#[derive(Debug, Clone, Serialize)]
pub struct Session {
    pub id: Uuid,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When its refresh token was last replaced. `None` if it never was.
    pub last_refreshed_at: Option<Timestamp>,
    /// When it expires unless it is refreshed before.
    pub expires_at: Timestamp,
    /// The client's IP address at the last refresh, or at the sign-in if there was none. `None` if it is not known.
    pub address: Option<IpAddr>,
    /// The `User-Agent` of the same request, at most 200 characters. `None` if it had none.
    pub user_agent: Option<String>,
    /// Whether this is the session of the request's own access token.
    pub is_current: bool,
}

/// The live sessions of a user, newest first, at most a thousand; `None` if there is no such account. `current` is
/// the session of the request.
pub fn list(
    db: &Database,
    user: Uuid,
    current: Option<Uuid>,
    max_age: Duration,
) -> Result<Option<Vec<Session>>, Error> {
    let rows =
        db.read(sql!("sessions/list"), &[&user, &current, &max_age.as_secs_f64(), &MAX_SESSIONS])?;
    Ok((!rows.is_empty()).then(|| rows.iter().filter_map(session_from_row).collect()))
}

/// Reads a [`Session`]. `None` if the query joined no session to its row.
fn session_from_row(row: &Row) -> Option<Session> {
    row.get::<_, Option<Uuid>>("id")?;
    Some(from_row!(row => Session {
        id, created_at, last_refreshed_at, expires_at, address, user_agent, is_current
    }))
}

/// Ends one session of `user`. Fails with [`Error::SessionNotFound`] if the user has no such live session.
pub fn end_by_id(db: &Database, user: Uuid, session: Uuid, max_age: Duration) -> Result<(), Error> {
    let params: SqlParams = &[&user, &session, &max_age.as_secs_f64(), &db.address, &db.request_id];
    let rows = db.write(sql!("sessions/end"), params)?;
    rows.first().map(drop).ok_or(Error::SessionNotFound)
}

/// Ends all sessions of `user` as an administrator asks. Fails with [`Error::UserNotFound`].
pub fn end_all_of_user(db: &Database, user: Uuid) -> Result<(), Error> {
    let rows =
        db.write(sql!("sessions/end_all"), &[&user, &db.actor, &db.address, &db.request_id])?;
    rows.first().map(drop).ok_or(Error::UserNotFound)
}
