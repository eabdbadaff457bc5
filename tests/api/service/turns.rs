//! What one user or one network may run at a time: exports, searches and password hashes. Others wait for their turn,
//! and nobody else waits for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crate::harness::*;

/// The service is behind a proxy on this host, which tells it the clients' addresses.
const BEHIND_PROXY: (&str, &str) = ("CLOAKROOM_TRUSTED_PROXIES", "127.0.0.0/8");
const EXPORT: &str = "/api/v1/users/export-full";
const BUSY: &str = "Service temporarily unavailable";

/// The first lines of a request from this client address.
fn lines(path: &str, from: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nX-Forwarded-For: {from}")
}

fn begin(api: &Server, path: &str, sender: impl Credentials, from: &str) -> RawConnection {
    api.begin(&lines(path, from), sender)
}

fn begin_export(api: &Server, sender: impl Credentials, from: &str) -> RawConnection {
    api.begin_reading(&lines(EXPORT, from), sender)
}

/// Inserts so many accounts that an export is more than the buffers between the server and its client hold: two batches
/// of 12 MB.
fn insert_long_users(api: &Server) {
    api.database.run(
        "INSERT INTO users (id, email, email_key, name, password_hash)
         SELECT gen_random_uuid(), 'u' || i || '@example.com', 'u' || i || '@example.com', repeat('x', 3000), '-'
         FROM generate_series(1, 8000) i",
    );
}

/// The number of requests that have no response yet, without the one that asks for it.
fn waiting(api: &Server) -> usize {
    api.metric("cloakroom_requests_running").expect("the gauge") as usize - 1
}

fn threads(api: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", api.pid())).expect("the process").count()
}

#[test]
fn of_twenty_exports_of_a_user_that_nobody_reads_two_run_and_the_others_wait_for_their_turn() {
    let api = Server::start(&[]);
    let (root, other) = (api.sign_up_admin("root"), api.sign_up_admin("other"));
    insert_long_users(&api);
    let begun = || api.database.count("audit_events WHERE action = 'users.export'");
    let (memory, threads_before) = (api.peak_memory(), threads(&api));
    let mut running = [(); 2].map(|()| begin_export(&api, &root, "192.0.2.1"));
    let _waiting: Vec<_> = (0..18).map(|_| begin(&api, EXPORT, &root, "192.0.2.1")).collect();
    wait_until(|| waiting(&api) == 18);
    assert_eq!(begun(), 2);
    let grown = api.peak_growth(memory);
    assert!(grown < 96 << 20, "grew by {} MiB", grown >> 20);
    // A thread for each connection, and one for that which asks for the number.
    wait_until(|| threads(&api) - threads_before <= 21);
    api.export_full(&other).expect(200);
    assert_eq!((begun(), waiting(&api)), (3, 18), "one user waits for no other");

    let [first, second] = &mut running;
    assert!(first.rest().ends_with(b"0\r\n\r\n"), "it is complete");
    wait_until(|| waiting(&api) == 17 && begun() == 4);
    *second = begin(&api, "/healthz", Anonymous, "192.0.2.1");
    wait_until(|| waiting(&api) == 16 && begun() == 5);
}

#[test]
fn exports_of_all_kinds_wait_for_each_other_and_without_a_user_for_those_of_the_network() {
    // Long enough for an export that has its turn to begin, also on a busy machine.
    let timeout = ("CLOAKROOM_EXPORT_TIMEOUT_SECONDS", "8");
    let anonymous = ("CLOAKROOM_ALLOW_ANONYMOUS_EXPORT", "true");
    let (api, [root]) = Server::with_users(&[BEHIND_PROXY, anonymous, timeout], ["root"]);
    insert_long_users(&api);
    let of_events = if has_extras() { "/admin/audit/export" } else { "/users/export" };
    let paths = ["/users/export", "/users/export-full", "/users/exports/csv", of_events];
    let request =
        |path: &str, address: &str| api.request("GET", path).header("X-Forwarded-For", address);
    let _of_user = [(); 2].map(|()| begin_export(&api, &root, "192.0.2.1"));
    let _of_network = [(); 2].map(|()| begin_export(&api, Anonymous, "2001:db8::1"));
    // All of them wait at once.
    parallel(11, |n| {
        let answer = match n {
            8.. => request(paths[n - 8], "2001:db8::ffff:2").send(),
            _ => request(paths[n / 2], ["192.0.2.1", "192.0.2.2"][n % 2]).by(&root).send(),
        };
        answer.case(n).refused(504, "Request timed out");
    });
    for path in &paths[..3] {
        for address in ["2001:db8:0:1::1", "192.0.2.1"] {
            request(path, address).send().case(address).expect(200);
        }
    }
    let user = api.sign_up("ann");
    api.export_full(&user).expect(200);
}

#[test]
fn all_users_of_a_network_together_run_eight_exports() {
    let api = Server::start(&[BEHIND_PROXY, ("CLOAKROOM_EXPORT_TIMEOUT_SECONDS", "8")]);
    let users: Vec<_> = (0..9).map(|n| api.sign_up(&format!("user{n}"))).collect();
    insert_long_users(&api);
    let here = "192.0.2.1";
    let mut running = parallel(8, |n| begin_export(&api, &users[n], here));
    let export_from = |address: &str| {
        let request = api.request("GET", "/users/export-full").by(&users[8]);
        request.header("X-Forwarded-For", address).send().case(address)
    };
    export_from(here).refused(504, "Request timed out");
    export_from("192.0.2.2").expect(200);
    // The last one, because a client that reads nothing for half a minute is disconnected.
    let mut last = running.pop().expect("eight");
    assert!(last.rest().ends_with(b"0\r\n\r\n"), "it is complete");
    export_from(here).expect(200);
}

#[test]
fn an_export_that_was_asked_for_with_head_keeps_no_turn() {
    let (api, [root]) = Server::with_users(&[("CLOAKROOM_EXPORT_TIMEOUT_SECONDS", "8")], ["root"]);
    for path in ["/users/export"].into_iter().chain(has_extras().then_some("/admin/audit/export")) {
        for _ in 0..4 {
            api.request("HEAD", path).by(&root).send().expect(200);
        }
        api.get(path, &root).expect(200);
    }
}

/// Waits for the answers of all, and returns how often each status occurred.
fn tally_of(connections: Vec<RawConnection>) -> Vec<(u16, usize)> {
    let status = |mut connection: RawConnection| connection.answer().status;
    tally(connections.into_iter().map(status)).into_iter().collect()
}

const SEARCH: &str = "/api/v1/uploads?search=x";

/// Keeps all queries for files waiting until it is rolled back.
const LOCK: &str = "LOCK TABLE files IN ACCESS EXCLUSIVE MODE";

#[test]
fn of_a_users_searches_one_runs_at_a_time_and_other_requests_are_answered_meanwhile() {
    let settings = [("CLOAKROOM_DATABASE_POOL_SIZE", "4"), PATIENT];
    let (api, [ann, bob]) = Server::with_users(&settings, ["ann", "bob"]);
    let lock = api.database.begin(LOCK);
    let searches: Vec<_> = (0..8).map(|_| begin(&api, SEARCH, &ann, "192.0.2.1")).collect();
    wait_until(|| waiting(&api) == 8 && api.database.blocked_statements() == 1);
    for _ in 0..20 {
        api.me(&bob).expect(200);
        api.me(&ann).expect(200);
    }
    assert_eq!(api.database.blocked_statements(), 1);
    let list = begin(&api, "/api/v1/uploads", &ann, "192.0.2.1");
    wait_until(|| api.database.blocked_statements() == 2);
    lock.roll_back();
    assert_eq!(tally_of(searches), [(200, 8)]);
    assert_eq!(tally_of(vec![list]), [(200, 1)]);
}

#[test]
fn lists_that_may_read_many_files_take_their_turn_and_those_that_an_index_leads_to_do_not() {
    let (api, [ann, bob]) = Server::with_users(&[PATIENT], ["ann", "bob"]);
    api.database.insert_files(ann.id(), &[1; 1001]);
    api.database.insert_files(bob.id(), &[1; 10]);
    let lock = api.database.begin(LOCK);
    let queries = ["search=f", "content_type=text/plain", "sort_by=filename&page=999", "page=999"];
    let list = |user: &Tokens, query: &str| {
        begin(&api, &format!("/api/v1/uploads?{query}"), user, "192.0.2.1")
    };
    let mut lists: Vec<_> = queries.iter().map(|query| list(&ann, query)).collect();
    wait_until(|| waiting(&api) == 4 && api.database.blocked_statements() == 1);
    let by_index = ["page=2", "sort_by=filename", "sort_order=asc"];
    lists.extend(by_index.iter().map(|query| list(&ann, query)));
    wait_until(|| api.database.blocked_statements() == 4);
    lists.extend(queries[1..3].iter().map(|query| list(&bob, query)));
    wait_until(|| api.database.blocked_statements() == 6);
    lock.roll_back();
    assert_eq!(tally_of(lists), [(200, 9)]);
}

#[test]
fn searches_of_a_network_run_one_at_a_time_and_all_together_leave_a_core_for_each_and_a_connection()
{
    let api = Server::start(&[BEHIND_PROXY, ("CLOAKROOM_DATABASE_POOL_SIZE", "3"), PATIENT]);
    let users: Vec<_> = (0..6).map(|n| api.sign_up(&format!("user{n}"))).collect();
    let lock = api.database.begin(LOCK);
    let search = |n: usize, from: &str| begin(&api, SEARCH, &users[n], from);
    let mut searches: Vec<_> = (0..3).map(|n| search(n, "192.0.2.1")).collect();
    wait_until(|| waiting(&api) == 3 && api.database.blocked_statements() == 1);
    searches.extend((3..6).map(|n| search(n, &format!("192.0.2.{n}"))));
    let most = cores_up_to_two();
    wait_until(|| waiting(&api) == 6 && api.database.blocked_statements() == most);
    for user in &users {
        api.me(user).expect(200);
    }
    assert_eq!(api.database.blocked_statements(), most);
    lock.roll_back();
    assert_eq!(tally_of(searches), [(200, 6)]);
}

#[test]
fn a_search_whose_turn_does_not_come_in_time_is_told_to_come_again() {
    let timeout = ("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1");
    let (api, [root]) = Server::with_users(&[timeout], ["root"]);
    // A search waits for the table for half a second, so few turns come within the second: two or three of a user's
    // searches for files, and four or six of the searches for accounts, of which two run at a time. One turn more than
    // that if a request comes late.
    let of_users = "LOCK TABLE listed_users IN ACCESS EXCLUSIVE MODE";
    for (path, lock, searches, least) in
        [("/uploads?search=x", LOCK, 6, 2), ("/users?search=a", of_users, 12, 4)]
    {
        let lock = api.database.begin(lock);
        let answers = parallel(searches, |_| api.get(path, &root).case(path));
        lock.roll_back();
        let (late, slow): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|answer| answer.status == 503);
        assert!(late.len() >= least, "{late:?}");
        late.into_iter().for_each(|answer| drop(answer.refused(503, BUSY)));
        slow.into_iter().for_each(|answer| drop(answer.refused(504, "Request timed out")));
        api.get(path, &root).expect(200);
    }
}

/// A hash that takes a measurable time. Sixty of them must take less than the 15 seconds that one may wait, on a busy
/// machine too.
const SLOW_HASH: (&str, &str) = ("CLOAKROOM_SCRYPT", "13,8,1");

/// Begins to sign in as nobody, which takes a hash, from the client address `from`.
fn begin_login(api: &Server, from: &str) -> RawConnection {
    begin_login_as(api, from, "nobody")
}

fn begin_login_as(api: &Server, from: &str, name: &str) -> RawConnection {
    let body = json!({"username": name, "password": PASSWORD}).to_string();
    let mut connection = RawConnection::open(&api.address);
    connection.send(format!(
        "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {from}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    connection
}

fn hashes_waiting(api: &Server) -> f64 {
    api.metric("cloakroom_hashes_waiting").expect("the gauge")
}

#[test]
fn forty_accounts_that_change_their_passwords_keep_nobody_from_signing_in() {
    let (api, [_]) = Server::with_users(&[SLOW_HASH], ["root"]);
    api.database.run(
        "INSERT INTO users (id, username, email, email_key, password_hash)
         SELECT gen_random_uuid(), 'u' || i, 'u' || i || '@example.com', 'u' || i || '@example.com', password_hash
         FROM users, generate_series(1, 40) i",
    );
    let sql = "SELECT array_agg(id::text) FROM users WHERE username <> 'root'";
    let users: Vec<String> = api.database.value(sql);
    let login = |_| {
        let begin = Instant::now();
        api.sign_in("root");
        begin.elapsed()
    };
    let logins = || median((0..5).map(login).collect());
    let alone = logins();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = SetOnDrop(&over);
        for user in &users {
            let (api, over) = (&api, &over);
            let token = sign(json!({"sub": user, "iat": now(), "exp": FAR_FUTURE}));
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let answer = api.change_password(&token, "wrong", NEW_PASSWORD);
                    // Forty hashes may take longer than the 15 seconds for which one may wait.
                    match answer.status {
                        503 => answer.refused(503, BUSY),
                        _ => answer.refused(400, "Current password is incorrect"),
                    };
                }
            });
        }
        wait_until(|| hashes_waiting(&api) >= 35.0);
        let crowded = logins();
        assert!(hashes_waiting(&api) >= 30.0);
        assert!(crowded < 8 * alone, "{crowded:?}, alone {alone:?}");
    });
}

/// `auth/hash_queue.rs` has how many may wait in all.
#[test]
fn an_address_waits_for_four_hashes_while_many_wait_and_another_one_is_let_in() {
    // So slow that enough of them still wait when the last ones have come, also where much else runs.
    let api = Server::start(&[("CLOAKROOM_SCRYPT", "14,8,3"), BEHIND_PROXY]);
    let begin = |name, from: String| (name, begin_login(&api, &from));
    let mut logins: Vec<_> =
        (0..56).map(|n| begin("crowd", format!("192.0.2.{}", n / 4))).collect();
    wait_until(|| hashes_waiting(&api) >= 40.0);
    logins.extend((0..8).map(|n| begin("one", format!("2001:db8::{n}"))));
    logins.push(begin("other", "2001:db8:0:1::1".to_owned()));
    let mut answers: Vec<_> = thread::scope(|scope| {
        let answer = |(name, mut login): (&'static str, RawConnection)| {
            scope.spawn(move || {
                let answer = login.answer();
                (Instant::now(), name, answer)
            })
        };
        let threads: Vec<_> = logins.into_iter().map(answer).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    answers.sort_by_key(|(at, ..)| *at);
    // Those who are refused are told so before half of the crowd has had its turn. The others come after them: with
    // their hash, or where a machine is slow at the end of the time for which one may wait.
    let let_in = answers.split_off(answers.len() / 2);
    let names = |answers: &[(Instant, &'static str, RawAnswer)]| -> Vec<_> {
        answers.iter().map(|(_, name, _)| *name).filter(|name| *name != "crowd").collect()
    };
    assert_eq!(names(&answers), ["one"; 4]);
    assert_eq!(names(&let_in).len(), 5);
    for (_, _, answer) in answers.iter().filter(|(_, name, _)| *name == "one") {
        assert_eq!((answer.status, &answer.json()["detail"]), (503, &json!(BUSY)));
        assert!(answer.has("Retry-After: 5"), "{}", answer.head);
    }
}

/// While others wait for hashes, an old one stays: that it could be renewed costs its owner no wait and no refusal.
#[test]
fn a_right_password_is_not_refused_because_its_hash_is_old() {
    let (cheaper, [_]) = Server::with_users(&[], ["ann"]);
    let dearer = [("CLOAKROOM_SCRYPT", "14,8,3"), BEHIND_PROXY];
    let api = Server::start_on(&cheaper.database, &dearer);
    let crowd = |from: &str, n: u8| -> Vec<_> {
        (0..n).map(|n| begin_login(&api, &format!("{from}.{n}"))).collect()
    };
    let before = crowd("192.0.2", 24);
    wait_until(|| hashes_waiting(&api) >= 8.0);
    wait_until(|| hashes_waiting(&api) <= 8.0);
    let mut ann = begin_login_as(&api, "203.0.113.7", "ann");
    let after = crowd("198.51.100", 50);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = SetOnDrop(&over);
        // While so many wait, her address may ask for four hashes, and these take her place once she has one.
        for _ in 0..5 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    begin_login(&api, "203.0.113.7").answer();
                }
            });
        }
        assert_eq!(ann.answer().status, 200);
    });
    drop((before, after));
    wait_until(|| waiting(&api) == 0);
    api.sign_in("ann");
    let hash = api.database.value::<String>("SELECT password_hash FROM users");
    assert!(hash.starts_with("$scrypt$ln=14,r=8,p=3$"), "{hash}");
}
