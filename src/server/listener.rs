//! Accepting connections. Nothing that goes wrong here ends it: it logs, waits and goes on.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use listenfd::ListenFd;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use super::{BACKLOG, FILES_BESIDE, MAX_STOP, PAUSE, STACK, Server, ShutdownSignal, connection};
use crate::config::Config;

/// At most one log line about troubles in this time.
const TROUBLE_PERIOD: Duration = Duration::from_secs(1);

/// The listening socket: the one a supervisor passes (`LISTEN_FDS`, which outlives a restart), or one
/// bound to `address`.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = match ListenFd::from_env().take_tcp_listener(0)? {
        Some(inherited) => inherited,
        None => {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            socket.into()
        }
    };
    // Another process may take the connection between poll and accept.
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// `CLOAKROOM_MAX_CONNECTIONS`, or what the file limit has room for: each connection may need a file
/// beside its socket. The soft limit is raised to the hard one.
pub fn connections_most(config: &Config) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let beside = config.database_pool_size as usize + FILES_BESIDE;
    let room = files.map_or(usize::MAX, |files| (files as usize).saturating_sub(beside) / 2);
    let most = config.max_connections.min(room.max(1));
    if most < config.max_connections {
        log::warn!("the file limit has room for {most} connections");
    }
    most
}

/// Accepts until the process is asked to stop; then lets requests finish and ends the rest.
pub fn run(server: &Arc<Server>, listener: TcpListener, stop: &ShutdownSignal) {
    let mut troubles = Troubles::default();
    while !stop.is_asked() {
        let accepted = wait(&listener, stop).and_then(|()| listener.accept());
        match accepted {
            Ok((socket, peer)) => {
                server.connections.make_room();
                if let Err(error) = take_in(server, socket, peer) {
                    troubles.meet("no thread for a connection", &error, server);
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => troubles.meet("accept", &error, server),
        }
    }
    drop(listener);
    log::info!("stopping: open requests are finished");
    match server.connections.close(MAX_STOP) {
        0 => log::info!("stopped"),
        left => log::warn!("stopped; requests cut off: {left}"),
    }
}

/// Until there is a connection, or the stop.
fn wait(listener: &TcpListener, stop: &ShutdownSignal) -> io::Result<()> {
    let signal = stop.readable();
    let mut fds = [PollFd::new(listener, PollFlags::IN), PollFd::new(&signal, PollFlags::IN)];
    poll(&mut fds, None)?;
    Ok(())
}

/// Nothing is wrong with the listener: the client has gone, or another process was faster.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted
    )
}

fn take_in(server: &Arc<Server>, socket: TcpStream, peer: SocketAddr) -> io::Result<()> {
    socket.set_nonblocking(false)?; // inherited from the listener on some systems
    let stay = server.connections.enter(socket);
    let open = server.metrics.connection_open();
    let server = server.clone();
    thread::Builder::new().stack_size(STACK).spawn(move || {
        connection::serve(&server, &stay, peer);
        drop((stay, open));
    })?;
    Ok(())
}

/// Lack of files, threads or memory: someone makes room, and the listener takes a breath.
#[derive(Default)]
struct Troubles {
    logged: Option<Instant>,
}

impl Troubles {
    fn meet(&mut self, what: &str, error: &io::Error, server: &Server) {
        if self.logged.is_none_or(|at| at.elapsed() >= TROUBLE_PERIOD) {
            log::error!("{what}: {error}");
            self.logged = Some(Instant::now());
        }
        server.connections.cut_one();
        thread::sleep(PAUSE);
    }
}
