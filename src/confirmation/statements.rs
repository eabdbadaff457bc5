//! Addresses that must be confirmed before they count: mails of registrations, and changes of an account's address.
//! What is to be confirmed stands in the tokens of the mails only.

use uuid::Uuid;

use crate::db::{Database, SqlParams, one_row, sql};
use crate::error::{Error, Unique};
use crate::model::text::email_key;

/// Queues the mail of a registration, whether or not an account has its address. Fails with [`Error::Taken`] if an
/// account has the username, with [`Error::RateLimited`] if the mailbox may get no such mail now, or the client's
/// network may cause none, and with [`Error::Unavailable`] if too many of these mails wait to be sent.
pub fn queue_registration(
    db: &Database,
    username: Option<&str>,
    email: &str,
    sealed_token: &[u8],
) -> Result<(), Error> {
    let params: SqlParams = &[&username, &email, &db.address, &sealed_token, &email_key(email)];
    let row = one_row(db.write(sql!("confirmation/queue_registration"), params)?)?;
    if row.get("is_taken") {
        return Err(Error::Taken(Unique::Username));
    }
    row.get::<_, Option<i64>>("wait_seconds").map_or(Ok(()), |wait| Err(Error::wait(wait)))
}

/// Gives an account, whose credentials must be at this version, its new address. Fails with [`Error::Taken`], or with
/// [`Error::InvalidConfirmationToken`] if the account or its credentials have changed since the token was made.
pub fn change_email(db: &Database, account: Uuid, version: i32, email: &str) -> Result<(), Error> {
    let params: SqlParams =
        &[&account, &version, &email, &email_key(email), &db.address, &db.request_id];
    let rows = db.write(sql!("confirmation/change_email"), params)?;
    rows.first().map(drop).ok_or(Error::InvalidConfirmationToken)
}
