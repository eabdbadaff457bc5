//! The connection to a mail server: bytes with deadlines, TLS, and replies of bounded length.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::reply::Reply;

/// Longest line of a reply, in bytes. RFC 5321, 4.5.3.1.5, allows servers 512.
const MAX_REPLY_LINE: u64 = 4096;
/// Most lines of a reply. Replies to `EHLO` have about ten.
const MAX_REPLY_LINES: usize = 100;

/// A connection to a mail server, with TLS or without. No read or write takes longer than until the deadline that
/// [`MailStream::set_deadline`] has set, however slowly single bytes come in.
pub struct MailStream(BufReader<MailTransport>);

impl MailStream {
    /// Connects to the address, and waits at most for `wait`, which is also the first deadline.
    pub fn connect(address: SocketAddr, wait: Duration) -> io::Result<MailStream> {
        let socket = TcpStream::connect_timeout(&address, wait)?;
        socket.set_nodelay(true)?;
        let socket = DeadlineSocket { socket, deadline: Instant::now() + wait };
        Ok(MailStream(BufReader::new(MailTransport { socket, tls: None })))
    }

    /// Sets the time at which reads and writes that follow fail with [`io::ErrorKind::TimedOut`].
    pub fn set_deadline(&mut self, deadline: Instant) {
        self.0.get_mut().socket.deadline = deadline;
    }

    /// The address of this end of the connection.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.get_ref().socket.socket.local_addr()
    }

    /// Does the TLS handshake. Fails unless the server's certificate is valid for `host` and trusted by this system.
    pub fn encrypt(&mut self, host: &str) -> io::Result<()> {
        // Anything that came before the handshake may be an attacker's, and must not be taken for an encrypted reply.
        if !self.0.buffer().is_empty() {
            return Err(io::Error::other("the server sent data before the handshake"));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let mut tls =
            ClientConnection::new(Arc::new(client_config()?), name).map_err(io::Error::other)?;
        let transport = self.0.get_mut();
        while tls.is_handshaking() {
            tls.complete_io(&mut transport.socket)?;
        }
        transport.tls = Some(tls);
        Ok(())
    }

    /// Writes all bytes and flushes them.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.0.get_mut();
        stream.write_all(bytes)?;
        stream.flush()
    }

    /// Reads a reply of one or more lines. Fails if it is not SMTP, or longer than the limits allow.
    pub fn read_reply(&mut self) -> io::Result<Reply> {
        let malformed = || io::Error::other("the server's reply is no SMTP");
        let (mut first_code, mut lines) = (None, Vec::new());
        while lines.len() < MAX_REPLY_LINES {
            let line = self.read_line()?;
            let (code, text) = line.split_at_checked(3).ok_or_else(malformed)?;
            let is_number = code.bytes().all(|byte| byte.is_ascii_digit());
            let code = code.parse().ok().filter(|_| is_number).ok_or_else(malformed)?;
            if *first_code.get_or_insert(code) != code {
                return Err(malformed());
            }
            let rest = text.strip_prefix(['-', ' ']);
            lines.push(rest.unwrap_or_default().to_owned());
            match text.bytes().next() {
                None | Some(b' ') => return Ok(Reply { code, lines }),
                Some(b'-') => {}
                Some(_) => return Err(malformed()),
            }
        }
        Err(io::Error::other("the server's reply is too long"))
    }

    /// Reads a line, without its end. Control characters, which a terminal would interpret, and bytes that are not
    /// UTF-8 are replaced.
    fn read_line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        (&mut self.0).take(MAX_REPLY_LINE).read_until(b'\n', &mut line)?;
        match line.pop() {
            Some(b'\n') => {
                let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line));
                Ok(text.replace(char::is_control, "\u{fffd}"))
            }
            Some(_) if line.len() as u64 + 1 == MAX_REPLY_LINE => {
                Err(io::Error::other("the server's reply is too long"))
            }
            _ => Err(io::Error::other("the server closed the connection")),
        }
    }

    /// The version of TLS, or `None` if the connection is not encrypted.
    pub fn tls_version(&self) -> Option<String> {
        let version = self.0.get_ref().tls.as_ref()?.protocol_version()?;
        Some(format!("{version:?}"))
    }
}

/// Trusts the certificate authorities of the system, or those of `SSL_CERT_FILE`. They are read for each connection,
/// because they change while the process runs, and reading takes milliseconds.
fn client_config() -> io::Result<ClientConfig> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(io::Error::other("this system has no certificate authorities that it trusts"));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The bytes of a connection, which are encrypted once `tls` is set.
struct MailTransport {
    socket: DeadlineSocket,
    tls: Option<ClientConnection>,
}

impl Read for MailTransport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.socket).read(buffer),
            None => self.socket.read(buffer),
        }
    }
}

impl Write for MailTransport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.socket).write(bytes),
            None => self.socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.socket).flush(),
            None => self.socket.flush(),
        }
    }
}

/// A socket whose reads and writes fail with [`io::ErrorKind::TimedOut`] once the deadline has passed.
struct DeadlineSocket {
    socket: TcpStream,
    deadline: Instant,
}

impl DeadlineSocket {
    /// The time until the deadline. Fails with `TimedOut` once it has passed.
    fn remaining(&self) -> io::Result<Duration> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(remaining) }
    }
}

/// Turns `WouldBlock`, as which a socket reports its timeout on Unix, into `TimedOut`. The TLS library would otherwise
/// take it for a non-blocking socket, and retry.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

impl Read for DeadlineSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.remaining()?))?;
        self.socket.read(buffer).map_err(timed_out)
    }
}

impl Write for DeadlineSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(self.remaining()?))?;
        self.socket.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}
