//! Password reset messages. A request only stores a row; this background thread looks the account
//! up, makes the token and hands it over. So nothing in the database can be used as a token, and the
//! time of an answer does not tell whether an address is known.

use uuid::Uuid;

use super::Background;
use crate::auth::jwt::{Claims, TokenType};
use crate::config::Environment;
use crate::db;
use crate::error::Error;
use crate::model::timestamp::unix_time;
use crate::model::user::Role;

/// Looks at the waiting requests.
pub fn deliver(background: &Background) -> Result<(), Error> {
    loop {
        let addresses = db::resets::take(&background.db)?;
        if addresses.is_empty() {
            return Ok(());
        }
        for address in addresses {
            if let Some((user, version)) = db::users::find_by_email(&background.db, &address)? {
                deliver_one(background, user, version)?;
            }
        }
    }
}

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
        .signing_key
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
