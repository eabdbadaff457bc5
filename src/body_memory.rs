//! The budget of bytes for bodies in memory. Whoever sends a JSON request or asks for a list chooses its size, and it
//! stays in memory until the client has sent or received all of it, which may take many minutes. So all such bodies
//! take their room from one budget. Those of up to [`SMALL_BODY`] never come here: they count with their connection.
//!
//! A request for which there is not enough room waits, at most for a second. Meanwhile connections that hold some and
//! whose clients keep the service waiting are closed, first those of the owner that holds the most bytes, and what
//! comes free goes to the owner that holds the fewest. So whoever has many slow connections loses them, and others do
//! not.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::error::Error;
use crate::semaphore::{Rank, lock};

/// Bodies of up to so many bytes need no room.
pub const SMALL_BODY: usize = 32 * 1024;
/// Longest wait for room. After it the request is answered 503.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// How often a request that waits looks for connections to close. It begins with a wait of this length, in which
/// clients that receive their answers fast may finish.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// For whom the bytes of a request count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Owner {
    User(Uuid),
    /// A network, see `client_address::network`.
    Network(IpAddr),
}

/// A connection, which can be closed while its client is waited for.
pub trait Client: Send + Sync {
    /// Since when the client is waited for; `None` if a request is at work.
    fn waiting_since(&self) -> Option<Instant>;
    /// Closes the connection, unless the wait that began at `since` is over.
    fn evict(&self, since: Instant);
    /// Whether the connection was closed, so that its thread is about to free its room.
    fn is_evicted(&self) -> bool;
    /// Ends the wait for the body of the present request, which can still be answered.
    #[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "only extras end waits"))]
    fn stop_reading(&self) {}
}

/// The budget, which all requests share.
pub struct BodyMemory {
    state: Mutex<State>,
    /// Held while a large JSON request is parsed. For that moment its values may take 30 times the memory of its text,
    /// so only one is parsed at a time.
    parsing: Mutex<()>,
}

struct State {
    /// The budget in bytes, and those of all rooms.
    size: usize,
    taken: usize,
    /// By their numbers, which grow.
    rooms: BTreeMap<u64, RoomState>,
    /// The rooms that wait, the bytes that each is to have then, and the threads to wake.
    waiting: BTreeMap<u64, (usize, Thread)>,
    /// When connections to close were last looked for.
    looked_at: Instant,
}

struct RoomState {
    owner: Owner,
    client: Arc<dyn Client>,
    bytes: usize,
}

impl State {
    /// Gives a room so many bytes if they fit. One that alone is larger than the budget fits if there is no other.
    fn resize(&mut self, number: u64, bytes: usize) -> bool {
        let Some(room) = self.rooms.get_mut(&number) else { return false };
        let others = self.taken - room.bytes;
        let fits = bytes <= room.bytes || others == 0 || others + bytes <= self.size;
        if fits {
            (room.bytes, self.taken) = (bytes, others + bytes);
        }
        fits
    }

    /// How many bytes each owner holds.
    fn held(&self) -> HashMap<Owner, usize> {
        let mut held = HashMap::new();
        self.rooms.values().for_each(|room| *held.entry(room.owner).or_default() += room.bytes);
        held
    }

    /// The room that is next: of those that wait one whose owner holds least, and of these the oldest.
    fn next(&self, held: &HashMap<Owner, usize>) -> Option<u64> {
        self.waiting.keys().copied().min_by_key(|number| held.get(&self.rooms.get(number)?.owner))
    }

    /// Hands over what has come free.
    fn hand_over(&mut self) {
        while !self.waiting.is_empty()
            && let Some(next) = self.next(&self.held())
            && self.resize(next, self.waiting[&next].0)
        {
            self.waiting.remove(&next).inspect(|(_, thread)| thread.unpark());
        }
    }

    /// The connections to close so that the room which is next gets its bytes, and since when their clients are waited
    /// for. No owner loses one for another that holds as much.
    fn to_close(&self) -> Vec<(Arc<dyn Client>, Instant)> {
        let (mut held, mut idle, mut closed) = (self.held(), Vec::new(), Vec::new());
        let Some(next) = self.next(&held) else { return closed };
        let (own, bytes) = (&self.rooms[&next], self.waiting[&next].0);
        let mut missing = (self.taken - own.bytes + bytes).saturating_sub(self.size.max(bytes));
        for room in self.rooms.values() {
            match room.client.waiting_since() {
                Some(since) if room.bytes > 0 => idle.push((Reverse(since), room)),
                None if room.client.is_evicted() => missing = missing.saturating_sub(room.bytes),
                _ => {}
            }
        }
        let least = held[&own.owner];
        while missing > 0 {
            let most = (0..idle.len()).max_by_key(|&at| (held[&idle[at].1.owner], idle[at].0));
            let may = |room: &RoomState| room.owner == own.owner || held[&room.owner] > least;
            let most = most.filter(|&at| may(idle[at].1));
            let Some((Reverse(since), room)) = most.map(|at| idle.swap_remove(at)) else { break };
            held.entry(room.owner).and_modify(|bytes| *bytes -= room.bytes);
            missing = missing.saturating_sub(room.bytes);
            closed.push((room.client.clone(), since));
        }
        closed
    }
}

impl BodyMemory {
    /// A budget of `size` bytes.
    pub fn new(size: usize) -> Arc<BodyMemory> {
        let (rooms, waiting, looked_at) = (BTreeMap::new(), BTreeMap::new(), Instant::now());
        let state = Mutex::new(State { size, taken: 0, rooms, waiting, looked_at });
        Arc::new(BodyMemory { state, parsing: Mutex::new(()) })
    }

    /// A room without bytes for the requests of a connection, which count for `owner`.
    pub fn room(self: &Arc<Self>, client: Arc<dyn Client>, owner: Owner) -> Arc<Room> {
        let mut state = lock(&self.state);
        let number = state.rooms.last_key_value().map_or(0, |(last, _)| last + 1);
        state.rooms.insert(number, RoomState { owner, client, bytes: 0 });
        let (owner, is_empty) = (Mutex::new(owner), AtomicBool::new(true));
        Arc::new(Room { memory: self.clone(), number, owner, is_empty })
    }
}

/// The bytes that the request of a connection holds. They are free again when this is dropped.
pub struct Room {
    memory: Arc<BodyMemory>,
    number: u64,
    /// For whom the bytes count that are taken next.
    owner: Mutex<Owner>,
    /// Only the thread of the connection reads and writes this, so that a small body needs no lock that others take.
    is_empty: AtomicBool,
}

impl Room {
    /// Says for whom the bytes count that are taken from now on.
    pub fn count_for(&self, owner: Owner) {
        *lock(&self.owner) = owner;
    }

    /// Ends the wait for the body of the connection's present request, which can still be answered.
    #[cfg(feature = "extras")]
    pub fn stop_reading(&self) {
        if let Some(room) = lock(&self.memory.state).rooms.get(&self.number) {
            room.client.stop_reading();
        }
    }

    /// Waits until no other large request is parsed.
    pub fn parsing_turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.memory.parsing)
    }

    /// Gives back all bytes, if there are any.
    pub fn free(&self) {
        if !self.is_empty.swap(true, Ordering::Relaxed) {
            let mut state = lock(&self.memory.state);
            state.resize(self.number, 0);
            state.hand_over();
        }
    }

    /// Makes the room so large, unless that needs a wait. Returns whether it is. It always is if it was larger.
    pub fn try_resize(&self, bytes: usize) -> bool {
        self.is_empty.store(false, Ordering::Relaxed);
        let mut state = lock(&self.memory.state);
        let before = state.rooms.get_mut(&self.number).map_or(0, |room| {
            room.owner = *lock(&self.owner);
            room.bytes
        });
        let has_turn = bytes <= before || state.waiting.is_empty();
        let is_resized = has_turn && state.resize(self.number, bytes);
        state.hand_over();
        is_resized
    }

    /// Makes the room so large. Fails with [`Error::Unavailable`] if that takes longer than a second.
    pub fn resize(&self, bytes: usize) -> Result<(), Error> {
        if self.try_resize(bytes) {
            return Ok(());
        }
        Rank::Bytes.assert_order();
        let deadline = Instant::now() + MAX_WAIT;
        let mut state = lock(&self.memory.state);
        state.waiting.insert(self.number, (bytes, thread::current()));
        state.hand_over();
        loop {
            drop(state);
            thread::park_timeout(LOOK_PERIOD);
            state = lock(&self.memory.state);
            if !state.waiting.contains_key(&self.number) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                state.waiting.remove(&self.number);
                state.hand_over(); // those behind it may need less
                return Err(Error::Unavailable);
            }
            // However many wait, this is done once in a period.
            if state.looked_at.elapsed() >= LOOK_PERIOD {
                state.looked_at = Instant::now();
                let closed = state.to_close();
                drop(state);
                closed.iter().for_each(|(client, since)| client.evict(*since));
                state = lock(&self.memory.state);
            }
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.free();
        lock(&self.memory.state).rooms.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that is waited for since a moment, or whose request is at work.
    struct Fake(Option<Instant>);

    impl Client for Fake {
        fn waiting_since(&self) -> Option<Instant> {
            self.0
        }
        fn evict(&self, _: Instant) {}
        fn is_evicted(&self) -> bool {
            false
        }
    }

    fn owner(n: u8) -> Owner {
        Owner::Network([192, 0, 2, n].into())
    }

    /// Rooms in a budget of 100 bytes: their owners, their bytes, and since when their clients are waited for.
    fn rooms(
        all: &[(u8, usize, Option<u64>)],
        begin: Instant,
    ) -> (Arc<BodyMemory>, Vec<Arc<Room>>) {
        let memory = BodyMemory::new(100);
        let room = |&(n, bytes, since): &(u8, usize, Option<u64>)| {
            let since = since.map(|seconds| begin + Duration::from_secs(seconds));
            let room = memory.room(Arc::new(Fake(since)), owner(n));
            assert!(room.try_resize(bytes));
            room
        };
        let rooms = all.iter().map(room).collect();
        (memory, rooms)
    }

    #[test]
    fn what_comes_free_goes_to_the_owner_that_holds_least_and_nobody_overtakes() {
        let busy = [(1, 50, None), (2, 50, None), (1, 0, None), (3, 0, None), (4, 0, None)];
        let (memory, rooms) = rooms(&busy, Instant::now());
        let waiting = || lock(&memory.state).waiting.keys().copied().collect::<Vec<_>>();
        for (room, bytes) in [(2, 50), (3, 60), (4, 20)] {
            lock(&memory.state).waiting.insert(room, (bytes, thread::current()));
        }
        rooms[1].free();
        assert_eq!(waiting(), [2, 3, 4], "60 bytes are next, and do not fit; those before would");
        rooms[0].free();
        assert_eq!(waiting(), [3, 4], "of owners that hold the same the first comes first");
        assert!(!rooms[0].try_resize(1), "it comes after those that wait");
        rooms[2].free();
        assert!(waiting().is_empty());
        assert!(rooms[0].try_resize(20));
        assert!(!rooms[1].try_resize(1));
        drop(rooms);
        assert_eq!(lock(&memory.state).taken, 0);
    }

    #[test]
    fn connections_are_closed_of_the_owner_that_holds_most_the_longest_waiting_first() {
        let begin = Instant::now();
        for (held, bytes, closed) in [
            // The rooms 1, 2 ... hold this, and room 0 of owner 9 is to have so many bytes.
            (&[(1, 40, Some(5)), (1, 40, Some(3)), (2, 20, Some(1))][..], 10, &[3][..]),
            (&[(1, 40, Some(5)), (1, 40, Some(3)), (2, 20, Some(1))], 60, &[3, 5]),
            (&[(1, 40, Some(5)), (1, 40, Some(3)), (2, 20, Some(1))], 100, &[3, 5, 1]),
            // Those that hold nothing are never closed, also if they have waited longest.
            (&[(1, 0, Some(0)), (1, 40, Some(5)), (2, 0, Some(0)), (2, 60, None)], 10, &[5]),
            (&[(1, 0, Some(0)), (2, 0, Some(1)), (3, 100, None)], 10, &[]),
            // Those at work are never closed, and nobody pays for an owner that holds more.
            (&[(1, 60, None), (2, 40, Some(1))], 50, &[1]),
            (&[(1, 60, None), (9, 40, None)], 10, &[]),
            (&[(1, 30, Some(1)), (9, 70, Some(2))], 10, &[2]),
            (&[(1, 30, Some(1)), (9, 70, None)], 10, &[]),
            (&[(1, 50, Some(1)), (9, 50, None)], 10, &[]),
            // What is larger than the budget must be alone.
            (&[(1, 30, Some(1)), (2, 20, Some(2))], 500, &[1, 2]),
        ] {
            let all = [&[(9, 0, None)], held].concat();
            let (memory, _rooms) = rooms(&all, begin);
            lock(&memory.state).waiting.insert(0, (bytes, thread::current()));
            let found = lock(&memory.state).to_close();
            let seconds: Vec<_> =
                found.iter().map(|(_, since)| (*since - begin).as_secs()).collect();
            assert_eq!(seconds, closed, "{held:?}, {bytes}");
        }
    }
}
