//! Random mutations of valid requests, sent to this server and to nginx. Where the two disagree on where a request
//! ends, a request could be smuggled past one of them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::mutated_requests::{NEXT, Random};
use crate::harness::*;

/// A request as a server has read it.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    method: String,
    /// Without the query; `None` if the server does not tell.
    path: Option<String>,
}

impl Seen {
    fn is_same(&self, other: &Seen) -> bool {
        let same_path = self.path.is_none() || other.path.is_none() || self.path == other.path;
        // The log shows the first 20 characters of a method.
        self.method.chars().take(20).eq(other.method.chars().take(20)) && same_path
    }
}

/// One response.
#[derive(Debug)]
struct Reply {
    /// The request it answers; `None` if the server refused the bytes.
    seen: Option<Seen>,
    says_close: bool,
    /// The body of the request is not what the server expects: it has a syntax error.
    is_malformed_body: bool,
}

fn field<'a>(response: &'a str, name: &str) -> Option<&'a str> {
    response.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The request that a response answers: nginx tells it in `X-Seen`, without its authority, and this server in its log.
fn seen(api: &Server, response: &str) -> Option<Seen> {
    let Some(id) = field(response, "X-Request-ID") else {
        let (method, target) = field(response, "X-Seen")?.split_once(' ')?;
        let path = target.split('?').next().filter(|path| !path.is_empty()).unwrap_or("/");
        return Some(Seen { method: method.to_owned(), path: Some(path.to_owned()) });
    };
    let record: Value = serde_json::from_str(&api.logged(id)).expect("JSON");
    let text = |name: &str| record[name].as_str().map(str::to_owned);
    let path = text("path").filter(|path| path.starts_with('/'));
    Some(Seen { method: text("method")?, path })
}

/// Starts an nginx that listens at this address and tells what it has read.
fn start_nginx(address: SocketAddr) -> NginxProcess {
    let http = format!(
        "client_header_buffer_size 32k;\n\
         server {{ listen {address}; location / {{\n\
         add_header X-Seen \"$request_method $request_uri\" always; return 200; }} }}\n"
    );
    NginxProcess::start(Directory::create(), &http, || TcpStream::connect(address).is_ok())
}

/// How the two servers disagree on where a request ends, if they do. Each may refuse what the other accepts, and end
/// the connection there.
fn disagreement(both: &mut Both, bytes: &[u8]) -> Option<String> {
    let (ours, nginx) = (both.ours(bytes), both.nginx(bytes));
    let has_read =
        |replies: &[Reply], i| replies.get(i).is_some_and(|reply: &Reply| reply.seen.is_some());
    both.counts.all += 1;
    both.counts.accepted += usize::from(has_read(&ours, 0));
    both.counts.continued += usize::from(has_read(&ours, 1) && has_read(&nginx, 1));
    for i in 0..=ours.len().max(nginx.len()) {
        let seen = |replies: &[Reply]| replies.get(i).map(|reply| reply.seen.clone());
        let how = match (seen(&ours), seen(&nginx)) {
            (Some(Some(ours)), Some(Some(nginx))) if !ours.is_same(&nginx) => "two requests",
            (Some(Some(_)), Some(Some(_))) if nginx[i].says_close => return None,
            (Some(Some(_)), Some(Some(_))) => continue,
            (Some(Some(_)), None) => "a request that nginx does not see",
            (Some(None), Some(Some(_))) if i > 0 && !both.agree_on_start(bytes, i) => {
                "a request that starts elsewhere for this server"
            }
            (None, Some(Some(_))) if !both.has_reason_to_end(&ours[i - 1], bytes) => {
                "a request that this server does not see"
            }
            _ => return None,
        };
        return Some(format!("{how}\nours: {ours:?}\nnginx: {nginx:?}"));
    }
    None
}

/// How many cases there were, to show that they say something.
#[derive(Debug, Default)]
struct Counts {
    all: usize,
    /// This server has accepted the first request.
    accepted: usize,
    /// Both servers have read another request after the first.
    continued: usize,
}

/// The two servers.
struct Both {
    api: Server,
    /// It runs as long as this lives.
    _nginx: NginxProcess,
    address_of_nginx: SocketAddr,
    counts: Counts,
}

impl Both {
    fn start() -> Both {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address_of_nginx = free.local_addr().expect("an address");
        let api = Server::start(&[("CLOAKROOM_LOG_FORMAT", "json"), ("CLOAKROOM_LOG", "debug")]);
        drop(free);
        let _nginx = start_nginx(address_of_nginx);
        Both { api, _nginx, address_of_nginx, counts: Counts::default() }
    }

    fn ours(&self, bytes: &[u8]) -> Vec<Reply> {
        self.replies(self.api.address.parse().expect("an address"), bytes)
    }

    fn nginx(&self, bytes: &[u8]) -> Vec<Reply> {
        self.replies(self.address_of_nginx, bytes)
    }

    /// Sends everything at once and returns the responses.
    fn replies(&self, address: SocketAddr, bytes: &[u8]) -> Vec<Reply> {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        // The server may have refused the first bytes and closed the connection before it has received all.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut received = Vec::new();
        if let Err(e) = stream.read_to_end(&mut received) {
            assert_eq!(e.kind(), ErrorKind::ConnectionReset, "{e} after {}", bytes.escape_ascii());
        }
        let text = String::from_utf8_lossy(&received);
        // A status line goes on with its status; the text of an error may name the version, too.
        let parts = text.split("HTTP/1.1 ");
        let responses = parts.filter(|part| part.starts_with(|c: char| c.is_ascii_digit()));
        let reply = |response: &str| Reply {
            seen: seen(&self.api, response),
            says_close: field(response, "Connection") == Some("close"),
            is_malformed_body: response.contains("\"Malformed request body\""),
        };
        responses.map(reply).collect()
    }

    /// Whether request `i` starts at the same byte for both, although this server refuses it: where the connection is
    /// cut at that byte and [`NEXT`] put behind it, both read that as request `i`. Cut anywhere else, none does.
    fn agree_on_start(&self, bytes: &[u8], i: usize) -> bool {
        let (method, _) = NEXT.split_once(' ').expect("a method");
        let next = Seen { method: method.to_owned(), path: Some("/next".to_owned()) };
        let is_next = |replies: Vec<Reply>| {
            let seen = replies.into_iter().nth(i).and_then(|reply| reply.seen);
            seen.is_some_and(|seen| seen.is_same(&next))
        };
        (0..=bytes.len()).any(|start| {
            let cut = [&bytes[..start], NEXT.as_bytes()].concat();
            is_next(self.ours(&cut)) && is_next(self.nginx(&cut))
        })
    }

    /// Whether this server has ended the connection after `last` for another reason than that it waits for more of a
    /// body: the client may have asked for it, or the body be malformed. Where the handler did not read the body only
    /// time tells: a server that waits does not close the connection.
    fn has_reason_to_end(&self, last: &Reply, bytes: &[u8]) -> bool {
        if last.says_close {
            let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
            return last.is_malformed_body || text.contains("close") || text.contains("http/1.0");
        }
        let mut stream = TcpStream::connect(&self.api.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(8))).expect("a timeout");
        // The server may have closed the connection by now.
        let _ = stream.write_all(bytes);
        let end = stream.read_to_end(&mut Vec::new());
        end.map_or_else(|e| e.kind() == ErrorKind::ConnectionReset, |_| true)
    }
}

#[test]
fn no_mutation_of_a_request_is_framed_in_another_way_than_nginx_frames_it() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let seed = number("CLOAKROOM_TEST_SEED").unwrap_or(now);
    let seconds = number("CLOAKROOM_TEST_RANDOM_SECONDS").unwrap_or(1);
    let mut both = Both::start();
    let mut random = Random(seed);
    let begin = Instant::now();
    while both.counts.all < 1000 || begin.elapsed() < Duration::from_secs(seconds) {
        let bytes = [random.mutated_request(), NEXT.into()].concat();
        if let Some(how) = disagreement(&mut both, &bytes) {
            panic!("CLOAKROOM_TEST_SEED={seed}: {}: {how}", bytes.escape_ascii());
        }
    }
    let counts = both.counts;
    let is_fine = counts.accepted > counts.all / 10 && counts.continued > counts.all / 20;
    assert!(is_fine, "the mutations are too coarse: {counts:?}");
}
