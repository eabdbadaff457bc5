//! Finds the user of a personal access token.

use std::time::Duration;

use postgres::Row;
use uuid::Uuid;

use crate::auth::personal_token;
use crate::db::{Database, SqlParams, sql, user_from_row};
use crate::error::{Error, TokenProblem};
use crate::model::rules;
use crate::model::user::{TokenHash, TokenScope, User};

/// The hash of a personal access token; `None` if the text is none. Fails with [`Error::InvalidToken`] if it begins
/// like one but was not made by this program.
pub fn hash_of(token: &str) -> Result<Option<TokenHash>, Error> {
    if !personal_token::is_personal(token) {
        return Ok(None);
    }
    personal_token::hash(token).map(Some).ok_or(Error::InvalidToken(TokenProblem::NotOurs))
}

/// The user of the token with this hash, the scope of the token, and the version of the user's credentials, in one
/// round trip, and in two at the first use in an hour, which is noted. A token that has expired within the time `age`
/// counts as valid. Fails with [`Error::InvalidToken`].
pub fn authenticate(
    db: &Database,
    hash: &TokenHash,
    age: Duration,
) -> Result<(User, TokenScope, i32), Error> {
    let params: SqlParams = &[&hash.as_slice(), &age.as_secs_f64()];
    let rows = db.read(sql!("request/find_personal_token"), params)?;
    let row = rows.first().ok_or(Error::InvalidToken(TokenProblem::PersonalTokenEnded))?;
    if row.get("is_first_use") {
        let token: Uuid = row.get("token_id");
        db.note(
            sql!("request/use_personal_token"),
            &[&token],
            &format!("the use of token {token}"),
        );
    }
    Ok((user_from_row(row), scope_from_row(row), row.get("credentials_version")))
}

/// Every scope with its name in JSON and the database, in the order of the variants.
pub const SCOPES: [(&str, TokenScope); 3] =
    [("all", TokenScope::All), ("read", TokenScope::Read), ("upload", TokenScope::Upload)];

/// Reads the scope of a token.
pub fn scope_from_row(row: &Row) -> TokenScope {
    // The table's check constraint admits no other word.
    rules::choice(row.get("scope"), &SCOPES).unwrap_or_default()
}
