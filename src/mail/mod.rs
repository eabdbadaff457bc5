//! Outgoing mail: the messages, and the SMTP client that hands them to the configured server.

mod error;
pub mod kind;
mod message;
mod reply;
pub mod smtp;
mod stream;

use lettre::message::Mailbox;

use crate::config::{Config, MailServer, Smtp};
use crate::model::timestamp::Timestamp;

pub use error::{MailError, Phase};
pub use message::Mail;

/// Composes messages and hands them to the mail server. It keeps no connection between messages.
pub struct Mailer {
    server: MailServer,
    sender: Mailbox,
    /// The URL of the page on which a password is reset; `{token}` stands for the token.
    password_reset_url: String,
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

    /// Sends one message to an address. It takes at most [`smtp::MAX_DELIVERY`], and the resolver's time for looking up
    /// the server's name. `Ok` means that the server has taken over the message.
    ///
    /// Each line of the dialogue with the server is passed to `observe`: what is sent after `> `, what is received
    /// after `< `, and other steps after `* `. Passwords are not shown.
    pub fn send(
        &self,
        recipient: &str,
        mail: &Mail,
        observe: &mut dyn FnMut(&str),
    ) -> Result<(), MailError> {
        let (sender, url) = (&self.sender, &self.password_reset_url);
        let message = message::compose(sender, url, recipient, mail, Timestamp::now())?;
        smtp::deliver(&self.server, &message, observe)
    }
}
