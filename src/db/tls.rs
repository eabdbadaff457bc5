//! TLS towards PostgreSQL.
//!
//! The `postgres` crate offers one place for code below its protocol: the connector it is given for TLS, which turns
//! the socket into the stream that the crate then uses. The deadline on reads ([`DeadlineStream`]) has to be put
//! there, but the crate does not use the connector for plain connections. So the crate is told to require TLS without
//! negotiating it (`SslNegotiation::Direct`), and [`Negotiation`] does that itself, or leaves it out if the settings
//! ask for no TLS.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use postgres::Socket;
use postgres::config::{Config, Host, SslMode, SslNegotiation};
use postgres::tls::{MakeTlsConnect, TlsConnect};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::deadline::{Deadline, DeadlineStream, Transport};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The `SSLRequest` message (PostgreSQL protocol 3.0, Message Formats): length 8, code 80877103.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Whether connections use TLS, and how they verify the server's certificate.
#[derive(Clone)]
pub struct TlsSettings {
    mode: SslMode,
    rustls: MakeRustlsConnect,
}

impl TlsSettings {
    /// Takes the `sslmode` from `config`, and changes `config` so that its connections go through [`Negotiation`]. A
    /// file of certificate authorities, `ca`, makes TLS required and the server's certificate verified. Fails if the
    /// file cannot be read, or if TLS is required on a Unix socket; then says so for the operator, who knows the
    /// connection string by the name `url_variable`.
    pub fn new(
        config: &mut Config,
        ca: Option<&Path>,
        url_variable: &str,
    ) -> Result<TlsSettings, String> {
        let mode = if ca.is_some() { SslMode::Require } else { config.get_ssl_mode() };
        let rustls = MakeRustlsConnect::new(client_config(ca)?);
        let has_unix_socket = config.get_hosts().iter().any(|host| matches!(host, Host::Unix(_)));
        if !has_unix_socket {
            config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
        } else if mode == SslMode::Require {
            let (reason, allowed) = match ca {
                Some(_) => ("CLOAKROOM_DATABASE_CA is set", "no CLOAKROOM_DATABASE_CA"),
                None => ("sslmode is require", "sslmode disable or prefer"),
            };
            return Err(format!(
                "{url_variable} names a Unix socket, which has no TLS, and {reason}; allowed: the name or address of a \
                 host, or {allowed}"
            ));
        } else {
            // The crate never uses a TLS connector on a Unix socket, so reads from one have no deadline.
            config.ssl_mode(SslMode::Disable);
        }
        Ok(TlsSettings { mode, rustls })
    }

    /// Creates the connector for one connection, whose reads end at `deadline`. Each host that is tried for it moves
    /// the deadline to `host_timeout` from then.
    pub fn make_negotiation(&self, deadline: Deadline, host_timeout: Duration) -> MakeNegotiation {
        MakeNegotiation { settings: self.clone(), deadline, host_timeout }
    }
}

/// Without `ca` the certificate is not verified, as with libpq's `sslmode=require`.
fn client_config(ca: Option<&Path>) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    let Some(path) = ca else {
        let verifier = Arc::new(AnyCertificate(provider));
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        return Ok(builder.with_no_client_auth());
    };
    let describe = |e: &dyn std::fmt::Display| {
        format!(
            "CLOAKROOM_DATABASE_CA holds \"{}\": {e}; allowed: a PEM file with the certificates of the authorities \
             that sign the server's",
            path.display()
        )
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| describe(&e))? {
        roots.add(certificate.map_err(|e| describe(&e))?).map_err(|e| describe(&e))?;
    }
    if roots.is_empty() {
        return Err(describe(&"no certificate in it"));
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Accepts any certificate. The signatures of the handshake are still verified.
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
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The connector that the `postgres` crate is given. It makes a [`Negotiation`] for each host that the crate tries,
/// until one accepts the connection.
#[derive(Clone)]
pub struct MakeNegotiation {
    settings: TlsSettings,
    deadline: Deadline,
    host_timeout: Duration,
}

impl MakeTlsConnect<Socket> for MakeNegotiation {
    type Stream = DeadlineStream;
    type TlsConnect = Negotiation;
    type Error = BoxError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Negotiation, BoxError> {
        let rustls = MakeTlsConnect::<Socket>::make_tls_connect(&mut self.settings.rustls, domain)?;
        self.deadline.set(self.host_timeout);
        Ok(Negotiation { mode: self.settings.mode, rustls, deadline: self.deadline.clone() })
    }
}

/// The start of one connection: asks the server for TLS if the settings say so, and puts the deadline on the reads.
pub struct Negotiation {
    mode: SslMode,
    rustls: <MakeRustlsConnect as MakeTlsConnect<Socket>>::TlsConnect,
    deadline: Deadline,
}

impl TlsConnect<Socket> for Negotiation {
    type Stream = DeadlineStream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<DeadlineStream, BoxError>> + Send>>;

    fn connect(self, mut socket: Socket) -> Self::Future {
        Box::pin(async move {
            let negotiation = async move {
                if self.mode == SslMode::Disable {
                    return Ok(Transport::Plain(socket));
                }
                socket.write_all(&SSL_REQUEST).await?;
                match socket.read_u8().await? {
                    b'S' => Ok(Transport::Tls(Box::new(self.rustls.connect(socket).await?))),
                    _ if self.mode == SslMode::Require => {
                        Err("the server does not offer TLS".into())
                    }
                    _ => Ok::<Transport, BoxError>(Transport::Plain(socket)),
                }
            };
            let transport =
                tokio::time::timeout_at(self.deadline.at().into(), negotiation).await??;
            Ok(DeadlineStream::new(transport, self.deadline))
        })
    }
}
