//! What must hold for every schedule of threads that wait for each other: for permits, in batches of queries, and for
//! room for a connection. Each test tries some thousands of schedules, in a few seconds. They are the same in each run;
//! the environment variable `SHUTTLE_RANDOM_SEED`, a number, makes them others. A failure prints its schedule, which
//! `shuttle::replay` repeats. That no thread can go on is a failure too: "deadlock!".

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use schedules::batches::Batches;
use schedules::body_memory::Client;
use schedules::connections::{Awaited, ConnectionGuard, ConnectionLimits, Connections};
use schedules::error::Error;
use schedules::semaphore::{Policy, Rank, Semaphore, SemaphoreState, lock};
use schedules::shuttle::rand::{Rng, thread_rng};
use schedules::shuttle::scheduler::{PctScheduler, RandomScheduler};
use schedules::shuttle::{Runner, thread};
use schedules::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use schedules::sync::{Arc, Mutex};

/// A wait of this length is over after a number of steps that is left to chance, or never.
const SOME_TIME: Duration = Duration::from_secs(1);

/// Schedules of each kind that a test tries.
const SCHEDULES: usize = 2000;

/// Runs a test with schedules in which each step is left to chance, and with others in which the thread of the highest
/// priority goes on, and priorities change at three steps: there a thread may stand still while others do much.
fn for_schedules(test: impl Fn() + Send + Sync + Copy + 'static) {
    Runner::new(RandomScheduler::new_from_seed(1, SCHEDULES), Default::default()).run(test);
    Runner::new(PctScheduler::new_from_seed(1, 3, SCHEDULES), Default::default()).run(test);
}

/// True in half of the cases.
fn chance() -> bool {
    thread_rng().gen_bool(0.5)
}

/// A thread that asks for a permit: its group, and its number.
type Asker = (char, u8);

/// Two permits, of which each group may have one. Records the order of asking.
struct OneForEachGroup {
    asked: Arc<Mutex<Vec<Asker>>>,
}

impl Policy<Asker> for OneForEachGroup {
    fn may_take(&self, (group, _): &Asker, state: &SemaphoreState<Asker>) -> bool {
        state.taken(|_| 1) < 2 && state.taken(|(other, _)| usize::from(other == group)) < 1
    }

    fn may_ask(&self, asker: &Asker, _: &SemaphoreState<Asker>) -> bool {
        lock(&self.asked).push(*asker);
        true
    }
}

#[test]
fn permits_are_bounded_in_the_order_of_asking_and_never_lost() {
    for_schedules(|| {
        let (asked, served) = (Arc::new(Mutex::new(Vec::new())), Mutex::new(Vec::new()));
        let semaphore =
            Semaphore::with_policy(Rank::Change, OneForEachGroup { asked: asked.clone() });
        let closes = chance();
        // Without the end of all waits the others of this group would wait for ever.
        let kept = closes.then(|| semaphore.acquire(('a', 0), Duration::ZERO));
        let held = Mutex::new(kept.iter().map(|_| 'a').collect::<HashSet<_>>());
        thread::scope(|scope| {
            let (semaphore, served, held) = (&semaphore, &served, &held);
            for asker in [('a', 1), ('a', 2), ('a', 3), ('b', 1), ('c', 1)] {
                scope.spawn(move || {
                    let timeout = if chance() { Duration::MAX } else { SOME_TIME };
                    let permit = semaphore.acquire(asker, timeout);
                    if permit.is_some() {
                        lock(served).push(asker);
                        let is_only = lock(held).insert(asker.0);
                        assert!(is_only && lock(held).len() <= 2, "more permits than there are");
                        lock(held).remove(&asker.0);
                    } else {
                        assert!(closes || timeout == SOME_TIME, "a wait ended without a reason");
                    }
                });
            }
            if closes {
                scope.spawn(|| semaphore.close());
            }
        });
        drop(kept);
        assert_eq!((semaphore.in_use(), semaphore.waiting()), (0, 0), "a permit was lost");
        let (asked, served) = (lock(&asked), lock(&served));
        let served = served.iter().filter(|(group, _)| *group == 'a');
        let order = |asker: &Asker| asked.iter().position(|other| other == asker);
        assert!(served.is_sorted_by_key(order), "a thread overtook another of its group");
    });
}

/// Three turns. A permit takes as many of them as its key says.
struct ThreeTurns;

impl Policy<usize> for ThreeTurns {
    fn may_take(&self, turns: &usize, state: &SemaphoreState<usize>) -> bool {
        state.taken(|turns| *turns) + turns <= 3
    }

    fn may_ask(&self, _: &usize, _: &SemaphoreState<usize>) -> bool {
        true
    }
}

#[test]
fn a_permit_of_several_turns_is_handed_on_to_as_many_as_fit() {
    for_schedules(|| {
        let semaphore = Semaphore::with_policy(Rank::Hash, ThreeTurns);
        let taken = AtomicUsize::new(0);
        thread::scope(|scope| {
            let (semaphore, taken) = (&semaphore, &taken);
            for turns in [3, 1, 2, 1, 1] {
                scope.spawn(move || {
                    // Nobody comes after these, so each has its turn, the largest too.
                    let permit = semaphore.acquire(turns, Duration::MAX);
                    assert!(permit.is_some(), "a wait ended without a permit");
                    let before = taken.fetch_add(turns, Ordering::SeqCst);
                    assert!(before + turns <= 3, "more turns than there are");
                    taken.fetch_sub(turns, Ordering::SeqCst);
                });
            }
        });
        assert_eq!((semaphore.in_use(), semaphore.waiting()), (0, 0), "a permit was lost");
    });
}

/// How a query ends.
#[derive(Clone, Copy, PartialEq, Debug)]
enum End {
    Served,
    Failed,
    Panicked,
}

#[test]
fn each_entry_of_a_batch_gets_its_own_outcome() {
    for_schedules(|| {
        let max_queued = if chance() { Duration::MAX } else { SOME_TIME };
        let (batches, running) = (Batches::new(1, max_queued), AtomicUsize::new(0));
        // How the query of each value ends.
        let ends = Mutex::new(HashMap::new());
        thread::scope(|scope| {
            let (batches, running, ends) = (&batches, &running, &ends);
            let query = move |values: &[u32]| {
                let others = running.fetch_add(1, Ordering::SeqCst);
                assert!(others == 0 || max_queued == SOME_TIME, "two queries at once");
                let end = [End::Served, End::Failed, End::Panicked][thread_rng().gen_range(0..3)];
                for value in values {
                    assert_eq!(lock(ends).insert(*value, end), None, "a value in two queries");
                }
                running.fetch_sub(1, Ordering::SeqCst);
                match end {
                    End::Served => Ok(values.iter().map(|value| value * 10).collect()),
                    End::Failed => Err(Error::TimedOut),
                    // A panic that prints nothing.
                    End::Panicked => resume_unwind(Box::new("on purpose")),
                }
            };
            for value in 1..=4 {
                scope.spawn(move || {
                    let submit = AssertUnwindSafe(|| batches.submit(value, query));
                    let outcome = catch_unwind(submit);
                    let end = lock(ends)[&value];
                    let is_right = match outcome {
                        Ok(Ok(served)) => end == End::Served && served == value * 10,
                        Ok(Err(Error::TimedOut)) => end == End::Failed,
                        Ok(Err(Error::Internal(_))) | Err(_) => end == End::Panicked,
                    };
                    assert!(is_right, "the outcome of another value");
                });
            }
        });
    });
}

/// Whether the server may still send to this client.
fn is_open(client: &TcpStream) -> bool {
    client.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// Serves two requests, unless another thread ends the connection while it waits for its client.
fn serve(guard: ConnectionGuard, client: TcpStream) {
    let connection = &guard.connection;
    for _ in 0..2 {
        connection.start_waiting(Awaited::Head);
        if connection.stop_waiting().is_err() {
            return;
        }
        connection.start_computing();
        thread::yield_now();
        assert!(!connection.is_evicted() && is_open(&client), "it was closed at work");
        connection.start_waiting(Awaited::FileReceipt);
        if connection.stop_waiting().is_err() {
            return assert!(!is_open(&client), "it was ended and not closed");
        }
    }
}

#[test]
fn connections_end_only_while_they_wait_and_leave_room() {
    for_schedules(|| {
        let peers: [IpAddr; 2] = [[192, 0, 2, 1].into(), [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into()];
        let max = thread_rng().gen_range(1..=2);
        let limits = ConnectionLimits { max, max_per_network: 1, trusted_proxies: Vec::new() };
        let stop = Arc::new(AtomicBool::new(false));
        let connections = Arc::new(Connections::new(limits, stop.clone()));
        let opened = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let (connections, opened, stop) = (&connections, &opened, &stop);
            scope.spawn(move || {
                for peer in [peers[0], peers[1], peers[0], peers[1]] {
                    connections.wait_for_room();
                    let (server, client) = UnixStream::pair().unwrap();
                    client.set_nonblocking(true).unwrap();
                    let [server, client] = [server, client].map(|it| OwnedFd::from(it).into());
                    let guard = connections.register(server, peer);
                    assert!(connections.network_is_full(peer));
                    let open = connections.shut_down(Duration::ZERO);
                    assert!(open <= max || stop.load(Ordering::SeqCst), "no room for it");
                    lock(opened).push(Arc::downgrade(&guard.connection));
                    scope.spawn(move || serve(guard, client));
                }
            });
            // As a request does that needs memory for its body, or a stop that takes too long.
            scope.spawn(move || {
                for _ in 0..4 {
                    let last = lock(opened).last().and_then(|connection| connection.upgrade());
                    let since = last.as_ref().and_then(|connection| connection.waiting_since());
                    match (last, since) {
                        (Some(connection), Some(since)) if chance() => connection.evict(since),
                        (Some(connection), _) => drop(connection.wind_down(true)),
                        _ => thread::yield_now(),
                    }
                }
            });
            if chance() {
                scope.spawn(|| {
                    stop.store(true, Ordering::SeqCst);
                    assert_eq!(connections.shut_down(Duration::MAX), 0);
                });
            }
        });
        assert_eq!(connections.shut_down(Duration::ZERO), 0, "a connection is still counted");
        assert!(!peers.iter().any(|peer| connections.network_is_full(*peer)), "its network is");
    });
}
