//! Sends the messages of the outbox.
//!
//! A message is taken for ten minutes, sent, and then removed. If the process ends in between, the message is due again
//! after that time, so it is sent at least once. No database connection is held while the mail server is waited for.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{POLL_PERIOD, attempt};
#[cfg(feature = "extras")]
use crate::auth::email_token::EmailToken;
use crate::auth::jwt::{Claims, SigningKeys, TokenType};
use crate::auth::sealing::SealingKeys;
use crate::config::{Config, Environment};
use crate::db::Database;
#[cfg(feature = "extras")]
use crate::db::installation;
use crate::db::outbox::{self, LeasedMessage};
use crate::error::Error;
use crate::mail::kind::{MailLink, mail_kind};
use crate::mail::{Mail, MailError, Mailer};
use crate::model::timestamp::Timestamp;
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
    /// Open the tokens that confirm an address.
    #[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "nothing is sealed"))]
    pub sealing_keys: Arc<SealingKeys>,
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
        let LeasedMessage { id, user_id, ref kind, .. } = message;
        let user = user_id.map_or_else(|| "none".to_owned(), |id| id.to_string());
        let error = match self.send(&message) {
            Ok(Ok(is_sent)) => {
                outbox::remove(&self.db, id, is_sent)?;
                return Ok(Next::Continue);
            }
            Ok(Err(error)) => error,
            Err(Error::Internal(cause)) => {
                MailError { step: "composing", cause, code: None, is_final: false }
            }
            // The database is away, which says nothing about the message.
            Err(error) => return Err(error),
        };
        let retry = !error.is_final;
        // Steps up to `MAIL FROM` do not depend on the recipient, so every other message would fail in the same way.
        let is_unusable = error.is_for_all();
        if outbox::defer(&self.db, &message, &error.to_string(), retry, is_unusable)? {
            log::error!("mail {id} ({kind}, user {user}) given up: {error}");
        } else {
            log::warn!("mail {id} ({kind}, user {user}) not sent, tried again later: {error}");
        }
        Ok(if is_unusable { Next::Pause } else { Next::Continue })
    }

    /// Sends a message, unless its account is gone, its token serves no more, or there is no mail server. The inner
    /// result is that of the delivery, and says whether there was one; the outer one fails if no token can be made,
    /// only a newer version of the program knows the kind, or the database is away.
    fn send(&self, message: &LeasedMessage) -> Result<Result<bool, MailError>, Error> {
        let Some(address) = &message.address else { return Ok(Ok(false)) };
        let unknown = || Error::Internal(format!("no kind of mail: {}", message.kind));
        let kind = mail_kind(&message.kind).ok_or_else(unknown)?;
        let (username, link) = match &message.sealed_token {
            None => (message.username.clone(), None),
            Some(sealed) => match self.open_token(message, sealed)? {
                Some((username, expires_at)) => (username, Some((sealed, expires_at))),
                None => return Ok(Ok(false)),
            },
        };
        let make_token = |purpose| match link {
            Some((sealed, expires_at)) => {
                let token = URL_SAFE_NO_PAD.encode(sealed);
                self.log_token("e-mail confirmation", message.user_id, &token);
                Ok((token, expires_at))
            }
            None => self.make_reset_token(message, purpose),
        };
        let mail = Mail::new(kind, message.created_at, make_token)?.about(
            username,
            message.network.clone(),
            message.identity_email.clone(),
            message.files,
        );
        let Some(mailer) = &self.mailer else { return Ok(Ok(false)) };
        let outcome = mailer.send(address, &mail, &mut |_| {});
        if outcome.is_ok() {
            self.metrics.mail_sent.inc();
        }
        Ok(outcome.map(|()| true))
    }

    /// Opens a token that confirms an address. Returns the username of the account that it is for or makes, and when
    /// the token expires; `None` if it serves no more.
    #[cfg(feature = "extras")]
    fn open_token(
        &self,
        message: &LeasedMessage,
        sealed: &[u8],
    ) -> Result<Option<(Option<String>, Timestamp)>, Error> {
        let installation = installation::find(&self.db)?.id.unwrap_or_default();
        let opened = EmailToken::open(&self.sealing_keys, installation, sealed);
        // No page takes it once the setting was switched off.
        let Some((token, expires_at)) = opened.filter(|_| self.config.confirms_email()) else {
            log::warn!("mail {} is not sent: its token serves no more", message.id);
            return Ok(None);
        };
        let username = match token {
            EmailToken::Registration(registration) => registration.username,
            EmailToken::Change(change) if Some(change.version) != message.credentials_version => {
                return Ok(None);
            }
            EmailToken::Change(_) => message.username.clone(),
        };
        Ok(Some((username, Timestamp(expires_at))))
    }

    /// None is leased without the feature.
    #[cfg(not(feature = "extras"))]
    fn open_token(
        &self,
        _: &LeasedMessage,
        _: &[u8],
    ) -> Result<Option<(Option<String>, Timestamp)>, Error> {
        Ok(None)
    }

    /// Makes the token of a link to set a password, and returns it with the time of its expiry. It names the version of
    /// the account's credentials, and is valid until that changes or it expires. A later token does not invalidate it.
    fn make_reset_token(
        &self,
        message: &LeasedMessage,
        link: MailLink,
    ) -> Result<(String, Timestamp), Error> {
        let now = OffsetDateTime::now_utc();
        let lifetime = match link {
            MailLink::Invitation => INVITATION_LIFETIME,
            MailLink::PasswordReset | MailLink::EmailConfirmation => {
                self.config.password_reset_lifetime
            }
        };
        let claims = Claims {
            user: message.user_id.unwrap_or_default(),
            token_type: TokenType::PasswordReset,
            id: Some(Uuid::new_v4()),
            version: message.credentials_version,
            issued_at: Some(now.unix_timestamp().cast_unsigned()),
            expires_at: (now + lifetime).unix_timestamp().cast_unsigned(),
            ..Claims::default()
        };
        let token = self.signing_keys.sign(claims)?;
        self.log_token("password reset", message.user_id, &token);
        Ok((token, Timestamp(now + lifetime)))
    }

    /// Logs the token of a link in development, where there may be no mail server.
    fn log_token(&self, name: &str, user: Option<Uuid>, token: &str) {
        if self.config.environment == Environment::Development {
            let user = user.map_or_else(String::new, |id| format!(" of user {id}"));
            log::info!("{name} token{user}: {token}");
        }
    }
}
