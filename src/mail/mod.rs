//! Outgoing mail: the messages, and the SMTP client that hands them to the configured server.

mod error;
mod extensions;
mod message;
mod smtp;
mod stream;
mod template;

use lettre::message::Mailbox;

use crate::config::{Config, MailServer, Smtp};
use crate::model::timestamp::Timestamp;

pub use error::{MailError, Phase};
pub use smtp::check as check_server;

/// Composes messages and hands them to the mail server. It keeps no connection between messages.
pub struct Mailer {
    server: MailServer,
    sender: Mailbox,
    /// The URL of the page on which a password is reset; `{token}` stands for the token.
    password_reset_url: String,
}

/// Whom a message is for.
#[derive(Debug, Clone, Copy)]
pub struct Recipient<'a> {
    pub address: &'a str,
    pub name: Option<&'a str>,
}

/// The content of a message: its kind, with the values that its template needs.
#[derive(Debug, Clone, Copy)]
pub enum MessageContent<'a> {
    /// The link with which a new password can be chosen until `expires_at`.
    PasswordReset { token: &'a str, expires_at: Timestamp },
    /// The notice that the password of the account was changed.
    PasswordChanged { at: Timestamp },
    /// The notice, to the old address, that the account has another address now.
    EmailChanged { at: Timestamp },
    /// The message of `cloakroom send-test-mail`.
    Test,
}

impl Mailer {
    /// Creates a mailer for the configured server. Returns `None` if there is no server, or if the sender or the URL
    /// for password resets is not set. Production refuses to start in the latter case.
    pub fn new(config: &Config) -> Option<Mailer> {
        let Smtp::Server(server) = &config.smtp else { return None };
        Some(Mailer {
            server: server.clone(),
            sender: config.mail_from.clone()?,
            password_reset_url: config.password_reset_url.clone()?,
        })
    }

    /// Sends one message. It takes at most [`smtp::MAX_DELIVERY`], and the resolver's time for looking up the server's
    /// name. `Ok` means that the server has taken over the message.
    pub fn send(&self, recipient: Recipient, content: MessageContent) -> Result<(), MailError> {
        self.send_with_transcript(recipient, content, &mut |_| {})
    }

    /// Sends one message, as [`Mailer::send`] does, and passes each line of the dialogue with the server to `observe`:
    /// what is sent after `> `, what is received after `< `, and other steps after `* `. Passwords are not shown.
    pub fn send_with_transcript(
        &self,
        recipient: Recipient,
        content: MessageContent,
        observe: &mut dyn FnMut(&str),
    ) -> Result<(), MailError> {
        let now = Timestamp::now();
        let message =
            message::compose(&self.sender, &self.password_reset_url, recipient, content, now)?;
        smtp::deliver(&self.server, &message, observe)
    }
}
