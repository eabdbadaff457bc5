//! Requests to the provider. It may do anything: hang, lie, send without end. So each wait has a limit, four requests
//! run at once, and what it says of itself is fetched once for all who wait.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use form_urlencoded::{Serializer, byte_serialize};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use ureq::Agent;
use ureq::http::Request;

use super::id_token::{self, Fault, Person};
use super::metadata::{Document, KeySet, Metadata};
use crate::config::{ProviderSettings, is_provider_url};
use crate::outgoing;
use crate::semaphore::{Semaphore, lock};

/// The longest wait for a name, a connection, or the next byte, and the longest time of a request.
const MAX_SILENCE: Duration = Duration::from_secs(5);
const MAX_REQUEST: Duration = Duration::from_secs(15);
/// Longest answer, in bytes.
const MAX_ANSWER: u64 = 256 << 10;
/// Most requests at once, and how long one more waits for its turn. A look-up of a name that is given up may go on in a
/// thread of its own, until the system ends it.
const MAX_REQUESTS: usize = 4;
const MAX_TURN: Duration = Duration::from_secs(1);
/// How long what the provider says of itself is believed, how soon it is asked again for the sake of a key that it did
/// not have, and how long a failure is remembered.
pub const MAX_AGE: Duration = Duration::from_secs(3600);
const MIN_AGE: Duration = Duration::from_secs(60);
const FAILURE_AGE: Duration = Duration::from_secs(5);

/// The provider, and what is known of it.
pub struct Provider {
    pub settings: ProviderSettings,
    agent: Agent,
    turns: Arc<Semaphore>,
    known: Mutex<Option<Arc<Metadata>>>,
    /// Held by the one thread that asks what it says of itself.
    fetching: Arc<Semaphore>,
    /// When that was last in vain.
    failed_at: Mutex<Option<Instant>>,
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
        let is_encrypted = settings.issuer.starts_with("https:");
        let config = outgoing::config(settings.authorities.as_ref(), is_encrypted, MAX_SILENCE);
        let config = config
            .map_err(|fault| format!("CLOAKROOM_OIDC_ISSUER: {fault} CLOAKROOM_OIDC_CA"))?
            .timeout_global(Some(MAX_REQUEST))
            .timeout_resolve(Some(MAX_SILENCE))
            .max_idle_connections(MAX_REQUESTS)
            .build();
        Ok(Provider {
            settings: settings.clone(),
            agent: config.into(),
            turns: Semaphore::new(MAX_REQUESTS),
            fetching: Semaphore::new(1),
            known: Mutex::default(),
            failed_at: Mutex::default(),
        })
    }

    /// What is known of the provider, at most `max_age` old. One thread fetches it, and others wait for that, but not
    /// for as long as a provider may take: who waits holds a thread.
    pub fn metadata(&self, max_age: Duration) -> Result<Arc<Metadata>, Fault> {
        let known = || lock(&self.known).clone().filter(|it| it.fetched_at.elapsed() < max_age);
        if let Some(metadata) = known() {
            return Ok(metadata);
        }
        let has_failed = || lock(&self.failed_at).is_some_and(|at| at.elapsed() < FAILURE_AGE);
        let turn = self.fetching.acquire((), MAX_TURN);
        if let Some(metadata) = known() {
            return Ok(metadata);
        }
        if turn.is_none() || has_failed() {
            return Err(Fault::Unavailable);
        }
        let fetched = self.fetch().map_err(|cause| self.unavailable(&cause));
        match &fetched {
            Ok(metadata) => *lock(&self.known) = Some(metadata.clone()),
            Err(_) => *lock(&self.failed_at) = Some(Instant::now()),
        }
        fetched
    }

    /// Fetches what the provider says of itself (Discovery, 4), and its keys.
    fn fetch(&self) -> Result<Arc<Metadata>, String> {
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
        Ok(Arc::new(Metadata { document, key_set, fetched_at: Instant::now() }))
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
        // An address counts only with what the same answer says of it.
        for name in ["email", "email_verified"] {
            person.claims.remove(name);
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
