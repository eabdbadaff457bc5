//! The budget of bytes for large bodies in memory: who has many of them loses them, and nobody else is kept out.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::harness::*;

/// The least budget. It has room for one list of 100 files while that is read, and for two that are sent.
const BUDGET: (&str, &str) = ("CLOAKROOM_BODY_MEMORY", "4M");
/// The longest description: 16 KiB.
pub const LONG: &str = "repeat('𝄞', 4096)";

/// Twice as much.
const TWICE: (&str, &str) = ("CLOAKROOM_BODY_MEMORY", "8M");

/// A service with these users, each with 100 files with long descriptions.
fn with_files<const N: usize>(
    settings: &[(&str, &str)],
    names: [&str; N],
) -> (Server, [Tokens; N]) {
    let (api, users) = Server::with_users(settings, names);
    for user in &users {
        api.database.insert_files(user.id(), &[1; 100]);
    }
    api.database.run(&format!("UPDATE files SET description = {LONG}"));
    (api, users)
}

/// A connection from an address of this host, with a receive buffer so small that a large answer does not fit.
pub fn connect_from(address: &str, api: &Server) -> RawConnection {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a buffer");
    let from: SocketAddr = format!("{address}:0").parse().expect("an address");
    socket.bind(&from.into()).expect("an address of this host");
    let to: SocketAddr = api.address.parse().expect("an address");
    socket.connect(&to.into()).expect("a connection");
    RawConnection::over(TcpStream::from(socket)).expect("a connection")
}

pub fn head(method: &str, path: &str, user: &Tokens, more: &str) -> String {
    let token = &user.access;
    format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
    )
}

const LIST: &str = "/uploads?size=100";

/// Asks for the largest list, and reads no more than the first line of the answer.
pub fn begin_list(mut connection: RawConnection, user: &Tokens, more: &str) -> RawConnection {
    connection.send(head("GET", LIST, user, more));
    let head = connection.head().expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    connection
}

/// Whether the service has broken off the answer to [`begin_list`], which is as long as that of `whole`.
fn is_cut(mut connection: RawConnection, whole: &Answer) -> bool {
    // It stays open after a whole answer, so that the end is asked for.
    let _ = connection.try_send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    connection.rest().len() < whole.bytes.len()
}

#[test]
fn slow_readers_of_one_network_lose_their_answers_and_others_get_theirs() {
    let (api, [eve, ann]) = with_files(&[TWICE], ["eve", "ann"]);
    let whole = api.list_files(&ann, "size=100").expect(200);
    assert!(whole.bytes.len() > 1600 * 1024, "{} bytes", whole.bytes.len());
    let small = begin_list(connect_from("127.0.0.4", &api), &ann, "");
    let slow: Vec<_> =
        (0..12).map(|_| begin_list(connect_from("127.0.0.2", &api), &eve, "")).collect();
    for _ in 0..3 {
        let mut honest = connect_from("127.0.0.3", &api);
        let answer = honest.send(head("GET", LIST, &ann, "")).answer();
        assert_eq!((answer.status, answer.body.len()), (200, whole.bytes.len()));
    }
    let cut: Vec<_> = slow.into_iter().map(|slow| is_cut(slow, &whole)).collect();
    assert!(cut[..10].iter().all(|cut| *cut), "{cut:?}");
    assert!(!is_cut(small, &whole), "one that holds no more than others is not closed");
}

#[test]
fn through_a_trusted_proxy_bytes_count_for_the_user() {
    let proxy = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.0/8");
    let (api, [eve, ann]) = with_files(&[TWICE, proxy], ["eve", "ann"]);
    let whole = api.list_files(&ann, "size=100").expect(200);
    let from_one_office = "X-Forwarded-For: 192.0.2.7\r\n";
    let begin = |user| begin_list(connect_from("127.0.0.1", &api), user, from_one_office);
    let (honest, first) = (begin(&ann), begin(&eve));
    let others = [begin(&eve), begin(&eve)];
    assert!(is_cut(first, &whole), "the first of the user who holds most");
    assert!(!is_cut(honest, &whole));
    drop(others);
}

#[test]
fn half_bodies_take_no_more_than_the_budget() {
    let (api, [eve, ann]) = Server::with_users(&[BUDGET], ["eve", "ann"]);
    let half = head("PUT", "/users/me", &eve, "Content-Length: 130000\r\n") + &" ".repeat(129_999);
    let before = api.resident_memory();
    let mut half_bodies: Vec<_> = (0..100).map(|_| connect_from("127.0.0.2", &api)).collect();
    half_bodies.iter_mut().for_each(|one| drop(one.try_send(&half)));
    let body = format!("{}{}", " ".repeat(100_000), json!({"name": "Ann"}));
    let whole = head("PUT", "/users/me", &ann, &format!("Content-Length: {}\r\n", body.len()));
    let answer = connect_from("127.0.0.3", &api).send(whole + &body).answer();
    assert_eq!((answer.status, &answer.json()["name"]), (200, &json!("Ann")));
    let grown = api.peak_growth(before);
    assert!(grown < (4 << 20) + 100 * (128 << 10), "grew by {grown} bytes");
    let answered = half_bodies.iter_mut().filter_map(|one| {
        one.try_send("{").ok()?;
        one.try_answer().ok()
    });
    assert!(answered.count() < 100, "those who have waited longest are closed");
}

#[test]
fn connections_between_two_requests_stay_open_beside_large_bodies_of_their_network() {
    let (api, [eve]) = Server::with_users(&[BUDGET], ["eve"]);
    let mut idle: Vec<_> = (0..30).map(|_| connect_from("127.0.0.2", &api)).collect();
    idle.iter_mut().for_each(RawConnection::serves);
    // They have waited longest. There is room for 32 of these.
    let half = head("PUT", "/users/me", &eve, "Content-Length: 130000\r\n") + &" ".repeat(129_999);
    let mut large: Vec<_> = (0..40).map(|_| connect_from("127.0.0.2", &api)).collect();
    large.iter_mut().for_each(|one| drop(one.try_send(&half)));
    let is_open = |one: &&RawConnection| {
        one.socket().set_nonblocking(true).expect("a mode");
        one.socket().peek(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    };
    wait_until(|| large.iter().filter(is_open).count() <= 32);
    idle.iter_mut().for_each(RawConnection::serves);
}

/// Requests that read files while nobody can: they keep the room for their answers, and cannot be closed.
fn while_lists_wait<T>(api: &Server, users: &[&Tokens], work: impl FnOnce() -> T) -> T {
    let lock = api.database.begin("LOCK TABLE files");
    thread::scope(|scope| {
        let lists: Vec<_> = users
            .iter()
            .map(|user| scope.spawn(|| api.list_files(*user, "size=100").status))
            .collect();
        wait_until(|| api.database.blocked_statements() == lists.len() as i64);
        let outcome = work();
        lock.commit();
        lists.into_iter().for_each(|list| assert_eq!(list.join().expect("no panic"), 200));
        outcome
    })
}

#[test]
fn what_does_not_fit_is_refused_after_a_second_and_small_requests_are_not() {
    let (api, [eve, ann]) = with_files(&[BUDGET, PATIENT], ["eve", "ann"]);
    while_lists_wait(&api, &[&eve], || {
        let begin = Instant::now();
        let refused = api.list_files(&ann, "size=100");
        let refused = refused.refused(503, "Service temporarily unavailable");
        assert!(refused.has_header("Retry-After"));
        assert!(begin.elapsed() >= Duration::from_secs(1));
        if has_extras() {
            let changes = api.get("/changes?limit=1000", &ann);
            changes.refused(503, "Service temporarily unavailable");
        }
        let body = format!("{}{{}}", " ".repeat(30_000));
        api.request("PUT", "/users/me").by(&ann).body(body).send().expect(200);
        api.profile(&ann).expect(200);
        api.sign_in("ann");
    });
    api.list_files(&ann, "size=100").expect(200);
}

#[test]
fn a_change_that_has_no_room_for_its_answer_is_not_made() {
    let (api, [root, eve, ann]) = Server::with_users(&[BUDGET, PATIENT], ["root", "eve", "ann"]);
    // Together their lists leave less than the largest account may take.
    api.database.insert_files(eve.id(), &[1; 100]);
    api.database.insert_files(ann.id(), &[1; 2]);
    let permissions: Vec<_> = (0..100).map(|_| "\u{1}".repeat(64)).collect();
    let change = json!({"name": "Other", "permissions": permissions});
    while_lists_wait(&api, &[&eve, &ann], || {
        let unavailable = "Service temporarily unavailable";
        api.update_user(&root, ann.id(), change.clone()).refused(503, unavailable);
        api.update_me(&ann, json!({"name": "Other"})).refused(503, unavailable);
        let new = json!({"email": "x@example.com", "name": "x", "password": PASSWORD});
        api.create_user(&root, new).refused(503, unavailable);
    });
    assert_eq!(api.database.count("users WHERE name IN ('Other', 'x')"), 0);
    let changed = api.update_user(&root, ann.id(), change).expect(200);
    assert!(changed.bytes.len() > 32 * 1024, "{} bytes", changed.bytes.len());
    api.update_me(&ann, json!({"name": "Ann"})).expect(200);
    api.profile(&ann).expect(200).has(json!({"name": "Ann"}));
}

#[test]
fn an_answer_that_is_larger_than_the_budget_passes_alone() {
    let (api, [root]) = Server::with_users(&[BUDGET], ["root"]);
    api.database.run(
        "INSERT INTO users (id, username, email, email_key, name, password_hash, permissions)
         SELECT gen_random_uuid(), 'u' || n, 'u' || n || '@example.com', 'u' || n || '@example.com', 'u', 'x', ARRAY(
             SELECT repeat('𝄞', 64) FROM generate_series(1, 100))
         FROM generate_series(1, 120) n",
    );
    let list = api.list_users(&root, "limit=100").expect(200);
    assert!(list.bytes.len() > 2 << 20, "{} bytes", list.bytes.len());
    // They are all of one network, so that some may be closed.
    let page = || api.request("GET", "/admin/users?size=100").by(&root).try_send();
    let statuses = tally(parallel(4, |_| page().map_or(0, |answer| answer.status)));
    assert!(statuses.contains_key(&200), "{statuses:?}");
}

#[test]
fn pages_of_changes_and_lists_take_the_budget_however_many_are_read_at_once() {
    let (api, [eve]) = Server::with_users(&[BUDGET], ["eve"]);
    api.database.insert_files(eve.id(), &[1; 1200]);
    api.database.run(&format!("UPDATE files SET description = {LONG}"));
    for path in
        ["/changes?limit=1000", LIST, "/uploads?size=100&sort_by=filename", "/auth/sessions"]
    {
        if !path.starts_with("/uploads") && !has_extras() {
            continue;
        }
        let before = api.resident_memory();
        let statuses = tally(parallel(20, |_| {
            // They are all of one network, so that some may be closed.
            let answer = api.request("GET", path).by(&eve).try_send();
            answer.map_or(0, |answer| answer.status)
        }));
        assert!(statuses.contains_key(&200), "{path}: {statuses:?}");
        let grown = api.peak_growth(before);
        // Without a budget 20 lists take 70 MiB. The eight connections of the pool keep up to 2 MiB of rows each.
        assert!(grown < 22 << 20, "{path}: grew by {} KiB", grown >> 10);
    }
}

#[test]
fn a_refresh_reads_no_more_than_8_kib() {
    let api = Server::start(&[]);
    let refresh = |framing: &str, body: &str| {
        let head = "POST /api/v1/auth/refresh HTTP/1.1\r\nHost: x\r\n";
        ask(&api.address, format!("{head}{framing}\r\n\r\n{body}")).1
    };
    let length = |n: usize, body: &str| refresh(&format!("Content-Length: {n}"), body);
    assert_eq!(length(8192, &" ".repeat(8192)).status, 401);
    for answer in [
        // Nothing of it is waited for.
        length(8193, ""),
        refresh("Transfer-Encoding: chunked", &format!("2001\r\n{}", " ".repeat(8192))),
    ] {
        assert_eq!(answer.status, 413);
        assert_eq!(answer.json()["detail"], "Request body too large");
    }
}
