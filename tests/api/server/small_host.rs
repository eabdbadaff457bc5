//! The attacks on the memory of a small host, one after the other, with the limits of production: the service stays
//! within the sum of `scripts/PRODUCTION.md`, and answers everybody else. `scripts/test-small-host` runs this in a
//! control group of 64 MiB, from which the service's defaults then follow. Elsewhere the settings are those defaults.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::body_memory::{LONG, begin_list, connect_from, head};
use crate::harness::*;

const MIB: u64 = 1 << 20;
/// What the page promises beside the memory of a service that has just started: the budget, connections of 128 KiB, and
/// a hash. Connections to the database have grown after the attacks, too.
const PROMISED: u64 = 8 * MIB + 128 * MIB / 8 + 16 * MIB + 4 * MIB;

/// Memory of the process's own, in bytes, without files that the kernel may drop.
fn own_memory(api: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", api.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// A user, made without the work of a password hash, with this many files with long descriptions.
fn user_with_files(api: &Server, n: u32, files: usize) -> Tokens {
    let id = uuid(n);
    api.database.run(&format!(
        "INSERT INTO users (id, username, email, email_key, name, password_hash) \
         VALUES ('{id}', 'user{n}', 'user{n}@example.com', 'user{n}@example.com', 'x', 'x')"
    ));
    api.database.insert_files(&id, &vec![1; files]);
    api.database.run(&format!("UPDATE files SET description = {LONG} WHERE user_id = '{id}'"));
    let user = serde_json::json!({ "id": id });
    Tokens { access: token_without_session(&id), refresh: String::new(), user }
}

/// Asks for files a hundred times, as often as one user may in a minute, and returns the median of the times.
fn ask_honestly(api: &Server, user: &Tokens) -> Duration {
    let mut times = Vec::new();
    for _ in 0..100 {
        let begin = Instant::now();
        let mut connection = connect_from("127.0.0.3", api);
        let answer = connection.send(head("GET", "/uploads?size=5", user, "")).answer();
        assert_eq!((answer.status, answer.json()["total"].as_u64()), (200, Some(5)));
        times.push(begin.elapsed());
    }
    median(times)
}

#[test]
fn strangers_take_no_more_memory_than_the_page_promises_and_keep_nobody_out() {
    let mut settings = PRODUCTION.to_vec();
    settings.push(("CLOAKROOM_RATE_LIMIT_ENABLED", "true"));
    if std::env::var("CLOAKROOM_TEST_CGROUPS").is_err() {
        settings.extend([("CLOAKROOM_BODY_MEMORY", "8M"), ("CLOAKROOM_MAX_CONNECTIONS", "128")]);
    }
    let api = Server::start(&settings);
    let eves: Vec<_> = (0..30).map(|n| user_with_files(&api, n, 100)).collect();
    let many = user_with_files(&api, 30, 1100);
    let honest: Vec<_> = (40..45).map(|n| user_with_files(&api, n, 5)).collect();
    let [alone, ..] = &honest[..] else { unreachable!("five") };
    let alone = ask_honestly(&api, alone);
    let idle = own_memory(&api);
    let (most, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let beside = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(own_memory(&api), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(10));
            }
        });
        let _over = SetOnDrop(&over);
        let mut beside = Vec::new();
        let from = || connect_from("127.0.0.2", &api);

        // Slow readers of the largest list, who keep their connections.
        let slow: Vec<_> = (0..254).map(|n| begin_list(from(), &eves[n % 3], "")).collect();
        beside.push(("slow readers", ask_honestly(&api, &honest[1])));
        drop(slow);

        let ask = |user: &Tokens, path: &str| {
            let mut connection = from();
            let _ = connection.try_send(head("GET", path, user, ""));
            connection.try_answer().map_or(0, |answer| answer.status)
        };
        let changes = |_: usize, _: usize| {
            ask(&many, "/changes?limit=1000");
        };
        let honestly = || ask_honestly(&api, &honest[2]);
        beside.push(("pages of changes", repeat_during(40, changes, honestly)));

        // Half bodies of a request that needs no account.
        let half = "POST /api/v1/auth/refresh HTTP/1.1\r\nHost: x\r\nContent-Length: 8192\r\n\r\n";
        let half = half.to_owned() + &" ".repeat(8191);
        let half_bodies: Vec<_> = (0..400)
            .map(|_| {
                let mut connection = from();
                let _ = connection.try_send(&half);
                connection
            })
            .collect();
        beside.push(("half bodies", ask_honestly(&api, &honest[3])));
        drop(half_bodies);

        let all = |n: usize, round: usize| {
            let path = ["/uploads?size=100", "/changes?limit=1000", "/uploads?search=x"][round % 3];
            ask(&eves[n], path);
            // Within the limit of each account.
            thread::sleep(Duration::from_millis(600));
        };
        let honestly = || ask_honestly(&api, &honest[4]);
        beside.push(("30 accounts", repeat_during(30, all, honestly)));
        beside
    });
    let most = most.into_inner();
    println!("median alone {alone:?}, beside {beside:?}");
    println!("own memory: {} KiB idle, {} KiB at most", idle >> 10, most >> 10);
    assert!(most <= idle + PROMISED, "{} KiB, {} KiB before", most >> 10, idle >> 10);
    api.healthz().expect(200);
}

#[test]
fn a_connection_takes_at_most_128_kib_whatever_it_waits_for() {
    const COUNT: u64 = 64;
    // The functions of a debug build need more of the stack, which each thread keeps.
    let promised = if cfg!(debug_assertions) { 160 } else { 128 };
    // As long as a head may be, with as many fields.
    let long: String = (0..90).map(|n| format!("X-{n}: {}\r\n", "x".repeat(150))).collect();
    let form = file_form("a.txt", "text/plain", &vec![b'x'; 1 << 20]).bytes();
    let framing = format!(
        "{long}Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: 9000000\r\n"
    );
    for state in [
        "half a head",
        "half an upload",
        "half a body of JSON",
        "an unread download",
        "an unread page",
    ] {
        let (api, [ann]) = Server::with_users(&[], ["ann"]);
        let file = api.new_file(&ann, "large.txt", &numbers(1 << 20));
        // Connections to the database count for the pool.
        parallel(32, |_| api.profile(&ann).status);
        let bytes = match state {
            "half a head" => head("GET", "/users/me", &ann, &long)[..14_000].into(),
            "half an upload" => {
                let upload = head("POST", "/uploads", &ann, &framing);
                [upload.as_bytes(), &form[..200_000]].concat()
            }
            "half a body of JSON" => {
                let framing = format!("{long}Content-Length: 32768\r\n");
                (head("PUT", "/users/me", &ann, &framing) + &" ".repeat(32_767)).into_bytes()
            }
            "an unread download" => {
                head("GET", &format!("/uploads/{file}/download"), &ann, &long).into_bytes()
            }
            _ => format!("GET /openapi.json HTTP/1.1\r\nHost: x\r\n{long}\r\n").into_bytes(),
        };
        if state == "an unread page" {
            // It is made once, when it is first asked for.
            api.request_at_root("GET", "/openapi.json").send().expect(200);
        }
        let idle = own_memory(&api);
        let mut connections: Vec<_> = (0..COUNT).map(|_| connect_from("127.0.0.2", &api)).collect();
        connections.iter_mut().for_each(|one| drop(one.try_send(&bytes)));
        // Until it has not changed for a while.
        let (mut most, mut unchanged) = (0, 0);
        while unchanged < 20 {
            thread::sleep(Duration::from_millis(20));
            let now = own_memory(&api).saturating_sub(idle);
            unchanged = if now > most { 0 } else { unchanged + 1 };
            most = most.max(now);
        }
        println!("{state}: {} KiB", most / COUNT / 1024);
        assert!(most <= COUNT * promised * 1024, "{state}: {} KiB", most / COUNT / 1024);
    }
}
