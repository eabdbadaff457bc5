//! Requests to the store: signed, with limits on every wait, and repeated once if a connection that had been idle is
//! found closed.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::http::request::Builder;
use ureq::http::{Request, Response};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector, RustlsConnector};
use ureq::{Agent, Body, SendBody};

use super::connection::StoreConnector;
use super::listing::element;
use super::signature::{SignedParts, Signer, date, encode_path, encode_query};
use crate::config::{StoreSettings, StoreUrl};
use crate::model::hex;
use crate::outgoing;

/// The longest wait for a connection, for the store to take bytes, and for the next of its bytes.
const MAX_SILENCE: Duration = Duration::from_secs(10);
/// The longest time for the head of an answer, and for the body of one that is no content. For a content this much is
/// added to what [`MIN_RATE`] allows.
const MAX_ANSWER: Duration = Duration::from_secs(30);
/// Slowest average rate of a content in either direction, in bytes a second. Clients may be as slow.
const MIN_RATE: u64 = 1024;
/// Longest body of an answer that is no content. A page of a thousand keys has a few hundred kilobytes.
const MAX_TEXT: u64 = 4 << 20;
/// Buffer of a connection in each direction. A slow download holds it for hours.
const BUFFER_BYTES: usize = 16 * 1024;
/// How long a connection that nobody uses stays open, and how many of them.
const MAX_IDLE: Duration = Duration::from_secs(15);
const MAX_IDLE_CONNECTIONS: usize = 32;

/// Why a request failed.
#[derive(Debug)]
pub enum StoreError {
    /// There is no object with this key.
    Missing,
    /// There is one already, and the request was for none.
    Exists,
    /// The store does not know a part of the request.
    Unknown,
    /// The store cannot be reached, does not answer in time, or says that it cannot serve the request now.
    Away(String),
    /// The store refuses the request, as when there is no such bucket, or the key may not do this.
    Refused(String),
}

/// The body of a request.
pub enum Payload<'a> {
    None,
    Bytes(&'a [u8]),
    /// A file with its length and its SHA-256.
    File(&'a File, u64, [u8; 32]),
}

impl Payload<'_> {
    pub fn sha256(&self) -> [u8; 32] {
        match self {
            Payload::None => Sha256::digest(b"").into(),
            Payload::Bytes(bytes) => Sha256::digest(bytes).into(),
            Payload::File(_, _, hash) => *hash,
        }
    }
}

/// A request for an object or, if `key` is empty, for the bucket.
pub struct StoreRequest<'a> {
    pub method: &'static str,
    pub key: &'a str,
    /// In the order of names.
    pub query: &'a [(&'a str, &'a str)],
    /// Headers beside those that each request has.
    pub headers: &'a [(&'static str, String)],
    pub payload: Payload<'a>,
    /// Bytes of the content that is asked for.
    pub content: u64,
}

/// Sends requests to one bucket.
pub struct Client {
    agent: Agent,
    settings: StoreSettings,
    /// The value of `Host`.
    host: String,
    /// The beginning of all paths: a slash, and unless the host names the bucket, the bucket and a slash.
    root: String,
}

impl Client {
    /// Connects to nothing yet. On failure: what to tell the operator.
    pub fn new(settings: &StoreSettings) -> Result<Client, String> {
        let StoreUrl { bucket, authority, is_host_style, .. } = &settings.url;
        let (host, root) = match is_host_style {
            true => (format!("{bucket}.{authority}"), "/".to_owned()),
            false => (authority.clone(), format!("/{bucket}/")),
        };
        // No limit for name resolution, nor for whole requests: for these `ureq` would start a thread for each look-up,
        // as many as requests come while a name server does not answer. The system's resolver has its own limit.
        let (authorities, is_encrypted) =
            (settings.authorities.as_ref(), settings.url.scheme == "https");
        let config = outgoing::config(authorities, is_encrypted, MAX_SILENCE);
        let config = config
            .map_err(|fault| format!("CLOAKROOM_STORAGE_URL: {fault} CLOAKROOM_STORAGE_CA"))?
            .timeout_recv_response(Some(MAX_ANSWER))
            .input_buffer_size(BUFFER_BYTES)
            .output_buffer_size(BUFFER_BYTES)
            .max_idle_age(MAX_IDLE)
            .max_idle_connections(MAX_IDLE_CONNECTIONS)
            .max_idle_connections_per_host(MAX_IDLE_CONNECTIONS)
            .build();
        let connector = StoreConnector.chain(RustlsConnector::default());
        let agent = Agent::with_parts(config, connector, DefaultResolver::default());
        Ok(Client { agent, settings: settings.clone(), host, root })
    }

    /// Sends a request and returns the answer if it says that all went well. A connection that ends without an answer
    /// was probably idle for too long: then the request, which may always be repeated, is sent once more over a new
    /// one.
    pub fn send(&self, request: &StoreRequest) -> Result<Response<Body>, StoreError> {
        let answer = match self.exchange(request, MAX_IDLE) {
            Err(ureq::Error::Io(error)) if is_closed(&error) => {
                self.exchange(request, Duration::ZERO)
            }
            other => other,
        };
        let mut answer = answer.map_err(|error| StoreError::Away(error.to_string()))?;
        let status = answer.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let text = read_text(&mut answer).unwrap_or_default();
        let code = element(&text, "Code").unwrap_or_default();
        let shown: String = code.chars().filter(char::is_ascii_alphanumeric).take(100).collect();
        let cause = format!("{} answers {status} {shown}", request.method).trim_end().to_owned();
        Err(match status {
            404 if code != "NoSuchBucket" => StoreError::Missing,
            412 => StoreError::Exists,
            501 => StoreError::Unknown,
            408 | 429 | 500.. => StoreError::Away(cause),
            _ => StoreError::Refused(cause),
        })
    }

    /// Sends a request once, over a connection that was idle for at most `max_idle`, or a new one.
    fn exchange<'a>(
        &self,
        request: &'a StoreRequest<'a>,
        max_idle: Duration,
    ) -> Result<Response<Body>, ureq::Error> {
        let builder = self.signed(request);
        let (mut reader, length): (Box<dyn Read + 'a>, u64) = match &request.payload {
            Payload::None => {
                return self.run(builder, SendBody::none(), max_idle, (0, request.content));
            }
            Payload::Bytes(bytes) => (Box::new(*bytes), bytes.len() as u64),
            Payload::File(file, length, _) => {
                let mut file = *file;
                file.rewind()?;
                (Box::new(file), *length)
            }
        };
        let builder = builder.header("content-length", length);
        self.run(builder, SendBody::from_reader(&mut reader), max_idle, (length, request.content))
    }

    /// Sends a head and a body. `lengths` are those of the contents that are sent and asked for.
    fn run(
        &self,
        builder: Builder,
        body: SendBody,
        max_idle: Duration,
        lengths: (u64, u64),
    ) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.configure_request(builder.body(body)?).max_idle_age(max_idle);
        let request = request.timeout_send_body(Some(time_for(lengths.0)));
        self.agent.run(request.timeout_recv_body(Some(time_for(lengths.1))).build())
    }

    /// The head of a request, with its signature.
    fn signed(&self, request: &StoreRequest) -> Builder {
        let path = encode_path(&format!("{}{}", self.root, request.key));
        let query = encode_query(request.query);
        let (body_hash, date) = (hex(&request.payload.sha256()), date());
        let own = [
            ("host", self.host.clone()),
            ("x-amz-content-sha256", body_hash.clone()),
            ("x-amz-date", date.clone()),
        ];
        let mut headers: Vec<_> = own.into_iter().chain(request.headers.iter().cloned()).collect();
        headers.sort_unstable();
        let parts = SignedParts {
            method: request.method,
            path: &path,
            query: &query,
            headers: &headers,
            body_hash: &body_hash,
        };
        let signer = Signer {
            access_key: self.settings.access_key.expose(),
            secret_key: self.settings.secret_key.expose(),
            region: &self.settings.url.region,
        };
        let authorization = signer.sign(&parts, &date);
        let mark = if query.is_empty() { "" } else { "?" };
        let uri = format!("{}://{}{path}{mark}{query}", self.settings.url.scheme, self.host);
        let builder = Request::builder().method(request.method).uri(uri);
        let builder = headers.iter().fold(builder, |all, (name, value)| all.header(*name, value));
        builder.header("authorization", authorization)
    }
}

/// The longest time in which so many bytes pass.
fn time_for(bytes: u64) -> Duration {
    MAX_ANSWER + Duration::from_secs(bytes / MIN_RATE)
}

/// Whether the other side has closed the connection.
fn is_closed(error: &io::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// The body of an answer that is no content.
pub fn read_text(answer: &mut Response<Body>) -> Result<String, StoreError> {
    let text = answer.body_mut().with_config().limit(MAX_TEXT).lossy_utf8(true).read_to_string();
    text.map_err(|error| StoreError::Away(error.to_string()))
}
