//! The HTTP/1.1 server, byte by byte: framing and limits of bodies, framing of responses (RFC 9112). `request_heads.rs`
//! has heads.

use std::time::{Duration, Instant};

use crate::harness::*;

const GET: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\n";

fn post(path: &str, headers: &str, body: &str) -> String {
    format!("POST /api/v1{path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}")
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
fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let api = Server::start(&[]);
    let plain = |length: &str, body: &str| {
        post("/auth/login", &format!("Content-Length: {length}\r\n"), body)
    };
    let chunked = |body: &str| post("/auth/login", "Transfer-Encoding: chunked\r\n", body);
    for length in ["131073", "10000000000", "99999999999999999999999999"] {
        let (mut connection, answer) = ask(&api.address, plain(length, "{"));
        assert_eq!(answer.status, 413, "{length}");
        assert!(answer.has("Connection: close"));
        connection.closed();
    }
    // The server reads on for a moment, so that a client that only sends gets to see the answer.
    let (_, answer) = ask(&api.address, plain("1000000", &" ".repeat(16 * 16 * 1024)));
    assert_eq!(answer.status, 413);
    let begin = Instant::now();
    for (first, size) in [("", "20001"), ("1\r\n{\r\n", "20000"), ("", "ffffffffffffffff")] {
        let (mut connection, answer) = ask(&api.address, chunked(&format!("{first}{size}\r\n")));
        assert_eq!(answer.status, 413, "a chunk of {size} is announced and not sent");
        connection.closed();
    }
    // A body that is waited for ends after 10 seconds.
    assert!(begin.elapsed() < Duration::from_secs(9), "{:?}", begin.elapsed());
    let ann = api.sign_up("ann");
    // A little over the default limit of 10 MiB and what the form around the file may add.
    let upload = api.begin_upload(&ann, "Transfer-Encoding: chunked", b"b00000\r\n--a");
    assert_eq!(status_of(upload), 413, "a chunk that is larger than any file");
    let chunk = format!("8000\r\n{}\r\n", " ".repeat(0x8000));
    let whole = format!("20000\r\n{}\r\n0\r\n\r\n", " ".repeat(0x20000));
    let huge = post("/users/change-password", "Content-Length: 10000000000\r\n", "");
    for (bytes, status, reason) in [
        (chunked(&chunk.repeat(5)), 413, "as soon as the chunks exceed the limit"),
        (chunked(&whole), 422, "a chunk of exactly the limit is read"),
        (plain("131072", &" ".repeat(0x20000)), 422, "a body of exactly the limit is read"),
        (huge, 401, "who asks is looked at first"),
    ] {
        assert_eq!(ask(&api.address, bytes).1.status, status, "{reason}");
    }
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
    let plain = |length: usize| {
        post("/nowhere", &format!("Content-Length: {length}\r\n"), &"x".repeat(length))
    };
    let chunk = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    let chunked = |n: usize| {
        post("/nowhere", "Transfer-Encoding: chunked\r\n", &(chunk.repeat(n) + "0\r\n\r\n"))
    };
    for (bytes, is_drained) in [
        (plain(1 << 16), true),
        (chunked(4), true),
        (plain((1 << 16) + 1), false),
        (chunked(5), false),
    ] {
        let (mut connection, answer) = ask(&api.address, bytes);
        assert_eq!(answer.status, 404);
        if is_drained { connection.serves() } else { connection.closed() }
    }
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
