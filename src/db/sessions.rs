//! Table `sessions`: one row a sign-in. A session that has ended is the blacklist of its tokens.

use time::OffsetDateTime;
use uuid::Uuid;

use super::users::from_row;
use super::{Database, sql};
use crate::error::Error;
use crate::model::user::User;

/// A session about to be opened.
pub struct Opening {
    /// The session.
    pub id: Uuid,
    /// Its first refresh token.
    pub refresh_id: Uuid,
    /// When its last token has expired.
    pub expires_at: OffsetDateTime,
}

/// The user of a token, in one round trip. `session` and `issued_at` are the token's. Fails with
/// [`Error::UserNotUsable`], and after that with [`Error::InvalidToken`] where the session has ended.
pub fn authenticate(
    db: &Database,
    user: Uuid,
    session: Option<Uuid>,
    issued_at: Option<u64>,
) -> Result<User, Error> {
    let issued_at = issued_at.and_then(|at| i64::try_from(at).ok());
    let rows = db.read(sql!("sessions/authenticate"), &[&user, &session, &issued_at])?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    if row.get(12) { Ok(from_row(row)) } else { Err(Error::InvalidToken) }
}

/// Signs in where the account is active and its credentials are still at `version`; `renewed_hash`
/// replaces the stored one. `None`: the account has changed meanwhile.
pub fn open(
    db: &Database,
    user: Uuid,
    version: i32,
    renewed_hash: Option<&str>,
    session: &Opening,
) -> Result<Option<User>, Error> {
    let rows = db.write(
        sql!("sessions/open"),
        &[&user, &version, &renewed_hash, &session.id, &session.refresh_id, &session.expires_at],
    )?;
    Ok(rows.first().map(from_row))
}

/// Registers an account without a username and opens a session. Fails with [`Error::Taken`].
pub fn open_for_new_user(
    db: &Database,
    email: &str,
    name: Option<&str>,
    password_hash: &str,
    session: &Opening,
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
        ],
    )?;
    rows.first().map(from_row).ok_or_else(|| Error::Internal("a query gave no row".into()))
}

/// One use of a refresh token: rotation, grace and reuse in one statement. Gives the user and the
/// refresh token that is good now: `next.refresh_id`, or the one another use within the grace made.
/// A use after the grace ends the session. Fails with [`Error::UserNotUsable`], then with
/// [`Error::InvalidToken`].
pub fn rotate(
    db: &Database,
    user: Uuid,
    refresh_id: Uuid,
    next: &Opening,
    grace: std::time::Duration,
) -> Result<(User, Uuid), Error> {
    let rows = db.write(
        sql!("sessions/rotate"),
        &[&user, &next.id, &refresh_id, &next.refresh_id, &next.expires_at, &grace.as_secs_f64()],
    )?;
    let row = rows.first().ok_or(Error::UserNotUsable)?;
    if row.get(13) {
        log::warn!("a refresh token of user {user} was used again: session {} ended", next.id);
    }
    let refresh_id: Option<Uuid> = row.get(12);
    Ok((from_row(row), refresh_id.ok_or(Error::InvalidToken)?))
}

/// Which sessions a logout ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of the user's.
    All,
    /// The presented one.
    Local,
    /// All but the presented one.
    Others,
}

/// Ends sessions of `user`; `presented` is the session of the request's token.
pub fn end(db: &Database, user: Uuid, presented: Option<Uuid>, scope: Scope) -> Result<(), Error> {
    match scope {
        Scope::All => db.write(sql!("sessions/end_all"), &[&user])?,
        Scope::Local => db.write(sql!("sessions/end_one"), &[&user, &presented])?,
        Scope::Others => db.write(sql!("sessions/end_others"), &[&user, &presented])?,
    };
    Ok(())
}

/// Removes sessions and used reset tokens that have expired.
pub fn sweep(db: &Database) -> Result<(), Error> {
    db.write(sql!("sessions/sweep"), &[]).map(drop)
}
