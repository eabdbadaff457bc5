//! Password resets: requests that wait, and tokens that were used.

use time::OffsetDateTime;
use uuid::Uuid;

use super::{Database, sql};
use crate::error::Error;

/// Stores a request; the background thread looks at it.
pub fn request(db: &Database, email: &str) -> Result<(), Error> {
    db.write(sql!("resets/request"), &[&email]).map(drop)
}

/// Takes waiting requests: their addresses, a hundred at most.
pub fn take(db: &Database) -> Result<Vec<String>, Error> {
    Ok(db.write(sql!("resets/take"), &[])?.iter().map(|row| row.get(0)).collect())
}

/// A use of a reset token.
pub struct Use<'a> {
    /// The account.
    pub user: Uuid,
    /// The credentials version the token is good for.
    pub version: i32,
    /// The new password's hash.
    pub password_hash: &'a str,
    /// SHA-256 of the token, hexadecimal.
    pub token_hash: &'a str,
    /// When the token expires.
    pub expires_at: OffsetDateTime,
}

/// Sets the password and ends all sessions, once a token. False: used before, or the password or the
/// e-mail address has changed since the token was made.
pub fn reset_password(db: &Database, used: &Use) -> Result<bool, Error> {
    let rows = db.write(
        sql!("users/reset_password"),
        &[
            &used.user,
            &used.version,
            &used.password_hash,
            &Uuid::new_v4(),
            &used.token_hash,
            &used.expires_at,
        ],
    )?;
    Ok(!rows.is_empty())
}
