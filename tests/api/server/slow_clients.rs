//! Clients that send or read too slowly, under the limits of the service. The unit tests of `server/request_loop.rs`
//! have shorter limits.

use std::io::Read;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

#[test]
fn a_client_is_given_ten_seconds_to_begin_and_thirty_to_go_on() {
    let (api, [ann]) = Server::with_users(&[], ["ann"]);
    let content = numbers(4 << 20);
    let file = api.new_file(&ann, "large.txt", &content);
    // The connection that asks for the number is open too.
    wait_until(|| open_connections(&api) == 1);
    let downloads = [(); 3].map(|()| api.begin_download(&ann, &file));
    thread::scope(|scope| {
        scope.spawn(|| send_a_body_slowly(&api));
        scope.spawn(|| leave_out_the_last_byte_of_an_upload(&api, &ann));
        read_at_three_rates(&api, downloads, &content);
    });
}

fn open_connections(api: &Server) -> u32 {
    api.metric("cloakroom_connections_open").expect("the gauge") as u32
}

/// Fails unless the time since `begin` is at least so many seconds, and at most twice as many: a busy machine is late.
#[track_caller]
fn expect_seconds(begin: Instant, seconds: u64) {
    let elapsed = begin.elapsed();
    assert!((seconds..2 * seconds).contains(&elapsed.as_secs()), "{elapsed:?}");
}

fn send_a_body_slowly(api: &Server) {
    let begin = Instant::now();
    let mut connection = RawConnection::open(&api.address);
    let head = "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";
    connection.send(head);
    while begin.elapsed() < Duration::from_secs(11) && connection.try_send(" ").is_ok() {
        thread::sleep(Duration::from_millis(200));
    }
    let answer = connection.answer();
    assert_eq!((answer.status, &answer.json()["error_code"]), (408, &json!("REQUEST_TIMEOUT")));
    assert_eq!(answer.json()["reason"], "BODY_TOO_SLOW");
    expect_seconds(begin, 10);
}

/// What was sent by then would allow many minutes of silence at the least rate.
fn leave_out_the_last_byte_of_an_upload(api: &Server, user: &Tokens) {
    let body = file_form("a.txt", "text/plain", &vec![b'x'; 4 << 20]).bytes();
    let framing = format!("Content-Length: {}", body.len());
    let begin = Instant::now();
    let before = api.data.contents().len();
    let stream = api.begin_upload(user, &framing, &body[..body.len() - 1]);
    let answer = RawConnection::over(stream).expect("a connection").answer();
    assert_eq!((answer.status, &answer.json()["error_code"]), (408, &json!("REQUEST_TIMEOUT")));
    assert_eq!(api.data.contents().len(), before);
    expect_seconds(begin, 30);
}

/// One reads about 400 bytes of the content a second, one 4,000, and one nothing.
fn read_at_three_rates(api: &Server, downloads: [TcpStream; 3], content: &str) {
    let begin = Instant::now();
    let [mut slow, mut fast, stalled] = downloads;
    let mut received = Vec::new();
    // In the end there are the fast one and the one that asks for the number.
    while open_connections(api) > 2 {
        for _ in 0..40 {
            thread::sleep(Duration::from_millis(25));
            let _ = slow.read_exact(&mut [0; 10]); // it may have been cut by now
            (&fast).take(100).read_to_end(&mut received).expect("more bytes");
        }
        assert!(begin.elapsed() < Duration::from_secs(240), "they are still open");
    }
    assert!(begin.elapsed() >= Duration::from_secs(30), "they were closed too early");
    fast.read_to_end(&mut received).expect("the rest");
    assert!(received.ends_with(content.as_bytes()), "{} bytes", received.len());
    for mut cut in [slow, stalled] {
        let mut rest = Vec::new();
        let _ = cut.read_to_end(&mut rest);
        assert!(rest.len() < content.len() / 2, "a slow one was given {} bytes", rest.len());
    }
}
