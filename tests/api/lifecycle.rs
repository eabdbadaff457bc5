//! Stopping, restarting, the stock server, and what the process tells about itself.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Database, Directory, PASSWORD, Server, command, eventually, within_shell};
use crate::raw::Raw;

fn signal(server: &Server, signal: Signal) {
    let pid = Pid::from_raw(server.pid() as i32).expect("a pid");
    kill_process(pid, signal).expect("the server runs");
}

fn exit_of(server: &mut Server) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = server.child().try_wait().expect("a child") {
            return status;
        }
        assert!(begin.elapsed() < Duration::from_secs(10), "it does not end");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The head of a login, whole; its body is to come.
fn begin_login(server: &Server) -> (Raw, String) {
    let body = json!({"username": "ann", "password": PASSWORD}).to_string();
    let mut raw = Raw::open(&server.address);
    raw.send(format!(
        "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    raw.head().expect("100: the handler reads");
    (raw, body)
}

#[test]
fn a_stop_finishes_requests_and_ends_idle_connections() {
    for asked in [Signal::TERM, Signal::INT] {
        let mut server = Server::start(&[]);
        server.sign_up("ann");
        let mut idle = Raw::open(&server.address);
        idle.serves();
        let mut half = Raw::open(&server.address);
        half.send("GET /healthz HTTP/1.1\r\nHo");
        let (mut login, body) = begin_login(&server);
        signal(&server, asked);
        idle.closed();
        half.closed();
        eventually(|| TcpStream::connect(&server.address).is_err().then_some(()));
        login.send(body);
        let answer = login.answer();
        assert_eq!(answer.status, 200);
        assert!(answer.has("Connection: close"), "{}", answer.head);
        drop(login);
        assert_eq!(exit_of(&mut server).code(), Some(0));
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let mut server = Server::start(&[]);
    server.sign_up("ann");
    let (_login, _) = begin_login(&server);
    signal(&server, Signal::TERM);
    server.logged("stopping");
    signal(&server, Signal::TERM);
    assert_eq!(exit_of(&mut server).code(), Some(1));
}

#[test]
fn a_restart_behind_an_inherited_socket_refuses_nobody() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let start = || {
        let line = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$";
        let mut inherits = within_shell(line, command(&database.url, &data.0, &[]));
        inherits.stdin(Stdio::from(OwnedFd::from(listener.try_clone().expect("a clone"))));
        Server::spawn(inherits, &database, &data)
    };
    let mut first = start();
    assert_eq!(first.address, address);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut answered = 0;
                    while !over.load(Ordering::Relaxed) {
                        Raw::try_open(&address).expect("never refused").serves();
                        answered += 1;
                    }
                    answered
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(200));
        signal(&first, Signal::TERM);
        assert_eq!(exit_of(&mut first).code(), Some(0));
        let second = start();
        Raw::open(&address).serves();
        over.store(true, Ordering::Relaxed);
        for client in clients {
            assert!(client.join().expect("every request was answered") > 10);
        }
        drop(second);
    });
}

#[test]
fn the_stock_server_serves_and_stops_too() {
    let mut server = Server::start(&[("CLOAKROOM_HTTP_SERVER", "rouille")]);
    let tokens = server.sign_up("ann");
    server.get("/users/me", &tokens.access).expect(200);
    let head = server.request("HEAD", "/healthz").send().expect(200);
    assert_eq!(head.bytes, b"");
    server.request("GET", "/nowhere").send().refused(404, "Not Found");
    let much = " ".repeat(200_000);
    let login = server.api("POST", "/auth/login").body(much);
    login.send().refused(413, "Request body too large");
    signal(&server, Signal::TERM);
    assert_eq!(exit_of(&mut server).code(), Some(0));
}

#[test]
fn metrics_count_by_endpoint_and_are_for_whom_the_setting_says() {
    let server = Server::start(&[]);
    let tokens = server.sign_up("ann");
    server.get("/users/me", &tokens.access).expect(200);
    server.get("/users/me/", &tokens.access).expect(200);
    server.get("/users/me/../x", &tokens.access).expect(404);
    for n in 0..50 {
        server.request("GET", &format!("/nowhere/{n}")).send().expect(404);
    }
    let answer = server.request("GET", "/metrics").send().expect(200);
    let text = String::from_utf8(answer.bytes.clone()).expect("text");
    for line in [
        r#"cloakroom_requests_total{endpoint="GET /api/v1/users/me",status="200"} 2"#,
        r#"cloakroom_requests_total{endpoint="none",status="404"} 51"#,
        r#"cloakroom_request_duration_seconds_count{endpoint="POST /api/v1/auth/login"} 1"#,
        "cloakroom_requests_running 1",
        "cloakroom_pool_in_use 0",
        "cloakroom_hashes_waiting 0",
        "cloakroom_stored_bytes 0",
        "cloakroom_mail_waiting 0",
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    for forwarded in ["X-Forwarded-For", "Forwarded"] {
        let asked = server.request("GET", "/metrics").header(forwarded, "::1");
        asked.send().refused(404, "Not Found");
    }
    let off = Server::start(&[("CLOAKROOM_METRICS", "off")]);
    off.request("GET", "/metrics").send().refused(404, "Not Found");
    let any = Server::start(&[("CLOAKROOM_METRICS", "any")]);
    let asked = any.request("GET", "/metrics").header("X-Forwarded-For", "203.0.113.9");
    asked.send().expect(200);
}
