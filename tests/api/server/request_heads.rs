//! The HTTP/1.1 server, byte by byte: which request heads it accepts and refuses, and how long it waits for them (RFC
//! 9110, RFC 9112). `http_server.rs` has bodies and responses.

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

const GET: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\n";

#[test]
fn a_head_that_breaks_the_rules_is_refused_and_the_connection_closed() {
    let api = Server::start(&[]);
    let head = |rest: &str| format!("{GET}{rest}\r\n");
    let line = |line: &str| format!("{line}\r\nHost: x\r\n\r\n");
    let empty_host = "GET http://x/healthz HTTP/1.1\r\nHost:\r\n\r\n".to_owned();
    let two_codings = "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n";
    let malformed = [
        (line("GET  /healthz HTTP/1.1"), "two spaces"),
        (line("GET /healthz?a=b c HTTP/1.1"), "a space in the target"),
        (line("GET /healthz?a=b c HTTP/9.9"), "a space in the target, and another version"),
        (line("GET /healthz"), "no version"),
        (line("GET /healthz FTP/1.1"), "another protocol"),
        (line("G(T /healthz HTTP/1.1"), "a method that is no token"),
        (line("GET healthz HTTP/1.1"), "a target without a slash"),
        (line("GET x:443 HTTP/1.1"), "an authority as target"),
        (line("GET /\u{e4} HTTP/1.1"), "a target that is not ASCII"),
        (line("GET /heal\0thz HTTP/1.1"), "NUL in the target"),
        (line("GET /healthz#a HTTP/1.1"), "a fragment"),
        (line("GET http://x#/healthz HTTP/1.1"), "a fragment after an authority"),
        (line("GET http:///healthz HTTP/1.1"), "an empty authority"),
        (line("GET http://ann@x/healthz HTTP/1.1"), "user information"),
        (line("GET ftp://x/healthz HTTP/1.1"), "another scheme"),
        (empty_host, "an authority and an empty Host"),
        ("GET /healthz HTTP/1.1\r\n\r\n".into(), "no Host"),
        (head("Host: y\r\n"), "two Hosts"),
        (head("Authorization: a b\r\nauthorization: a b\r\n"), "two Authorizations"),
        (head("A : b\r\n"), "space before the colon"),
        (head("A: b\r\n c\r\n"), "obs-fold"),
        (head(" A: b\r\n"), "a line that begins with space"),
        (head("A: b\x01\r\n"), "a control character"),
        (head("A: b\0\r\n"), "NUL in a value"),
        (head("A\r\n"), "no colon"),
        (head(": b\r\n"), "no name"),
        (head("A: b\n"), "a line feed alone"),
        (head("A: b\rC: d\r\n"), "a carriage return alone"),
        (head("Content-Length: 1\r\nContent-Length: 1\r\n"), "two lengths"),
        (head("Content-Length: 1, 1\r\n"), "a list of lengths"),
        (head("Content-Length: +1\r\n"), "a sign"),
        (head("Content-Length: -1\r\n"), "a negative length"),
        (head("Content-Length: 0x1\r\n"), "a hexadecimal length"),
        (head("Content-Length:\r\n"), "an empty length"),
        (head("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), "length and coding"),
        (head("Transfer-Encoding: gzip\r\n"), "another coding"),
        (head("Transfer-Encoding: gzip, chunked\r\n"), "two codings"),
        (head("Transfer-Encoding: identity\r\n"), "identity"),
        (head(two_codings), "chunked twice"),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".into(), "chunks in HTTP/1.0"),
        (head("Expect: coffee\r\nContent-Length: x\r\n"), "framing is checked first"),
    ];
    for (bytes, reason) in malformed {
        expect_refusal(&api, &bytes, 400, "BAD_REQUEST", reason);
    }
    for name in ["Host", "Content-Length", "Transfer-Encoding", "Connection"] {
        let host = if name == "Host" { "" } else { "Host: x\r\n" };
        for value in [&b"\xe9"[..], b"close\xff", b"\xc3\xa9", b"3\xc2\xa0"] {
            let head = format!("GET /healthz HTTP/1.1\r\n{host}{name}: ");
            let bytes = [head.as_bytes(), value, b"\r\n\r\n"].concat();
            expect_refusal(&api, &bytes, 400, "BAD_REQUEST", name);
        }
    }
    let bytes = [GET.as_bytes(), b"Expect: 100-continue\xe9\r\n\r\n"].concat();
    expect_refusal(&api, &bytes, 417, "EXPECTATION_FAILED", "an expectation that is not ASCII");
    let http_2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned();
    for bytes in [line("GET /healthz HTTP/2.0"), line("GET /healthz HTTP/1.2"), http_2] {
        expect_refusal(&api, &bytes, 505, "HTTP_VERSION_NOT_SUPPORTED", &bytes);
    }
    expect_refusal(&api, head("Expect: coffee\r\n"), 417, "EXPECTATION_FAILED", "coffee");
    let long = format!("A: {}\r\n", "a".repeat(16 * 1024));
    expect_refusal(&api, head(&long), 431, "HEADERS_TOO_LARGE", "over 16 KiB");
    expect_refusal(&api, head(&"A: b\r\n".repeat(100)), 431, "HEADERS_TOO_LARGE", "101 headers");
    api.logged(" - - 431 ");
}

#[track_caller]
fn expect_refusal(api: &Server, bytes: impl AsRef<[u8]>, status: u16, code: &str, reason: &str) {
    let (mut connection, answer) = ask(&api.address, bytes);
    assert_eq!((answer.status, &answer.json()["error_code"]), (status, &json!(code)), "{reason}");
    for header in ["Connection: close", "X-Request-ID: ", "Referrer-Policy: no-referrer"] {
        assert!(answer.head.contains(&format!("\r\n{header}")), "{reason}: {}", answer.head);
    }
    connection.closed();
}

#[test]
fn unusual_heads_that_the_rules_allow_are_answered() {
    let api = Server::start(&[]);
    let fill = "a".repeat(16 * 1024 - GET.len() - "A: \r\n\r\n".len());
    for (bytes, reason) in [
        (format!("{GET}\r\n"), "an ordinary request"),
        ("GET /healthz HTTP/1.0\r\n\r\n".into(), "HTTP/1.0 needs no Host"),
        (format!("\r\n\r\n{GET}\r\n"), "two empty lines before the request line"),
        ("GET http://x/healthz?a=b HTTP/1.1\r\nHost: x\r\n\r\n".into(), "absolute form"),
        ("GET HTTPS://[::1]:1/healthz HTTP/1.1\r\nHost: x\r\n\r\n".into(), "an address"),
        (format!("{GET}Expect: 100-Continue\r\n\r\n"), "an expectation without a body"),
        (format!("{GET}A: \u{e4}\u{6f22}\r\n\r\n"), "UTF-8 in a value"),
        (format!("{GET}A:\r\nB:\t c\t\r\n\r\n"), "empty values and tabs"),
        (format!("{GET}{}\r\n", "A: b\r\n".repeat(99)), "100 headers"),
        (format!("{GET}A: {fill}\r\n\r\n"), "exactly 16 KiB"),
    ] {
        assert_eq!(ask(&api.address, bytes).1.status, 200, "{reason}");
    }
}

#[test]
fn the_authority_of_a_target_ends_at_a_slash_or_a_question_mark_and_an_empty_path_is_a_slash() {
    let api = Server::start(&[("CLOAKROOM_LOG", "debug")]);
    for (target, status, path, reason) in [
        ("http://x/healthz?a=http://y/", 200, "/healthz", "the first slash ends the authority"),
        ("http://x?/healthz", 404, "/", "a slash in the query begins no path"),
        ("http://x:8000?a", 404, "/", "an authority with a port, and a query"),
        ("http://x", 404, "/", "nothing but an authority"),
    ] {
        let line = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        let (_, answer) = ask(&api.address, line);
        assert_eq!(answer.status, status, "{reason}");
        let logged = api.logged(&answer.request_id());
        assert!(logged.contains(&format!(" GET {path} ")), "{reason}: {logged}");
    }
}

#[test]
fn host_is_a_name_or_an_address_with_or_without_a_port() {
    let api = Server::start(&[]);
    let status = |host: &str| {
        ask(&api.address, format!("GET /healthz HTTP/1.1\r\nHost:{host}\r\n\r\n")).1.status
    };
    for (host, reason) in [
        ("x", "a name without a space before it"),
        (" example.com\t", "a name and white space"),
        (" a_b-c~1.EXAMPLE", "letters, digits and four marks"),
        (" example.com:8000", "a port"),
        (" example.com:", "the digits of a port may be none"),
        (" a%2Db", "a percent-encoded byte"),
        (" !$&'()*+,;=", "delimiters within a component"),
        (" 192.0.2.1:80", "an IPv4 address"),
        (" [::1]", "an IPv6 address"),
        (" [2001:db8::192.0.2.1]:80", "an IPv6 address with a port"),
        ("", "empty: the target names no authority either"),
    ] {
        assert_eq!(status(host), 200, "{reason}");
    }
    for (host, reason) in [
        (" :80", "a port of no host"),
        (" x y", "a space"),
        (" x/y", "a path"),
        (" http://x", "a URL"),
        (" ann@x", "user information"),
        (" x:80a", "a port that is no number"),
        (" x:-1", "a sign"),
        (" x:1:2", "two ports"),
        (" ::1", "an IPv6 address without brackets"),
        (" [::1", "no closing bracket"),
        (" [::1]x", "text after the bracket"),
        (" [::g]", "no IPv6 address"),
        (" [192.0.2.1]", "an IPv4 address in brackets"),
        (" [fe80::1%25lo]", "a zone"),
        (" a%2", "half a percent-encoded byte"),
        (" a%xy", "no hexadecimal digits"),
        (" x?", "a query"),
        (" x#", "a fragment"),
        (" \"x\"", "quotes"),
        (" \u{e4}", "not ASCII"),
    ] {
        assert_eq!(status(host), 400, "{reason}");
    }
    let old = "GET /healthz HTTP/1.0\r\nHost: x y\r\n\r\n";
    assert_eq!(ask(&api.address, old).1.status, 400, "HTTP/1.0 may have none, but no other");
}

#[test]
fn refusals_of_a_head_request_have_no_body() {
    let api = Server::start(&[("CLOAKROOM_HEAD_TIMEOUT_SECONDS", "1")]);
    let long = format!("HEAD /{} HTTP/1.1\r\n", "a".repeat(16 * 1024));
    for (bytes, status) in [
        ("HEAD /healthz HTTP/1.1\r\n\r\n", "400"),
        ("HEAD /healthz HTTP/1.1\r\nHost: x\r\nExpect: coffee\r\n\r\n", "417"),
        ("HEAD /healthz HTTP/2.0\r\nHost: x\r\n\r\n", "505"),
        ("\r\nHEAD /healthz HTTP/1.1\r\nA: b\n\r\n", "400"),
        (&long, "431"),
        ("HEAD /healthz HTTP/1.1\r\nHost: x\r\n", "408"),
    ] {
        let mut connection = RawConnection::open(&api.address);
        connection.send(bytes);
        let head = connection.head().expect("a head");
        assert_eq!(head.split(' ').nth(1), Some(status), "{head}");
        let has_length = head.contains("Content-Length: ");
        assert!(has_length && !head.contains("Content-Length: 0\r"), "{head}");
        connection.closed();
    }
}

#[test]
fn refusals_keep_the_id_of_a_request_whose_head_was_read() {
    let api = Server::start(&[]);
    let id = "c0ffee00-1234-4abc-8def-0123456789ab";
    for (bytes, reason) in [
        (format!("GET / HTTP/1.1\r\nX-Request-ID: {id}\r\n\r\n"), "no Host"),
        (format!("{GET}Host: y\r\nx-request-id:{}\r\n\r\n", id.to_uppercase()), "two Hosts"),
        (format!("GET / HTTP/3.0\r\nX-Request-ID: {id}\r\n\r\n"), "a version"),
        (format!("{GET}X-Request-ID: {id} \r\nA: b\x01\r\n\r\n"), "a control character"),
        (format!("{GET}X-Request-ID: {id}\r\n{}\r\n", "A: b\r\n".repeat(100)), "many headers"),
    ] {
        let (_, answer) = ask(&api.address, bytes);
        assert!(answer.status >= 400, "{reason}: {}", answer.head);
        assert_eq!(answer.request_id(), id, "{reason}");
        assert!(answer.head.contains("\r\nCache-Control: no-store\r\n"), "{}", answer.head);
    }
    // The last one is logged with its reason.
    let is_it = |line: &str| line.contains(id) && line.contains("Request headers too large");
    wait_until(|| api.log().lines().any(is_it));
    for (bytes, reason) in [
        (format!("{GET}Host: y\r\nX-Request-ID: 7\r\n\r\n"), "no UUID"),
        (format!("{GET}Host: y\r\nA: b\r\n\r\nX-Request-ID: {id}\r\n"), "after the head"),
    ] {
        let made = ask(&api.address, bytes).1.request_id();
        assert!(made != id && made.len() == 36 && &made[14..15] == "4", "{reason}: {made}");
    }
}

#[test]
fn refusals_of_the_server_have_the_configured_format() {
    let api = Server::start(&[("CLOAKROOM_ERROR_FORMAT", "envelope")]);
    let (_, answer) = ask(&api.address, "nonsense\r\n\r\n");
    assert_eq!(answer.json()["error"]["code"], json!("BAD_REQUEST"));
}

#[test]
fn a_slow_head_and_an_idle_connection_are_ended() {
    let api = Server::start(&[
        ("CLOAKROOM_HEAD_TIMEOUT_SECONDS", "1"),
        ("CLOAKROOM_IDLE_TIMEOUT_SECONDS", "2"),
    ]);
    let begin = Instant::now();
    let mut slow = RawConnection::open(&api.address);
    // A byte of the head now and then, until the timeout is over.
    for byte in GET.as_bytes().iter().cycle() {
        if begin.elapsed() > Duration::from_millis(1300) || slow.try_send([*byte]).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    let answer = slow.answer();
    assert_eq!((answer.status, &answer.json()["error_code"]), (408, &json!("REQUEST_TIMEOUT")));
    slow.closed();
    assert!(begin.elapsed() >= Duration::from_secs(1), "it ended before the timeout");

    let begin = Instant::now();
    let mut idle = RawConnection::open(&api.address);
    idle.serves();
    idle.closed();
    let took = begin.elapsed();
    // The default timeout is 60 seconds.
    assert!((2..30).contains(&took.as_secs()), "{took:?}");
}

#[test]
fn three_empty_lines_before_a_request_line_are_refused() {
    let api = Server::start(&[]);
    let mut connection = RawConnection::open(&api.address);
    for _ in 0..3 {
        connection.send("\r\n\r\n").serves();
    }
    for end in ["", "\r\n", GET, "x"] {
        let (mut connection, answer) = ask(&api.address, format!("\r\n\r\n\r\n{end}"));
        assert_eq!(answer.status, 400, "{end:?}");
        connection.closed();
    }
    let mut connection = RawConnection::open(&api.address);
    for byte in b"\r\n\r\n\r\n" {
        connection.send([*byte]);
    }
    assert_eq!(connection.answer().status, 400, "byte by byte");
}

#[test]
fn empty_lines_before_a_request_line_move_no_deadline() {
    let api = Server::start(&[
        ("CLOAKROOM_HEAD_TIMEOUT_SECONDS", "20"),
        ("CLOAKROOM_IDLE_TIMEOUT_SECONDS", "2"),
    ]);
    let begin = Instant::now();
    for empty in ["\r", "\r\n", "\r\n\r", "\r\n\r\n"] {
        let mut connection = RawConnection::open(&api.address);
        connection.send(empty);
        connection.closed();
    }
    // Each connection is idle for 2 seconds. A deadline that had been moved would be at 20 for each.
    assert!((8..20).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
}

#[test]
fn heads_may_come_in_pieces_and_several_at_once() {
    let api = Server::start(&[]);
    let mut connection = RawConnection::open(&api.address);
    for cut in 1..GET.len() {
        connection.send(&GET[..cut]).send(&GET[cut..]).send("\r\n");
        assert_eq!(connection.answer().status, 200, "cut at {cut}");
    }
    let login = "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    connection.send(format!("{GET}\r\n{login}{GET}\r\nGET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"));
    let statuses = [0; 4].map(|_| connection.answer().status);
    assert_eq!(statuses, [200, 422, 200, 404], "answers come in the order of requests");
}
