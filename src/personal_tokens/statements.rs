//! Table `personal_tokens`: the personal access tokens that have not ended. A trigger on `users` removes those of a
//! user whose password changes or who is deactivated or deleted.

use std::time::Duration;

use postgres::Row;
use uuid::Uuid;

use crate::accounts;
use crate::db::{Database, SqlParams, from_row, sql};
use crate::error::{Error, TokenProblem};
use crate::model::rules;
use crate::model::user::{PersonalToken, SignIn, TokenScope, User};

/// The maximum number of live tokens of one user.
const MAX_TOKENS: i64 = 50;

/// The SHA-256 of a token, under which it is stored.
pub type TokenHash = [u8; 32];

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
            &token.scope.name(),
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

/// The user of the token with this hash, the scope of the token, and the version of the user's credentials, in one
/// round trip. A token that has expired within the time `age` counts as valid. Fails with [`Error::InvalidToken`].
pub fn authenticate(
    db: &Database,
    hash: &TokenHash,
    age: Duration,
) -> Result<(User, TokenScope, i32), Error> {
    let params: SqlParams = &[&hash.as_slice(), &age.as_secs_f64()];
    // The query notes the hour of the use, which may be repeated, so it counts as one that only reads.
    let rows = db.read(sql!("personal_tokens/authenticate"), params)?;
    let row = rows.first().ok_or(Error::InvalidToken(TokenProblem::PersonalTokenEnded))?;
    Ok((accounts::statements::from_row(row), scope_from_row(row), row.get("credentials_version")))
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

fn scope_from_row(row: &Row) -> TokenScope {
    // The table's check constraint admits no other word.
    rules::choice(row.get("scope"), &TokenScope::CHOICES).unwrap_or_default()
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
