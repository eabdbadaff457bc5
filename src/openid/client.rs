//! Requests to the provider. It may do anything: hang, lie, send without end. So each wait has a limit, four requests
//! run at once, and what it says of itself is fetched once for all who wait.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use form_urlencoded::{Serializer, byte_serialize};
use rustls::crypto::ring;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use ureq::Agent;
use ureq::config::{AutoHeaderValue, Config};
use ureq::http::Request;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::id_token::{self, Person};
use super::metadata::{Document, KeySet, Metadata};
use crate::config::{ProviderSettings, is_provider_url};
use crate::semaphore::{Semaphore, lock};

/// The longest wait for a name, a connection, or the next byte, and the longest time of a request.
const MAX_SILENCE: Duration = Duration::from_secs(5);
const MAX_REQUEST: Duration = Duration::from_secs(15);
/// Longest answer, in bytes.
const MAX_ANSWER: u64 = 256 << 10;
/// Most requests at once, and how long one more waits for its turn. A look-up of a name that is given up may go on in a
/// thread of its own, until the system ends it: so this bounds those, too.
const MAX_REQUESTS: usize = 4;
const MAX_TURN: Duration = Duration::from_secs(1);
/// How long what the provider says of itself is believed, how soon it is asked again for the sake of a key that it did
/// not have, and how long a failure is remembered.
pub const MAX_AGE: Duration = Duration::from_secs(3600);
const MIN_AGE: Duration = Duration::from_secs(60);
const FAILURE_AGE: Duration = Duration::from_secs(5);

/// Why nothing was proven.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// The provider cannot be used now. That is logged.
    Unavailable,
    /// What the browser has brought proves nothing.
    Invalid,
    /// The ID token names a key that is not known.
    UnknownKey,
}

/// The provider, and what is known of it.
pub struct Provider {
    pub settings: ProviderSettings,
    agent: Agent,
    turns: Arc<Semaphore>,
    known: Mutex<Known>,
    fetched: Condvar,
}

#[derive(Default)]
struct Known {
    metadata: Option<Arc<Metadata>>,
    failed_at: Option<Instant>,
    is_fetching: bool,
}

/// What a browser has brought back, and what belongs to it.
pub struct Grant<'a> {
    pub code: &'a str,
    pub redirect_uri: &'a str,
    /// The secret of PKCE (RFC 7636).
    pub verifier: &'a str,
    pub nonce: &'a str,
}

impl Provider {
    /// Connects to nothing yet. On failure: what to tell the operator.
    pub fn new(settings: &ProviderSettings) -> Result<Provider, String> {
        let config = Config::builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(AutoHeaderValue::None)
            .accept_encoding(AutoHeaderValue::None)
            .timeout_global(Some(MAX_REQUEST))
            .timeout_resolve(Some(MAX_SILENCE))
            .timeout_connect(Some(MAX_SILENCE))
            .timeout_per_read(Some(MAX_SILENCE))
            .timeout_per_write(Some(MAX_SILENCE))
            .max_idle_connections(MAX_REQUESTS)
            .tls_config(tls_config(settings)?)
            .build();
        Ok(Provider {
            settings: settings.clone(),
            agent: config.into(),
            turns: Semaphore::new(MAX_REQUESTS),
            known: Mutex::default(),
            fetched: Condvar::new(),
        })
    }

    /// What is known of the provider, at most `max_age` old. One thread fetches it, and others wait for that.
    pub fn metadata(&self, max_age: Duration) -> Result<Arc<Metadata>, Fault> {
        let is_waiting = |known: &mut Known| {
            let is_new = |it: &Arc<Metadata>| it.fetched_at.elapsed() < max_age;
            known.is_fetching && !known.metadata.as_ref().is_some_and(is_new)
        };
        let waited = self.fetched.wait_timeout_while(lock(&self.known), MAX_REQUEST, is_waiting);
        let (mut known, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(metadata) = known.metadata.clone()
            && metadata.fetched_at.elapsed() < max_age
        {
            return Ok(metadata);
        }
        let has_failed = known.failed_at.is_some_and(|at| at.elapsed() < FAILURE_AGE);
        if known.is_fetching || has_failed {
            return Err(Fault::Unavailable);
        }
        known.is_fetching = true;
        drop(known);
        let fetched = self.fetch();
        let mut known = lock(&self.known);
        known.is_fetching = false;
        let outcome = match fetched {
            Ok(metadata) => Ok(known.metadata.insert(Arc::new(metadata)).clone()),
            Err(cause) => {
                known.failed_at = Some(Instant::now());
                Err(self.unavailable(&cause))
            }
        };
        drop(known);
        self.fetched.notify_all();
        outcome
    }

    /// Fetches what the provider says of itself (Discovery, 4), and its keys.
    fn fetch(&self) -> Result<Metadata, String> {
        let issuer = &self.settings.issuer;
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let document: Document = self.get(&url, None)?;
        if document.issuer != *issuer {
            return Err("its document names another issuer than CLOAKROOM_OIDC_ISSUER".to_owned());
        }
        let may_be_plain = issuer.starts_with("http:");
        if !document.urls().all(|url| is_provider_url(url, may_be_plain)) {
            return Err("its document has a URL that is not https".to_owned());
        }
        let key_set = self.get(&document.jwks_uri, None)?;
        Ok(Metadata { document, key_set, fetched_at: Instant::now() })
    }

    /// Exchanges the code of the provider for an ID token, and verifies that (Core, 3.1.3).
    pub fn prove(&self, metadata: &Metadata, grant: &Grant) -> Result<Person, Fault> {
        let answer = self.exchange(&metadata.document, grant)?;
        let text = |name: &str| answer.get(name).and_then(Value::as_str);
        let token = text("id_token").ok_or(Fault::Invalid)?;
        let verify = |keys: &KeySet| id_token::verify(token, keys, &self.settings, grant.nonce);
        let person = match verify(&metadata.key_set) {
            Err(Fault::UnknownKey) => verify(&self.metadata(MIN_AGE)?.key_set),
            outcome => outcome,
        };
        let mut person = person.map_err(|_| Fault::Invalid)?;
        person.access_token = text("access_token").map(str::to_owned);
        Ok(person)
    }

    /// Asks the provider for what the ID token lacks of a person (Core, 5.3).
    pub fn complete(&self, metadata: &Metadata, person: &mut Person) -> Result<(), Fault> {
        let (Some(url), Some(token)) = (&metadata.document.userinfo_endpoint, &person.access_token)
        else {
            return Ok(());
        };
        let more: Map<String, Value> =
            self.get(url, Some(token)).map_err(|cause| self.unavailable(&cause))?;
        if more.get("sub").and_then(Value::as_str) != Some(&person.subject) {
            return Err(Fault::Invalid);
        }
        more.into_iter().for_each(|(name, value)| {
            person.claims.entry(name).or_insert(value);
        });
        Ok(())
    }

    /// Asks the token endpoint (RFC 6749, 4.1.3). The client is authenticated in a header, unless the provider does not
    /// know that; there id and secret are encoded as in a form (RFC 6749, 2.3.1).
    fn exchange(&self, document: &Document, grant: &Grant) -> Result<Map<String, Value>, Fault> {
        let ProviderSettings { client_id, client_secret, .. } = &self.settings;
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code").append_pair("code", grant.code);
        form.append_pair("redirect_uri", grant.redirect_uri);
        form.append_pair("code_verifier", grant.verifier);
        let request = Request::post(&document.token_endpoint)
            .header("content-type", "application/x-www-form-urlencoded");
        let request = if document.takes_secret_in_body() {
            form.append_pair("client_id", client_id);
            form.append_pair("client_secret", client_secret.expose());
            request
        } else {
            let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encode(client_id), encode(client_secret.expose()));
            request.header("authorization", format!("Basic {}", BASE64_STANDARD.encode(pair)))
        };
        let request = request.header("accept", "application/json");
        let answer = request.body(form.finish().into_bytes()).map_err(|error| error.to_string());
        let answer = answer.and_then(|request| self.send::<Map<String, Value>>(request));
        let (status, answer) = answer.map_err(|cause| self.unavailable(&cause))?;
        let error = answer.get("error").and_then(Value::as_str).unwrap_or_default();
        match (status, error) {
            (200, _) => Ok(answer),
            (401, _) | (400, "invalid_client" | "unauthorized_client") => Err(self.unavailable(
                "it refuses this client: CLOAKROOM_OIDC_CLIENT_ID or its secret is wrong",
            )),
            (400..=499, _) => Err(Fault::Invalid),
            _ => Err(self.unavailable(&format!("its token endpoint answers {status}"))),
        }
    }

    fn get<T: DeserializeOwned>(&self, url: &str, token: Option<&str>) -> Result<T, String> {
        let mut request = Request::get(url).header("accept", "application/json");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        match self.send(request.body(Vec::new()).map_err(|error| error.to_string())?)? {
            (200, answer) => Ok(answer),
            (status, _) => Err(format!("a GET is answered {status}")),
        }
    }

    /// Sends a request, when it is its turn. Returns the status and the JSON of the answer.
    fn send<T: DeserializeOwned>(&self, request: Request<Vec<u8>>) -> Result<(u16, T), String> {
        let _turn = self.turns.acquire((), MAX_TURN).ok_or("too many requests to it run")?;
        let mut answer = self.agent.run(request).map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        let body = body.map_err(|error| error.to_string())?;
        let json = serde_json::from_slice(&body);
        Ok((
            status,
            json.map_err(|_| format!("what it answers with status {status} is not understood"))?,
        ))
    }

    /// Logs why the provider cannot be used. The cause holds nothing that it has sent.
    fn unavailable(&self, cause: &str) -> Fault {
        log::warn!("the OpenID provider {} cannot be used: {cause}", self.settings.issuer);
        Fault::Unavailable
    }
}

/// Trusts the authorities of the settings or, if these name none, those of the system.
fn tls_config(settings: &ProviderSettings) -> Result<TlsConfig, String> {
    let is_encrypted = settings.issuer.starts_with("https:");
    let roots = match &settings.authorities {
        Some(authorities) => authorities.clone(),
        None if is_encrypted => rustls_native_certs::load_native_certs().certs,
        None => Vec::new(),
    };
    if roots.is_empty() && is_encrypted {
        return Err("CLOAKROOM_OIDC_ISSUER: this system has no certificate authorities that it trusts; name one in \
                    CLOAKROOM_OIDC_CA"
            .into());
    }
    let roots: Vec<_> = roots.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build())
}
