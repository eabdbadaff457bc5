//! Password resets, and mail that waits to be sent. A request for a reset waits in the table
//! `password_reset_requests` for the background thread, whose statement stores a message in `outbox`; triggers store
//! the notices there, and one on the table drops what is too much. `password_reset_counts` and
//! `used_password_reset_tokens` limit requests, and the use of the tokens.

use postgres::Row;
use uuid::Uuid;

use super::connection::SqlParams;
use super::{Database, from_row, one_row, sql};
use crate::error::Error;
use crate::model::text::email_key;
use crate::model::timestamp::Timestamp;

/// A message that this process may send now, with the data of its account at this moment.
pub struct LeasedMessage {
    pub id: i64,
    /// The word for the kind of mail.
    pub kind: String,
    /// The account; `None` for a registration.
    pub user_id: Option<Uuid>,
    /// `None` if the message must not be sent any more, because the account has been deleted or deactivated since, or,
    /// for a link, has got another address or, for an invitation, other credentials.
    pub address: Option<String>,
    /// The version of the account's credentials.
    pub credentials_version: Option<i32>,
    /// When the message was queued. For a notice that is the time of the change.
    pub created_at: Timestamp,
    /// The number of attempts to send it, this one included.
    pub attempts: i32,
    pub username: Option<String>,
    /// The network of the client who asked for the message, as CIDR, if the message names it.
    pub network: Option<String>,
    /// The address of the account's identity, if its provider has confirmed one.
    pub identity_email: Option<String>,
    /// How many files came by links since the last mail that told of some.
    pub files: Option<i32>,
    /// The token of a link that confirms an address.
    pub sealed_token: Option<Vec<u8>>,
}

/// Takes the message that has been due longest, those about password resets first and those of registrations last, for
/// ten minutes. After that it is due again. The core build opens no token that confirms an address, so it leaves mails
/// with one to other processes.
pub fn lease(db: &Database) -> Result<Option<LeasedMessage>, Error> {
    let rows = db.write(sql!("mail/lease"), &[&cfg!(feature = "extras")])?;
    let read = |row: &Row| {
        from_row!(row => LeasedMessage {
            id, kind, user_id, address, credentials_version, created_at, attempts, username, network,
            identity_email, sealed_token, files
        })
    };
    Ok(rows.first().map(read))
}

/// Removes a message that was sent, if `is_sent`, or else must not be sent any more. Once one was sent, those are due
/// that wait because the mail server could not be used.
pub fn remove(db: &Database, id: i64, is_sent: bool) -> Result<(), Error> {
    db.write(sql!("mail/remove"), &[&id, &is_sent]).map(drop)
}

/// Stores why a message could not be sent. If `retry` is set and the message is not yet a day old, it becomes due again
/// later; otherwise it is given up, and removed if it has no account. `is_unusable` says that no message could have
/// been sent. Returns whether it was given up.
pub fn defer(
    db: &Database,
    message: &LeasedMessage,
    reason: &str,
    retry: bool,
    is_unusable: bool,
) -> Result<bool, Error> {
    let params: SqlParams = &[&message.id, &message.attempts, &reason, &retry, &is_unusable];
    let rows = db.write(sql!("mail/defer"), params)?;
    let is_given_up = rows.first().is_some_and(|row| row.get("is_given_up"));
    if is_given_up && message.user_id.is_none() {
        remove(db, message.id, false)?;
    }
    Ok(is_given_up)
}

/// Stores a request for a reset, whether or not an account has that address.
pub fn request_reset(db: &Database, email: &str) -> Result<(), Error> {
    let params: SqlParams = &[&email_key(email), &db.address, &db.request_id];
    db.write(sql!("mail/request_reset"), params).map(drop)
}

/// Takes up to a hundred requests for password resets, and queues messages for the accounts that may get one. An
/// account gets at most one message in two minutes, and after ten in a day one an hour. All other requests are dropped.
/// Those of the present second are left. Returns how many there were.
pub fn queue_messages(db: &Database) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("mail/queue_resets"), &[])?)?.get("requests"))
}

/// Writes events for requests that came within two minutes of an event about their account, once these are over: for up
/// to `limit` accounts. Returns how many accounts there were, with those that had no such request.
pub fn insert_counted(db: &Database, limit: i64) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("mail/insert_counted_resets"), &[&limit])?)?.get("accounts"))
}
