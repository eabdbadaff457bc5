//! Table `personal_tokens`: the personal access tokens that have not ended. A trigger on `users` removes those of a
//! user whose password changes or who is deactivated or deleted.

use postgres::Row;
use serde::Serialize;
use uuid::Uuid;

use crate::db::{Database, SqlParams, from_row, sql};
use crate::error::{Error, TokenProblem};
use crate::model::timestamp::Timestamp;
use crate::model::user::{SignIn, TokenHash, TokenScope};
use crate::request::personal_token::{SCOPES, scope_from_row};

/// The maximum number of live tokens of one user.
const MAX_TOKENS: i64 = 50;

/// A personal access token, without its secret text, of which the database holds only a hash.
#[derive(Debug, Clone, Serialize)]
pub struct PersonalToken {
    pub id: Uuid,
    /// The name that its user has given it.
    pub name: String,
    pub scope: TokenScope,
    /// Whether the scope is [`TokenScope::Read`]: the older way to say so.
    pub read_only: bool,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// The last use, rounded down to the hour. `None` if it has not been used.
    pub last_used_at: Option<Timestamp>,
}

/// The user's choices for a new token.
pub struct NewPersonalToken {
    pub name: String,
    pub scope: TokenScope,
    /// Its lifetime in days.
    pub days: i32,
}

/// Stores a token if the user's credentials are still at the given version and the sign-in has not ended. Fails with
/// [`Error::TooManyTokens`], or with [`Error::InvalidToken`] if the account has changed since the request was
/// authenticated.
pub fn insert(
    db: &Database,
    (user, version, sign_in): (Uuid, i32, SignIn),
    token: &NewPersonalToken,
    hash: &TokenHash,
) -> Result<PersonalToken, Error> {
    let (session, issued_at) = sign_in.params();
    let rows = db.write(
        sql!("personal_tokens/insert"),
        &[
            &user,
            &version,
            &Uuid::new_v4(),
            &hash.as_slice(),
            &token.name,
            &SCOPES[token.scope as usize].0,
            &token.days,
            &MAX_TOKENS,
            &db.address,
            &db.request_id,
            &session,
            &issued_at,
        ],
    )?;
    let row = rows.first().ok_or(Error::InvalidToken(TokenProblem::SessionEnded))?;
    token_from_row(row).ok_or(Error::TooManyTokens)
}

/// The live tokens of a user, newest first; `None` if there is no such account.
pub fn list(db: &Database, user: Uuid) -> Result<Option<Vec<PersonalToken>>, Error> {
    let rows = db.read(sql!("personal_tokens/list"), &[&user])?;
    Ok((!rows.is_empty()).then(|| rows.iter().filter_map(token_from_row).collect()))
}

/// Reads a [`PersonalToken`]. `None` if the query joined no token to its row.
fn token_from_row(row: &Row) -> Option<PersonalToken> {
    row.get::<_, Option<Uuid>>("id")?;
    Some(from_row!(row => PersonalToken {
        id, name, created_at, expires_at, last_used_at;
        scope: scope_from_row(row),
        read_only: scope_from_row(row) == TokenScope::Read,
    }))
}

/// Ends one token of `user`. Fails with [`Error::TokenNotFound`] if the user has no such live token.
pub fn delete(db: &Database, user: Uuid, token: Uuid) -> Result<(), Error> {
    let rows =
        db.write(sql!("personal_tokens/delete"), &[&user, &token, &db.address, &db.request_id])?;
    rows.first().map(drop).ok_or(Error::TokenNotFound)
}

/// Ends all tokens of `user`. Fails with [`Error::UserNotFound`].
pub fn delete_all(db: &Database, user: Uuid) -> Result<(), Error> {
    let params: SqlParams = &[&user, &db.actor, &db.address, &db.request_id];
    let rows = db.write(sql!("personal_tokens/delete_all"), params)?;
    rows.first().map(drop).ok_or(Error::UserNotFound)
}
