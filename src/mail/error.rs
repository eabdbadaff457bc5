//! The error of a delivery. Its text is for the log, so it contains no text of the server, which often repeats the
//! recipient's address.

use std::fmt;

use super::reply::Reply;

/// The steps that may fail for this message, and not for all of them.
const OF_MESSAGE: [&str; 5] = ["composing", "MAIL FROM", "RCPT TO", "DATA", "message"];

/// Why a message was not sent. Shown as the step and the cause, such as `RCPT TO: 550 5.1.1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailError {
    /// The step of the delivery that failed: `composing`, `connecting`, `greeting` (the server's first reply), `EHLO`
    /// (or `HELO`), `STARTTLS`, `TLS` (the handshake), `AUTH mechanism` (the choice of one), `AUTH`, `MAIL FROM`, `RCPT
    /// TO`, `DATA`, or `message` (the message itself, and the reply to it).
    pub step: &'static str,
    /// The code and the enhanced status (RFC 3463) of the server's reply, or a description of the error that contains
    /// no e-mail address.
    pub cause: String,
    /// The code of the server's reply, if that is the cause.
    pub code: Option<u16>,
    /// True if this message is refused finally: another attempt would fail as well. False if the server cannot be
    /// reached, cannot take the message now, or does not accept the settings: another attempt may succeed.
    pub is_final: bool,
}

impl MailError {
    pub(super) fn rejected(step: &'static str, cause: impl Into<String>) -> MailError {
        MailError { step, cause: cause.into(), code: None, is_final: true }
    }

    pub(super) fn unavailable(step: &'static str, cause: impl Into<String>) -> MailError {
        MailError { step, cause: cause.into(), code: None, is_final: false }
    }

    /// The error of a negative reply. A reply in the 500s is final if it refuses the message. Before `MAIL FROM` it
    /// refuses the settings instead, and so does a reply that demands authentication or encryption (530 to 539,
    /// RFC 4954 and RFC 3207).
    pub(super) fn refused(step: &'static str, reply: &Reply) -> MailError {
        let is_about_message = OF_MESSAGE.contains(&step) && !(530..540).contains(&reply.code);
        let is_final = reply.code / 100 == 5 && is_about_message;
        MailError { step, cause: reply.to_string(), code: Some(reply.code), is_final }
    }

    /// Whether the server takes no message at the moment, so that others would fail as well.
    pub fn is_for_all(&self) -> bool {
        !self.is_final && (self.step == "MAIL FROM" || !OF_MESSAGE.contains(&self.step))
    }
}

impl fmt::Display for MailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.cause)
    }
}
