//! Many connections and hostile clients: they are limited, and other clients are answered as if nothing happened.

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::harness::*;

const GET: &str = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

/// Fails unless the most memory that the server had is at most 16 MiB more than before.
#[track_caller]
fn expect_little_growth(api: &Server, before: u64) {
    let grown = api.peak_growth(before);
    assert!(grown < 16 << 20, "grew by {grown} bytes");
}

/// Raises the soft limit of open files to the hard limit: a test holds as many connections as its server.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).expect("the soft limit may be raised");
}

/// Sends a request on a new connection and returns how long the answer took.
#[track_caller]
fn honest_client(address: &str) -> Duration {
    let begin = Instant::now();
    assert_eq!(ask(address, GET).1.status, 200);
    begin.elapsed()
}

/// Expects that honest clients were answered at once. Single answers may be late on a busy machine, but all come before
/// the server's shortest timeout (10 seconds) could have made room for them.
#[track_caller]
fn expect_in_time(times: Vec<Duration>) {
    assert!(times.iter().all(|time| *time < Duration::from_secs(8)), "{times:?}");
    let median = median(times);
    assert!(median < Duration::from_millis(500), "{median:?}");
}

#[test]
fn two_thousand_idle_connections_keep_nobody_out() {
    raise_file_limit();
    let api = Server::start(&[]);
    let (mut idle, mut times) = (Vec::new(), Vec::new());
    for n in 0..2000 {
        idle.push(RawConnection::open(&api.address));
        if n % 100 == 0 {
            times.push(honest_client(&api.address));
        }
    }
    times.extend((0..20).map(|_| honest_client(&api.address)));
    expect_in_time(times);
    // The connections that had been idle for longest were closed to make room for others.
    idle[0].closed();
    idle.last_mut().expect("one").serves();
}

#[test]
fn five_hundred_clients_that_send_a_byte_a_second_slow_nobody_down() {
    raise_file_limit();
    let api = Server::start(&[("CLOAKROOM_MAX_CONNECTIONS", "600")]);
    let over = AtomicBool::new(false);
    let mut clients: Vec<_> = (0..500).map(|_| RawConnection::open(&api.address)).collect();
    // Half of them send heads slowly, half of them bodies.
    let head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n";
    for client in clients.iter_mut().step_by(2) {
        client.send(head);
    }
    let bytes = "GET /healthz HTTP/1.1\r\nHost: ".bytes().chain(std::iter::repeat(b'x'));
    thread::scope(|scope| {
        scope.spawn(|| {
            for byte in bytes.take_while(|_| !over.load(Ordering::Relaxed)) {
                for client in &mut clients {
                    // The server may have closed the connection by now.
                    let _ = client.try_send([byte]);
                }
                thread::sleep(Duration::from_secs(1));
            }
        });
        let _stop = SetOnDrop(&over);
        let (begin, mut times) = (Instant::now(), Vec::new());
        while begin.elapsed() < Duration::from_secs(5) {
            times.push(honest_client(&api.address));
            thread::sleep(Duration::from_millis(20));
        }
        expect_in_time(times);
    });
}

#[test]
fn slow_uploads_hold_no_database_connection() {
    let (api, [ann]) = Server::with_users(&[("CLOAKROOM_DATABASE_POOL_SIZE", "1")], ["ann"]);
    let head = format!(
        "PUT /api/v1/users/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: 50\r\n\r\n{{",
        ann.access
    );
    let mut slow: Vec<_> = (0..50).map(|_| RawConnection::open(&api.address)).collect();
    for client in &mut slow {
        client.send(&head);
    }
    for _ in 0..20 {
        api.profile(&ann).expect(200);
    }
}

#[test]
fn a_hundred_thousand_pipelined_requests_need_no_memory() {
    let api = Server::start(&[]);
    let before = api.peak_memory();
    let stream = TcpStream::connect(&api.address).expect("a connection");
    let mut writer = stream.try_clone().expect("a clone");
    let sending = thread::spawn(move || {
        let block = GET.repeat(1000);
        for _ in 0..100 {
            writer.write_all(block.as_bytes()).expect("the server reads");
        }
    });
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("answers"));
    for answers in 0..100_000 {
        let is_there = lines.any(|line| line.contains("HTTP/1.1 200"));
        assert!(is_there, "ended after {answers} answers");
    }
    sending.join().expect("the sender");
    expect_little_growth(&api, before);
}

#[test]
fn a_head_of_200_megabytes_needs_no_memory() {
    let api = Server::start(&[]);
    let before = api.peak_memory();
    let mut connection = RawConnection::open(&api.address);
    connection.send("GET /healthz HTTP/1.1\r\nHost: x\r\nA: ");
    let block = vec![b'a'; 1 << 20];
    let sent = (0..200).take_while(|_| connection.try_send(&block).is_ok()).count();
    assert!(sent < 200, "it was not read to its end");
    expect_little_growth(&api, before);
    expect_in_time((0..9).map(|_| honest_client(&api.address)).collect());
}

#[test]
fn clients_that_send_on_after_a_refusal_need_little_memory() {
    let api = Server::start(&[]);
    let before = api.peak_memory();
    let mut clients: Vec<_> = (0..200).map(|_| RawConnection::open(&api.address)).collect();
    let head = "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n";
    let block = vec![b'a'; 256 * 1024];
    for client in &mut clients {
        client.send(head);
    }
    for client in &mut clients {
        // The server may have closed the connection by now.
        let _ = client.try_send(&block);
    }
    for client in &mut clients {
        assert_eq!(client.answer().status, 413);
    }
    expect_little_growth(&api, before);
}

/// An address of this machine that is not its loopback address, as its routes give it. Nothing is sent.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    // 198.18.0.0/15 is for benchmarks (RFC 2544), so no network of this machine.
    socket.connect("198.18.0.1:9").expect("this test needs a route beside the loopback address");
    socket.local_addr().expect("an address").ip()
}

#[test]
fn a_network_has_a_limit_of_its_own_and_beyond_it_the_new_connection_is_closed() {
    let own = own_address();
    assert!(!own.is_loopback());
    let few = ("CLOAKROOM_MAX_CONNECTIONS_PER_ADDRESS", "3");
    let anywhere = ("CLOAKROOM_LISTEN", "0.0.0.0:0");
    let api = Server::start(&[few, anywhere]);
    let port = api.address.rsplit_once(':').expect("a port").1;
    let (outside, loopback) = (format!("{own}:{port}"), format!("127.0.0.1:{port}"));
    let mut open = [(); 3].map(|()| RawConnection::open(&outside));
    open.iter_mut().for_each(RawConnection::serves);
    for _ in 0..5 {
        RawConnection::open(&outside).closed();
    }
    api.logged("CLOAKROOM_MAX_CONNECTIONS_PER_ADDRESS");
    open.iter_mut().for_each(RawConnection::serves);
    let mut local = [(); 5].map(|()| RawConnection::open(&loopback));
    local.iter_mut().for_each(RawConnection::serves);
    drop(open);
    eventually(|| {
        let mut connection = RawConnection::open(&outside);
        connection.try_send(GET).ok()?;
        connection.try_answer().ok()
    });

    let proxy = own.to_string();
    let api = Server::start(&[few, anywhere, ("CLOAKROOM_TRUSTED_PROXIES", &proxy)]);
    let port = api.address.rsplit_once(':').expect("a port").1;
    let open = |_| RawConnection::open(&format!("{own}:{port}"));
    (0..5).map(open).collect::<Vec<_>>().iter_mut().for_each(RawConnection::serves);
}

#[test]
fn running_out_of_files_ends_nothing() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    let limited = within_shell("ulimit -n 256", command(&database.url, &data, &[]));
    exhaust_and_recover(&Server::spawn(limited, &database, &data));
}

#[test]
fn running_out_of_threads_ends_nothing() {
    let (database, data) = (Database::create(), Arc::new(Directory::create()));
    // The user of the process may not have access to the project's directory.
    let binary = data.join("cloakroom");
    std::fs::copy(BINARY, &binary).expect("a copy");
    let inner = command_at(&binary, &database.url, &data, &[]);
    let mut limited;
    if rustix::process::getuid().is_root() {
        // The limit does not hold for root, so the process runs as a user that has no other process.
        let nobody = 64_000 + std::process::id() % 1000;
        std::os::unix::fs::chown(data.path(), Some(nobody), Some(nobody)).expect("chown");
        limited = within_shell("ulimit -u 60", inner);
        limited.uid(nobody).gid(nobody);
    } else {
        limited = within_shell(&format!("ulimit -u {}", threads_of_this_user() + 60), inner);
    }
    let api = Server::spawn(limited, &database, &data);
    exhaust_and_recover(&api);
    api.logged("no thread for a connection");
}

/// The number of threads of all processes of this user, which the limit counts together.
fn threads_of_this_user() -> usize {
    let own = rustix::process::getuid().as_raw().to_string();
    let processes = entries("/proc").into_iter();
    let threads = processes.filter_map(|process| {
        let status = std::fs::read_to_string(process.join("status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()
        };
        if field("Uid:")? == own { field("Threads:")?.parse::<usize>().ok() } else { None }
    });
    threads.sum()
}

/// Opens so many connections that the server cannot serve all, and expects it to answer meanwhile and afterwards.
fn exhaust_and_recover(api: &Server) {
    let answered = || {
        let mut connection = RawConnection::try_open(&api.address).ok()?;
        connection.try_send(GET).ok()?;
        connection.try_answer().ok().filter(|answer| answer.status == 200)
    };
    let crowd: Vec<_> =
        (0..400).filter_map(|_| RawConnection::try_open(&api.address).ok()).collect();
    assert!(crowd.len() > 200, "too few connections for this test");
    // Idle connections are closed to make room, so that even now a client is answered.
    eventually(answered);
    drop(crowd);
    wait_until(|| (0..20).all(|_| answered().is_some()));
    expect_in_time((0..9).map(|_| honest_client(&api.address)).collect());
}
