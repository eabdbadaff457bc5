//! Finds the users of access tokens together with their sessions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use postgres::Row;
use uuid::Uuid;

use crate::db::batches::Batches;
use crate::db::{Database, SqlParams, sql, user_from_row};
use crate::error::{Error, TokenProblem};
use crate::model::user::{SignIn, User};

/// How long a session lookup waits to join the next query. A query takes a fraction of this, unless the database is far
/// away or overloaded.
const MAX_QUEUED: Duration = Duration::from_millis(2);

/// Most queries for sessions that run at once, where there are eight cores or more. With more of them, PostgreSQL needs
/// more cores for the same sessions, and requests have fewer.
const MAX_QUERIES: usize = 4;

/// Looks up the sessions of access tokens and their users; one query serves all requests that come together.
pub struct SessionLookups(Batches<Uuid, Option<Arc<Row>>>);

impl SessionLookups {
    /// `cores` is how many this machine has. On two of them a second query at a time only takes time from the first.
    pub fn new(cores: usize) -> SessionLookups {
        SessionLookups(Batches::new((cores / 2).clamp(1, MAX_QUERIES), MAX_QUEUED))
    }

    /// Returns the user of an access token and the version of the user's credentials, and checks that the token's
    /// session is live. `max_age` is the maximum age of a session. One that has expired within the time `age` counts as
    /// live; no other lookup is served together with one for which that is not zero. Fails with
    /// [`Error::UserNotUsable`], or else with [`Error::InvalidToken`] if the session has ended.
    pub fn authenticate(
        &self,
        db: &Database,
        user: Uuid,
        sign_in: SignIn,
        max_age: Duration,
        age: Duration,
    ) -> Result<(User, i32), Error> {
        if let Some(session) = sign_in.session {
            let find = |ids: &[Uuid]| find_live(db, ids, max_age, age);
            let found = match age.is_zero() {
                true => db.timed(|_| self.0.submit(session, find))?,
                false => find(&[session])?.pop().flatten(),
            };
            if let Some(row) = found.filter(|row| row.get::<_, Uuid>("id") == user) {
                return Ok((user_from_row(&row), row.get("credentials_version")));
            }
        }
        // The token has no session, or is refused; then the account tells why.
        let rows = db.read(sql!("request/user_of_token"), &[&user, &sign_in.params().1])?;
        let row = rows.first().ok_or(Error::UserNotUsable)?;
        if sign_in.session.is_none() && row.get("is_valid_without_session") {
            Ok((user_from_row(row), row.get("credentials_version")))
        } else {
            Err(Error::InvalidToken(TokenProblem::SessionEnded))
        }
    }
}

/// Reads the user of each session, `None` if the session was not live the time `age` ago, or has been ended, or the
/// account cannot be used. Requests with the same token have the same session.
fn find_live(
    db: &Database,
    sessions: &[Uuid],
    max_age: Duration,
    age: Duration,
) -> Result<Vec<Option<Arc<Row>>>, Error> {
    let params: SqlParams = &[&sessions, &(max_age + age).as_secs_f64(), &age.as_secs_f64()];
    let rows = db.read(sql!("request/find_live"), params)?;
    let found: HashMap<Uuid, Arc<Row>> =
        rows.into_iter().map(|row| (row.get("session_id"), Arc::new(row))).collect();
    Ok(sessions.iter().map(|session| found.get(session).cloned()).collect())
}
