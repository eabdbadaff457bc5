//! The socket of a client, and whether its thread is at work or waits. Other threads may ask, and close it while it
//! waits.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::semaphore::lock;

/// One client connection, shared by the thread that serves it and by [`super::connections::Connections`].
pub struct Connection {
    /// The client's socket, in blocking mode.
    pub socket: TcpStream,
    state: Mutex<ConnectionState>,
    shutting_down: Arc<AtomicBool>,
}

/// The state of the thread that serves a connection.
#[derive(Clone, Copy)]
enum ConnectionState {
    /// It computes a response, so the connection must not be closed.
    Busy,
    /// It waits until the client sends or receives, so the connection may be closed to make room for another.
    WaitingForClient {
        since: Instant,
        /// No request head has arrived completely since the last response, so closing loses no request.
        between_requests: bool,
    },
    /// The connection was closed to make room for another. This state is final.
    Evicted,
}

impl Connection {
    /// A connection whose thread is busy. `shutting_down` becomes true once the process was asked to stop.
    pub fn new(socket: TcpStream, shutting_down: Arc<AtomicBool>) -> Connection {
        Connection { socket, state: Mutex::new(ConnectionState::Busy), shutting_down }
    }

    /// Marks the connection as waiting for its client. Until [`Connection::stop_waiting`] it may be evicted.
    pub fn start_waiting(&self, between_requests: bool) {
        let mut state = lock(&self.state);
        if !matches!(*state, ConnectionState::Evicted) {
            let since = Instant::now();
            *state = ConnectionState::WaitingForClient { since, between_requests };
        }
    }

    /// Marks the connection as busy. Fails if it was evicted during the wait.
    pub fn stop_waiting(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        if matches!(*state, ConnectionState::Evicted) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        *state = ConnectionState::Busy;
        Ok(())
    }

    /// Since when the connection waits for its client; `None` if it is busy or evicted.
    pub fn waiting_since(&self) -> Option<Instant> {
        match *lock(&self.state) {
            ConnectionState::WaitingForClient { since, .. } => Some(since),
            ConnectionState::Busy | ConnectionState::Evicted => None,
        }
    }

    /// Whether the connection waits for the next request, of which at most a part has arrived.
    pub fn is_between_requests(&self) -> bool {
        matches!(
            *lock(&self.state),
            ConnectionState::WaitingForClient { between_requests: true, .. }
        )
    }

    /// Closes the connection, unless the wait that began at `since` has ended: then its thread may be at work.
    pub fn evict(&self, since: Instant) {
        let mut state = lock(&self.state);
        if matches!(*state, ConnectionState::WaitingForClient { since: current, .. } if current == since)
        {
            *state = ConnectionState::Evicted;
            // An error means that the client has closed the connection already.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }

    /// Whether the process was asked to stop.
    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::SeqCst)
    }
}
