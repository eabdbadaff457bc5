//! The memory that the process keeps.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use crate::harness::*;

const MIB: u64 = 1024 * 1024;
/// What a hash takes at the default cost: 128 * 2^14 * 8 bytes.
const HASH: u64 = 16 * MIB;

/// Sends the request on each of the connections, on four at a time, and expects 200. More at a time might wait longer
/// for their hashes than the server lets them, on a machine that is busy.
fn send_on_all(connections: &[Mutex<RawConnection>], request: &str) {
    let next = AtomicUsize::new(0);
    parallel(4, |_| {
        while let Some(connection) = connections.get(next.fetch_add(1, Ordering::Relaxed)) {
            let answer = connection.lock().expect("no panic").send(request).answer();
            assert_eq!(answer.status, 200);
        }
    });
}

#[test]
fn sign_ins_over_a_hundred_connections_take_the_memory_of_a_hash_per_core_and_keep_none() {
    let patient = ("CLOAKROOM_IDLE_TIMEOUT_SECONDS", "900");
    let api = Server::start(&[("CLOAKROOM_SCRYPT", "14,8,5"), patient]);
    let open = |_| Mutex::new(RawConnection::open(&api.address));
    let connections: Vec<_> = (0..100).map(open).collect();
    send_on_all(&connections, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
    let before = api.resident_memory();
    api.register("ann").expect(201);
    let body = json!({"username": "ann", "password": PASSWORD}).to_string();
    let login = format!(
        "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    send_on_all(&connections, &login);
    let peak = api.peak_growth(before);
    let cores = available_parallelism().expect("a number of cores").get() as u64;
    assert!(peak >= HASH, "the hashes cost less than the default: {peak}");
    assert!(peak <= cores * HASH + 8 * MIB, "grew by {} KiB", peak / 1024);
    wait_until(|| api.resident_memory() <= before + 8 * MIB);
}

#[test]
fn connections_leave_little_memory_behind() {
    let (api, [user]) = Server::with_users(&[], ["ann"]);
    let before = api.resident_memory();
    let request = format!(
        "GET /api/v1/auth/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n",
        user.access
    );
    // All are open at once, and each has been used by the time that they close.
    let connections: Vec<_> =
        (0..64).map(|_| Mutex::new(RawConnection::open(&api.address))).collect();
    (0..20).for_each(|_| send_on_all(&connections, &request));
    drop(connections);
    let cores = available_parallelism().expect("a number of cores").get() as u64;
    wait_until(|| api.resident_memory() <= before + (1 + cores) * MIB);
}
