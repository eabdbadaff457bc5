//! Strangers by the thousand, with nothing good in mind. Honest clients must not notice.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::{Database, Directory, Server, command, command_at, eventually, within_shell};
use crate::raw::{Raw, ask};

const GET: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

/// The tests hold as many files as the server they besiege.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).expect("the soft limit may be raised");
}

/// A new client is answered, and in time.
#[track_caller]
fn honest_client(address: &str) {
    let begin = Instant::now();
    assert_eq!(ask(address, GET).1.status, 200);
    let took = begin.elapsed();
    assert!(took < Duration::from_millis(500), "answered after {took:?}");
}

/// Most memory the process ever had resident, KiB.
fn peak_memory(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn two_thousand_idle_connections_keep_nobody_out() {
    raise_file_limit();
    let server = Server::start(&[]);
    let mut idle = Vec::new();
    for n in 0..2000 {
        idle.push(Raw::open(&server.address));
        if n % 100 == 0 {
            honest_client(&server.address);
        }
    }
    for _ in 0..20 {
        honest_client(&server.address);
    }
    idle[0].closed(); // who waited longest made room
    idle.last_mut().expect("one").serves();
}

#[test]
fn five_hundred_dripping_clients_slow_nobody_down() {
    raise_file_limit();
    let server = Server::start(&[("CLOAKROOM_MAX_CONNECTIONS", "600")]);
    let over = Arc::new(AtomicBool::new(false));
    let flag = over.clone();
    let heads = "GET /healthz HTTP/1.1\r\nHost: ".bytes().chain(std::iter::repeat(b'x'));
    let body = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n";
    let address = server.address.clone();
    let dripping = thread::spawn(move || {
        let mut clients: Vec<_> = (0..500).map(|_| Raw::open(&address)).collect();
        for client in clients.iter_mut().step_by(2) {
            let _ = client.try_send(body);
        }
        for byte in heads {
            for client in &mut clients {
                let _ = client.try_send([byte]); // cut by now, perhaps
            }
            if flag.load(Ordering::Relaxed) {
                return;
            }
            thread::sleep(Duration::from_secs(1));
        }
    });
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        honest_client(&server.address);
        thread::sleep(Duration::from_millis(20));
    }
    over.store(true, Ordering::Relaxed);
    dripping.join().expect("the dripping clients");
}

#[test]
fn slow_uploads_hold_no_database_connection() {
    let server = Server::start(&[("CLOAKROOM_DATABASE_POOL_SIZE", "1")]);
    let tokens = server.sign_up("ann");
    let head = format!(
        "PUT /api/v1/users/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: 50\r\n\r\n{{",
        tokens.access
    );
    let mut slow: Vec<_> = (0..50).map(|_| Raw::open(&server.address)).collect();
    for client in &mut slow {
        client.send(&head);
    }
    for _ in 0..20 {
        server.get("/users/me", &tokens.access).expect(200);
    }
}

#[test]
fn a_hundred_thousand_pipelined_requests_need_no_memory() {
    let server = Server::start(&[]);
    let before = peak_memory(&server);
    let mut stream = TcpStream::connect(&server.address).expect("a connection");
    let mut writer = stream.try_clone().expect("a clone");
    let sending = thread::spawn(move || {
        let block = GET.repeat(1000);
        for _ in 0..100 {
            writer.write_all(block.as_bytes()).expect("the server reads");
        }
    });
    let (mut answers, mut block) = (0, vec![0; 1 << 16]);
    let mut tail = Vec::new();
    while answers < 100_000 {
        let count = stream.read(&mut block).expect("answers");
        assert!(count > 0, "ended after {answers} answers");
        tail.extend_from_slice(&block[..count]);
        let found = tail.windows(12).filter(|w| w == b"HTTP/1.1 200").count();
        answers += found;
        // A status line may stand across two blocks, but is counted once.
        let keep = tail.len().saturating_sub(11);
        tail.drain(..keep);
    }
    sending.join().expect("the sender");
    let grown = peak_memory(&server) - before;
    assert!(grown < 16 * 1024, "grew by {grown} KiB");
}

#[test]
fn a_head_of_200_megabytes_needs_no_memory() {
    let server = Server::start(&[]);
    let before = peak_memory(&server);
    let mut raw = Raw::open(&server.address);
    raw.send("GET /healthz HTTP/1.1\r\nHost: x\r\nA: ");
    let block = vec![b'a'; 1 << 20];
    let sent = (0..200).take_while(|_| raw.try_send(&block).is_ok()).count();
    assert!(sent < 200, "it was not read to its end");
    let grown = peak_memory(&server) - before;
    assert!(grown < 16 * 1024, "grew by {grown} KiB");
    honest_client(&server.address);
}

#[test]
fn a_client_that_stops_reading_is_cut() {
    let server = Server::start(&[]);
    let mut raw = Raw::open(&server.address);
    raw.socket().set_write_timeout(Some(Duration::from_secs(2))).expect("a timeout");
    let block = GET.repeat(1000);
    while raw.try_send(&block).is_ok() {}
    let begin = Instant::now();
    let open = || {
        let metrics = server.request("GET", "/metrics").send().expect(200).bytes;
        let metrics = String::from_utf8(metrics).expect("text");
        let value = metrics.lines().find_map(|l| l.strip_prefix("cloakroom_connections_open "));
        value.and_then(|n| n.parse::<u32>().ok()).expect("the gauge")
    };
    assert!(open() >= 2, "itself and the stalled one");
    while open() >= 2 {
        assert!(begin.elapsed() < Duration::from_secs(40), "still open");
        thread::sleep(Duration::from_millis(500));
    }
    assert!(begin.elapsed() > Duration::from_secs(20), "not before its time");
}

#[test]
fn a_full_file_table_ends_nothing() {
    let database = Database::create();
    let data = Arc::new(Directory::create());
    let server = Server::spawn(
        within_shell("ulimit -n 256", command(&database.url, &data.0, &[])),
        &database,
        &data,
    );
    besiege_and_recover(&server, 400);
}

#[test]
fn a_full_thread_table_ends_nothing() {
    let database = Database::create();
    let data = Arc::new(Directory::create());
    // Another user may not be able to look into the project's directory.
    let binary = data.0.join("cloakroom");
    std::fs::copy(env!("CARGO_BIN_EXE_cloakroom"), &binary).expect("a copy");
    let inner = command_at(&binary, &database.url, &data.0, &[]);
    let mut limited;
    if rustix::process::getuid().is_root() {
        // The limit does not hold for root: run as somebody who owns nothing else.
        let nobody = 64_000 + std::process::id() % 1000;
        std::os::unix::fs::chown(&data.0, Some(nobody), Some(nobody)).expect("chown");
        limited = within_shell("ulimit -u 60", inner);
        limited.uid(nobody).gid(nobody);
    } else {
        limited = within_shell(&format!("ulimit -u {}", threads_of_this_user() + 60), inner);
    }
    let server = Server::spawn(limited, &database, &data);
    besiege_and_recover(&server, 400);
    server.logged("no thread for a connection");
}

/// The limit counts all that the user runs.
fn threads_of_this_user() -> usize {
    let own = rustix::process::getuid().as_raw().to_string();
    let statuses = std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("status")).ok());
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next().map(str::to_owned)
    };
    statuses
        .filter(|status| field(status, "Uid:").as_ref() == Some(&own))
        .filter_map(|status| field(&status, "Threads:")?.parse::<usize>().ok())
        .sum()
}

fn besiege_and_recover(server: &Server, connections: usize) {
    let crowd: Vec<_> =
        (0..connections).filter_map(|_| Raw::try_open(&server.address).ok()).collect();
    assert!(crowd.len() > connections / 2, "the siege took place");
    // Someone makes room, so even now there is an answer.
    eventually(|| {
        let mut raw = Raw::try_open(&server.address).ok()?;
        raw.try_send(GET).ok()?;
        raw.try_answer().ok().filter(|answer| answer.status == 200)
    });
    drop(crowd);
    eventually(|| {
        let answered = (0..20).all(|_| {
            let raw = Raw::try_open(&server.address);
            raw.is_ok_and(|mut raw| raw.try_send(GET).is_ok() && raw.try_answer().is_ok())
        });
        answered.then_some(())
    });
    honest_client(&server.address);
}
