//! An OpenID provider on loopback, with keys of its own. It can be told to lie about anything.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use jwt_simple::prelude::{
    ECDSAP256KeyPairLike, ECDSAP384KeyPairLike, ES256KeyPair, ES384KeyPair, Ed25519KeyPair,
    EdDSAKeyPairLike, JWTClaims, KeyMetadata, PS256KeyPair, RS256KeyPair, RS384KeyPair,
    RS512KeyPair, RSAKeyPairLike,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::certificates::ServerCertificate;
use super::http_message::HttpMessage;
use super::{Anonymous, Answer, Credentials, Port, Server, now};

pub const CLIENT_ID: &str = "cloakroom & co";
pub const CLIENT_SECRET: &str = "s3cret: of % the client";
/// The secret of a page that signs somebody in.
pub const VERIFIER: &str = "a-verifier-of-the-page-0123456789abcdef-0123456789";

/// Making an RSA key takes seconds without optimisation.
static RSA_KEY: LazyLock<Vec<u8>> =
    LazyLock::new(|| RS256KeyPair::generate(2048).expect("a key").to_der().expect("DER"));

/// The key with which ID tokens are signed.
#[derive(Clone)]
pub enum ProviderKey {
    /// The bytes of the private key.
    Es256(Vec<u8>),
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Es384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Makes the key pair, gives it the id if there is one, and continues with it.
macro_rules! with_pair {
    ($key:expr, $id:expr, |$pair:ident| $then:expr) => {
        match $key {
            ProviderKey::Es256(bytes) => {
                let pair = ES256KeyPair::from_bytes(bytes).expect("a key");
                let $pair = if let Some(id) = $id { pair.with_key_id(id) } else { pair };
                $then
            }
            ProviderKey::Rs256 => {
                let pair = RS256KeyPair::from_der(&RSA_KEY).expect("a key");
                let $pair = if let Some(id) = $id { pair.with_key_id(id) } else { pair };
                $then
            }
            ProviderKey::Rs384 => {
                let pair = RS384KeyPair::from_der(&RSA_KEY).expect("a key");
                let $pair = if let Some(id) = $id { pair.with_key_id(id) } else { pair };
                $then
            }
            ProviderKey::Rs512 => {
                let pair = RS512KeyPair::from_der(&RSA_KEY).expect("a key");
                let $pair = if let Some(id) = $id { pair.with_key_id(id) } else { pair };
                $then
            }
            ProviderKey::Ps256 => {
                let pair = PS256KeyPair::from_der(&RSA_KEY).expect("a key");
                let $pair = if let Some(id) = $id { pair.with_key_id(id) } else { pair };
                $then
            }
            ProviderKey::Es384(bytes) => {
                let pair = ES384KeyPair::from_bytes(bytes).expect("a key");
                let $pair = if let Some(id) = $id { pair.with_key_id(id) } else { pair };
                $then
            }
            ProviderKey::Ed25519(bytes) => {
                let pair = Ed25519KeyPair::from_bytes(bytes).expect("a key");
                let $pair = if let Some(id) = $id { pair.with_key_id(id) } else { pair };
                $then
            }
        }
    };
}

impl ProviderKey {
    pub fn new() -> ProviderKey {
        ProviderKey::Es256(ES256KeyPair::generate().to_bytes())
    }

    /// One of each algorithm that is taken, but for ES256.
    pub fn others() -> [ProviderKey; 6] {
        let es384 = ProviderKey::Es384(ES384KeyPair::generate().to_bytes());
        let ed25519 = ProviderKey::Ed25519(Ed25519KeyPair::generate().to_bytes());
        use ProviderKey::{Ps256, Rs256, Rs384, Rs512};
        [Rs256, Rs384, Rs512, Ps256, es384, ed25519]
    }

    /// A token with these claims, and with this id of the key in its header.
    pub fn sign(&self, id: Option<&str>, claims: &Value) -> String {
        let claims: JWTClaims<Value> = serde_json::from_value(claims.clone()).expect("claims");
        with_pair!(self, id, |pair| pair.sign(claims)).expect("a token")
    }

    /// The same with more about the key in its header, which anybody can write there.
    pub fn sign_with(&self, more: &KeyMetadata, claims: &Value) -> String {
        let ProviderKey::Es256(bytes) = self else { panic!("another key") };
        let mut pair = ES256KeyPair::from_bytes(bytes).expect("a key");
        pair.attach_metadata(more.clone()).expect("metadata");
        pair.sign(serde_json::from_value::<JWTClaims<Value>>(claims.clone()).expect("claims"))
            .expect("a token")
    }

    /// The public key, with more members.
    pub fn public(&self, more: Value) -> Value {
        let text = with_pair!(self, None::<&str>, |pair| pair.public_key().to_jwk());
        let mut key: Value = serde_json::from_str(&text).expect("JSON");
        for (name, value) in more.as_object().expect("an object") {
            key[name] = value.clone();
        }
        key
    }
}

/// What it does with requests to a path.
#[derive(Clone)]
pub enum Reply {
    /// An answer of this status, with more headers and this body.
    With(u16, String, Vec<u8>),
    /// None, while the connection stays open.
    Nothing,
    /// A byte a second, without end.
    Drops,
    /// What it would answer, after this time.
    Late(Duration),
    /// What it would answer, once this is no longer what it does.
    Held,
}

/// What it says of itself and of people.
pub struct ProviderState {
    /// Members of the document in place of its own; null for none.
    pub document: BTreeMap<String, Value>,
    pub keys: Vec<Value>,
    pub key: ProviderKey,
    pub key_id: Option<String>,
    /// Claims in place of those of a good token; null for none.
    pub claims: BTreeMap<String, Value>,
    pub userinfo: Value,
    /// A whole ID token in place of the one that is signed.
    pub token: Option<String>,
    pub replies: BTreeMap<String, Reply>,
    /// The head and the body of each request.
    pub requests: Vec<(String, String)>,
    /// The codes that it has given out, with the nonce and the challenge of each.
    codes: BTreeMap<String, (String, String)>,
    issuer: String,
}

pub struct OpenIdProvider {
    pub port: Port,
    issuer: String,
    state: Arc<Mutex<ProviderState>>,
}

/// What a browser has after a start.
#[derive(Clone, Debug)]
pub struct Departure {
    /// The parameters that it brings to the provider.
    pub query: BTreeMap<String, String>,
    /// The name and value of its cookie, and the whole `Set-Cookie`.
    pub cookie: String,
    pub set_cookie: String,
    pub location: String,
}

impl OpenIdProvider {
    pub fn start() -> OpenIdProvider {
        OpenIdProvider::serve(None, "")
    }

    /// Starts one whose issuer has this path.
    pub fn start_at(path: &str) -> OpenIdProvider {
        OpenIdProvider::serve(None, path)
    }

    /// Starts one whose connections are encrypted. The name in its certificate must be `localhost`.
    pub fn start_with_tls(certificate: ServerCertificate) -> OpenIdProvider {
        OpenIdProvider::serve(Some(certificate), "")
    }

    fn serve(certificate: Option<ServerCertificate>, path: &str) -> OpenIdProvider {
        let key = ProviderKey::new();
        let state = ProviderState {
            document: BTreeMap::new(),
            keys: vec![key.public(json!({"kid": "first"}))],
            key,
            key_id: Some("first".to_owned()),
            claims: BTreeMap::new(),
            userinfo: json!({}),
            token: None,
            replies: BTreeMap::new(),
            requests: Vec::new(),
            codes: BTreeMap::new(),
            issuer: String::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let (shared, is_encrypted) = (state.clone(), certificate.is_some());
        let port = Port::open(move |socket| match &certificate {
            None => serve(socket, &shared),
            Some(certificate) => serve(certificate.encrypt(socket), &shared),
        });
        let issuer = match is_encrypted {
            true => format!("https://localhost:{}{path}", port.address.port()),
            false => format!("http://{}{path}", port.address),
        };
        state.lock().expect("no panic").issuer = issuer.clone();
        OpenIdProvider { port, issuer, state }
    }

    pub fn issuer(&self) -> String {
        self.issuer.clone()
    }

    /// Starts a service that knows it.
    pub fn service(&self, settings: &[(&str, &str)]) -> Server {
        let issuer = self.issuer();
        Server::start(&[&provider_settings(&issuer)[..], settings].concat())
    }

    /// Changes what it says, or looks at what it was asked.
    pub fn with<T>(&self, change: impl FnOnce(&mut ProviderState) -> T) -> T {
        change(&mut self.state.lock().expect("no panic"))
    }

    pub fn claim(&self, name: &str, value: impl Into<Value>) {
        self.with(|state| state.claims.insert(name.to_owned(), value.into()));
    }

    /// Makes it be about this person, with an address that is confirmed.
    pub fn person(&self, subject: &str) {
        self.claim("sub", subject);
        self.claim("email", format!("{subject}@example.com"));
        self.claim("email_verified", true);
    }

    pub fn reply(&self, path: &str, reply: Reply) {
        self.with(|state| state.replies.insert(path.to_owned(), reply));
    }

    /// How many requests to a path have come.
    pub fn count(&self, path: &str) -> usize {
        self.with(|state| state.requests.iter().filter(|(head, _)| head.contains(path)).count())
    }

    /// Signs the person in, and returns what the browser brings back.
    pub fn authorize(&self, departure: &Departure) -> String {
        let text = |name: &str| departure.query[name].clone();
        self.with(|state| {
            let code = format!("a-code-of-the-provider-{}", state.codes.len());
            state.codes.insert(code.clone(), (text("nonce"), text("code_challenge")));
            format!("code={code}&state={}", text("state"))
        })
    }
}

/// The settings of a service that knows a provider.
pub fn provider_settings(issuer: &str) -> [(&str, &str); 4] {
    [
        ("CLOAKROOM_OIDC_ISSUER", issuer),
        ("CLOAKROOM_OIDC_CLIENT_ID", CLIENT_ID),
        ("CLOAKROOM_OIDC_CLIENT_SECRET", CLIENT_SECRET),
        ("CLOAKROOM_PUBLIC_URL", "http://127.0.0.1:8000"),
    ]
}

/// The challenge of a verifier (RFC 7636, 4.2).
pub fn challenge_of(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

impl Server {
    pub fn start_sign_in(&self, more: &str) -> Answer {
        let challenge = challenge_of(VERIFIER);
        self.request("GET", &format!("/auth/oidc/start?challenge={challenge}{more}")).send()
    }

    /// Starts, and reads where the browser is sent.
    #[track_caller]
    pub fn depart(&self, more: &str) -> Departure {
        let answer = self.start_sign_in(more).expect(303);
        let location = answer.header("Location").to_owned();
        let (_, query) = location.split_once('?').expect("a query");
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let set_cookie = answer.header("Set-Cookie").to_owned();
        let cookie = set_cookie.split(';').next().expect("a cookie").to_owned();
        Departure { query, cookie, set_cookie, location }
    }

    /// Comes back with this query and these cookies, and returns the fragment of the console's page, without the
    /// request id of an error.
    #[track_caller]
    pub fn come_back(&self, query: &str, cookie: &str) -> String {
        let path = format!("/auth/oidc/callback?{query}");
        let answer = self.request("GET", &path).header("Cookie", cookie).send().expect(303);
        let location = answer.header("Location");
        let fragment = location.strip_prefix("/console/oidc#");
        let fragment = fragment.unwrap_or_else(|| panic!("{location}"));
        let Some((error, id)) = fragment.split_once("&request_id=") else {
            return fragment.to_owned();
        };
        assert_eq!(id, answer.header("X-Request-ID"));
        error.to_owned()
    }

    /// The whole way there and back. Returns the code.
    #[track_caller]
    pub fn provider_code(&self, provider: &OpenIdProvider, more: &str) -> String {
        let departure = self.depart(more);
        let fragment = self.come_back(&provider.authorize(&departure), &departure.cookie);
        let code = fragment.strip_prefix("code=").unwrap_or_else(|| panic!("{fragment}"));
        code.split('&').next().expect("a code").to_owned()
    }

    /// The whole way there and back. Returns why there is no code.
    #[track_caller]
    pub fn provider_error(&self, provider: &OpenIdProvider, more: &str) -> String {
        let departure = self.depart(more);
        let fragment = self.come_back(&provider.authorize(&departure), &departure.cookie);
        fragment.strip_prefix("error=").unwrap_or_else(|| panic!("{fragment}")).to_owned()
    }

    pub fn provider_token(&self, code: &str, verifier: &str, otp: Option<&str>) -> Answer {
        let body = json!({"code": code, "verifier": verifier, "otp": otp});
        self.post("/auth/oidc/token", Anonymous, body)
    }

    pub fn join(&self, sender: impl Credentials, code: &str, password: Option<&str>) -> Answer {
        let body = json!({"code": code, "verifier": VERIFIER, "current_password": password});
        self.post("/auth/oidc/join", sender, body)
    }

    pub fn leave(&self, sender: impl Credentials, password: &str) -> Answer {
        let body = json!({"current_password": password});
        self.request("DELETE", "/auth/oidc").by(sender).json(body).send()
    }
}

fn serve(socket: impl Read + Write, state: &Mutex<ProviderState>) {
    let mut stream = BufReader::new(socket);
    while let Ok(request) = HttpMessage::read(&mut stream, true) {
        let target = request.word(1).to_owned();
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let path;
        let reply = {
            let mut state = state.lock().expect("no panic");
            state.requests.push((request.head.clone(), body));
            let base = state.issuer.split('/').skip(3).map(|part| format!("/{part}"));
            path = target.strip_prefix(&base.collect::<String>()).unwrap_or_default().to_owned();
            state.replies.get(&path).cloned()
        };
        let answer = match reply {
            Some(Reply::With(status, headers, body)) => {
                HttpMessage::answer(status, &headers, &body)
            }
            Some(Reply::Nothing) => return drop(stream.read_to_end(&mut Vec::new())),
            Some(Reply::Drops) => {
                let socket = stream.get_mut();
                let head = b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n";
                let mut is_open = socket.write_all(head).is_ok();
                while is_open {
                    std::thread::sleep(std::time::Duration::from_secs(1));
                    is_open = socket.write_all(b" ").is_ok();
                }
                return;
            }
            late => {
                if let Some(Reply::Late(time)) = late {
                    std::thread::sleep(time);
                }
                let is_held = || {
                    let replies = &state.lock().expect("no panic").replies;
                    matches!(replies.get(&path), Some(Reply::Held))
                };
                while is_held() {
                    std::thread::sleep(Duration::from_millis(10));
                }
                answer(&request, &path, &mut state.lock().expect("no panic"))
            }
        };
        if stream.get_mut().write_all(&answer.bytes()).is_err() {
            return;
        }
    }
}

fn answer(request: &HttpMessage, path: &str, state: &mut ProviderState) -> HttpMessage {
    let issuer = state.issuer.clone();
    let json = |status, body: &Value| HttpMessage::answer(status, "", body.to_string().as_bytes());
    match path {
        "/.well-known/openid-configuration" => {
            let mut document = json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "userinfo_endpoint": format!("{issuer}/userinfo"),
                "jwks_uri": format!("{issuer}/keys"),
                "claims_supported": ["sub", "auth_time"],
            });
            override_members(&mut document, &state.document);
            json(200, &document)
        }
        "/keys" => json(200, &json!({"keys": state.keys})),
        "/userinfo" if request.header("authorization") == "Bearer an-access-token" => {
            json(200, &state.userinfo)
        }
        "/token" => token(request, &issuer, state),
        _ => json(404, &json!({"error": "not_found"})),
    }
}

/// Exchanges a code, if the client and the verifier are right.
fn token(request: &HttpMessage, issuer: &str, state: &mut ProviderState) -> HttpMessage {
    let json = |status, body: &Value| HttpMessage::answer(status, "", body.to_string().as_bytes());
    let form: BTreeMap<String, String> =
        form_urlencoded::parse(&request.body).into_owned().collect();
    let text = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encode(CLIENT_ID), encode(CLIENT_SECRET));
    let is_basic =
        request.header("authorization") == format!("Basic {}", BASE64_STANDARD.encode(pair));
    let is_post = (text("client_id"), text("client_secret")) == (CLIENT_ID, CLIENT_SECRET);
    if !is_basic && !is_post {
        return json(401, &json!({"error": "invalid_client"}));
    }
    let known = state.codes.remove(text("code"));
    let Some((nonce, challenge)) =
        known.filter(|(_, it)| *it == challenge_of(text("code_verifier")))
    else {
        return json(400, &json!({"error": "invalid_grant"}));
    };
    assert_eq!((text("grant_type"), challenge.len()), ("authorization_code", 43));
    let mut claims = json!({
        "iss": issuer, "sub": "ann", "aud": CLIENT_ID, "iat": now(), "exp": now() + 300,
        "nonce": nonce, "auth_time": now(),
    });
    override_members(&mut claims, &state.claims);
    let token = state.token.clone();
    let token = token.unwrap_or_else(|| state.key.sign(state.key_id.as_deref(), &claims));
    json(
        200,
        &json!({
            "access_token": "an-access-token", "token_type": "Bearer", "id_token": token,
        }),
    )
}

/// Replaces members, and removes those that are null.
fn override_members(object: &mut Value, with: &BTreeMap<String, Value>) {
    for (name, value) in with {
        let members = object.as_object_mut().expect("an object");
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
}
