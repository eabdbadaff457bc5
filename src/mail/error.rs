//! Why a message was not sent. The texts are for the log, so they never contain what the server wrote: servers often
//! repeat the recipient's address.

use std::fmt;

/// Why a message was not sent, and whether it is worth another attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailError {
    /// This message is refused for good: another attempt would fail as well.
    Rejected(DeliveryFailure),
    /// The server cannot be reached, cannot take the message now, or does not accept the settings. Another attempt may
    /// succeed.
    Unavailable(DeliveryFailure),
}

/// The step of a delivery that failed, and why. A [`MailError`] shows both, such as `RCPT TO: 550 5.1.1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryFailure {
    pub phase: Phase,
    /// The code and the enhanced status (RFC 3463) of the server's reply, or a description of the error that contains
    /// no e-mail address.
    pub cause: String,
}

/// The steps of a delivery, in the order in which they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Writing the message.
    Compose,
    /// Looking up the server's name, and opening a connection.
    Connect,
    /// The server's first reply.
    Greeting,
    Ehlo,
    StartTls,
    /// The TLS handshake.
    Tls,
    Auth,
    MailFrom,
    RcptTo,
    Data,
    /// The message itself, and the server's reply to it.
    Content,
    Quit,
}

impl MailError {
    /// The failure, of either kind.
    pub fn failure(&self) -> &DeliveryFailure {
        match self {
            MailError::Rejected(failure) | MailError::Unavailable(failure) => failure,
        }
    }

    pub(super) fn rejected(phase: Phase, cause: impl Into<String>) -> MailError {
        MailError::Rejected(DeliveryFailure { phase, cause: cause.into() })
    }

    pub(super) fn unavailable(phase: Phase, cause: impl Into<String>) -> MailError {
        MailError::Unavailable(DeliveryFailure { phase, cause: cause.into() })
    }
}

impl fmt::Display for MailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeliveryFailure { phase, cause } = self.failure();
        write!(f, "{phase}: {cause}")
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Compose => "composing",
            Phase::Connect => "connecting",
            Phase::Greeting => "greeting",
            Phase::Ehlo => "EHLO",
            Phase::StartTls => "STARTTLS",
            Phase::Tls => "TLS",
            Phase::Auth => "AUTH",
            Phase::MailFrom => "MAIL FROM",
            Phase::RcptTo => "RCPT TO",
            Phase::Data => "DATA",
            Phase::Content => "message",
            Phase::Quit => "QUIT",
        })
    }
}
