//! The socket of a client, and whether its thread is at work or waits. Other threads may ask, and close it while it
//! waits.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::body_memory::Client;
use crate::semaphore::lock;

/// One client connection, shared by the thread that serves it and by [`super::connections::Connections`].
pub struct Connection {
    /// The client's socket, in blocking mode.
    pub socket: TcpStream,
    state: Mutex<ConnectionState>,
    shutting_down: Arc<AtomicBool>,
}

/// What a client is waited for to do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// To send a request head. None has arrived completely since the last response, so closing loses no request.
    Head,
    /// To send the body of a request, or to close its side of the connection after the last response.
    Body,
    /// To receive a response.
    Receipt,
}

/// The state of the thread that serves a connection.
#[derive(Clone, Copy)]
enum ConnectionState {
    /// It computes a response, so the connection must not be closed. `is_answering` says that some of it was sent.
    Busy { is_answering: bool },
    /// It waits until the client sends or receives, so the connection may be closed to make room for another.
    WaitingForClient { since: Instant, awaited: Awaited },
    /// Another thread has ended the wait: either it has closed the connection to make room for another, or the process
    /// stops; then a request whose body is missing is still answered.
    WaitEnded,
}

impl Connection {
    /// A connection whose thread is busy. `shutting_down` becomes true once the process was asked to stop.
    pub fn new(socket: TcpStream, shutting_down: Arc<AtomicBool>) -> Connection {
        let state = Mutex::new(ConnectionState::Busy { is_answering: false });
        Connection { socket, state, shutting_down }
    }

    /// Marks the connection as waiting for its client. Until [`Connection::stop_waiting`] it may be evicted.
    pub fn start_waiting(&self, awaited: Awaited) {
        let since = Instant::now();
        *lock(&self.state) = ConnectionState::WaitingForClient { since, awaited };
    }

    /// Marks the connection as busy. Fails with `ConnectionAborted` if the wait was ended by another thread.
    pub fn stop_waiting(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        let is_answering =
            matches!(*state, ConnectionState::WaitingForClient { awaited: Awaited::Receipt, .. });
        let is_ended = matches!(*state, ConnectionState::WaitEnded);
        *state = ConnectionState::Busy { is_answering };
        if is_ended { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    /// Ends the connection if it is between two requests, because the process stops; with `cuts` also if it waits for
    /// its client to send a body or to receive a response. Returns whether it computes a response of which nothing was
    /// sent. An export computes its next rows while some were sent: how long it takes depends on its client.
    pub fn wind_down(&self, cuts: bool) -> bool {
        let mut state = lock(&self.state);
        match *state {
            ConnectionState::Busy { is_answering } => return !is_answering,
            // Bytes that have already arrived can still be read, so a complete head among them is answered.
            ConnectionState::WaitingForClient { awaited: Awaited::Head, .. } => {
                let _ = self.socket.shutdown(Shutdown::Read);
            }
            // The thread looks for it each second, and then may still send the response of a request without its body.
            ConnectionState::WaitingForClient { .. } if cuts => *state = ConnectionState::WaitEnded,
            _ => {}
        }
        false
    }

    /// Whether the process was asked to stop.
    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::SeqCst)
    }
}

impl Client for Connection {
    fn waiting_since(&self) -> Option<Instant> {
        match *lock(&self.state) {
            ConnectionState::WaitingForClient { since, .. } => Some(since),
            _ => None,
        }
    }

    fn evict(&self, since: Instant) {
        let mut state = lock(&self.state);
        if matches!(*state, ConnectionState::WaitingForClient { since: current, .. } if current == since)
        {
            *state = ConnectionState::WaitEnded;
            // An error means that the client has closed the connection already.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }

    fn is_evicted(&self) -> bool {
        matches!(*lock(&self.state), ConnectionState::WaitEnded)
    }
}
