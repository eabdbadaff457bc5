//! The listening socket and the loop that accepts connections. No error ends the loop: it logs, waits and goes on.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use listenfd::ListenFd;
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, Socket, Type};

use super::Server;
use super::limits::{LISTEN_BACKLOG, RETRY_PAUSE, THREAD_STACK};
use super::request_loop::serve_connection;
use super::shutdown::ShutdownSignal;
use crate::http::client_address::network;

/// Shortest time between two log lines about clients with too many connections.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// Returns the listening socket that a supervisor such as systemd passes in `LISTEN_FDS`, or else one that is bound to
/// `address`. A passed socket outlives this process, so a restart refuses no client.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = match ListenFd::from_env().take_tcp_listener(0)? {
        Some(inherited) => inherited,
        None => {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            socket.listen(LISTEN_BACKLOG)?;
            socket.into()
        }
    };
    // Another process that shares the socket may take the connection between `poll` and `accept`.
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Accepts connections until the process is asked to stop. Then it closes the idle ones and returns when the requests
/// of the others are finished, or have been waited for long enough.
pub fn run(server: &Arc<Server>, listener: TcpListener, stop: &ShutdownSignal) {
    let mut reported_at = None;
    while !stop.is_requested() {
        match wait_for_client(&listener, stop).and_then(|()| listener.accept()) {
            Ok((_, peer)) if server.connections.network_is_full(peer.ip()) => {
                // Not once for each of the 65,536 networks of a /48, which the log takes for causes of their own.
                if reported_at.is_none_or(|at: Instant| at.elapsed() >= REPORT_PERIOD) {
                    reported_at = Some(Instant::now());
                    let client = network(peer.ip());
                    log::warn!(
                        "{client} has as many connections as CLOAKROOM_MAX_CONNECTIONS_PER_ADDRESS allows it, or its \
                         /48: closing more"
                    );
                }
            }
            Ok((socket, peer)) => {
                server.connections.wait_for_room();
                if let Err(error) = spawn_connection(server, socket, peer) {
                    back_off("no thread for a connection", &error, server);
                }
            }
            Err(error) if is_harmless(&error) => {}
            Err(error) => back_off("accept", &error, server),
        }
    }
    drop(listener);
    match server.connections.shut_down(stop.begin_stop()) {
        0 => log::info!("stopped"),
        left => log::warn!("stopped; requests cut off: {left}"),
    }
}

/// Waits until a client connects or the process is asked to stop.
fn wait_for_client(listener: &TcpListener, stop: &ShutdownSignal) -> io::Result<()> {
    let signal = stop.readable();
    let mut fds = [PollFd::new(listener, PollFlags::IN), PollFd::new(&signal, PollFlags::IN)];
    poll(&mut fds, None)?;
    Ok(())
}

/// Whether the error only means that there is no client: it has left, another process has accepted it, or the wait
/// ended for a signal.
fn is_harmless(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
    )
}

/// Starts the thread that serves a connection.
fn spawn_connection(server: &Arc<Server>, socket: TcpStream, peer: SocketAddr) -> io::Result<()> {
    socket.set_nonblocking(false)?; // some systems pass the listener's mode on
    let guard = server.connections.register(socket, peer.ip());
    let open = server.metrics.connection_open();
    let server = server.clone();
    thread::Builder::new().stack_size(THREAD_STACK).spawn(move || {
        serve_connection(&server, &guard, peer);
        drop((guard, open));
    })?;
    Ok(())
}

/// Reacts to a lack of file descriptors, threads or memory: logs the error, evicts a connection to free the resources
/// that it holds, and pauses so that the loop does not spin.
fn back_off(action: &str, error: &io::Error, server: &Server) {
    log::error!("{action}: {error}");
    server.connections.evict_one();
    thread::sleep(RETRY_PAUSE);
}
