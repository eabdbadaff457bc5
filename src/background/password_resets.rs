//! Password reset messages. A request only stores a row with the address; the background thread looks the account up,
//! creates the token and delivers it. So nothing in the database can be used as a token, and the time of the response
//! does not tell whether an account has the address (OWASP, "Forgot Password Cheat Sheet").

use uuid::Uuid;

use super::{Background, Progress};
use crate::auth::jwt::{Claims, TokenType};
use crate::config::Environment;
use crate::db;
use crate::error::Error;
use crate::model::timestamp::unix_time;
use crate::model::user::Role;

/// Handles all waiting requests. A request is taken before its message is delivered, so a crash loses messages
/// instead of sending them twice; the user asks again.
pub fn deliver(background: &Background) -> Result<Progress, Error> {
    loop {
        let addresses = db::resets::take(&background.db)?;
        if addresses.is_empty() {
            return Ok(Progress::Done);
        }
        for address in addresses {
            if let Some((user, version)) = db::users::find_by_email(&background.db, &address)? {
                deliver_one(background, user, version)?;
            }
        }
    }
}

/// Creates the reset token of an account, which is valid while the account's credentials are at `version`, and
/// delivers it: in development to the log.
fn deliver_one(background: &Background, user: Uuid, version: i32) -> Result<(), Error> {
    let now = unix_time().as_secs();
    let claims = Claims {
        user,
        username: None,
        role: Role::User,
        token_type: TokenType::PasswordReset,
        session: None,
        id: Some(Uuid::new_v4()),
        version: Some(version),
        issued_at: Some(now),
    };
    let expires_at = now + background.config.password_reset_lifetime.as_secs();
    let token = background
        .signing_keys
        .sign(claims, expires_at)
        .map_err(|e| Error::Internal(e.to_string()))?;
    match background.config.environment {
        Environment::Development => log::info!("password reset token of user {user}: {token}"),
        Environment::Production => {
            log::error!("password reset of user {user}: no way to deliver it")
        }
    }
    Ok(())
}
