//! What the listener takes and refuses (contract, 8), byte by byte.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Server;
use crate::raw::{Raw, ask};

const GET: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\n";

fn post(path: &str, headers: &str, body: &str) -> String {
    format!("POST /api/v1{path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}")
}

#[test]
fn a_head_that_breaks_the_rules_is_refused_and_the_connection_closed() {
    let server = Server::start(&[]);
    let long = "a".repeat(16 * 1024);
    let head = |rest: &str| format!("{GET}{rest}\r\n");
    let line = |line: &str| format!("{line}\r\nHost: x\r\n\r\n");
    for (bytes, status, code, reason) in [
        (line("GET  /healthz HTTP/1.1"), 400, "BAD_REQUEST", "two spaces"),
        (line("GET /healthz"), 400, "BAD_REQUEST", "no version"),
        (line("GET /healthz FTP/1.1"), 400, "BAD_REQUEST", "no version of HTTP"),
        (line("G(T /healthz HTTP/1.1"), 400, "BAD_REQUEST", "a method that is no token"),
        (line("GET healthz HTTP/1.1"), 400, "BAD_REQUEST", "a target without a slash"),
        (line("GET x:443 HTTP/1.1"), 400, "BAD_REQUEST", "an authority as target"),
        (line("GET /\u{e4} HTTP/1.1"), 400, "BAD_REQUEST", "a target that is not ASCII"),
        (line("GET /heal\0thz HTTP/1.1"), 400, "BAD_REQUEST", "NUL in the target"),
        (line("GET /healthz HTTP/2.0"), 505, "HTTP_VERSION_NOT_SUPPORTED", "2.0"),
        (line("GET /healthz HTTP/1.2"), 505, "HTTP_VERSION_NOT_SUPPORTED", "1.2"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), 505, "HTTP_VERSION_NOT_SUPPORTED", "HTTP/2"),
        ("GET /healthz HTTP/1.1\r\n\r\n".into(), 400, "BAD_REQUEST", "no Host"),
        (head("Host: y\r\n"), 400, "BAD_REQUEST", "two Hosts"),
        (head("A : b\r\n"), 400, "BAD_REQUEST", "space before the colon"),
        (head("A: b\r\n c\r\n"), 400, "BAD_REQUEST", "obs-fold"),
        (head(" A: b\r\n"), 400, "BAD_REQUEST", "a line that begins with space"),
        (head("A: b\x01\r\n"), 400, "BAD_REQUEST", "a control character"),
        (head("A: b\0\r\n"), 400, "BAD_REQUEST", "NUL in a value"),
        (head("A\r\n"), 400, "BAD_REQUEST", "no colon"),
        (head(": b\r\n"), 400, "BAD_REQUEST", "no name"),
        (head("A: b\n"), 400, "BAD_REQUEST", "a line feed alone"),
        (head("A: b\rC: d\r\n"), 400, "BAD_REQUEST", "a carriage return alone"),
        (head("Content-Length: 1\r\nContent-Length: 1\r\n"), 400, "BAD_REQUEST", "two lengths"),
        (head("Content-Length: 1, 1\r\n"), 400, "BAD_REQUEST", "a list of lengths"),
        (head("Content-Length: +1\r\n"), 400, "BAD_REQUEST", "a sign"),
        (head("Content-Length: -1\r\n"), 400, "BAD_REQUEST", "a negative length"),
        (head("Content-Length: 0x1\r\n"), 400, "BAD_REQUEST", "a hexadecimal length"),
        (head("Content-Length:\r\n"), 400, "BAD_REQUEST", "an empty length"),
        (
            head("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
            400,
            "BAD_REQUEST",
            "length and coding",
        ),
        (head("Transfer-Encoding: gzip\r\n"), 400, "BAD_REQUEST", "another coding"),
        (head("Transfer-Encoding: gzip, chunked\r\n"), 400, "BAD_REQUEST", "two codings"),
        (head("Transfer-Encoding: identity\r\n"), 400, "BAD_REQUEST", "identity"),
        (
            head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            400,
            "BAD_REQUEST",
            "chunked twice",
        ),
        (
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".into(),
            400,
            "BAD_REQUEST",
            "chunks in HTTP/1.0",
        ),
        (head("Expect: coffee\r\n"), 417, "EXPECTATION_FAILED", "another expectation"),
        (
            head("Expect: coffee\r\nContent-Length: x\r\n"),
            400,
            "BAD_REQUEST",
            "framing is looked at before the expectation",
        ),
        (head(&format!("A: {long}\r\n")), 431, "HEADERS_TOO_LARGE", "over 16 KiB"),
        (head(&"A: b\r\n".repeat(100)), 431, "HEADERS_TOO_LARGE", "101 headers"),
    ] {
        let (mut raw, answer) = ask(&server.address, &bytes);
        assert_eq!(answer.status, status, "{reason}");
        assert_eq!(answer.json()["error_code"], json!(code), "{reason}");
        assert!(answer.has("Connection: close"), "{reason}: {}", answer.head);
        assert!(answer.head.contains("X-Request-ID: "), "{reason}");
        raw.closed();
    }
    let mut bytes = head("").into_bytes();
    bytes.splice(GET.len()..GET.len(), *b"A: \xff\xfe\r\n");
    assert_eq!(ask(&server.address, bytes).1.status, 400, "not UTF-8");
    server.logged("status=431");
}

#[test]
fn what_the_rules_allow_is_answered() {
    let server = Server::start(&[]);
    let fill = "a".repeat(16 * 1024 - GET.len() - "A: \r\n\r\n".len());
    for (bytes, reason) in [
        (format!("{GET}\r\n"), "plain"),
        ("GET /healthz HTTP/1.0\r\n\r\n".into(), "HTTP/1.0 needs no Host"),
        (format!("\r\n{GET}\r\n"), "an empty line before"),
        ("GET http://x/healthz?a=b HTTP/1.1\r\nHost: x\r\n\r\n".into(), "absolute form"),
        (format!("{GET}Expect: 100-Continue\r\n\r\n"), "nothing to continue with"),
        (format!("{GET}A: \u{e4}\u{6f22}\r\n\r\n"), "UTF-8 in a value"),
        (format!("{GET}A:\r\nB:\t c\t\r\n\r\n"), "empty values and tabs"),
        (format!("{GET}{}\r\n", "A: b\r\n".repeat(99)), "100 headers"),
        (format!("{GET}A: {fill}\r\n\r\n"), "16 KiB to the byte"),
    ] {
        assert_eq!(ask(&server.address, bytes).1.status, 200, "{reason}");
    }
}

#[test]
fn refusals_have_the_configured_shape() {
    let server = Server::start(&[("CLOAKROOM_ERROR_FORMAT", "envelope")]);
    let (_, answer) = ask(&server.address, "nonsense\r\n\r\n");
    assert_eq!(answer.json()["error"]["code"], json!("BAD_REQUEST"));
}

#[test]
fn a_dripping_head_and_an_idle_connection_end() {
    let server = Server::start(&[
        ("CLOAKROOM_HEAD_TIMEOUT_SECONDS", "1"),
        ("CLOAKROOM_IDLE_TIMEOUT_SECONDS", "2"),
    ]);
    let begin = Instant::now();
    let mut raw = Raw::open(&server.address);
    for byte in GET.as_bytes().iter().cycle() {
        if raw.try_send([*byte]).is_err() || begin.elapsed() > Duration::from_millis(1300) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let answer = raw.answer();
    assert_eq!(answer.status, 408);
    assert_eq!(answer.json()["error_code"], json!("REQUEST_TIMEOUT"));
    raw.closed();
    assert!(begin.elapsed() >= Duration::from_secs(1), "not before its time");

    let begin = Instant::now();
    let mut raw = Raw::open(&server.address);
    raw.serves();
    raw.closed();
    let took = begin.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn a_head_in_two_pieces_and_two_heads_in_one_are_all_the_same() {
    let server = Server::start(&[]);
    let mut raw = Raw::open(&server.address);
    for cut in 1..GET.len() {
        raw.send(&GET[..cut]).send(&GET[cut..]).send("\r\n");
        assert_eq!(raw.answer().status, 200, "cut at {cut}");
    }
    let login = post("/auth/login", "Content-Length: 2\r\n", "{}");
    raw.send(format!("{GET}\r\n{login}{GET}\r\nGET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"));
    let statuses = [0; 4].map(|_| raw.answer().status);
    assert_eq!(statuses, [200, 422, 200, 404], "in order");
}

#[test]
fn chunks_are_read_to_their_end_and_broken_ones_refused() {
    let server = Server::start(&[]);
    server.sign_up("ann");
    let body = r#"{"username":"ann","password":"correct horse"}"#;
    let (first, second) = body.split_at(7);
    let head = post("/auth/login", "Transfer-Encoding: CHUNKED\r\n", "");
    let good = format!(
        "{head}{:x};a=\"b\"\r\n{first}\r\n{:X}\r\n{second}\r\n0\r\nTrailer: x\r\n\r\n",
        first.len(),
        second.len()
    );
    let mut raw = Raw::open(&server.address);
    raw.send(&good);
    assert_eq!(raw.answer().status, 200);
    raw.serves();
    for byte in good.as_bytes() {
        raw.send([*byte]);
    }
    assert_eq!(raw.answer().status, 200, "byte by byte");
    for (rest, reason) in [
        ("x\r\n", "no number"),
        ("\r\n", "no size"),
        ("-1\r\n", "a sign"),
        ("1\n{", "a line feed alone"),
        ("1\r\n{}\r\n", "longer than its size"),
        ("11111111111111111\r\n", "more than 64 bits"),
        ("1;a\nb\r\n{\r\n", "a line feed in an extension"),
        (&format!("1;{}\r\n", "a".repeat(300)), "a long extension"),
        (&format!("0\r\n{}", "a: b\r\n".repeat(2000)), "endless trailers"),
    ] {
        let (mut raw, answer) = ask(&server.address, format!("{head}{rest}"));
        assert_eq!(answer.status, 400, "{reason}");
        assert_eq!(answer.json()["detail"], json!("Malformed request body"), "{reason}");
        raw.closed();
    }
}

#[test]
fn a_body_that_ends_early_is_no_request() {
    let server = Server::start(&[]);
    let mut raw = Raw::open(&server.address);
    raw.send(post("/auth/login", "Content-Length: 20\r\n", "{"));
    raw.socket().shutdown(std::net::Shutdown::Write).expect("shutdown");
    let answer = raw.answer();
    assert_eq!(
        (answer.status, &answer.json()["detail"]),
        (400, &json!("Request body ended early"))
    );
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let server = Server::start(&[]);
    for length in ["131073", "10000000000", "99999999999999999999999999"] {
        let headers = format!("Content-Length: {length}\r\n");
        let (mut raw, answer) = ask(&server.address, post("/auth/login", &headers, "{"));
        assert_eq!(answer.status, 413, "{length}");
        assert!(answer.has("Connection: close"));
        raw.closed();
    }
    // A client that sends on without looking still gets to see the answer.
    let mut raw = Raw::open(&server.address);
    raw.send(post("/auth/login", "Content-Length: 1000000\r\n", ""));
    for _ in 0..16 {
        raw.send([b' '; 16 * 1024]);
    }
    assert_eq!(raw.answer().status, 413);
    let chunk = format!("8000\r\n{}\r\n", "a".repeat(0x8000));
    let chunked = post("/auth/login", "Transfer-Encoding: chunked\r\n", &chunk.repeat(5));
    assert_eq!(ask(&server.address, chunked).1.status, 413, "as soon as it is known");
    let huge = "Content-Length: 10000000000\r\n";
    assert_eq!(ask(&server.address, post("/users/change-password", huge, "")).1.status, 401);
}

#[test]
fn continue_is_sent_when_the_handler_reads() {
    let server = Server::start(&[]);
    let headers = "Expect: 100-continue\r\nContent-Length: 2\r\n";
    let mut raw = Raw::open(&server.address);
    raw.send(post("/auth/login", headers, ""));
    assert_eq!(raw.head().expect("a head"), "HTTP/1.1 100 Continue\r\n\r\n");
    raw.send("{}");
    assert_eq!(raw.answer().status, 422);
    raw.serves();
    raw.send(post("/auth/login", headers, "{}"));
    assert_eq!(raw.answer().status, 422, "who did not wait need not be told");

    for (path, length, status) in
        [("/users/change-password", 2, 401), ("/auth/login", 200_000, 413)]
    {
        let headers = format!("Expect: 100-continue\r\nContent-Length: {length}\r\n");
        let (mut raw, answer) = ask(&server.address, post(path, &headers, ""));
        assert_eq!(answer.status, status, "no 100 before it");
        raw.closed();
    }
    let old =
        "POST /api/v1/auth/login HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}";
    assert_eq!(ask(&server.address, old).1.status, 422, "HTTP/1.0 knows no 100");
}

#[test]
fn what_the_handler_left_is_drained_up_to_64_kib() {
    let server = Server::start(&[]);
    let mut raw = Raw::open(&server.address);
    let plain = |length: usize| {
        post("/nowhere", &format!("Content-Length: {length}\r\n"), &"x".repeat(length))
    };
    raw.send(plain(64 * 1024));
    assert_eq!(raw.answer().status, 404);
    raw.serves();
    let chunks = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    let chunked = |n: usize| {
        post("/nowhere", "Transfer-Encoding: chunked\r\n", &(chunks.repeat(n) + "0\r\n\r\n"))
    };
    raw.send(chunked(4));
    assert_eq!(raw.answer().status, 404);
    raw.serves();
    for bytes in [plain(64 * 1024 + 1), chunked(5)] {
        let (mut raw, answer) = ask(&server.address, bytes);
        assert_eq!(answer.status, 404);
        raw.closed();
    }
}

#[test]
fn a_slow_body_is_cut() {
    let server = Server::start(&[]);
    let begin = Instant::now();
    let mut raw = Raw::open(&server.address);
    raw.send(post("/auth/login", "Content-Length: 100000\r\n", ""));
    while begin.elapsed() < Duration::from_secs(11) && raw.try_send(" ").is_ok() {
        std::thread::sleep(Duration::from_millis(200));
    }
    let answer = raw.answer();
    assert_eq!((answer.status, &answer.json()["error_code"]), (408, &json!("REQUEST_TIMEOUT")));
    assert!(begin.elapsed() >= Duration::from_secs(10), "ten seconds are free");
}

#[test]
fn answers_are_framed_for_their_version_and_method() {
    let server = Server::start(&[]);
    let mut raw = Raw::open(&server.address);
    raw.send("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    let head = raw.head().expect("a head");
    assert!(head.contains("Content-Length: 15\r\n") && head.contains("Date: "), "{head}");
    raw.serves();
    raw.send(format!("{GET}Connection: Close\r\n\r\n"));
    assert!(raw.answer().has("Connection: close"));
    raw.closed();

    let (mut raw, answer) = ask(&server.address, "GET /healthz HTTP/1.0\r\n\r\n");
    assert!(answer.has("Connection: close"));
    raw.closed();
    let kept = "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let (mut raw, answer) = ask(&server.address, kept);
    assert!(answer.has("Connection: keep-alive"));
    raw.serves();

    let tokens = server.sign_up("ann");
    let logout = format!("Authorization: Bearer {}\r\n", tokens.access);
    let (mut raw, answer) = ask(&server.address, post("/auth/logout", &logout, ""));
    assert_eq!(answer.status, 204);
    assert!(!answer.head.contains("Content-Length"), "{}", answer.head);
    raw.serves();
}
