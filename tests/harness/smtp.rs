//! A real mail server on loopback (RFC 5321, as far as a client that sends one message needs it).
//!
//! It is our own because the tests need a server that misbehaves: one that hangs, refuses, drips or disappears at any
//! step of the dialogue. `mailin-embedded`, the crate for this purpose, cannot be stopped, speaks TLS only after
//! `STARTTLS`, and offers neither `SMTPUTF8` nor a choice of what it offers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::certificates::ServerCertificate;
use super::{Port, ReceivedMail, eventually, wait_until};

/// What a mail server offers and asks for.
#[derive(Clone)]
pub struct SmtpOptions {
    /// The only user and the password. `None`: anyone may send.
    pub user: Option<(&'static str, &'static str)>,
    /// The mechanisms that `AUTH` offers.
    pub mechanisms: &'static str,
    pub tls: SmtpTls,
    /// Whether it offers `SMTPUTF8` and `8BITMIME`.
    pub utf8: bool,
}

impl Default for SmtpOptions {
    fn default() -> SmtpOptions {
        SmtpOptions { user: None, mechanisms: "PLAIN LOGIN", tls: SmtpTls::None, utf8: true }
    }
}

#[derive(Clone)]
pub enum SmtpTls {
    None,
    /// Offers `STARTTLS`, and `AUTH` only once the connection is encrypted.
    StartTls(ServerCertificate),
    /// Encrypts from the first byte.
    Implicit(ServerCertificate),
}

/// A step of the dialogue: when the server is about to reply to this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpStep {
    /// The connection itself.
    Greeting,
    Ehlo,
    StartTls,
    Auth,
    Mail,
    Rcpt,
    Data,
    /// The message, complete with its last line.
    Content,
    Quit,
}

/// What a server does instead of replying as it should. It takes no message at a step for which it has one of these.
#[derive(Debug, Clone, Copy)]
pub enum Misbehaviour {
    /// Replies this, such as `450 4.2.1 later`, and goes on.
    Reply(&'static str),
    /// Never replies, and keeps the connection open.
    Hang,
    /// Sends a byte every 50 milliseconds, but never a whole line.
    Drip,
    /// Sends a line without end as fast as it can.
    Flood,
    /// Closes the connection.
    Close,
}

/// A mail server. It stops when this is dropped.
pub struct SmtpServer {
    pub port: Port,
    shared: Arc<Shared>,
}

/// What all connections share.
#[derive(Default)]
struct Shared {
    options: SmtpOptions,
    received: Mutex<Vec<ReceivedMail>>,
    misbehaviours: Mutex<Vec<(SmtpStep, String, Misbehaviour)>>,
    /// Each step that was reached.
    steps: Mutex<Vec<SmtpStep>>,
}

impl SmtpServer {
    /// Starts a server on a free port of 127.0.0.1.
    pub fn start(options: SmtpOptions) -> SmtpServer {
        let shared = Arc::new(Shared { options, ..Shared::default() });
        let of_port = shared.clone();
        // A connection that ends early is an error here, and what the test wants to see on the other side.
        let port = Port::open(move |socket| drop(Dialogue::run(socket, &of_port)));
        SmtpServer { port, shared }
    }

    /// The URL for the setting, with `localhost` as the host, the name in the certificates of these tests, and with the
    /// user and the password, percent-encoded, if it asks for them.
    pub fn url(&self) -> String {
        self.url_with(self.shared.options.user)
    }

    /// The URL with these credentials.
    pub fn url_with(&self, user: Option<(&str, &str)>) -> String {
        let scheme = match self.shared.options.tls {
            SmtpTls::Implicit(_) => "smtps",
            SmtpTls::None | SmtpTls::StartTls(_) => "smtp",
        };
        let encode =
            |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
        let credentials =
            user.map(|(user, password)| format!("{}:{}@", encode(user), encode(password)));
        let port = self.port.address.port();
        format!("{scheme}://{}localhost:{port}", credentials.unwrap_or_default())
    }

    /// Misbehaves at this step from now on.
    pub fn misbehave(&self, step: SmtpStep, misbehaviour: Misbehaviour) {
        self.misbehave_for("", step, misbehaviour);
    }

    /// Misbehaves at this step, which must come after `MAIL`, with messages for this address; for all if it is empty.
    pub fn misbehave_for(&self, address: &str, step: SmtpStep, misbehaviour: Misbehaviour) {
        let rule = (step, address.to_owned(), misbehaviour);
        self.shared.misbehaviours.lock().expect("no panic").push(rule);
    }

    /// Behaves well again. A connection that hangs goes on hanging.
    pub fn behave(&self) {
        self.shared.misbehaviours.lock().expect("no panic").clear();
    }

    /// How often this step was reached.
    pub fn count(&self, step: SmtpStep) -> usize {
        let steps = self.shared.steps.lock().expect("no panic");
        steps.iter().filter(|reached| **reached == step).count()
    }

    /// Waits until this step was reached `n` times.
    #[track_caller]
    pub fn wait_for_step(&self, step: SmtpStep, n: usize) {
        wait_until(|| self.count(step) >= n);
    }

    /// All messages received so far, in their order.
    pub fn received(&self) -> Vec<ReceivedMail> {
        self.shared.received.lock().expect("no panic").clone()
    }

    /// Waits until `n` messages were received, and returns them. Fails if there are more.
    #[track_caller]
    pub fn wait_for(&self, n: usize) -> Vec<ReceivedMail> {
        let received = eventually(|| Some(self.received()).filter(|all| all.len() >= n));
        assert_eq!(received.len(), n, "{received:?}");
        received
    }

    /// Waits for the first message for this address.
    #[track_caller]
    pub fn wait_for_mail_to(&self, address: &str) -> ReceivedMail {
        eventually(|| self.received().into_iter().find(|mail| mail.recipient == address))
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// One connection.
struct Dialogue<'a> {
    shared: &'a Shared,
    socket: TcpStream,
    stream: BufReader<Box<dyn Stream>>,
    /// The envelope of the next message, as far as it is known.
    mail: ReceivedMail,
}

impl Dialogue<'_> {
    fn run(socket: TcpStream, shared: &Shared) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let plain: Box<dyn Stream> = Box::new(socket.try_clone()?);
        let mail = ReceivedMail::default();
        let mut dialogue = Dialogue { shared, socket, stream: BufReader::new(plain), mail };
        if let SmtpTls::Implicit(certificate) = &shared.options.tls {
            dialogue.encrypt(certificate)?;
        }
        dialogue.reply(SmtpStep::Greeting, "220 test ESMTP")?;
        loop {
            let line = dialogue.line()?;
            let (verb, argument) = line.split_once(' ').unwrap_or((&line, ""));
            match verb.to_ascii_uppercase().as_str() {
                "EHLO" => dialogue.ehlo(argument)?,
                "HELO" => dialogue.send("250 test")?,
                "STARTTLS" => dialogue.start_tls()?,
                "AUTH" => dialogue.auth(argument)?,
                "MAIL" => dialogue.mail(argument)?,
                "RCPT" => dialogue.rcpt(argument)?,
                "DATA" => dialogue.data()?,
                "QUIT" => return dialogue.reply(SmtpStep::Quit, "221 2.0.0 bye").map(drop),
                _ => dialogue.send("502 5.5.1 unknown command")?,
            }
        }
    }

    fn ehlo(&mut self, client: &str) -> io::Result<()> {
        self.mail.client = client.to_owned();
        let options = &self.shared.options;
        let auth = format!("AUTH {}", options.mechanisms);
        let mut offers = vec!["test greets you", "SIZE 1000000"];
        if matches!(options.tls, SmtpTls::StartTls(_)) && !self.mail.is_encrypted {
            offers.push("STARTTLS");
        } else if options.user.is_some() {
            offers.push(&auth);
        }
        if options.utf8 {
            offers.extend(["8BITMIME", "SMTPUTF8"]);
        }
        let last = offers.pop().unwrap_or_default();
        let others: String = offers.iter().map(|offer| format!("250-{offer}\r\n")).collect();
        self.reply(SmtpStep::Ehlo, &format!("{others}250 {last}")).map(drop)
    }

    fn start_tls(&mut self) -> io::Result<()> {
        let SmtpTls::StartTls(certificate) = &self.shared.options.tls else {
            return self.send("502 5.5.1 not offered");
        };
        if self.reply(SmtpStep::StartTls, "220 2.0.0 go ahead")? {
            self.encrypt(certificate)?;
        }
        Ok(())
    }

    fn encrypt(&mut self, certificate: &ServerCertificate) -> io::Result<()> {
        let stream = certificate.encrypt(self.socket.try_clone()?);
        self.stream = BufReader::new(Box::new(stream));
        self.mail.is_encrypted = true;
        Ok(())
    }

    fn auth(&mut self, argument: &str) -> io::Result<()> {
        let (mechanism, response) = argument.split_once(' ').unwrap_or((argument, ""));
        let options = &self.shared.options;
        if !options.mechanisms.split(' ').any(|offered| offered == mechanism) {
            return self.send("504 5.5.4 unknown mechanism");
        }
        let given = match mechanism {
            "PLAIN" => {
                let text = decode(response);
                let mut parts = text.split('\0').skip(1).map(str::to_owned);
                (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
            }
            _ => {
                self.send("334 VXNlcm5hbWU6")?;
                let user = decode(&self.line()?);
                self.send("334 UGFzc3dvcmQ6")?;
                (user, decode(&self.line()?))
            }
        };
        let is_right = options.user == Some((&given.0, &given.1));
        let reply = if is_right { "235 2.7.0 welcome" } else { "535 5.7.8 authentication failed" };
        if self.reply(SmtpStep::Auth, reply)? && is_right {
            self.mail.user = Some(given.0);
        }
        Ok(())
    }

    fn mail(&mut self, argument: &str) -> io::Result<()> {
        let (address, parameters) = path(argument, "FROM:<");
        let options = &self.shared.options;
        let is_offered =
            |parameter: &str| options.utf8 && ["SMTPUTF8", "BODY=8BITMIME"].contains(&parameter);
        let is_signed_in = options.user.is_none() || self.mail.user.is_some();
        let reply = match () {
            () if !is_signed_in => "530 5.7.0 authentication required",
            () if !parameters.split_ascii_whitespace().all(is_offered) => "555 5.5.4 not offered",
            () if !address.is_ascii() && !parameters.contains("SMTPUTF8") => "553 5.6.7 not ASCII",
            () => "250 2.1.0 ok",
        };
        (self.mail.sender, self.mail.parameters) = (address, parameters);
        self.reply(SmtpStep::Mail, reply).map(drop)
    }

    fn rcpt(&mut self, argument: &str) -> io::Result<()> {
        let (address, _) = path(argument, "TO:<");
        let is_allowed = address.is_ascii() || self.mail.parameters.contains("SMTPUTF8");
        self.mail.recipient = address;
        self.reply(SmtpStep::Rcpt, if is_allowed { "250 2.1.5 ok" } else { "553 5.6.7 not ASCII" })
            .map(drop)
    }

    fn data(&mut self) -> io::Result<()> {
        if !self.reply(SmtpStep::Data, "354 go ahead")? {
            return Ok(());
        }
        self.mail.raw.clear();
        loop {
            let mut line = Vec::new();
            if self.stream.read_until(b'\n', &mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            assert!(line.ends_with(b"\r\n"), "every line of a message ends with CR LF");
            match line.strip_prefix(b".") {
                Some(b"\r\n") => break,
                Some(rest) => self.mail.raw.extend_from_slice(rest),
                None => self.mail.raw.extend_from_slice(&line),
            }
        }
        self.reply(SmtpStep::Content, "250 2.0.0 taken").map(drop)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    fn send(&mut self, line: &str) -> io::Result<()> {
        self.write(&format!("{line}\r\n"))
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.stream.get_mut().write_all(text.as_bytes())?;
        self.stream.get_mut().flush()
    }

    /// Replies `line`, or misbehaves if the test has asked for it. Returns whether the reply was `line`. A message is
    /// stored before the reply is sent, so that a test that sees the effects of the reply finds the message.
    fn reply(&mut self, step: SmtpStep, line: &str) -> io::Result<bool> {
        let misbehaviour = self.misbehaviour(step);
        if step == SmtpStep::Content && misbehaviour.is_none() {
            self.shared.received.lock().expect("no panic").push(self.mail.clone());
        }
        self.shared.steps.lock().expect("no panic").push(step);
        match misbehaviour {
            None => self.send(line)?,
            Some(Misbehaviour::Reply(other)) => self.send(other)?,
            Some(Misbehaviour::Hang) => {
                // Ends when the client closes the connection, or the server stops.
                while self.socket.read(&mut [0; 1024])? > 0 {}
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Some(Misbehaviour::Drip) => loop {
                self.write("2")?;
                thread::sleep(Duration::from_millis(50));
            },
            Some(Misbehaviour::Flood) => loop {
                self.write(&"2".repeat(65_536))?;
            },
            Some(Misbehaviour::Close) => {
                self.socket.shutdown(Shutdown::Both)?;
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(misbehaviour.is_none())
    }

    /// What the test has asked for at this step and for the recipient, the latest request first.
    fn misbehaviour(&self, step: SmtpStep) -> Option<Misbehaviour> {
        let all = self.shared.misbehaviours.lock().expect("no panic");
        let fits = |address: &str| address.is_empty() || address == self.mail.recipient;
        let found = all.iter().rev().find(|(at, address, _)| *at == step && fits(address));
        found.map(|(_, _, misbehaviour)| *misbehaviour)
    }
}

/// The address and the parameters of `FROM:<address> parameters`.
fn path(argument: &str, prefix: &str) -> (String, String) {
    let rest = argument.strip_prefix(prefix).unwrap_or_else(|| panic!("{argument}"));
    let (address, parameters) = rest.rsplit_once('>').unwrap_or_else(|| panic!("{argument}"));
    (address.to_owned(), parameters.trim().to_owned())
}

fn decode(text: &str) -> String {
    let bytes = BASE64_STANDARD.decode(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    String::from_utf8(bytes).expect("UTF-8")
}
