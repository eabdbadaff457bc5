//! A certificate authority, and servers' certificates.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;

use super::Directory;
use super::data_directory::unique_name;

/// A certificate authority of the test's own. A process trusts it, and no other one, if `SSL_CERT_FILE` names its file.
pub struct CertificateAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: Directory,
}

/// What a server needs to encrypt connections.
#[derive(Clone)]
pub struct ServerCertificate(Arc<ServerConfig>);

impl CertificateAuthority {
    pub fn create() -> CertificateAuthority {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, format!("Authority {}", unique_name()));
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let directory = Directory::create();
        std::fs::write(directory.join("ca.pem"), issuer.pem()).expect("a file");
        CertificateAuthority { issuer, directory }
    }

    /// The path of its certificate.
    pub fn file(&self) -> String {
        self.directory.join("ca.pem").display().to_string()
    }

    /// Makes a certificate for a server with this host name.
    pub fn certify(&self, host: &str) -> ServerCertificate {
        let params = CertificateParams::new([host.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            );
        ServerCertificate(Arc::new(config.expect("a certificate and its key")))
    }
}

impl ServerCertificate {
    /// The server's side of an encrypted connection. The handshake takes place when it is first read or written.
    pub fn encrypt(
        &self,
        socket: TcpStream,
    ) -> rustls::StreamOwned<rustls::ServerConnection, TcpStream> {
        let connection = rustls::ServerConnection::new(self.0.clone()).expect("a connection");
        rustls::StreamOwned::new(connection, socket)
    }
}

/// Makes `server.crt`, a certificate for 127.0.0.1, and `server.key` in the directory. Returns the options with which
/// PostgreSQL uses them.
pub fn certificate(directory: &Directory) -> String {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (directory.join("server.crt"), directory.join("server.key"));
    fs::write(&cert, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    format!("-c ssl=on -c ssl_cert_file={} -c ssl_key_file={}", cert.display(), key.display())
}
