//! A store on loopback that speaks as much of the protocol of Amazon S3 as the service uses: `PUT`, `GET` with ranges,
//! `HEAD`, `DELETE` and `ListObjectsV2`. It verifies signatures, hashes and checksums, and keeps objects in memory.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Port;
use super::certificates::ServerCertificate;
use super::http_message::HttpMessage;

pub const ACCESS_KEY: &str = "a-key-of-the-store";
pub const SECRET_KEY: &str = "a-secret-of-the-store";
pub const BUCKET: &str = "files";
pub const REGION: &str = "test-1";
/// The prefix of the URLs of tests, so that keys are `room/files/<id>`.
pub const PREFIX: &str = "room";

/// The answer to a request that is refused.
pub fn refusal(status: u16, code: &str) -> HttpMessage {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
    HttpMessage::answer(status, "", body.as_bytes())
}

struct Object {
    bytes: Vec<u8>,
    modified: OffsetDateTime,
}

/// What all connections share.
#[derive(Default)]
struct Shared {
    objects: Mutex<BTreeMap<String, Object>>,
    requests: Mutex<Vec<String>>,
    /// Whether acknowledgements name no checksum, as those of older stores.
    names_no_checksum: AtomicBool,
    /// Whether conditions of uploads are not known, as in older stores.
    knows_no_conditions: AtomicBool,
}

/// A running store.
pub struct StoreServer {
    pub port: Port,
    scheme: &'static str,
    shared: Arc<Shared>,
}

impl StoreServer {
    pub fn start() -> StoreServer {
        StoreServer::serve(None)
    }

    /// Starts one whose connections are encrypted. The name in its certificate must be `localhost`.
    pub fn start_with_tls(certificate: ServerCertificate) -> StoreServer {
        StoreServer::serve(Some(certificate))
    }

    fn serve(certificate: Option<ServerCertificate>) -> StoreServer {
        let shared = Arc::new(Shared::default());
        let scheme = if certificate.is_some() { "https" } else { "http" };
        let of_port = shared.clone();
        let port = Port::open(move |socket| match &certificate {
            None => answer_all(socket, &of_port),
            Some(certificate) => answer_all(certificate.encrypt(socket), &of_port),
        });
        StoreServer { port, scheme, shared }
    }

    /// The setting with which a service uses it.
    pub fn url(&self) -> String {
        url_at(self.scheme, self.port.address)
    }

    /// The content of a file; `None` if it is not there.
    pub fn content(&self, id: &str) -> Option<Vec<u8>> {
        self.object(&content_key(id))
    }

    /// The path at which requests name a content.
    pub fn content_path(&self, id: &str) -> String {
        format!("/{BUCKET}/{}", content_key(id))
    }

    pub fn object(&self, key: &str) -> Option<Vec<u8>> {
        let objects = self.shared.objects.lock().expect("no panic");
        objects.get(key).map(|object| object.bytes.clone())
    }

    /// Stores a content, or changes one.
    pub fn put_content(&self, id: &str, bytes: &[u8]) {
        self.put_object(&content_key(id), bytes);
    }

    pub fn put_object(&self, key: &str, bytes: &[u8]) {
        let object = Object { bytes: bytes.to_owned(), modified: OffsetDateTime::now_utc() };
        self.shared.objects.lock().expect("no panic").insert(key.to_owned(), object);
    }

    pub fn remove_object(&self, key: &str) {
        self.shared.objects.lock().expect("no panic").remove(key);
    }

    /// All keys, in their order.
    pub fn keys(&self) -> Vec<String> {
        self.shared.objects.lock().expect("no panic").keys().cloned().collect()
    }

    /// The keys of contents.
    pub fn contents(&self) -> Vec<String> {
        self.keys().into_iter().filter(|key| key.contains("/files/")).collect()
    }

    /// Makes a content older than so many days.
    pub fn make_older(&self, id: &str, days: i64) {
        self.make_older_by(id, time::Duration::days(days) + time::Duration::seconds(60));
    }

    /// Makes a content older by this time.
    pub fn make_older_by(&self, id: &str, time: time::Duration) {
        let mut objects = self.shared.objects.lock().expect("no panic");
        objects.get_mut(&content_key(id)).expect("a content").modified -= time;
    }

    /// From now on names no checksums in acknowledgements.
    pub fn name_no_checksums(&self) {
        self.shared.names_no_checksum.store(true, Ordering::Relaxed);
    }

    /// From now on refuses uploads with a condition.
    pub fn know_no_conditions(&self) {
        self.shared.knows_no_conditions.store(true, Ordering::Relaxed);
    }

    /// How many requests with this method have come.
    pub fn count(&self, method: &str) -> usize {
        let requests = self.shared.requests.lock().expect("no panic");
        requests.iter().filter(|request| request.starts_with(method)).count()
    }
}

/// The setting of a store that is reached at this address.
pub fn url_at(scheme: &str, address: SocketAddr) -> String {
    let port = address.port();
    format!("s3://{BUCKET}/{PREFIX}?endpoint={scheme}://localhost:{port}&region={REGION}")
}

/// The settings of a service that keeps contents in the store of this URL.
pub fn store_settings(url: &str) -> [(&str, &str); 3] {
    [
        ("CLOAKROOM_STORAGE_URL", url),
        ("CLOAKROOM_STORAGE_ACCESS_KEY", ACCESS_KEY),
        ("CLOAKROOM_STORAGE_SECRET_KEY", SECRET_KEY),
    ]
}

fn content_key(id: &str) -> String {
    format!("{PREFIX}/files/{id}")
}

fn answer_all(stream: impl Read + Write, shared: &Shared) {
    let mut stream = BufReader::new(stream);
    while let Ok(request) = HttpMessage::read(&mut stream, true) {
        shared.requests.lock().expect("no panic").push(request.head.clone());
        let mut answer = answer(&request, shared);
        if request.word(0) == "HEAD" {
            answer.body.clear();
        }
        if stream.get_mut().write_all(&answer.bytes()).is_err() {
            return;
        }
    }
}

fn answer(request: &HttpMessage, shared: &Shared) -> HttpMessage {
    let target = request.word(1);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if let Some(refusal) = check_signature(request, path, query) {
        return refusal;
    }
    let Some(key) = path.strip_prefix(&format!("/{BUCKET}/")) else {
        return refusal(404, "NoSuchBucket");
    };
    let mut objects = shared.objects.lock().expect("no panic");
    let is_conditional = request.header("if-none-match") == "*";
    match (request.word(0), objects.get(key)) {
        ("GET", _) if key.is_empty() => list(&objects, query),
        ("GET" | "HEAD", None) => refusal(404, "NoSuchKey"),
        ("GET" | "HEAD", Some(object)) => part(object, request.header("range")),
        ("DELETE", _) => {
            objects.remove(key);
            HttpMessage::answer(204, "", b"")
        }
        ("PUT", _) if is_conditional && shared.knows_no_conditions.load(Ordering::Relaxed) => {
            refusal(501, "NotImplemented")
        }
        ("PUT", Some(_)) if is_conditional => refusal(412, "PreconditionFailed"),
        ("PUT", _) => {
            let hash = Sha256::digest(&request.body);
            let checksum = BASE64_STANDARD.encode(hash);
            if hex(&hash) != request.header("x-amz-content-sha256") {
                return refusal(400, "XAmzContentSHA256Mismatch");
            }
            if checksum != request.header("x-amz-checksum-sha256") {
                return refusal(400, "BadDigest");
            }
            let object =
                Object { bytes: request.body.clone(), modified: OffsetDateTime::now_utc() };
            objects.insert(key.to_owned(), object);
            let named = format!("x-amz-checksum-sha256: {checksum}\r\n");
            let is_silent = shared.names_no_checksum.load(Ordering::Relaxed);
            HttpMessage::answer(200, if is_silent { "" } else { &named }, b"")
        }
        _ => refusal(405, "MethodNotAllowed"),
    }
}

/// The whole object, or the range `bytes=from-to` of it.
fn part(object: &Object, range: &str) -> HttpMessage {
    let Some((from, to)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-'))
    else {
        return HttpMessage::answer(200, "", &object.bytes);
    };
    let (from, to): (usize, usize) = (from.parse().expect("a number"), to.parse().expect("one"));
    let Some(bytes) = object.bytes.get(from..=to) else {
        return refusal(416, "InvalidRange");
    };
    let range = format!("Content-Range: bytes {from}-{to}/{}\r\n", object.bytes.len());
    HttpMessage::answer(206, &range, bytes)
}

fn list(objects: &BTreeMap<String, Object>, query: &str) -> HttpMessage {
    let parameters: BTreeMap<_, _> =
        form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let parameter = |name: &str| parameters.get(name).map_or("", String::as_str);
    assert_eq!(parameter("list-type"), "2");
    let max: usize = parameter("max-keys").parse().expect("a number");
    let after = parameter("start-after").to_owned();
    let mut found = objects
        .range(after.clone()..)
        .filter(|(key, _)| **key != after && key.starts_with(parameter("prefix")));
    let entries: String = found
        .by_ref()
        .take(max)
        .map(|(key, object)| {
            let key: String = form_urlencoded::byte_serialize(key.as_bytes()).collect();
            let (size, at) = (object.bytes.len(), object.modified.format(&Rfc3339).expect("a time"));
            format!(
                "<Contents><Key>{key}</Key><LastModified>{at}</LastModified><ETag>&quot;x&quot;</ETag>\
                 <Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
            )
        })
        .collect();
    let is_truncated = found.next().is_some();
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult \
         xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>{BUCKET}</Name><EncodingType>url</EncodingType>\
         <IsTruncated>{is_truncated}</IsTruncated>{entries}</ListBucketResult>"
    );
    HttpMessage::answer(200, "", body.as_bytes())
}

/// Why a request is refused, if its signature is not the one that its parts have (AWS Signature Version 4).
fn check_signature(request: &HttpMessage, path: &str, query: &str) -> Option<HttpMessage> {
    let authorization = request.header("authorization");
    let field = |name: &str| {
        let (_, rest) = authorization.split_once(name)?;
        rest.split(',').next()
    };
    let refusal = |code| Some(refusal(403, code));
    let Some(scope) = field("Credential=") else { return refusal("AccessDenied") };
    let Some(scope) = scope.strip_prefix(&format!("{ACCESS_KEY}/")) else {
        return refusal("InvalidAccessKeyId");
    };
    let names = field("SignedHeaders=").expect("names");
    assert!(
        names.contains("host;") && names.contains("x-amz-content-sha256;x-amz-date"),
        "{names}"
    );
    let headers: String =
        names.split(';').map(|name| format!("{name}:{}\n", request.header(name))).collect();
    let hash = request.header("x-amz-content-sha256");
    let method = request.word(0);
    let canonical = format!("{method}\n{path}\n{query}\n{headers}\n{names}\n{hash}");
    let date = request.header("x-amz-date");
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
    let first = format!("AWS4{SECRET_KEY}").into_bytes();
    let parts = [&date[..8], REGION, "s3", "aws4_request", &text];
    let signature = parts.iter().fold(first, |key, part| hmac_sha256(&key, part.as_bytes()));
    let is_right = field("Signature=") == Some(&hex(&signature));
    if is_right { None } else { refusal("SignatureDoesNotMatch") }
}

/// RFC 2104, for keys that are not longer than a block.
fn hmac_sha256(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(text);
    let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
