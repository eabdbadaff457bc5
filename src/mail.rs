//! Password reset messages. A request only stores a row; this background thread looks the account
//! up, makes the token and hands it over. So nothing in the database can be used as a token, and the
//! time of an answer does not tell whether an address is known.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::app::{App, unix_time};
use crate::config::Environment;
use crate::error::Error;
use crate::model::user::Role;
use crate::security::jwt::{Claims, Kind};
use crate::store;

/// How often the thread looks without being woken: other processes store requests too.
const PERIOD: Duration = Duration::from_secs(5);

/// Wakes the background thread when this process has stored a request.
#[derive(Default)]
pub struct Resets {
    waiting: Mutex<bool>,
    woken: Condvar,
}

impl Resets {
    /// There is something to do.
    pub fn wake(&self) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.woken.notify_one();
    }

    /// Returns when woken, at the latest after [`PERIOD`].
    pub fn wait(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .woken
            .wait_timeout_while(waiting, PERIOD, |waiting| !*waiting);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// Looks at the waiting requests.
pub fn deliver_resets(app: &App) -> Result<(), Error> {
    loop {
        let addresses = store::resets::take(&app.db)?;
        if addresses.is_empty() {
            return Ok(());
        }
        for address in addresses {
            if let Some((user, version)) = store::users::find_by_email(&app.db, &address)? {
                deliver(app, user, version)?;
            }
        }
    }
}

fn deliver(app: &App, user: Uuid, version: i32) -> Result<(), Error> {
    let now = unix_time().as_secs();
    let claims = Claims {
        user,
        username: None,
        role: Role::User,
        kind: Kind::PasswordReset,
        session: None,
        id: Some(Uuid::new_v4()),
        version: Some(version),
        issued_at: Some(now),
    };
    let expires_at = now + app.config.password_reset_lifetime.as_secs();
    let token = app
        .key
        .sign(claims, expires_at)
        .map_err(|e| Error::Internal(e.to_string()))?;
    match app.config.environment {
        Environment::Development => log::info!("password reset token of user {user}: {token}"),
        Environment::Production => {
            log::error!("password reset of user {user}: no way to deliver it")
        }
    }
    Ok(())
}
