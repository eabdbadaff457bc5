//! The sample site `scripts/nginx.conf`, run by a real nginx in front of the service.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::harness::*;

/// The site's name in the sample.
pub const NAME: &str = "cloakroom.example";

pub fn sample() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/nginx.conf");
    std::fs::read_to_string(path).expect("the sample")
}

/// An nginx with the sample site. It listens on loopback only.
pub struct Nginx {
    pub address: SocketAddr,
    /// Where it answers without TLS.
    pub plain: SocketAddr,
    tls: Arc<ClientConfig>,
    pub process: NginxProcess,
}

impl Nginx {
    /// Starts one in front of the server at `upstream`. Only addresses and certificate of the sample are replaced.
    pub fn start(upstream: &str) -> Nginx {
        Nginx::start_with(upstream, &[])
    }

    /// The same with more replacements.
    pub fn start_with(upstream: &str, replacements: &[(&str, &str)]) -> Nginx {
        let directory = Directory::create();
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            std::fs::write(&path, text).expect("a file");
            path.display().to_string()
        };
        let certificate = write("site.pem", &made.cert.pem());
        let key = write("site.key", &made.signing_key.serialize_pem());
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [address, plain] = free.each_ref().map(|port| port.local_addr().expect("an address"));
        let mut site = sample();
        // As the page says for the versions that have the directive.
        let has_directive = NginxProcess::version() >= [1, 25, 1];
        let (http2, directive) = if has_directive { ("", "http2 on;") } else { (" http2", "") };
        let addresses = [
            ("listen [::]:80;", ""),
            ("listen 80;", &*format!("listen {plain};")),
            ("listen [::]:443 ssl http2;", ""),
            ("listen 443 ssl http2;", &format!("listen {address} ssl{http2};")),
            ("# http2 on;", directive),
            ("server 127.0.0.1:8000;", &format!("server {upstream};")),
            ("/var/log/nginx/access.log", &directory.join("access.log").display().to_string()),
            ("/etc/ssl/certs/cloakroom.example.pem", &certificate),
            ("/etc/ssl/private/cloakroom.example.key", &key),
        ];
        for (old, new) in addresses.iter().chain(replacements) {
            assert!(site.contains(old), "{old} in {site}");
            site = site.replace(old, new);
        }
        let site = write("site.conf", &site);
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(made.cert.pem().as_bytes()).expect("PEM");
        roots.add(certificate).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        drop(free);
        let is_ready = || TcpStream::connect(address).is_ok();
        let process = NginxProcess::start(directory, &format!("include {site};"), is_ready);
        Nginx { address, plain, tls: Arc::new(tls), process }
    }

    /// Sends a request on a connection of its own, from `source`, and returns the head and the body of the response.
    pub fn ask_from(
        &self,
        source: Ipv4Addr,
        method: &str,
        target: &str,
        rest: &[u8],
    ) -> (String, String) {
        let mut stream = self.begin_tls(self.connect_from(source));
        let head = format!("{method} {target} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n");
        stream.write_all(&[head.as_bytes(), rest].concat()).expect("nginx reads");
        let mut answer = Vec::new();
        // After it has refused a body, nginx closes the connection without ending TLS.
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}");
        }
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_ascii_lowercase(), body.to_owned())
    }

    pub fn connect_from(&self, source: Ipv4Addr) -> TcpStream {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.expect("a socket");
        socket.bind(&SocketAddr::from((source, 0)).into()).expect("an address of this host");
        socket.connect(&self.address.into()).expect("nginx accepts");
        TcpStream::from(socket)
    }

    pub fn begin_tls(&self, socket: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
        socket.set_read_timeout(Some(Duration::from_secs(40))).expect("a timeout");
        let name = ServerName::try_from(NAME).expect("a name");
        let client = ClientConnection::new(self.tls.clone(), name).expect("TLS");
        StreamOwned::new(client, socket)
    }

    /// The response to a request without TLS that names this host.
    pub fn ask_without_tls(&self, line: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(self.plain).expect("nginx accepts");
        let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("nginx reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// The head of the response, unless nginx closes the connection before.
    pub fn try_get(&self, target: &str) -> Option<String> {
        let mut stream = self.begin_tls(TcpStream::connect(self.address).expect("nginx accepts"));
        let head = format!("GET {target} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer).to_ascii_lowercase())
    }

    pub fn get(&self, target: &str) -> (String, String) {
        self.ask_from(Ipv4Addr::LOCALHOST, "GET", target, b"\r\n")
    }
}

/// The headers and the body of an upload of 10 MiB, the largest that is allowed.
pub fn upload_of_ten_megabytes(token: &str, media_type: &str, headers: &str) -> Vec<u8> {
    let form = file_form("a.txt", media_type, &vec![b'x'; 10 << 20]).bytes();
    let head = format!(
        "Authorization: Bearer {token}\r\nContent-Type: multipart/form-data; boundary={BOUNDARY}\r\n\
         {headers}Content-Length: {}\r\n\r\n",
        form.len()
    );
    [head.into_bytes(), form].concat()
}

#[test]
fn what_comes_without_tls_is_sent_to_the_same_path_with_it_whatever_host_it_names() {
    let nginx = Nginx::start(&Server::start(&[]).address);
    for host in [NAME, "evil.example"] {
        let answer = nginx.ask_without_tls("POST /a%2Fb?c=d", host);
        assert!(answer.starts_with("HTTP/1.1 308 "), "{answer}");
        let location = format!("\r\nLocation: https://{NAME}/a%2Fb?c=d\r\n");
        assert!(answer.contains(&location), "{answer}");
    }
}

#[test]
fn http2_is_negotiated() {
    let api = Server::start(&[]);
    let nginx = Nginx::start(&api.address);
    let mut tls = (*nginx.tls).clone();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(NAME).expect("a name");
    let client = ClientConnection::new(Arc::new(tls), name).expect("TLS");
    let socket = TcpStream::connect(nginx.address).expect("nginx accepts");
    let mut stream = StreamOwned::new(client, socket);
    stream.conn.complete_io(&mut stream.sock).expect("a handshake");
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"h2"[..]));
}

#[test]
fn the_sample_serves_the_api_over_tls_and_says_so_to_browsers() {
    for server in ["builtin", "rouille"] {
        let api = Server::start(&[
            ("CLOAKROOM_HTTP_SERVER", server),
            ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1"),
        ]);
        let ann = api.sign_up("ann");
        let buffering = [("proxy_request_buffering off;", "proxy_request_buffering on;")];
        let nginx = Nginx::start_with(&api.address, &buffering[usize::from(server == "builtin")..]);
        let (head, body) = nginx.get("/healthz");
        assert!(head.starts_with("http/1.1 200 ") && body.contains("ok"), "{head}\n{body}");
        assert!(head.contains("\r\nstrict-transport-security: max-age=31536000"), "{head}");
        // A form around the largest file passes, and its client is the one that nginx saw, whatever it wrote itself.
        let headers = format!("X-Forwarded-For: 203.0.113.9\r\nX-Request-ID: {UNKNOWN_ID}\r\n");
        let upload = upload_of_ten_megabytes(&ann.access, "text/plain", &headers);
        let from = Ipv4Addr::new(127, 0, 0, 2);
        let (head, body) = nginx.ask_from(from, "POST", "/api/v1/uploads", &upload);
        assert!(head.starts_with("http/1.1 201 "), "{head}\n{body}");
        let line = api.logged(UNKNOWN_ID);
        assert!(line.contains("client=127.0.0.2 "), "{line}");
        api.list_files(&ann, "").expect(200).has(json!({"total": 1}));
        let (head, _) =
            nginx.ask_from(from, "POST", "/api/v1/uploads", b"Content-Length: 12000000\r\n\r\n");
        assert!(head.starts_with("http/1.1 413 "), "{head}");
    }
}

#[test]
fn the_sample_lets_no_form_of_the_metrics_through() {
    // Nothing but nginx stands between a client and the metrics here.
    let api = Server::start(&[("CLOAKROOM_METRICS", "any")]);
    let nginx = Nginx::start(&api.address);
    let hidden = "/metrics /metrics/ /metrics?x=1 /metrics/?x=1 /metrics#x /metrics/#x /metrics// /metrics/. \
                  /metrics/x/.. //metrics //metrics/ /./metrics/ /x/../metrics/ /x/%2e%2e/metrics/ /%6detrics \
                  /%6Detric%73/ /metrics%2f /metrics%2F%2f /metrics%3f https://cloakroom.example/metrics/";
    for target in hidden.split(' ') {
        let (head, body) = nginx.get(target);
        assert!(head.starts_with("http/1.1 404 "), "{target}: {head}\n{body}");
        // The answer is nginx's own, so the request never reached the service.
        assert!(!head.contains("x-request-id"), "{target}: {head}\n{body}");
    }
    let (head, body) = nginx.get("/metrics");
    assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
    assert_eq!(error_of(&body), error_of(&api.request_at_root("GET", "/nope").send().text()));
    for target in ["/%256detrics", "/metrics%00", "/METRICS/"] {
        let (head, body) = nginx.get(target);
        assert!(!body.contains("cloakroom_requests_total"), "{target}: {head}\n{body}");
    }
    assert!(api.metrics().contains("cloakroom_requests_total"));
}

/// The parts of an error body that programs and people look at.
pub fn error_of(body: &str) -> [Value; 3] {
    let body: Value = serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {body}"));
    ["detail", "error_code", "reason"].map(|name| body[name].clone())
}

#[test]
fn what_the_sample_answers_by_itself_looks_like_the_services_own_errors() {
    let api = Server::start(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    let nginx = Nginx::start(&api.address);
    let here = Ipv4Addr::LOCALHOST;
    let long = "a".repeat(40_000);
    // Each request goes to nginx, which refuses it, and another one to the service, which refuses it for the same
    // reason.
    let too_large = b"Content-Length: 12000000\r\n\r\n";
    let malformed = b"Content-Length: x\r\n\r\n";
    let long_header = format!("X-Long: {long}\r\n\r\n");
    let cases: &[(&str, &str, &[u8], u16)] = &[
        ("POST", "/api/v1/auth/login", too_large, 413),
        ("POST", "/api/v1/auth/login", malformed, 400),
        ("G(T", "/", b"\r\n", 400),
        ("GET", "/healthz", long_header.as_bytes(), 431),
        ("GET", &format!("/{long}"), b"\r\n", 431),
    ];
    for (method, target, rest, status) in cases {
        let case = format!("{status} {method} {target:.20}");
        let (head, body) = nginx.ask_from(here, method, target, rest);
        let start = format!("{method} {target} HTTP/1.1\r\nHost: {NAME}\r\n");
        let (_connection, ours) = ask(&api.address, [start.as_bytes(), rest].concat());
        assert_eq!(ours.status, *status, "{case}");
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{case}: {head}");
        assert_eq!(error_of(&body), error_of(&String::from_utf8_lossy(&ours.body)), "{case}");
        has_headers_of_an_error(&head);
        assert!(!head.contains("x-request-id"), "{case}: this is nginx's own: {head}");
        assert!(!head.contains("\r\nretry-after:"), "{case}: {head}");
    }
    drop(api);
    let (head, body) = nginx.get("/api/v1/auth/me");
    assert!(head.starts_with("http/1.1 502 "), "{head}");
    assert!(head.lines().any(|line| line == "retry-after: 5"), "{head}");
    has_headers_of_an_error(&head);
    let error = ["Service temporarily unavailable", "SERVICE_UNAVAILABLE", "UNAVAILABLE"];
    assert_eq!(error_of(&body), error);
}

pub fn has_headers_of_an_error(head: &str) {
    for header in [
        "content-type: application/json",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "strict-transport-security: max-age=31536000",
        "cache-control: no-store",
    ] {
        assert!(head.lines().any(|line| line == header), "{header}: {head}");
    }
}

/// Where the service closes an idle connection at the moment in which nginx reuses it, the client gets a 502.
#[test]
fn the_sample_closes_idle_connections_to_the_service_well_before_the_service_does() {
    let sample = sample();
    let (_, upstream) = sample.split_once("upstream cloakroom {").expect("an upstream");
    let (upstream, _) = upstream.split_once("\n}").expect("its end");
    let shown = run("postgres://db.example.com/x", &["config"], &[]).exits(0).out();
    let number_after = |text: &str, name: &str| {
        let digits = text.split_once(name)?.1.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<u64>().ok()
    };
    let ours = number_after(&shown, "\nCLOAKROOM_IDLE_TIMEOUT_SECONDS=").expect("a number");
    // nginx closes them after 60 s where nothing is said.
    let setting = number_after(upstream, " keepalive_timeout ").unwrap_or(60);
    assert!(2 * setting <= ours, "{upstream}");
}
