//! How long a stop waits, and for whom. `lifecycle` has what it waits for at most a moment.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::body_memory::head;
use crate::harness::*;

/// Far longer than a test takes: what ends before is not ended by this.
const LONG_STOP: (&str, &str) = ("CLOAKROOM_STOP_SECONDS", "600");
/// Keeps all queries for files waiting until it is rolled back.
const LOCK: &str = "LOCK TABLE files IN ACCESS EXCLUSIVE MODE";
const BUSY: &str = "Service temporarily unavailable";

/// Sends a request without a body, and does not wait for the response.
fn begin(api: &Server, path: &str, sender: impl Credentials) -> RawConnection {
    let token = sender.access_token().expect("a token");
    let mut connection = RawConnection::open(&api.address);
    let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n");
    connection.send(head);
    connection
}

/// The pause of a client that transfers something twenty times a second.
const TICK: Duration = Duration::from_millis(50);

/// Reads so many bytes before each pause, until the server closes the connection. Returns how many those were.
fn read_slowly(mut stream: TcpStream, bytes: usize, pause: Duration) -> JoinHandle<usize> {
    thread::spawn(move || {
        let (mut buffer, mut total) = (vec![0; bytes], 0);
        while stream.read_exact(&mut buffer).is_ok() {
            total += bytes;
            thread::sleep(pause);
        }
        total
    })
}

/// Sends so many bytes twenty times a second, until there is an answer, which is returned.
fn send_slowly(mut stream: TcpStream, bytes: usize) -> JoinHandle<RawAnswer> {
    thread::spawn(move || {
        while stream.set_nonblocking(true).is_ok() && stream.peek(&mut [0]).is_err() {
            stream.set_nonblocking(false).expect("a mode");
            if stream.write_all(&vec![b'x'; bytes]).is_err() {
                break;
            }
            thread::sleep(TICK);
        }
        stream.set_nonblocking(false).expect("a mode");
        RawConnection::over(stream).expect("a connection").answer()
    })
}

/// Begins an upload of 8 MB, and sends the first bytes of its file.
fn begin_large_upload(api: &Server, sender: impl Credentials) -> TcpStream {
    let form = file_form("a.txt", "text/plain", &[b'x'; 100_000]).bytes();
    api.begin_upload(sender, "Content-Length: 8000000", &form[..50_000])
}

/// Inserts so many users, whose names have this length.
fn insert_users(api: &Server, count: usize, length: usize) {
    api.database.run(&format!(
        "INSERT INTO users (id, email, email_key, name, password_hash)
         SELECT gen_random_uuid(), 'u' || i || '@example.com', 'u' || i || '@example.com', repeat('x', {length}), '-'
         FROM generate_series(1, {count}) i"
    ));
}

/// The number of requests that have no response yet, without the one that asks for it.
fn running(api: &Server) -> usize {
    api.metric("cloakroom_requests_running").expect("the gauge") as usize - 1
}

#[test]
fn clients_that_send_or_read_slowly_hold_up_a_stop_for_five_seconds() {
    let (api, [ann, root]) = Server::with_users(&[LONG_STOP], ["ann", "root"]);
    let content = numbers(8 << 20);
    let file = api.new_file(&ann, "large.txt", &content);
    // Batches of which each is read within a second or two: the export is computed now and then.
    insert_users(&api, 60_000, 100);
    let export = api.begin_slow_request(&root, "/users/export-full");
    let upload = begin_large_upload(&api, &ann);
    let json = RawConnection::open(&api.address);
    let mut login = json.socket().try_clone().expect("a clone");
    let head = "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n";
    login.write_all(head.as_bytes()).expect("a head");
    // Each has begun.
    wait_until(|| api.data.contents().len() == 2 && running(&api) == 2);
    let downloads = [2_000, 20_000].map(|rate| {
        let mut download = api.begin_download(&ann, &file);
        download.read_exact(&mut [0; 1000]).expect("the beginning");
        (download, rate)
    });
    let readers = downloads.into_iter().chain([(export, 20_000)]);
    let readers: Vec<_> = readers.map(|(stream, bytes)| read_slowly(stream, bytes, TICK)).collect();
    let senders = [upload, login].map(|stream| send_slowly(stream, 300));
    let begin = Instant::now();
    api.signal(Signal::TERM);
    for sender in senders {
        let answer = sender.join().expect("no panic");
        assert_eq!((answer.status, &answer.json()["detail"]), (503, &json!(BUSY)));
        assert!(answer.has("Retry-After: 5") && answer.has("Connection: close"), "{}", answer.head);
    }
    for reader in readers {
        let received = reader.join().expect("no panic");
        assert!(received < content.len(), "it is whole: {received} bytes");
    }
    let line = api.logged("stopped");
    assert!(line.ends_with("requests cut off: 5"), "{line}");
    assert!(begin.elapsed() >= Duration::from_secs(5), "{:?}", begin.elapsed());
    let data = api.data.clone();
    assert_eq!(api.exit_code(), Some(0));
    assert_eq!(data.contents(), [data.content(&file)], "the draft is gone");
}

#[test]
fn a_transfer_holds_up_a_stop_for_five_seconds_however_fast_its_client_is() {
    let content = numbers(8 << 20);
    let rates = [4, 16, 64, 256].map(|rate| rate * 1024 / 20);
    let transfers = ["download", "export", "upload"];
    let mut rows: Vec<_> =
        transfers.iter().flat_map(|name| rates.map(|bytes| (*name, bytes, TICK))).collect();
    // A player of videos fills its buffer, plays some of it and goes on.
    rows.push(("download", 512 * 1024, Duration::from_secs(2)));
    parallel(rows.len(), |row| {
        let (name, bytes, pause) = rows[row];
        let (api, [root]) = Server::with_users(&[LONG_STOP], ["root"]);
        let transfer = if name == "upload" {
            let upload = begin_large_upload(&api, &root);
            wait_until(|| api.data.contents().len() == 1);
            Err(send_slowly(upload, bytes))
        } else {
            let mut reading = if name == "download" {
                let file = api.new_file(&root, "large.txt", &content);
                api.begin_download(&root, &file)
            } else {
                insert_users(&api, 8000, 1000);
                api.begin_slow_request(&root, "/users/export-full")
            };
            reading.read_exact(&mut [0; 1000]).expect("the beginning");
            Ok(read_slowly(reading, bytes, pause))
        };
        let begin = Instant::now();
        api.signal(Signal::TERM);
        let line = api.logged("stopped");
        assert!(line.ends_with("requests cut off: 1"), "{:?}: {line}", rows[row]);
        assert_eq!(api.exit_code(), Some(0));
        let took = begin.elapsed();
        // The kernel sends a client that is slow a part of a file for 16 seconds, if nothing interrupts it.
        let expected = Duration::from_secs(5)..Duration::from_secs(15);
        assert!(expected.contains(&took), "{:?}: {took:?}", rows[row]);
        match transfer {
            Ok(reader) => assert!(reader.join().expect("no panic") < content.len()),
            Err(sender) => assert_eq!(sender.join().expect("no panic").status, 503),
        }
    });
}

#[test]
fn a_request_that_is_computed_is_waited_for_and_slow_clients_meanwhile_too() {
    let (api, [ann]) = Server::with_users(&[LONG_STOP, PATIENT], ["ann"]);
    let content = numbers(4 << 20);
    let file = api.new_file(&ann, "large.txt", &content);
    let mut download = api.begin_download(&ann, &file);
    download.read_exact(&mut [0; 1000]).expect("the beginning");
    let form = file_form("a.txt", "text/plain", &[b'x'; 200_000]).bytes();
    let framing = format!("Content-Length: {}", form.len());
    let mut upload = api.begin_upload(&ann, &framing, &form[..20_000]);
    wait_until(|| api.data.contents().len() == 2);
    let lock = api.database.begin(LOCK);
    // Another request comes before it on its connection, so that the server does not wait for it.
    let mut list = RawConnection::open(&api.address);
    let probe = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".to_owned();
    list.send(probe + &head("GET", "/uploads", &ann, ""));
    assert_eq!(list.answer().status, 200);
    wait_until(|| api.database.blocked_statements() == 1);
    api.signal(Signal::TERM);
    // For 8 seconds, longer than a stop waits for clients alone, 16 KiB a second go each way. Nothing tells that it
    // goes on waiting.
    for part in form[20_000..160_000].chunks(875) {
        upload.write_all(part).expect("it is received");
        download.read_exact(&mut [0; 875]).expect("it is sent");
        thread::sleep(TICK);
    }
    lock.roll_back();
    let answer = list.answer();
    assert_eq!((answer.status, &answer.json()["total"]), (200, &json!(1)));
    let mut rest = Vec::new();
    download.read_to_end(&mut rest).expect("the rest");
    assert!(rest.ends_with(&content.as_bytes()[content.len() - 1000..]), "it is whole");
    upload.write_all(&form[160_000..]).expect("it is received");
    assert_eq!(RawConnection::over(upload).expect("a connection").answer().status, 201);
    api.logged("stopped");
    assert!(!api.log().contains("cut off"), "{}", api.log());
    assert_eq!(api.exit_code(), Some(0));
}

#[test]
fn a_request_that_takes_longer_than_a_stop_may_is_cut_off() {
    for server in ["builtin", "rouille"] {
        let settings =
            [("CLOAKROOM_STOP_SECONDS", "1"), ("CLOAKROOM_HTTP_SERVER", server), PATIENT];
        let (api, [ann]) = Server::with_users(&settings, ["ann"]);
        let _lock = api.database.begin(LOCK);
        let mut list = begin(&api, "/api/v1/uploads", &ann);
        wait_until(|| api.database.blocked_statements() == 1);
        let begin = Instant::now();
        let (_, _, status) = api.end(Signal::TERM);
        assert_eq!(status, Some(0), "{server}");
        assert!(begin.elapsed() >= Duration::from_secs(1), "{server}: {:?}", begin.elapsed());
        list.closed();
    }
}

#[test]
fn what_waits_for_its_turn_is_refused_at_once_and_what_has_its_turn_is_finished() {
    let (api, [ann, root]) = Server::with_users(&[LONG_STOP, PATIENT], ["ann", "root"]);
    // More than the buffers between the server and its client hold.
    insert_users(&api, 8000, 3000);
    let export = || begin(&api, "/api/v1/users/export-full", &root);
    let mut fast = export();
    assert!(fast.head().expect("a head").starts_with("HTTP/1.1 200"));
    let mut slow = api.begin_slow_request(&root, "/users/export-full");
    slow.read_exact(&mut [0; 1000]).expect("the beginning");
    let slow = read_slowly(slow, 1000, TICK);
    let lock = api.database.begin(LOCK);
    let search = || begin(&api, "/api/v1/uploads?search=x", &ann);
    let mut first = search();
    wait_until(|| api.database.blocked_statements() == 1);
    let waiting = [search(), export()];
    wait_until(|| running(&api) == 3);
    api.signal(Signal::TERM);
    for mut refused in waiting {
        let answer = refused.answer();
        assert_eq!((answer.status, &answer.json()["detail"]), (503, &json!(BUSY)));
    }
    // As long as another request is computed, nobody who has begun is cut off.
    assert!(fast.rest().ends_with(b"0\r\n\r\n"), "it is complete");
    assert!(!slow.is_finished());
    lock.roll_back();
    assert_eq!(first.answer().status, 200);
    let line = api.logged("stopped");
    assert!(line.ends_with("requests cut off: 1"), "{line}");
    assert_eq!(api.exit_code(), Some(0));
}

#[test]
fn changes_of_a_user_that_wait_for_others_are_refused_at_a_stop() {
    let (api, [ann]) = Server::with_users(&[LONG_STOP, PATIENT], ["ann"]);
    let row = format!("SELECT FROM users WHERE id = '{}' FOR UPDATE", ann.id());
    let lock = api.database.begin(&row);
    thread::scope(|scope| {
        let change = || scope.spawn(|| api.update_me(&ann, json!({"name": "Ann"})));
        let begun = [change(), change()];
        wait_until(|| api.database.blocked_statements() == 2);
        let waiting = change();
        wait_until(|| api.metric("cloakroom_pool_waiting") == Some(1.0));
        api.signal(Signal::TERM);
        waiting.join().expect("no panic").refused(503, BUSY);
        lock.roll_back();
        for change in begun {
            change.join().expect("no panic").expect(200);
        }
    });
    assert_eq!(api.exit_code(), Some(0));
}

#[test]
fn hashes_that_have_not_begun_are_refused_at_a_stop() {
    // A hash takes seconds, so six still wait when that is seen.
    let api = Server::start(&[LONG_STOP, ("CLOAKROOM_SCRYPT", "15,8,32")]);
    let body = json!({"username": "nobody", "password": "wrong"}).to_string();
    let logins: Vec<_> = (0..thread::available_parallelism().map_or(1, usize::from) + 9)
        .map(|_| {
            let mut connection = RawConnection::open(&api.address);
            // Longer than a hash takes on a busy machine.
            let patience = Some(Duration::from_secs(300));
            connection.socket().set_read_timeout(patience).expect("a timeout");
            connection.send(format!(
                "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
            connection
        })
        .collect();
    wait_until(|| api.metric("cloakroom_hashes_waiting") >= Some(6.0));
    api.signal(Signal::TERM);
    let statuses = tally(logins.into_iter().map(|mut login| login.answer().status));
    assert!(statuses[&503] >= 1 && statuses[&401] >= 1 && statuses.len() == 2, "{statuses:?}");
    assert_eq!(api.exit_code(), Some(0));
}
