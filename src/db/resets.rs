//! Password resets: the table `password_reset_requests`, whose rows wait for the background thread, and the tables
//! `password_reset_counts` and `used_password_reset_tokens`.

use time::OffsetDateTime;
use uuid::Uuid;

use super::audit::AuditOrigin;
use super::connection::SqlParams;
use super::{Database, from_row, one_row, sql};
use crate::error::Error;
use crate::model::rules::email_in_ascii;

/// Stores a request for a reset, whether or not an account has that address.
pub fn request(db: &Database, email: &str, origin: &AuditOrigin) -> Result<(), Error> {
    let AuditOrigin { address, request_id, .. } = origin;
    let params: SqlParams = &[&email, address, request_id, &email_in_ascii(email)];
    db.write(sql!("resets/request"), params).map(drop)
}

/// The result of a batch of requests.
pub struct QueuedMessages {
    /// How many requests were taken, the oldest first.
    pub requests: i64,
    /// How many messages were queued for them in the outbox.
    pub messages: i64,
}

/// Takes up to a hundred requests, and queues messages for the accounts that may get one. An account gets at most one
/// message in two minutes, and after ten in a day one an hour. All other requests are dropped.
pub fn queue_messages(db: &Database) -> Result<QueuedMessages, Error> {
    let row = one_row(db.write(sql!("resets/queue_messages"), &[])?)?;
    Ok(from_row!(row => QueuedMessages { requests, messages }))
}

/// Writes events for requests that came within two minutes of an event about their account, once these are over: for up
/// to `limit` accounts. Returns how many accounts there were, with those that had no such request.
pub fn insert_counted(db: &Database, limit: i64) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("resets/insert_counted"), &[&limit])?)?.get("accounts"))
}

/// The use of a reset token for a new password.
pub struct ResetTokenUse<'a> {
    pub user: Uuid,
    /// The credentials version the token was made for.
    pub version: i32,
    /// The hash of the new password, a PHC string.
    pub password_hash: &'a str,
    /// SHA-256 of the token, hexadecimal.
    pub token_hash: &'a str,
    /// When the token expires. From then on the record of its use may be removed.
    pub expires_at: OffsetDateTime,
}

/// Sets the password and ends all sessions. Returns false if the token was used before, or if the password, the
/// e-mail address or `is_active` has changed since it was made, or the account is not active.
pub fn reset_password(
    db: &Database,
    used: &ResetTokenUse,
    origin: &AuditOrigin,
) -> Result<bool, Error> {
    let rows = db.write(
        sql!("users/reset_password"),
        &[
            &used.user,
            &used.version,
            &used.password_hash,
            &Uuid::new_v4(),
            &used.token_hash,
            &used.expires_at,
            &origin.address,
            &origin.request_id,
        ],
    )?;
    Ok(!rows.is_empty())
}
