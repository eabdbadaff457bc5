//! The open connections: how many there may be, who makes room, and how they end when the process
//! stops. A request takes no lock here; only coming, going and making room do.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{PAUSE, STOP_GRACE, Stop};

/// State of a guest that is not waiting for its client. Any other number says since when it waits:
/// milliseconds times two plus one, and one more where it is between two requests.
const BUSY: u64 = 0;
/// State of a guest that had to make room.
const CUT: u64 = u64::MAX;

/// One connection as the house sees it.
pub struct Guest {
    /// The client.
    pub socket: TcpStream,
    state: AtomicU64,
    origin: Instant,
    stopping: Arc<AtomicBool>,
}

impl Guest {
    /// From now on the connection waits for its client, and may be cut.
    pub fn begins_to_wait(&self, between_requests: bool) {
        let millis = self.origin.elapsed().as_millis() as u64;
        self.state.store(millis * 2 + 1 + u64::from(between_requests), SeqCst);
    }

    /// The wait is over. Fails where the connection was cut meanwhile.
    pub fn has_waited(&self) -> io::Result<()> {
        match self.state.swap(BUSY, SeqCst) {
            CUT => Err(io::ErrorKind::ConnectionAborted.into()),
            _ => Ok(()),
        }
    }

    /// Whether the process stops, so that no new request is waited for.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(SeqCst)
    }
}

/// All guests.
pub struct House {
    most: usize,
    guests: Mutex<Guests>,
    left: Condvar,
    origin: Instant,
    stopping: Arc<AtomicBool>,
}

#[derive(Default)]
struct Guests {
    last_id: u64,
    here: HashMap<u64, Arc<Guest>>,
}

impl House {
    /// Room for `most` connections.
    pub fn new(most: usize, stop: &Stop) -> House {
        House {
            most,
            guests: Mutex::default(),
            left: Condvar::new(),
            origin: Instant::now(),
            stopping: stop.flag(),
        }
    }

    /// Nothing panics while the lock is held, so a poisoned state would still be sound.
    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when there is room for one more; where all are busy that takes as long as one of them
    /// does. A stop ends the wait: who was accepted before it is served.
    pub fn make_room(&self) {
        let mut guests = self.guests();
        while guests.here.len() >= self.most && !self.stopping.load(SeqCst) {
            cut_one(&guests);
            guests = self.wait_for_one_to_leave(guests, PAUSE);
        }
    }

    /// Cuts the connection that has waited longest for its client.
    pub fn cut_one(&self) {
        cut_one(&self.guests());
    }

    /// Takes a connection in. It leaves when the returned value is dropped.
    pub fn enter(self: &Arc<Self>, socket: TcpStream) -> Stay {
        let mut guests = self.guests();
        guests.last_id += 1;
        let id = guests.last_id;
        let guest = Arc::new(Guest {
            socket,
            state: AtomicU64::new(BUSY),
            origin: self.origin,
            stopping: self.stopping.clone(),
        });
        guests.here.insert(id, guest.clone());
        Stay { house: self.clone(), guest, id }
    }

    /// Ends the connections that are between two requests and waits for the others, at most `most`.
    /// Gives how many were left.
    pub fn close(&self, most: Duration) -> usize {
        let deadline = Instant::now() + most;
        let guests = self.wait_until_empty(Instant::now() + STOP_GRACE);
        for guest in guests.here.values() {
            let state = guest.state.load(SeqCst);
            if state != BUSY && state % 2 == 0 {
                // What has arrived can still be read, so a whole head that waits there is answered.
                let _ = guest.socket.shutdown(Shutdown::Read);
            }
        }
        drop(guests);
        self.wait_until_empty(deadline).here.len()
    }

    fn wait_until_empty(&self, deadline: Instant) -> MutexGuard<'_, Guests> {
        let mut guests = self.guests();
        while !guests.here.is_empty() && Instant::now() < deadline {
            guests = self.wait_for_one_to_leave(guests, PAUSE);
        }
        guests
    }

    fn wait_for_one_to_leave<'a>(
        &self,
        guests: MutexGuard<'a, Guests>,
        most: Duration,
    ) -> MutexGuard<'a, Guests> {
        let waited = self.left.wait_timeout(guests, most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// A guest that turns busy in the same moment stays: the exchange decides who was first.
fn cut_one(guests: &Guests) {
    let waiting = |guest: &&Arc<Guest>| Some(guest.state.load(SeqCst)).filter(|s| *s != BUSY);
    let longest = guests
        .here
        .values()
        .filter_map(|guest| Some((waiting(&guest)?, guest)))
        .filter(|(state, _)| *state != CUT)
        .min_by_key(|(state, _)| *state);
    if let Some((state, guest)) = longest
        && guest.state.compare_exchange(state, CUT, SeqCst, SeqCst).is_ok()
    {
        // It may be gone already.
        let _ = guest.socket.shutdown(Shutdown::Both);
    }
}

/// A connection's time in the house.
pub struct Stay {
    house: Arc<House>,
    /// The connection.
    pub guest: Arc<Guest>,
    id: u64,
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.house.guests().here.remove(&self.id);
        self.house.left.notify_all();
    }
}
