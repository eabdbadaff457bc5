//! How many requests, and which slow ones, the sample site `scripts/nginx.conf` lets a client have.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use super::nginx::{NAME, Nginx, error_of, has_headers_of_an_error, upload_of_ten_megabytes};
use crate::harness::*;

#[test]
fn the_sample_bounds_the_requests_of_a_network_and_of_its_site_at_a_time() {
    let api = Server::start(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    // A header says what the address of the client is, as if it were that.
    let status = "limit_conn_status 429;";
    let real_ip = format!("{status} set_real_ip_from 127.0.0.1; real_ip_header X-Test;");
    let timeout = ("client_body_timeout 10s;", "client_body_timeout 90s;");
    let buffering = ("proxy_request_buffering off;", "proxy_request_buffering on;");
    let nginx = Nginx::start_with(&api.address, &[(status, &real_ip), timeout, buffering]);
    let get = |client: &str| {
        let rest = format!("X-Test: {client}\r\n\r\n");
        nginx.ask_from(Ipv4Addr::LOCALHOST, "GET", "/healthz", rest.as_bytes())
    };
    let has =
        |client: &str, status: &str| get(client).0.starts_with(&format!("http/1.1 {status} "));
    // nginx waits for the body of each.
    let begin = |client: &str| {
        let mut stream = nginx.begin_tls(TcpStream::connect(nginx.address).expect("a connection"));
        let head = format!(
            "POST /api/v1/auth/login HTTP/1.1\r\nHost: {NAME}\r\nX-Test: {client}\r\nContent-Length: 9\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("nginx reads");
        stream
    };
    for (clients, same, other) in [
        (["192.0.2.1"; 2], "192.0.2.1", "192.0.2.2"),
        (["2001:db8:1::1", "2001:db8:1::2"], "2001:db8:1::3", "2001:db8:1:1::1"),
        (["2001:db8:2:1::1", "2001:db8:2:2::1"], "2001:db8:2:3::1", "2001:db8:3::1"),
    ] {
        // Two networks have as many as a site, and two clients of one network as many as that.
        let each = if clients[0].starts_with("2001:db8:2:") { 64 } else { 32 };
        let mut open: Vec<_> =
            clients.iter().flat_map(|client| (1..each).map(|_| begin(client))).collect();
        assert!(has(same, "200"), "{same}");
        // nginx still counts a request for a moment after its end, so one of these may be refused for that.
        wait_until(|| {
            open.extend((0..4).map(|_| begin(same)));
            has(same, "429")
        });
        let waits = |stream: &mut StreamOwned<ClientConnection, TcpStream>| {
            stream.sock.set_nonblocking(true).expect("a mode");
            stream.read(&mut [0]).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
        };
        wait_until(|| {
            open.retain_mut(waits);
            open.len() == 2 * each
        });
        let (head, body) = get(same);
        assert!(head.lines().any(|line| line == "retry-after: 5"), "{head}");
        has_headers_of_an_error(&head);
        assert_eq!(error_of(&body), ["Rate limit exceeded", "RATE_LIMITED", "RATE_LIMITED"]);
        assert!(has(other, "200"), "{other}");
        drop(open);
        wait_until(|| has(same, "200"));
    }
}

/// nginx's own limit is one for the time between two bytes.
#[test]
fn bodies_that_come_a_byte_at_a_time_hold_no_connection_of_the_sample_for_long() {
    let api = Server::start(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")]);
    let nginx = Nginx::start(&api.address);
    let head = format!(
        "POST /api/v1/auth/login HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: 100000\r\n\r\n"
    );
    // As many as nginx has connections unless it is told: 512, of addresses with 64 each.
    let clients: Vec<_> = (0..512u16)
        .filter_map(|n| {
            let [_, host] = (2 + n / 64).to_be_bytes();
            let socket = nginx.connect_from(Ipv4Addr::new(127, 0, 0, host));
            let mut stream = nginx.begin_tls(socket);
            stream.write_all(head.as_bytes()).ok().map(|()| stream)
        })
        .collect();
    // Each of them takes another connection, to the service.
    assert!(clients.len() > 200, "{}", clients.len());
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = SetOnDrop(&end);
        let open = scope.spawn(|| drip(clients, &end));
        // Another client may be refused while there is no connection left for it.
        wait_until(|| nginx.try_get("/healthz").is_some_and(|head| head.contains(" 200 ok")));
        wait_until(|| open.is_finished());
    });
}

/// Sends a byte a second on each connection, until nginx has closed all of them or the test ends.
fn drip(mut clients: Vec<StreamOwned<ClientConnection, TcpStream>>, end: &AtomicBool) {
    while !clients.is_empty() && !end.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_secs(1));
        clients.retain_mut(|stream| stream.write_all(b"x").is_ok());
    }
}

#[test]
fn what_the_service_refuses_before_a_body_reaches_the_client_while_it_still_sends() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.1")], ["ann"]);
    let nginx = Nginx::start(&api.address);
    for (token, media_type, status) in
        [("none", "text/plain", 401), (&*ann.access, "video/mp4", 415)]
    {
        let upload = upload_of_ten_megabytes(token, media_type, "");
        let (head, _) = nginx.ask_from(Ipv4Addr::LOCALHOST, "POST", "/api/v1/uploads", &upload);
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{head}");
    }
}
