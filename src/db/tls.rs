//! The connection to PostgreSQL below the client library: TLS where it is asked for, and a deadline
//! on every wait, because a server that hangs without closing its socket would otherwise hold a
//! thread for good.
//!
//! The library offers one place to put code under its protocol, the TLS hook, and skips it for plain
//! connections. So the library is told to require TLS without asking the server for it
//! (`SslNegotiation::Direct`), and this hook does the asking, or leaves it out.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use postgres::Socket;
use postgres::config::{Config, Host, SslMode, SslNegotiation};
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Sleep;
use tokio_postgres_rustls::MakeRustlsConnect;

type RustlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
type Fault = Box<dyn std::error::Error + Send + Sync>;

/// `SSLRequest` (PostgreSQL protocol 3.0, 55.7): length 8, code 80877103.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// When the wait for the server's bytes ends; shared by a connection and its pool entry.
#[derive(Clone)]
pub struct Deadline {
    start: Instant,
    millis: Arc<AtomicU64>,
}

impl Deadline {
    /// A deadline `wait` from now.
    pub fn new(wait: Duration) -> Deadline {
        let deadline = Deadline { start: Instant::now(), millis: Arc::new(AtomicU64::new(0)) };
        deadline.set(wait);
        deadline
    }

    /// Moves the deadline to `wait` from now.
    pub fn set(&self, wait: Duration) {
        // One thread at a time uses a connection, so no other memory hangs on this number.
        self.millis.store((self.start.elapsed() + wait).as_millis() as u64, Ordering::Relaxed);
    }

    fn at(&self) -> Instant {
        self.start + Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }
}

/// Opens connections as the settings ask.
#[derive(Clone)]
pub struct Linker {
    mode: SslMode,
    tls: MakeRustlsConnect,
}

impl Linker {
    /// `config` is changed so that its connections come through this linker. Fails where the
    /// certificate file cannot be read, or where TLS is asked for on a Unix socket.
    pub fn new(config: &mut Config, authority: Option<&Path>) -> Result<Linker, String> {
        let mode = if authority.is_some() { SslMode::Require } else { config.get_ssl_mode() };
        let tls = MakeRustlsConnect::new(tls_config(authority)?);
        let unix = config.get_hosts().iter().any(|host| matches!(host, Host::Unix(_)));
        if !unix {
            config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
        } else if mode == SslMode::Require {
            return Err("TLS is required, but a host is a Unix socket, which has none".into());
        } else {
            // The library goes past the hook here: over a Unix socket waits have no deadline.
            config.ssl_mode(SslMode::Disable);
        }
        Ok(Linker { mode, tls })
    }

    /// The hook for one connection.
    pub fn with_deadline(&self, deadline: Deadline) -> Hook {
        Hook { linker: self.clone(), deadline }
    }
}

/// Without an authority the certificate is not verified, as with libpq's `sslmode=require`.
fn tls_config(authority: Option<&Path>) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    let Some(path) = authority else {
        let verifier = Arc::new(AnyCertificate(provider));
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth());
    };
    let fault = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| fault(&e))? {
        roots.add(certificate.map_err(|e| fault(&e))?).map_err(|e| fault(&e))?;
    }
    if roots.is_empty() {
        return Err(fault(&"no certificate in it"));
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Takes any certificate; the handshake's signature is still checked.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The TLS hook of one connection.
#[derive(Clone)]
pub struct Hook {
    linker: Linker,
    deadline: Deadline,
}

impl MakeTlsConnect<Socket> for Hook {
    type Stream = Link;
    type TlsConnect = Connect;
    type Error = Fault;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Connect, Fault> {
        let tls = MakeTlsConnect::<Socket>::make_tls_connect(&mut self.linker.tls, domain)?;
        Ok(Connect { mode: self.linker.mode, tls, deadline: self.deadline.clone() })
    }
}

/// One handshake.
pub struct Connect {
    mode: SslMode,
    tls: <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect,
    deadline: Deadline,
}

impl TlsConnect<Socket> for Connect {
    type Stream = Link;
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<Link, Fault>> + Send>>;

    fn connect(self, mut socket: Socket) -> Self::Future {
        Box::pin(async move {
            let deadline = self.deadline.clone();
            let wire = tokio::time::timeout_at(deadline.at().into(), async move {
                if self.mode == SslMode::Disable {
                    return Ok(Wire::Plain(socket));
                }
                socket.write_all(&SSL_REQUEST).await?;
                match socket.read_u8().await? {
                    b'S' => Ok(Wire::Tls(Box::new(self.tls.connect(socket).await?))),
                    _ if self.mode == SslMode::Require => {
                        Err("the server does not offer TLS".into())
                    }
                    _ => Ok::<Wire, Fault>(Wire::Plain(socket)),
                }
            });
            Ok(Link { wire: wire.await??, deadline, alarm: None })
        })
    }
}

enum Wire {
    Plain(Socket),
    Tls(Box<RustlsStream>),
}

trait ReadWrite: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> ReadWrite for T {}

impl Wire {
    fn pin(&mut self) -> Pin<&mut dyn ReadWrite> {
        match self {
            Wire::Plain(socket) => Pin::new(socket as &mut dyn ReadWrite),
            Wire::Tls(stream) => Pin::new(stream.as_mut()),
        }
    }
}

/// A stream whose reads fail with `TimedOut` once the deadline has passed.
pub struct Link {
    wire: Wire,
    deadline: Deadline,
    /// Wakes the reader. It is set for one deadline and, where that has moved on by the time it
    /// rings, set again: so a query that is answered in time costs no timer.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl AsyncRead for Link {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(outcome) = self.wire.pin().poll_read(cx, buf) {
            return Poll::Ready(outcome);
        }
        loop {
            let at = self.deadline.at();
            if at <= Instant::now() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            let alarm =
                self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at.into())));
            if alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            alarm.as_mut().reset(at.into());
        }
    }
}

impl AsyncWrite for Link {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.wire.pin().poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.pin().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.pin().poll_shutdown(cx)
    }
}

impl TlsStream for Link {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.wire {
            Wire::Plain(_) => ChannelBinding::none(),
            Wire::Tls(stream) => stream.channel_binding(),
        }
    }
}
