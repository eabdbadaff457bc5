//! What all tests share: the real binary on a database of its own, one method per endpoint, and assertions on answers.
//! Both test crates include it, and neither uses all of it.
#![allow(dead_code, unused_imports)]

mod backups;
mod certificates;
mod cluster;
mod connection;
mod data_directory;
mod database;
mod database_proxy;
mod documented;
mod form;
mod http_message;
mod imported_hashes;
mod installation;
mod jwt;
mod nginx;
mod openid_provider;
pub mod partial;
mod port;
mod process;
mod received_mail;
mod request;
mod second_factor;
mod sending;
mod server;
mod smtp;
mod store_proxy;
mod store_server;
mod terminal;
mod verbs;

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

pub use rustix::process::Signal;
pub use serde_json::{Value, json};

pub use backups::*;
pub use certificates::*;
pub use cluster::*;
pub use connection::*;
pub use data_directory::*;
pub use database::*;
pub use database_proxy::*;
pub use documented::*;
pub use form::*;
pub use http_message::*;
pub use imported_hashes::*;
pub use installation::*;
pub use jwt::*;
pub use nginx::*;
pub use openid_provider::*;
pub use port::*;
pub use process::*;
pub use received_mail::*;
pub use request::*;
pub use second_factor::*;
pub use server::*;
pub use smtp::*;
pub use store_proxy::*;
pub use store_server::*;
pub use terminal::*;
pub use verbs::*;

/// The secret with which every server of a test signs tokens, so that tests can sign tokens of their own.
pub const SECRET: &str = "a-secret-for-tests-0123456789abcdef-0123456789abcdef-0123456789abcdef";
/// The password of every account that `Server::register` makes.
pub const PASSWORD: &str = "correct horse";
/// Another password that is good enough.
pub const NEW_PASSWORD: &str = "battery staple";
/// A well-formed id that nothing has.
pub const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";
/// The URL of a database at which nothing listens: a start that needs it waits for 30 seconds. Its password must not be
/// shown.
pub const NOWHERE: &str = "postgres://cloakroom:s3cret@127.0.0.1:1/cloakroom";
/// Control characters of ASCII and Latin-1, and those that change the direction of text (Unicode UAX #9).
pub const CONTROL_CHARACTERS: [char; 13] = [
    '\0', '\u{1}', '\t', '\n', '\r', '\u{1f}', '\u{7f}', '\u{85}', '\u{9f}', '\u{202a}',
    '\u{202e}', '\u{2066}', '\u{2069}',
];
/// The time at which tokens expire that a test signs and that must not expire during it: the year 2096.
pub const FAR_FUTURE: u64 = 4_000_000_000;

/// Runs `work` on `n` threads that begin at the same moment, and returns the results in the order of their numbers.
pub fn parallel<T: Send>(n: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(n);
    thread::scope(|scope| {
        let (work, barrier) = (&work, &barrier);
        let start = |i| {
            scope.spawn(move || {
                barrier.wait();
                work(i)
            })
        };
        let threads: Vec<_> = (0..n).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Runs `work` again and again on `n` threads, with the numbers of the thread and of the round, while `during` runs.
pub fn repeat_during<T>(
    n: usize,
    work: impl Fn(usize, usize) + Sync,
    during: impl FnOnce() -> T,
) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for i in 0..n {
            let (work, over) = (&work, &over);
            let rounds = (0..).take_while(|_| !over.load(Ordering::Relaxed));
            scope.spawn(move || rounds.for_each(|round| work(i, round)));
        }
        let _over = SetOnDrop(&over);
        during()
    })
}

/// Counts how often each status occurs.
pub fn tally(statuses: impl IntoIterator<Item = u16>) -> BTreeMap<u16, usize> {
    statuses.into_iter().fold(BTreeMap::new(), |mut counts, status| {
        *counts.entry(status).or_default() += 1;
        counts
    })
}

/// Polls until `poll` returns a value. Fails after two minutes: far longer than anything takes on a busy machine.
#[track_caller]
pub fn eventually<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "did not happen within two minutes");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The number of cores that a service counts, at most two: one, where `scripts/test-small-host` holds it to half a
/// core.
pub fn cores_up_to_two() -> i64 {
    let is_held = std::env::var("CLOAKROOM_TEST_CGROUPS").is_ok();
    let cores = thread::available_parallelism().expect("a number of cores").get();
    if is_held { 1 } else { cores.min(2) as i64 }
}

/// Polls until `condition` holds, as `eventually` does.
#[track_caller]
pub fn wait_until(mut condition: impl FnMut() -> bool) {
    eventually(|| condition().then_some(()));
}

/// Sets a flag that stops other threads when this is dropped, also if the test fails: a scope waits for its threads.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A well-formed id of that number.
pub fn uuid(n: u32) -> String {
    format!("{n:08x}-1111-4111-8111-111111111111")
}

/// The rows of an export after its header, as a CSV reader sees them.
#[track_caller]
pub fn csv_rows(header: &str, csv: &[u8]) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().from_reader(csv);
    assert_eq!(reader.headers().expect("a header").iter().collect::<Vec<_>>().join(","), header);
    let cells = |record: csv::StringRecord| record.iter().map(str::to_owned).collect();
    reader.records().map(|record| cells(record.expect("CSV"))).collect()
}

/// The median, which a few delays of a busy machine do not move.
pub fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    durations[durations.len() / 2]
}

/// The hash of a content as the API writes it.
pub fn sha256(content: &[u8]) -> String {
    format!("sha256:{}", digits_of_sha256(content))
}

/// The hash of a content as PostgreSQL and the program `sha256sum` write it.
pub fn digits_of_sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}
