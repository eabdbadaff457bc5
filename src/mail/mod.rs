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

pub use error::MailError;
use message::MailLinks;

pub use message::Mail;

/// Composes messages and hands them to the mail server. It keeps no connection between messages.
pub struct Mailer {
    server: MailServer,
    sender: Mailbox,
    links: MailLinks,
}

impl Mailer {
    /// Creates a mailer for the configured server. Returns `None` if there is no server, or if the sender or a page
    /// that a link leads to is not set. Production refuses to start in the latter case.
    pub fn new(config: &Config) -> Option<Mailer> {
        let Smtp::Server(server) = &config.smtp else { return None };
        if config.confirms_email() && config.email_confirmation_url.is_none() {
            return None;
        }
        let public_url = config.public_url.as_ref();
        Some(Mailer {
            server: server.clone(),
            sender: config.mail_from.clone()?,
            links: MailLinks {
                password_reset: config.password_reset_url.clone()?,
                email_confirmation: config.email_confirmation_url.clone(),
                console: public_url.filter(|_| config.console).map(|url| format!("{url}/console")),
            },
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
        let (sender, links) = (&self.sender, &self.links);
        let message = message::compose(sender, links, recipient, mail, Timestamp::now())?;
        smtp::deliver(&self.server, &message, observe)
    }
}
