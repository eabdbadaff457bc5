//! Addresses that must be confirmed, which are columns of `users`: of accounts that wait for it since they registered,
//! and of accounts that ask for another address. Several may ask for one address, and at most one gets it.

use time::OffsetDateTime;
use uuid::Uuid;

use super::audit::AuditOrigin;
use super::connection::SqlParams;
use super::{Database, sql};
use crate::error::Error;

/// An account that asks for an address.
pub struct AskingAccount {
    pub id: Uuid,
    /// The password hash, a PHC string.
    pub password_hash: String,
    /// The version of its credentials.
    pub version: i32,
}

/// A token of a mail that confirms an address.
pub struct ConfirmationToken {
    pub id: Uuid,
    /// The account that the mail was about.
    pub account: Uuid,
    /// The address in its ASCII form, in lower case.
    pub email: String,
    pub expires_at: OffsetDateTime,
}

/// Finds the accounts that ask for the address of a token, the newest wish first: the eight newest ones, and that of
/// the token; only the one with `username`, if that is given. Counts a try of the token; there are none after ten.
pub fn find(
    db: &Database,
    token: &ConfirmationToken,
    username: Option<&str>,
) -> Result<Vec<AskingAccount>, Error> {
    let ConfirmationToken { id, account, email, expires_at } = token;
    let params: SqlParams = &[id, email, &username, expires_at, account];
    let rows = db.write(sql!("users/find_to_confirm"), params)?;
    let read = rows.iter().map(|row| AskingAccount {
        id: row.get("id"),
        password_hash: row.get("password_hash"),
        version: row.get("credentials_version"),
    });
    Ok(read.collect())
}

/// Gives an account the address that it asks for, and ends all other wishes for it. Returns false if the account has
/// changed since it was found, or if another account has the address.
pub fn confirm(
    db: &Database,
    account: &AskingAccount,
    email: &str,
    origin: &AuditOrigin,
) -> Result<bool, Error> {
    let AuditOrigin { address, request_id, .. } = origin;
    let params: SqlParams = &[&account.id, &account.version, &email, address, request_id];
    match db.write(sql!("users/confirm_email"), params) {
        Err(Error::Taken(_)) => Ok(false),
        outcome => Ok(!outcome?.is_empty()),
    }
}
