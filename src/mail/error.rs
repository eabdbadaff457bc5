//! The error of a delivery. Its text is for the log, so it contains no text of the server, which often repeats the
//! recipient's address.

use std::fmt;

/// Why a message was not sent. Shown as the step and the cause, such as `RCPT TO: 550 5.1.1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailError {
    /// The step of the delivery that failed.
    pub phase: Phase,
    /// The code and the enhanced status (RFC 3463) of the server's reply, or a description of the error that contains
    /// no e-mail address.
    pub cause: String,
    /// True if this message is refused for good: another attempt would fail as well. False if the server cannot be
    /// reached, cannot take the message now, or does not accept the settings: another attempt may succeed.
    pub is_final: bool,
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
    pub(super) fn rejected(phase: Phase, cause: impl Into<String>) -> MailError {
        MailError { phase, cause: cause.into(), is_final: true }
    }

    pub(super) fn unavailable(phase: Phase, cause: impl Into<String>) -> MailError {
        MailError { phase, cause: cause.into(), is_final: false }
    }
}

impl fmt::Display for MailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.phase, self.cause)
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
