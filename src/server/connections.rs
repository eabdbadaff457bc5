//! The open connections: how many there may be, who makes room, and how they end when the process
//! stops. A request takes no lock here; only coming, going and making room do.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{PAUSE, STOP_GRACE, ShutdownSignal};

/// State of a connection that is not waiting for its client. Any other number says since when it waits:
/// milliseconds times two plus one, and one more where it is between two requests.
const BUSY: u64 = 0;
/// State of a connection that had to make room.
const CUT: u64 = u64::MAX;

/// One connection as the connections sees it.
pub struct Connection {
    /// The client.
    pub socket: TcpStream,
    state: AtomicU64,
    origin: Instant,
    stopping: Arc<AtomicBool>,
}

impl Connection {
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

/// All open.
pub struct Connections {
    most: usize,
    open: Mutex<Open>,
    left: Condvar,
    origin: Instant,
    stopping: Arc<AtomicBool>,
}

#[derive(Default)]
struct Open {
    last_id: u64,
    here: HashMap<u64, Arc<Connection>>,
}

impl Connections {
    /// Room for `most` connections.
    pub fn new(most: usize, stop: &ShutdownSignal) -> Connections {
        Connections {
            most,
            open: Mutex::default(),
            left: Condvar::new(),
            origin: Instant::now(),
            stopping: stop.flag(),
        }
    }

    /// Nothing panics while the lock is held, so a poisoned state would still be sound.
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when there is room for one more; where all are busy that takes as long as one of them
    /// does. A stop ends the wait: who was accepted before it is served.
    pub fn make_room(&self) {
        let mut open = self.open();
        while open.here.len() >= self.most && !self.stopping.load(SeqCst) {
            cut_one(&open);
            open = self.wait_for_one_to_leave(open, PAUSE);
        }
    }

    /// Cuts the connection that has waited longest for its client.
    pub fn cut_one(&self) {
        cut_one(&self.open());
    }

    /// Takes a connection in. It leaves when the returned value is dropped.
    pub fn enter(self: &Arc<Self>, socket: TcpStream) -> ConnectionGuard {
        let mut open = self.open();
        open.last_id += 1;
        let id = open.last_id;
        let connection = Arc::new(Connection {
            socket,
            state: AtomicU64::new(BUSY),
            origin: self.origin,
            stopping: self.stopping.clone(),
        });
        open.here.insert(id, connection.clone());
        ConnectionGuard { connections: self.clone(), connection, id }
    }

    /// Ends the connections that are between two requests and waits for the others, at most `most`.
    /// Gives how many were left.
    pub fn close(&self, most: Duration) -> usize {
        let deadline = Instant::now() + most;
        let open = self.wait_until_empty(Instant::now() + STOP_GRACE);
        for connection in open.here.values() {
            let state = connection.state.load(SeqCst);
            if state != BUSY && state % 2 == 0 {
                // What has arrived can still be read, so a whole head that waits there is answered.
                let _ = connection.socket.shutdown(Shutdown::Read);
            }
        }
        drop(open);
        self.wait_until_empty(deadline).here.len()
    }

    fn wait_until_empty(&self, deadline: Instant) -> MutexGuard<'_, Open> {
        let mut open = self.open();
        while !open.here.is_empty() && Instant::now() < deadline {
            open = self.wait_for_one_to_leave(open, PAUSE);
        }
        open
    }

    fn wait_for_one_to_leave<'a>(
        &self,
        open: MutexGuard<'a, Open>,
        most: Duration,
    ) -> MutexGuard<'a, Open> {
        let waited = self.left.wait_timeout(open, most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// A connection that turns busy in the same moment stays: the exchange decides who was first.
fn cut_one(open: &Open) {
    let waiting =
        |connection: &&Arc<Connection>| Some(connection.state.load(SeqCst)).filter(|s| *s != BUSY);
    let longest = open
        .here
        .values()
        .filter_map(|connection| Some((waiting(&connection)?, connection)))
        .filter(|(state, _)| *state != CUT)
        .min_by_key(|(state, _)| *state);
    if let Some((state, connection)) = longest
        && connection.state.compare_exchange(state, CUT, SeqCst, SeqCst).is_ok()
    {
        // It may be gone already.
        let _ = connection.socket.shutdown(Shutdown::Both);
    }
}

/// A connection's time in the connections.
pub struct ConnectionGuard {
    connections: Arc<Connections>,
    /// The connection.
    pub connection: Arc<Connection>,
    id: u64,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.connections.open().here.remove(&self.id);
        self.connections.left.notify_all();
    }
}
