//! A database that hangs, or restarts under load. The service must say so, and recover without help.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

/// Sends requests on 16 threads while `during` runs, and returns every status and how long it took. `during` is given a
/// function that counts the answers so far.
fn under_load(
    api: &Server,
    sender: &Tokens,
    during: impl FnOnce(&dyn Fn() -> usize),
) -> Vec<(u16, Duration)> {
    let (over, seen) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    let status = api.profile(sender).status;
                    seen.lock().expect("seen").push((status, begin.elapsed()));
                }
            });
        }
        let _stop = SetOnDrop(&over);
        during(&|| seen.lock().expect("seen").len());
    });
    seen.into_inner().expect("seen")
}

/// Expects these statuses only, and none after more than `limit`.
fn expect_only(seen: &[(u16, Duration)], statuses: &[u16], limit: Duration) {
    for (status, took) in seen {
        assert!(statuses.contains(status), "{status} after {took:?}");
        assert!(*took < limit, "{status} after {took:?}");
    }
}

#[test]
fn a_database_that_hangs_is_answered_with_503_in_time_and_used_again_when_it_is_back() {
    let cluster = Cluster::start("hang");
    let api = cluster.serve(&[("CLOAKROOM_DATABASE_TIMEOUT_SECONDS", "1")]);
    let ann = api.sign_up("ann");
    let seen = under_load(&api, &ann, |count| {
        let suspended = cluster.suspend();
        let before = count();
        wait_until(|| {
            api.healthz().expect(200);
            api.readyz().refused(503, "Service temporarily unavailable");
            count() >= before + 48
        });
        drop(suspended);
        wait_until(|| api.profile(&ann).status == 200);
    });
    expect_only(&seen, &[200, 503, 504], Duration::from_secs(20));
    let failed: Vec<_> =
        seen.iter().filter(|(status, _)| *status != 200).map(|(_, took)| *took).collect();
    assert!(failed.len() >= 16, "only {} of {} requests met the outage", failed.len(), seen.len());
    // With the default timeout of 5 seconds this would be longer.
    assert!(median(failed.clone()) < Duration::from_secs(4), "{failed:?}");
    for _ in 0..50 {
        api.profile(&ann).expect(200);
    }
}

#[test]
fn after_a_restart_of_the_database_nothing_fails() {
    let cluster = Cluster::start("restart-under-load");
    let api = cluster.serve(&[]);
    let ann = api.sign_up("ann");
    let seen = under_load(&api, &ann, |_| {
        cluster.stop();
        cluster.start_again();
    });
    expect_only(&seen, &[200, 503], Duration::from_secs(20));
    let after = under_load(&api, &ann, |count| wait_until(|| count() > 500));
    expect_only(&after, &[200], Duration::from_secs(20));
}
