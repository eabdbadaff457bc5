//! The SMTP client (RFC 5321): one connection for each message.
//!
//! The library that composes messages, `lettre`, has an SMTP client too. Its timeout is one of each read, so a server
//! that sends a byte now and then holds a delivery forever. After `STARTTLS` it does not refuse replies that came
//! before the handshake. And it does not show the dialogue, in which an administrator can see the cause of a failure.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::error::MailError;
use super::message::ComposedMessage;
use super::reply::{Extensions, Reply};
use super::stream::MailStream;
use crate::config::{Encryption, MailServer, SmtpUser};

/// The maximum duration of a delivery, without looking up the server's name, for which the system's resolver has limits
/// of its own.
pub const MAX_DELIVERY: Duration = Duration::from_secs(180);
/// The longest wait for a connection, for the TLS handshake, and for the reply to a command.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// The longest wait for the reply to the message itself. Servers look for spam before they reply. A client that gives
/// up too early sends a message again that the server has accepted (RFC 5321, 4.5.3.2.6).
const MAX_ACCEPTANCE: Duration = Duration::from_secs(60);
/// The longest wait for the reply to `QUIT`, which no longer matters.
const MAX_QUIT: Duration = Duration::from_secs(2);

/// Hands the message to the server. Each line of the dialogue is passed to `observe`, as [`super::Mailer::send`]
/// describes.
pub fn deliver(
    server: &MailServer,
    message: &ComposedMessage,
    observe: &mut dyn FnMut(&str),
) -> Result<(), MailError> {
    let mut session = open_session(server, Instant::now() + MAX_DELIVERY, observe)?;
    let outcome = session.hand_over(message);
    session.quit();
    outcome
}

/// Connects, encrypts as the settings ask, and signs in if the settings name a user. Each line of the dialogue is
/// passed to `observe`. It takes until `deadline` at most, and the resolver's time for looking up the server's name.
pub fn open_session<'a>(
    server: &MailServer,
    deadline: Instant,
    observe: &'a mut dyn FnMut(&str),
) -> Result<SmtpSession<'a>, MailError> {
    let stream = connect(server, deadline, observe)?;
    let extensions = Extensions::default();
    let mut session = SmtpSession { stream, extensions, deadline, observe };
    if server.encryption == Encryption::Implicit {
        session.encrypt(&server.host)?;
    }
    session.stream.set_deadline(deadline.min(Instant::now() + MAX_WAIT));
    session.reply("greeting", 2)?;
    session.ehlo()?;
    if server.encryption == Encryption::StartTls {
        session.start_tls(server)?;
    }
    if let Some(user) = &server.user {
        session.authenticate(user).inspect_err(|_| session.quit())?;
    }
    Ok(session)
}

/// Opens a connection to the first of the server's addresses that answers.
fn connect(
    server: &MailServer,
    deadline: Instant,
    observe: &mut dyn FnMut(&str),
) -> Result<MailStream, MailError> {
    let mut error = io::Error::other("the server's name has no address");
    for address in
        (server.host.as_str(), server.port).to_socket_addrs().map_err(failed("connecting"))?
    {
        observe(&format!("* connecting to {address}"));
        let wait = deadline.saturating_duration_since(Instant::now()).min(MAX_WAIT);
        if wait.is_zero() {
            break;
        }
        match MailStream::connect(address, wait) {
            Ok(stream) => return Ok(stream),
            Err(e) => {
                observe(&format!("* {}", describe(&e)));
                error = e;
            }
        }
    }
    Err(failed("connecting")(error))
}

/// Describes an error. Timeouts have a text of their own, because the system's differs between operations.
fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => error.to_string(),
    }
}

/// Makes the errors of a step out of those of the connection. Another attempt may succeed.
fn failed(step: &'static str) -> impl Fn(io::Error) -> MailError {
    move |error| MailError::unavailable(step, describe(&error))
}

/// A dialogue with a mail server.
pub struct SmtpSession<'a> {
    pub stream: MailStream,
    /// What the server offers, as its last reply to `EHLO` said.
    extensions: Extensions,
    /// When the whole delivery must be finished.
    deadline: Instant,
    /// Is given each line of the dialogue.
    observe: &'a mut dyn FnMut(&str),
}

impl SmtpSession<'_> {
    /// Introduces this host and learns what the server offers: nothing, if it does not know `EHLO` (RFC 5321, 3.2).
    fn ehlo(&mut self) -> Result<(), MailError> {
        let address = self.stream.local_address().map_err(failed("EHLO"))?;
        let name = client_name(rustix::system::uname().nodename().to_str().ok(), address);
        self.extensions = match self.command("EHLO", &format!("EHLO {name}")) {
            Err(error) if matches!(error.code, Some(500 | 502)) => {
                self.command("EHLO", &format!("HELO {name}"))?;
                Extensions::default()
            }
            outcome => Extensions::of(&outcome?),
        };
        Ok(())
    }

    /// Encrypts the connection if the server offers `STARTTLS`, and then sends `EHLO` again, because the first reply to
    /// it may have been forged (RFC 3207, 4.2). Fails if encryption is required but not offered.
    fn start_tls(&mut self, server: &MailServer) -> Result<(), MailError> {
        if self.extensions.start_tls {
            self.command("STARTTLS", "STARTTLS")?;
            self.encrypt(&server.host)?;
            return self.ehlo();
        }
        if server.requires_encryption() {
            let cause = "not offered, and passwords are not sent without encryption";
            self.quit();
            return Err(MailError::unavailable("STARTTLS", cause));
        }
        Ok(())
    }

    /// Does the TLS handshake.
    fn encrypt(&mut self, host: &str) -> Result<(), MailError> {
        self.stream.set_deadline(self.deadline.min(Instant::now() + MAX_WAIT));
        self.stream.encrypt(host).map_err(failed("TLS"))?;
        let version = self.stream.tls_version().unwrap_or_default();
        (self.observe)(&format!("* encrypted with {version}, the certificate is valid for {host}"));
        Ok(())
    }

    /// Sends the message.
    fn hand_over(&mut self, message: &ComposedMessage) -> Result<(), MailError> {
        let mut parameters = "";
        if !message.bytes.is_ascii() {
            if !self.extensions.utf8 {
                return Err(not_expressible(message));
            }
            parameters = " SMTPUTF8 BODY=8BITMIME";
        }
        self.command("MAIL FROM", &format!("MAIL FROM:<{}>{parameters}", message.sender))?;
        self.command("RCPT TO", &format!("RCPT TO:<{}>", message.recipient))?;
        self.send("DATA", "DATA", "DATA")?;
        self.reply("DATA", 3)?;
        (self.observe)(&format!("* the message, {} bytes", message.bytes.len()));
        self.stream.set_deadline(self.deadline.min(Instant::now() + MAX_ACCEPTANCE));
        self.stream.send(&dot_stuffed(&message.bytes)).map_err(failed("message"))?;
        self.reply("message", 2).map(drop)
    }

    /// Signs in with `AUTH PLAIN` (RFC 4616), or else with `AUTH LOGIN`, because some servers offer nothing else.
    fn authenticate(&mut self, user: &SmtpUser) -> Result<(), MailError> {
        let (name, password) = (&user.name, user.password.expose());
        let offered = &self.extensions.mechanisms;
        let is_offered = |mechanism| offered.iter().any(|one| one == mechanism);
        if is_offered("PLAIN") {
            let response = BASE64_STANDARD.encode(format!("\0{name}\0{password}"));
            let command = format!("AUTH PLAIN {response}");
            self.send("AUTH", &command, "AUTH PLAIN (not shown)")?;
        } else if is_offered("LOGIN") {
            self.send("AUTH", "AUTH LOGIN", "AUTH LOGIN")?;
            // The server asks for the user first, then for the password, in texts that differ between servers.
            self.reply("AUTH", 3)?;
            self.send("AUTH", &BASE64_STANDARD.encode(name), "(user, not shown)")?;
            self.reply("AUTH", 3)?;
            self.send("AUTH", &BASE64_STANDARD.encode(password), "(password, not shown)")?;
        } else {
            let others =
                if offered.is_empty() { "" } else { &format!("{}, and ", offered.join(" ")) };
            let cause = format!("the server offers {others}neither PLAIN nor LOGIN");
            return Err(MailError::unavailable("AUTH mechanism", cause));
        }
        self.reply("AUTH", 2).map(drop)
    }

    /// Ends the session with `QUIT`. Errors are ignored, because the outcome of the delivery is already known.
    pub fn quit(&mut self) {
        let outcome = self.send("QUIT", "QUIT", "QUIT");
        self.stream.set_deadline(Instant::now() + MAX_QUIT);
        let _ = outcome.and_then(|()| self.reply("QUIT", 2));
    }

    /// Sends a command and reads the reply, which must be positive.
    fn command(&mut self, step: &'static str, command: &str) -> Result<Reply, MailError> {
        self.send(step, command, command)?;
        self.reply(step, 2)
    }

    /// Sends a line. The observer is given `shown` instead, in which passwords are left out. The reply must come within
    /// [`MAX_WAIT`].
    fn send(&mut self, step: &'static str, line: &str, shown: &str) -> Result<(), MailError> {
        (self.observe)(&format!("> {shown}"));
        self.stream.set_deadline(self.deadline.min(Instant::now() + MAX_WAIT));
        self.stream.send(format!("{line}\r\n").as_bytes()).map_err(failed(step))
    }

    /// Reads a reply. Fails unless its code begins with the digit `expected`.
    fn reply(&mut self, step: &'static str, expected: u16) -> Result<Reply, MailError> {
        let reply = self.stream.read_reply().map_err(failed(step))?;
        let (last, others) = reply.lines.split_last().map_or(("", &[][..]), |(l, o)| (l, o));
        for line in others {
            (self.observe)(&format!("< {}-{line}", reply.code));
        }
        (self.observe)(&format!("< {} {last}", reply.code));
        if reply.code / 100 == expected { Ok(reply) } else { Err(MailError::refused(step, &reply)) }
    }
}

/// The error of a message with an address that is not ASCII, if the server takes only ASCII. If it is the sender's
/// address, no message can be sent at all, so the settings are wrong and not the message.
fn not_expressible(message: &ComposedMessage) -> MailError {
    let cause = "the address is not ASCII, and the server does not offer SMTPUTF8";
    match message.sender.is_ascii() {
        true => MailError::rejected("RCPT TO", cause),
        false => MailError::unavailable("MAIL FROM", cause),
    }
}

/// How this host introduces itself (RFC 5321, 4.1.4): by its name if that is fully qualified, else by its address.
fn client_name(host_name: Option<&str>, address: SocketAddr) -> String {
    let is_qualified = |name: &&str| {
        name.trim_matches('.').contains('.')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    };
    match (host_name.filter(is_qualified), address.ip().to_canonical()) {
        (Some(name), _) => name.to_owned(),
        (None, IpAddr::V4(ip)) => format!("[{ip}]"),
        (None, IpAddr::V6(ip)) => format!("[IPv6:{ip}]"),
    }
}

/// The message as it is sent after `DATA`, with dot-stuffing (RFC 5321, 4.5.2): every line ends with CR LF, a line that
/// begins with a dot gets a second one, and a line with only a dot ends the message.
fn dot_stuffed(message: &[u8]) -> Vec<u8> {
    let mut sent = Vec::with_capacity(message.len() + 64);
    let message = message.strip_suffix(b"\n").unwrap_or(message);
    for line in message.split(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            sent.push(b'.');
        }
        sent.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        sent.extend_from_slice(b"\r\n");
    }
    sent.extend_from_slice(b".\r\n");
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(code: u16, lines: &[&str]) -> Reply {
        Reply { code, lines: lines.iter().map(|&line| line.to_owned()).collect() }
    }

    #[test]
    fn a_dot_at_the_beginning_of_a_line_is_doubled() {
        for (message, sent) in [
            ("", "\r\n.\r\n"),
            ("a", "a\r\n.\r\n"),
            ("a\r\n", "a\r\n.\r\n"),
            ("a\n.\nb", "a\r\n..\r\nb\r\n.\r\n"),
            (".a\r\nb.\r\n\r\n", "..a\r\nb.\r\n\r\n.\r\n"),
            ("a\r\n.\r\nMAIL FROM:<x>\r\n", "a\r\n..\r\nMAIL FROM:<x>\r\n.\r\n"),
        ] {
            assert_eq!(String::from_utf8_lossy(&dot_stuffed(message.as_bytes())), sent);
        }
    }

    #[test]
    fn only_a_refusal_of_the_message_is_final() {
        for (step, code, is_final) in [
            ("greeting", 554, false),
            ("EHLO", 550, false),
            ("STARTTLS", 501, false),
            ("AUTH", 535, false),
            ("MAIL FROM", 530, false),
            ("MAIL FROM", 451, false),
            ("MAIL FROM", 550, true),
            ("RCPT TO", 450, false),
            ("RCPT TO", 550, true),
            ("DATA", 354, false),
            ("DATA", 554, true),
            ("message", 421, false),
            ("message", 552, true),
        ] {
            let error = MailError::refused(step, &reply(code, &["no"]));
            assert_eq!(error.is_final, is_final, "{error}");
        }
    }

    #[test]
    fn errors_show_codes_but_no_text_of_the_server() {
        for (lines, shown) in [
            (&["5.1.1 <ann@example.com>: unknown"][..], "RCPT TO: 550 5.1.1"),
            (&["5.1.1", "5.1.1 ann@example.com"], "RCPT TO: 550 5.1.1"),
            (&["5.1.ann@example.com"], "RCPT TO: 550"),
            (&["5.1.1.1 x"], "RCPT TO: 550"),
            (&["5.1.1000 x"], "RCPT TO: 550"),
            (&["ann@example.com"], "RCPT TO: 550"),
            (&[""], "RCPT TO: 550"),
        ] {
            assert_eq!(MailError::refused("RCPT TO", &reply(550, lines)).to_string(), shown);
        }
    }

    #[test]
    fn this_host_introduces_itself_by_a_qualified_name_or_by_its_address() {
        for (name, address, expected) in [
            (Some("app.example.com"), "192.0.2.1:1", "app.example.com"),
            (Some("app"), "192.0.2.1:1", "[192.0.2.1]"),
            (Some("app."), "192.0.2.1:1", "[192.0.2.1]"),
            (Some("app.example.com\r\nRSET"), "192.0.2.1:1", "[192.0.2.1]"),
            (None, "[2001:db8::1]:1", "[IPv6:2001:db8::1]"),
            (None, "[::ffff:192.0.2.1]:1", "[192.0.2.1]"),
        ] {
            let shown = address.parse().map(|address| client_name(name, address));
            assert_eq!(shown.as_deref(), Ok(expected));
        }
    }
}
