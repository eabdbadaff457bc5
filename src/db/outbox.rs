//! Table `outbox`: mail to accounts that waits to be sent. Triggers store the notices, and
//! `resets::queue_messages` the messages about password resets; a trigger on the table drops what is too much.

use postgres::Row;
use uuid::Uuid;

use super::connection::SqlParams;
use super::{Database, sql};
use crate::error::Error;
use crate::model::timestamp::Timestamp;

/// A message that this process may send now, with the data of its account at this moment.
pub struct LeasedMessage {
    pub id: i64,
    /// The word for the kind of mail.
    pub kind: String,
    /// The account.
    pub user: Uuid,
    /// `None` if the message must not be sent any more, because the account has been deleted or deactivated since, or,
    /// for a link, has got another address or, for an invitation, other credentials.
    pub address: Option<String>,
    /// The version of the account's credentials.
    pub version: i32,
    /// When the message was queued. For a notice that is the time of the change.
    pub created_at: Timestamp,
    /// The number of attempts to send it, this one included.
    pub attempts: i32,
}

/// Takes the message that has been due longest, those about password resets first, for ten minutes. After that it is
/// due again.
pub fn lease(db: &Database) -> Result<Option<LeasedMessage>, Error> {
    let rows = db.write(sql!("outbox/lease"), &[])?;
    let read = |row: &Row| LeasedMessage {
        id: row.get("id"),
        kind: row.get("kind"),
        user: row.get("user_id"),
        address: row.get("address"),
        version: row.get("credentials_version"),
        created_at: Timestamp(row.get("created_at")),
        attempts: row.get("attempts"),
    };
    Ok(rows.first().map(read))
}

/// Removes a message that was sent, or that must not be sent any more.
pub fn remove(db: &Database, id: i64) -> Result<(), Error> {
    db.write(sql!("outbox/remove"), &[&id]).map(drop)
}

/// Stores why a message could not be sent. If `retry` is set and the message is not yet a day old, it becomes due again
/// later; otherwise it is given up. Returns whether it was given up.
pub fn defer(
    db: &Database,
    message: &LeasedMessage,
    reason: &str,
    retry: bool,
) -> Result<bool, Error> {
    let params: SqlParams = &[&message.id, &message.attempts, &reason, &retry];
    let rows = db.write(sql!("outbox/defer"), params)?;
    Ok(rows.first().is_some_and(|row| row.get("is_given_up")))
}
