//! Requests to the provider. It may do anything: hang, lie, send without end. So each wait has a limit, sixteen
//! requests run at once, and what it says of itself is fetched once for all who wait.

use std::collections::HashMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use form_urlencoded::{Serializer, byte_serialize};
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::Agent;
use ureq::http::Request;
use ureq::http::request::Builder;
use uuid::Uuid;

use super::fault::{Fault, words};
use super::id_token::{self, Claims, Person};
use super::metadata::{Document, KeySet, Metadata};
use super::turns::{self, Turn, Turns};
use crate::config::{ProviderSettings, is_provider_url};
use crate::outgoing;
use crate::semaphore::{Rank, Semaphore, lock};

/// The longest wait for a name, a connection, or the next byte, and the longest time of a request.
const MAX_SILENCE: Duration = Duration::from_secs(5);
const MAX_REQUEST: Duration = Duration::from_secs(15);
/// Longest answer, in bytes.
const MAX_ANSWER: u64 = 256 << 10;
/// How long a request waits for its turn. A look-up of a name that is given up may go on in a thread of its own, until
/// the system ends it.
const MAX_TURN: Duration = Duration::from_secs(5);
/// How often the same cause of refusals is logged.
const LOG_PERIOD: Duration = Duration::from_secs(60);
/// How long what the provider says of itself is believed, how soon it is asked again for the sake of a key that it did
/// not have, and how long a failure is remembered.
pub const MAX_AGE: Duration = Duration::from_secs(3600);
const MIN_AGE: Duration = Duration::from_secs(60);
const FAILURE_AGE: Duration = Duration::from_secs(5);

/// The provider, and what is known of it.
pub struct Provider {
    pub settings: ProviderSettings,
    agent: Agent,
    turns: Turns,
    known: Mutex<Option<Arc<Metadata>>>,
    /// Held by the one thread that asks what it says of itself.
    fetching: Arc<Semaphore>,
    /// When that was last in vain, and the cause.
    failed: Mutex<Option<(Instant, Fault)>>,
    /// When each cause was logged last.
    logged: Mutex<HashMap<String, Instant>>,
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
            .max_idle_connections(turns::SIZE)
            .build();
        Ok(Provider {
            settings: settings.clone(),
            agent: config.into(),
            turns: turns::new(),
            fetching: Semaphore::new(Rank::ProviderDocument, 1),
            known: Mutex::default(),
            failed: Mutex::default(),
            logged: Mutex::default(),
        })
    }

    /// What is known of the provider, at most `max_age` old. One thread fetches it, and others wait for that, but not
    /// for as long as a provider may take: who waits holds a thread.
    pub fn metadata(&self, max_age: Duration) -> Result<Arc<Metadata>, Fault> {
        let known = || lock(&self.known).clone().filter(|it| it.fetched_at.elapsed() < max_age);
        if let Some(metadata) = known() {
            return Ok(metadata);
        }
        let turn = self.fetching.acquire((), MAX_TURN);
        if let Some(metadata) = known() {
            return Ok(metadata);
        }
        let failed = lock(&self.failed).clone().filter(|(at, _)| at.elapsed() < FAILURE_AGE);
        if let Some((_, fault)) = failed {
            return Err(fault);
        }
        let _turn = turn.ok_or_else(|| Fault::unavailable("its document is late", ""))?;
        let fetched = self.fetch();
        match &fetched {
            Ok(metadata) => *lock(&self.known) = Some(metadata.clone()),
            Err(fault) => *lock(&self.failed) = Some((Instant::now(), fault.clone())),
        }
        fetched
    }

    /// Waits for a turn of a client's network to send requests. Nobody's requests keep others from theirs.
    pub fn turn(&self, network: IpAddr) -> Result<Turn, Fault> {
        self.turns
            .acquire(network, MAX_TURN)
            .ok_or_else(|| Fault::unavailable("too many people sign in at once", ""))
    }

    /// Logs why request `id` has proven nobody, each cause once a minute.
    pub fn log(&self, id: Uuid, Fault { reason, cause, detail, .. }: &Fault) {
        let mut logged = lock(&self.logged);
        let is_new = logged.get(cause).is_none_or(|at| at.elapsed() >= LOG_PERIOD);
        if is_new {
            logged.insert(cause.clone(), Instant::now());
            let issuer = &self.settings.issuer;
            log::warn!("request {id}: sign-in by {issuer} is {reason}: {cause}; {detail}");
        }
    }

    /// Fetches what the provider says of itself (Discovery, 4), and its keys.
    fn fetch(&self) -> Result<Arc<Metadata>, Fault> {
        let issuer = &self.settings.issuer;
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let document: Document = self.get("its document", &url)?;
        let refuse = |cause, sent: &str| Err(Fault::unavailable(cause, words(sent)));
        if document.issuer != *issuer {
            let cause = "its document names another issuer than CLOAKROOM_OIDC_ISSUER";
            return refuse(cause, &document.issuer);
        }
        let may_be_plain = issuer.starts_with("http:");
        if let Some(url) = document.urls().find(|url| !is_provider_url(url, may_be_plain)) {
            return refuse("its document has a URL that is not https", url);
        }
        let key_set = self.get("its key set", &document.jwks_uri)?;
        Ok(Arc::new(Metadata { document, key_set, fetched_at: Instant::now() }))
    }

    /// Exchanges the code of the provider for an ID token, and verifies that (Core, 3.1.3). Keys that do not suit are
    /// fetched anew: the provider may have changed them, also under the same id or without one.
    pub fn prove(&self, metadata: &Metadata, grant: &Grant) -> Result<Person, Fault> {
        let answer = self.exchange(&metadata.document, grant)?;
        let text = |name: &str| answer.get(name).and_then(Value::as_str);
        let missing = || Fault::invalid("its token endpoint gives no id_token", "");
        let token = text("id_token").ok_or_else(missing)?;
        let verify = |keys: &KeySet| id_token::verify(token, keys, &self.settings, grant.nonce);
        let mut person = match verify(&metadata.key_set) {
            Err(fault) if fault.is_of_key => verify(&self.metadata(MIN_AGE)?.key_set),
            outcome => outcome,
        }?;
        person.access_token = text("access_token").map(str::to_owned);
        Ok(person)
    }

    /// Asks the provider for what the ID token lacks of a person (Core, 5.3).
    pub fn complete(&self, metadata: &Metadata, person: &mut Person) -> Result<(), Fault> {
        let (Some(url), Some(token)) = (&metadata.document.userinfo_endpoint, &person.access_token)
        else {
            return Ok(());
        };
        let request = Request::get(url).header("authorization", format!("Bearer {token}"));
        let what = "its userinfo endpoint";
        let mut more: Claims = accepted(what, self.send(what, request, Vec::new())?)?;
        if more.get("sub").and_then(Value::as_str) != Some(&person.subject) {
            return Err(Fault::invalid("its userinfo endpoint tells about another subject", ""));
        }
        // An address counts only with what the same answer says of it.
        if more.contains_key("email") {
            person.claims.remove("email");
            person.claims.remove("email_verified");
        } else {
            more.remove("email_verified");
        }
        more.into_iter().for_each(|(name, value)| {
            person.claims.entry(name).or_insert(value);
        });
        Ok(())
    }

    /// Asks the token endpoint (RFC 6749, 4.1.3). The client is authenticated in a header, unless the provider does not
    /// know that; there id and secret are encoded as in a form (RFC 6749, 2.3.1).
    fn exchange(&self, document: &Document, grant: &Grant) -> Result<Claims, Fault> {
        let ProviderSettings { client_id, client_secret, .. } = &self.settings;
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code").append_pair("code", grant.code);
        form.append_pair("redirect_uri", grant.redirect_uri);
        form.append_pair("code_verifier", grant.verifier);
        let what = "its token endpoint";
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
        let (status, body) = self.send(what, request, form.finish().into_bytes())?;
        let error = serde_json::from_slice::<Claims>(&body).ok();
        let error = error.as_ref().and_then(|it| it.get("error")?.as_str()).unwrap_or_default();
        let detail = format!("it answers {status} with the error {}", words(error));
        match (status, error) {
            (401, _) | (400, "invalid_client" | "unauthorized_client") => Err(Fault::unavailable(
                "it refuses this client: CLOAKROOM_OIDC_CLIENT_ID or its secret is wrong",
                detail,
            )),
            (400..=499, told) if !told.is_empty() => {
                Err(Fault::invalid("its token endpoint refuses the code", detail))
            }
            _ => accepted(what, (status, body)),
        }
    }

    fn get<T: DeserializeOwned>(&self, what: &str, url: &str) -> Result<T, Fault> {
        accepted(what, self.send(what, Request::get(url), Vec::new())?)
    }

    /// Sends a request. Returns the status and the body of the answer.
    fn send(&self, what: &str, request: Builder, body: Vec<u8>) -> Result<(u16, Vec<u8>), Fault> {
        let request = request.header("accept", "application/json").body(body);
        let request = request.map_err(|error| unusable(what, "has no usable URL", error))?;
        let url = request.uri().to_string();
        let answer = self.agent.run(request);
        let mut answer = answer
            .map_err(|error| unusable(what, "cannot be reached", format!("{url}: {error}")))?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        Ok((status, body.map_err(|error| unusable(what, "sends too much, or breaks off", error))?))
    }
}

/// The cause of a request that has failed.
fn unusable(what: &str, problem: &str, detail: impl Display) -> Fault {
    Fault::unavailable(format!("{what} {problem}"), detail.to_string())
}

/// The JSON of an answer with status 200. What is no JSON may be signed or encrypted claims (Core, 5.3.2).
fn accepted<T: DeserializeOwned>(what: &str, (status, body): (u16, Vec<u8>)) -> Result<T, Fault> {
    let form = if body.starts_with(b"ey") { "a token" } else { "not what it should be" };
    let json = Some(&body).filter(|_| status == 200).and_then(|it| serde_json::from_slice(it).ok());
    let detail = format!("the status is {status}, and the body {form}");
    json.ok_or_else(|| unusable(what, "answers without usable JSON", detail))
}
