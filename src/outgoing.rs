//! What requests of this service to others have in common: no redirects, no proxies, nothing about this program in the
//! headers, a limit on every wait, and whom TLS trusts.

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use ureq::config::{AutoHeaderValue, Config, ConfigBuilder};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::typestate::AgentScope;

/// A configuration that trusts these authorities or, if there are none, those of the system. `max_silence` is the
/// longest wait for a connection and for the next byte in either direction. Fails if nobody is trusted, though the
/// server is asked over TLS.
pub fn config(
    authorities: Option<&Vec<CertificateDer>>,
    is_encrypted: bool,
    max_silence: Duration,
) -> Result<ConfigBuilder<AgentScope>, &'static str> {
    let of_system = match authorities {
        None if is_encrypted => rustls_native_certs::load_native_certs().certs,
        _ => Vec::new(),
    };
    let roots = authorities.map_or(of_system.as_slice(), Vec::as_slice);
    if roots.is_empty() && is_encrypted {
        return Err("this system has no certificate authorities that it trusts; name one in");
    }
    let roots: Vec<_> = roots.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build();
    Ok(Config::builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(AutoHeaderValue::None)
        .accept_encoding(AutoHeaderValue::None)
        .timeout_connect(Some(max_silence))
        .timeout_per_read(Some(max_silence))
        .timeout_per_write(Some(max_silence))
        .tls_config(tls))
}
