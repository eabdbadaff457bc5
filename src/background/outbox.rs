//! Sends the messages of the outbox.
//!
//! A message is taken for ten minutes, sent, and then removed. If the process ends in between, the message is due again
//! after that time, so it is sent at least once. No database connection is held while the mail server is waited for.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use super::{POLL_PERIOD, attempt};
use crate::auth::jwt::{Claims, SigningKeys, TokenType};
use crate::config::{Config, Environment};
use crate::db::Database;
use crate::db::outbox::{self, LeasedMessage};
use crate::error::Error;
use crate::mail::{Mail, MailError, Mailer, Phase};
use crate::model::message_kind::MessageKind;
use crate::model::timestamp::Timestamp;
use crate::model::user::Role;
use crate::telemetry::metrics::Metrics;

/// How long after its mail was sent the link of an invitation works: longer than that of a reset, because nobody waits
/// for it.
const INVITATION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// Sends messages in a thread of its own, so that a mail server that hangs holds up no other background work.
pub struct OutboxSender {
    pub config: Arc<Config>,
    pub db: Arc<Database>,
    /// Signs password reset tokens.
    pub signing_keys: Arc<SigningKeys>,
    /// `None` without a mail server. Then messages are removed unsent.
    pub mailer: Option<Mailer>,
    pub metrics: Metrics,
}

/// The next step of the thread after an attempt to send a message.
#[derive(PartialEq, Eq)]
enum Next {
    /// Look for another one at once.
    Continue,
    /// Wait until the thread is woken, or for the poll period: no message is due.
    Wait,
    /// Leave the mail server alone for a while, whoever wakes the thread: it cannot be used.
    Pause,
}

impl OutboxSender {
    /// Starts the thread. A message to the returned sender makes it look for mail at once. The channel holds one
    /// message, and another adds nothing to it, so senders use `try_send` and never block.
    pub fn spawn(self) -> io::Result<SyncSender<()>> {
        let (wake, woken) = sync_channel(1);
        thread::Builder::new().name("mail".into()).spawn(move || self.run(&woken))?;
        Ok(wake)
    }

    /// Works until every sender is gone.
    fn run(&self, woken: &Receiver<()>) {
        loop {
            let next = attempt(&self.db, "sending mail", || self.send_next());
            let next = next.unwrap_or(Next::Wait);
            if next == Next::Pause {
                thread::sleep(POLL_PERIOD);
            }
            if next == Next::Wait
                && woken.recv_timeout(POLL_PERIOD) == Err(RecvTimeoutError::Disconnected)
            {
                return;
            }
        }
    }

    /// Sends one message, if one is due.
    fn send_next(&self) -> Result<Next, Error> {
        let Some(message) = outbox::lease(&self.db)? else { return Ok(Next::Wait) };
        let LeasedMessage { id, user, .. } = message;
        let kind = message.kind.name();
        let Err(error) = self.send(&message)? else {
            outbox::remove(&self.db, id)?;
            return Ok(Next::Continue);
        };
        let retry = !error.is_final;
        if outbox::defer(&self.db, &message, &error.to_string(), retry)? {
            log::error!("mail {id} ({kind}, user {user}) given up: {error}");
        } else {
            log::warn!("mail {id} ({kind}, user {user}) not sent, tried again later: {error}");
        }
        // Steps up to `MAIL FROM` do not depend on the recipient, so every other message would fail in the same way.
        let is_unusable = retry && error.phase <= Phase::MailFrom;
        Ok(if is_unusable { Next::Pause } else { Next::Continue })
    }

    /// Sends a message, unless its account is gone or there is no mail server. In development the token of a link to
    /// set a password is logged as well. The inner result is that of the delivery; the outer one fails only if no token
    /// could be made.
    fn send(&self, message: &LeasedMessage) -> Result<Result<(), MailError>, Error> {
        let Some(address) = &message.address else { return Ok(Ok(())) };
        let reset = match message.kind {
            MessageKind::PasswordReset => {
                Some(self.reset_token(message, self.config.password_reset_lifetime)?)
            }
            MessageKind::Invitation => Some(self.reset_token(message, INVITATION_LIFETIME)?),
            _ => None,
        };
        if let (Some((token, _)), Environment::Development) = (&reset, self.config.environment) {
            log::info!("password reset token of user {}: {token}", message.user);
        }
        let Some(mailer) = &self.mailer else { return Ok(Ok(())) };
        let mail = Mail { kind: message.kind, at: message.created_at, reset };
        let outcome = mailer.send(address, &mail, &mut |_| {});
        if outcome.is_ok() {
            self.metrics.mail_sent.inc();
        }
        Ok(outcome)
    }

    /// Creates a reset token, and returns it with the time of its expiry. It names the version of the account's
    /// credentials, and is valid until that changes or it expires; a later token does not invalidate it.
    fn reset_token(
        &self,
        message: &LeasedMessage,
        lifetime: Duration,
    ) -> Result<(String, Timestamp), Error> {
        let now = OffsetDateTime::now_utc();
        let expires_at = now + lifetime;
        let claims = Claims {
            user: message.user,
            username: None,
            role: Role::User,
            token_type: TokenType::PasswordReset,
            session: None,
            id: Some(Uuid::new_v4()),
            version: Some(message.version),
            issued_at: Some(now.unix_timestamp().cast_unsigned()),
            expires_at: expires_at.unix_timestamp().cast_unsigned(),
        };
        let token = self.signing_keys.sign(claims)?;
        Ok((token, Timestamp(expires_at)))
    }
}
