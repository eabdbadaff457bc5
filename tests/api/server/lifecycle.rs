//! Stopping, restarting, and the server of the `rouille` library.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::harness::*;

/// Sends the head of a login and waits until the handler reads its body, which is returned.
fn begin_login(api: &Server) -> (RawConnection, String) {
    let body = json!({"username": "ann", "password": PASSWORD}).to_string();
    let mut connection = RawConnection::open(&api.address);
    connection.send(format!(
        "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    connection.head().expect("100 Continue");
    (connection, body)
}

#[test]
fn a_stop_finishes_requests_and_ends_idle_connections() {
    for signal in [Signal::TERM, Signal::INT] {
        let api = Server::start(&[]);
        api.sign_up("ann");
        let mut idle = RawConnection::open(&api.address);
        idle.serves();
        let mut half_head = RawConnection::open(&api.address);
        half_head.send("GET /healthz HTTP/1.1\r\nHo");
        let (mut login, body) = begin_login(&api);
        api.signal(signal);
        idle.closed();
        half_head.closed();
        wait_until(|| TcpStream::connect(&api.address).is_err());
        login.send(body);
        let answer = login.answer();
        assert_eq!(answer.status, 200);
        assert!(answer.has("Connection: close"), "{}", answer.head);
        drop(login);
        assert_eq!(api.exit_code(), Some(0));
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let api = Server::start(&[]);
    api.sign_up("ann");
    let (_login, _) = begin_login(&api);
    api.signal(Signal::TERM);
    api.logged("stopping");
    let begin = Instant::now();
    api.signal(Signal::TERM);
    assert_eq!(api.exit_code(), Some(1));
    // The request that has begun would have been waited for.
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

#[test]
fn a_restart_behind_an_inherited_socket_refuses_nobody() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    // The process finds the listener as file 3, as a process that systemd starts.
    let start = || {
        let line = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$";
        let mut command = within_shell(line, command(&database.url, &data, &[]));
        command.stdin(Stdio::from(OwnedFd::from(listener.try_clone().expect("a clone"))));
        Server::spawn(command, &database, &data)
    };
    let first = start();
    assert_eq!(first.address, address);
    let answered = AtomicUsize::new(0);
    let ask = |_, _| {
        RawConnection::try_open(&address).expect("never refused").serves();
        answered.fetch_add(1, Ordering::Relaxed);
    };
    // Waits for enough answers that each client has got some.
    let wait_for_answers = || {
        let before = answered.load(Ordering::Relaxed);
        wait_until(|| answered.load(Ordering::Relaxed) > before + 40);
    };
    let _second = repeat_during(4, ask, || {
        wait_for_answers();
        first.signal(Signal::TERM);
        assert_eq!(first.exit_code(), Some(0));
        let second = start();
        wait_for_answers();
        second
    });
}

#[test]
fn the_server_of_rouille_serves_and_stops_too() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_HTTP_SERVER", "rouille")], ["ann"]);
    api.profile(&ann).expect(200);
    assert_eq!(api.request_at_root("HEAD", "/healthz").send().expect(200).bytes, b"");
    api.request_at_root("GET", "/nowhere").send().refused(404, "Not Found");
    let login = api.request("POST", "/auth/login").body(" ".repeat(200_000));
    login.send().refused(413, "Request body too large");
    api.signal(Signal::TERM);
    assert_eq!(api.exit_code(), Some(0));
}
