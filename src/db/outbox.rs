//! Table `outbox`: mail to accounts that waits to be sent. A trigger on `users` stores the notices, and
//! `resets::queue_messages` the messages about password resets.

use postgres::Row;
use uuid::Uuid;

use super::pooled_connection::SqlParams;
use super::{Database, one_row, sql};
use crate::error::Error;
use crate::model::timestamp::Timestamp;

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A link to set a new password, which the owner asked for.
    PasswordReset,
    /// A notice that the password was changed.
    PasswordChanged,
    /// A notice that the e-mail address was changed, which goes to the one before.
    EmailChanged,
}

impl MessageKind {
    /// The word in the column `kind`.
    pub fn name(self) -> &'static str {
        match self {
            MessageKind::PasswordReset => "password_reset",
            MessageKind::PasswordChanged => "password_changed",
            MessageKind::EmailChanged => "email_changed",
        }
    }

    /// The kind with this word. It always exists, because a check constraint of the column admits no other words.
    fn named(name: &str) -> Result<MessageKind, Error> {
        use MessageKind::{EmailChanged, PasswordChanged, PasswordReset};
        let kinds = [PasswordReset, PasswordChanged, EmailChanged];
        let found = kinds.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| Error::Internal(format!("no kind of message: {name}")))
    }
}

/// A message that this process may send now, with the data of its account at this moment.
pub struct LeasedMessage {
    pub id: i64,
    pub kind: MessageKind,
    /// The account.
    pub user: Uuid,
    /// `None` if the account has been deleted or deactivated since. The message must not be sent then.
    pub address: Option<String>,
    /// The display name.
    pub name: Option<String>,
    /// The version of the account's credentials.
    pub version: i32,
    /// When the message was queued. For a notice that is the time of the change.
    pub created_at: Timestamp,
    /// The number of attempts to send it, this one included.
    pub attempts: i32,
}

/// Takes the message that has been due longest, for ten minutes. After that it is due again.
pub fn lease(db: &Database) -> Result<Option<LeasedMessage>, Error> {
    let rows = db.write(sql!("outbox/lease"), &[])?;
    let read = |row: &Row| {
        Ok(LeasedMessage {
            id: row.get("id"),
            kind: MessageKind::named(row.get("kind"))?,
            user: row.get("user_id"),
            address: row.get("address"),
            name: row.get("name"),
            version: row.get("credentials_version"),
            created_at: Timestamp(row.get("created_at")),
            attempts: row.get("attempts"),
        })
    };
    rows.first().map(read).transpose()
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

/// Removes up to ten thousand messages that were given up 30 days ago, and as many rows of `password_reset_messages`
/// that are too old to limit another message. Returns how many rows it removed.
pub fn sweep(db: &Database) -> Result<i64, Error> {
    Ok(one_row(db.write(sql!("outbox/sweep"), &[])?)?.get("removed"))
}
