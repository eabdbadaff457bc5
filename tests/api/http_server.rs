//! The HTTP/1.1 server, byte by byte: which requests it accepts and refuses, framing, timeouts (RFC 9112).

use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::*;

const GET: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\n";

fn post(path: &str, headers: &str, body: &str) -> String {
    format!("POST /api/v1{path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}")
}

#[test]
fn a_head_that_breaks_the_rules_is_refused_and_the_connection_closed() {
    let api = Server::start(&[]);
    let long = "a".repeat(16 * 1024);
    let head = |rest: &str| format!("{GET}{rest}\r\n");
    let line = |line: &str| format!("{line}\r\nHost: x\r\n\r\n");
    for (bytes, status, reason) in [
        (line("GET  /healthz HTTP/1.1"), 400, "two spaces"),
        (line("GET /healthz"), 400, "no version"),
        (line("GET /healthz FTP/1.1"), 400, "another protocol"),
        (line("G(T /healthz HTTP/1.1"), 400, "a method that is no token"),
        (line("GET healthz HTTP/1.1"), 400, "a target without a slash"),
        (line("GET x:443 HTTP/1.1"), 400, "an authority as target"),
        (line("GET /\u{e4} HTTP/1.1"), 400, "a target that is not ASCII"),
        (line("GET /heal\0thz HTTP/1.1"), 400, "NUL in the target"),
        (line("GET /healthz HTTP/2.0"), 505, "2.0"),
        (line("GET /healthz HTTP/1.2"), 505, "1.2"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), 505, "HTTP/2"),
        ("GET /healthz HTTP/1.1\r\n\r\n".into(), 400, "no Host"),
        (head("Host: y\r\n"), 400, "two Hosts"),
        (head("A : b\r\n"), 400, "space before the colon"),
        (head("A: b\r\n c\r\n"), 400, "obs-fold"),
        (head(" A: b\r\n"), 400, "a line that begins with space"),
        (head("A: b\x01\r\n"), 400, "a control character"),
        (head("A: b\0\r\n"), 400, "NUL in a value"),
        (head("A\r\n"), 400, "no colon"),
        (head(": b\r\n"), 400, "no name"),
        (head("A: b\n"), 400, "a line feed alone"),
        (head("A: b\rC: d\r\n"), 400, "a carriage return alone"),
        (head("Content-Length: 1\r\nContent-Length: 1\r\n"), 400, "two lengths"),
        (head("Content-Length: 1, 1\r\n"), 400, "a list of lengths"),
        (head("Content-Length: +1\r\n"), 400, "a sign"),
        (head("Content-Length: -1\r\n"), 400, "a negative length"),
        (head("Content-Length: 0x1\r\n"), 400, "a hexadecimal length"),
        (head("Content-Length:\r\n"), 400, "an empty length"),
        (head("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400, "length and coding"),
        (head("Transfer-Encoding: gzip\r\n"), 400, "another coding"),
        (head("Transfer-Encoding: gzip, chunked\r\n"), 400, "two codings"),
        (head("Transfer-Encoding: identity\r\n"), 400, "identity"),
        (
            head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            400,
            "chunked twice",
        ),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".into(), 400, "chunks in HTTP/1.0"),
        (head("Expect: coffee\r\n"), 417, "another expectation"),
        (
            head("Expect: coffee\r\nContent-Length: x\r\n"),
            400,
            "framing is checked before the expectation",
        ),
        (head(&format!("A: {long}\r\n")), 431, "over 16 KiB"),
        (head(&"A: b\r\n".repeat(100)), 431, "101 headers"),
    ] {
        let (mut connection, answer) = ask(&api.address, &bytes);
        let code = match status {
            417 => "EXPECTATION_FAILED",
            431 => "HEADERS_TOO_LARGE",
            505 => "HTTP_VERSION_NOT_SUPPORTED",
            _ => "BAD_REQUEST",
        };
        assert_eq!(
            (answer.status, &answer.json()["error_code"]),
            (status, &json!(code)),
            "{reason}"
        );
        assert!(answer.has("Connection: close"), "{reason}: {}", answer.head);
        assert!(answer.head.contains("X-Request-ID: "), "{reason}");
        connection.closed();
    }
    let mut bytes = head("").into_bytes();
    bytes.splice(GET.len()..GET.len(), *b"A: \xff\xfe\r\n");
    assert_eq!(ask(&api.address, bytes).1.status, 400, "not UTF-8");
    api.logged("status=431");
}

#[test]
fn unusual_heads_that_the_rules_allow_are_answered() {
    let api = Server::start(&[]);
    let fill = "a".repeat(16 * 1024 - GET.len() - "A: \r\n\r\n".len());
    for (bytes, reason) in [
        (format!("{GET}\r\n"), "an ordinary request"),
        ("GET /healthz HTTP/1.0\r\n\r\n".into(), "HTTP/1.0 needs no Host"),
        (format!("\r\n{GET}\r\n"), "an empty line before the request line"),
        ("GET http://x/healthz?a=b HTTP/1.1\r\nHost: x\r\n\r\n".into(), "absolute form"),
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
fn heads_may_come_in_pieces_and_several_at_once() {
    let api = Server::start(&[]);
    let mut connection = RawConnection::open(&api.address);
    for cut in 1..GET.len() {
        connection.send(&GET[..cut]).send(&GET[cut..]).send("\r\n");
        assert_eq!(connection.answer().status, 200, "cut at {cut}");
    }
    let login = post("/auth/login", "Content-Length: 2\r\n", "{}");
    connection.send(format!("{GET}\r\n{login}{GET}\r\nGET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"));
    let statuses = [0; 4].map(|_| connection.answer().status);
    assert_eq!(statuses, [200, 422, 200, 404], "answers come in the order of requests");
}

#[test]
fn chunks_are_read_to_their_end_and_broken_ones_refused() {
    let api = Server::start(&[]);
    api.sign_up("ann");
    let body = r#"{"username":"ann","password":"correct horse"}"#;
    let (first, second) = body.split_at(7);
    let head = post("/auth/login", "Transfer-Encoding: CHUNKED\r\n", "");
    let good = format!(
        "{head}{:x};a=\"b\"\r\n{first}\r\n{:X}\r\n{second}\r\n0\r\nTrailer: x\r\n\r\n",
        first.len(),
        second.len()
    );
    let mut connection = RawConnection::open(&api.address);
    connection.send(&good);
    assert_eq!(connection.answer().status, 200);
    connection.serves();
    for byte in good.as_bytes() {
        connection.send([*byte]);
    }
    assert_eq!(connection.answer().status, 200, "byte by byte");
    for (rest, reason) in [
        ("x\r\n", "a size that is no number"),
        ("\r\n", "no size"),
        ("-1\r\n", "a sign"),
        ("1\n{", "a line feed alone"),
        ("1\r\n{}\r\n", "longer than its size"),
        ("11111111111111111\r\n", "more than 64 bits"),
        ("1;a\nb\r\n{\r\n", "a line feed in an extension"),
        (&format!("1;{}\r\n", "a".repeat(300)), "a long extension"),
        (&format!("0\r\n{}", "a: b\r\n".repeat(2000)), "endless trailers"),
    ] {
        let (mut connection, answer) = ask(&api.address, format!("{head}{rest}"));
        assert_eq!(answer.status, 400, "{reason}");
        assert_eq!(answer.json()["detail"], json!("Malformed request body"), "{reason}");
        connection.closed();
    }
}

#[test]
fn a_body_that_ends_early_is_a_400() {
    let api = Server::start(&[]);
    let mut connection = RawConnection::open(&api.address);
    connection.send(post("/auth/login", "Content-Length: 20\r\n", "{"));
    connection.socket().shutdown(Shutdown::Write).expect("shutdown");
    let answer = connection.answer();
    assert_eq!(
        (answer.status, &answer.json()["detail"]),
        (400, &json!("Request body ended early"))
    );
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let api = Server::start(&[]);
    for length in ["131073", "10000000000", "99999999999999999999999999"] {
        let headers = format!("Content-Length: {length}\r\n");
        let (mut connection, answer) = ask(&api.address, post("/auth/login", &headers, "{"));
        assert_eq!(answer.status, 413, "{length}");
        assert!(answer.has("Connection: close"));
        connection.closed();
    }
    // The server reads on for a moment, so that a client that only sends gets to see the answer.
    let mut connection = RawConnection::open(&api.address);
    connection.send(post("/auth/login", "Content-Length: 1000000\r\n", ""));
    for _ in 0..16 {
        connection.send([b' '; 16 * 1024]);
    }
    assert_eq!(connection.answer().status, 413);
    let chunk = format!("8000\r\n{}\r\n", "a".repeat(0x8000));
    let chunked = post("/auth/login", "Transfer-Encoding: chunked\r\n", &chunk.repeat(5));
    assert_eq!(ask(&api.address, chunked).1.status, 413, "as soon as the chunks exceed the limit");
    let huge = "Content-Length: 10000000000\r\n";
    assert_eq!(ask(&api.address, post("/users/change-password", huge, "")).1.status, 401);
}

#[test]
fn continue_is_sent_when_the_handler_reads() {
    let api = Server::start(&[]);
    let headers = "Expect: 100-continue\r\nContent-Length: 2\r\n";
    let mut connection = RawConnection::open(&api.address);
    connection.send(post("/auth/login", headers, ""));
    assert_eq!(connection.head().expect("a head"), "HTTP/1.1 100 Continue\r\n\r\n");
    connection.send("{}");
    assert_eq!(connection.answer().status, 422);
    connection.serves();
    connection.send(post("/auth/login", headers, "{}"));
    assert_eq!(connection.answer().status, 422, "a client that did not wait gets no 100");

    for (path, length, status) in
        [("/users/change-password", 2, 401), ("/auth/login", 200_000, 413)]
    {
        let headers = format!("Expect: 100-continue\r\nContent-Length: {length}\r\n");
        let (mut connection, answer) = ask(&api.address, post(path, &headers, ""));
        assert_eq!(answer.status, status, "the refusal comes without a 100 before it");
        connection.closed();
    }
    let old =
        "POST /api/v1/auth/login HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}";
    assert_eq!(ask(&api.address, old).1.status, 422, "HTTP/1.0 has no 100");
}

#[test]
fn an_unread_body_is_drained_up_to_64_kib() {
    let api = Server::start(&[]);
    let mut connection = RawConnection::open(&api.address);
    let plain = |length: usize| {
        post("/nowhere", &format!("Content-Length: {length}\r\n"), &"x".repeat(length))
    };
    connection.send(plain(64 * 1024));
    assert_eq!(connection.answer().status, 404);
    connection.serves();
    let chunks = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    let chunked = |n: usize| {
        post("/nowhere", "Transfer-Encoding: chunked\r\n", &(chunks.repeat(n) + "0\r\n\r\n"))
    };
    connection.send(chunked(4));
    assert_eq!(connection.answer().status, 404);
    connection.serves();
    for bytes in [plain(64 * 1024 + 1), chunked(5)] {
        let (mut connection, answer) = ask(&api.address, bytes);
        assert_eq!(answer.status, 404);
        connection.closed();
    }
}

#[test]
fn a_body_that_comes_too_slowly_is_a_408() {
    let api = Server::start(&[]);
    let begin = Instant::now();
    let mut connection = RawConnection::open(&api.address);
    connection.send(post("/auth/login", "Content-Length: 100000\r\n", ""));
    while begin.elapsed() < Duration::from_secs(11) && connection.try_send(" ").is_ok() {
        thread::sleep(Duration::from_millis(200));
    }
    let answer = connection.answer();
    assert_eq!((answer.status, &answer.json()["error_code"]), (408, &json!("REQUEST_TIMEOUT")));
    assert!(
        begin.elapsed() >= Duration::from_secs(10),
        "the first ten seconds have no minimum speed"
    );
}

#[test]
fn answers_are_framed_for_their_version_and_method() {
    let api = Server::start(&[]);
    let mut connection = RawConnection::open(&api.address);
    connection.send("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    let head = connection.head().expect("a head");
    assert!(head.contains("Content-Length: 15\r\n") && head.contains("Date: "), "{head}");
    connection.serves();
    connection.send(format!("{GET}Connection: Close\r\n\r\n"));
    assert!(connection.answer().has("Connection: close"));
    connection.closed();

    let (mut connection, answer) = ask(&api.address, "GET /healthz HTTP/1.0\r\n\r\n");
    assert!(answer.has("Connection: close"));
    connection.closed();
    let kept = "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    let (mut connection, answer) = ask(&api.address, kept);
    assert!(answer.has("Connection: keep-alive"));
    connection.serves();

    let tokens = api.sign_up("ann");
    let logout = format!("Authorization: Bearer {}\r\n", tokens.access);
    let (mut connection, answer) = ask(&api.address, post("/auth/logout", &logout, ""));
    assert_eq!(answer.status, 204);
    assert!(!answer.head.contains("Content-Length"), "{}", answer.head);
    connection.serves();
}
