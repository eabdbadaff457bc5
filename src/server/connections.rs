//! The registry of open connections: it bounds their number, also for each client network, evicts one to make room for
//! another, and ends them when the process stops. Its lock is taken when a connection opens or closes, never for a
//! request.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;

use super::limits::{
    MAX_CLIENT_STOP, MAX_LINGER, MAX_PROXY_LINGER, RETRY_PAUSE, SHUTDOWN_GRACE, STOP_PERIOD,
};
use crate::body_memory::Client;
use crate::http::client_address::{is_trusted_proxy, network, site};
use crate::semaphore::lock;

/// The limits on the number of open connections.
pub struct ConnectionLimits {
    /// Most connections in all.
    pub max: usize,
    /// Most connections of one client network, so that one client cannot evict all others. Twice as many for the /48 of
    /// an IPv6 client, which may have 65,536 networks.
    pub max_per_network: usize,
    /// Proxies, to which `max_per_network` does not apply, because they connect on behalf of many clients.
    pub trusted_proxies: Vec<IpNet>,
}

impl ConnectionLimits {
    /// The networks for which a connection of `peer` counts; none if no limit applies, as for clients on this host.
    fn networks(&self, peer: IpAddr) -> impl Iterator<Item = Network> + use<> {
        let is_exempt =
            peer.to_canonical().is_loopback() || is_trusted_proxy(peer, &self.trusted_proxies);
        let max = self.max_per_network;
        let own = Network { address: network(peer), max };
        let site = site(peer).map(|address| Network { address, max: max.saturating_mul(2) });
        [Some(own), site].into_iter().flatten().filter(move |_| !is_exempt)
    }
}

/// A client network: its first address, and how many connections it may have. A /64 and a /48 may begin with the same
/// address, but their limits differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Network {
    address: IpAddr,
    max: usize,
}

/// The open connections, and how many of them each client network has.
#[derive(Default)]
struct OpenConnections {
    /// By file descriptor, which is unique as long as the socket is open.
    by_socket: HashMap<RawFd, Arc<Connection>>,
    /// Only networks that have any.
    per_network: HashMap<Network, usize>,
}

impl OpenConnections {
    /// Closes the connection that has waited longest for its client, if any waits.
    fn evict_one(&self) {
        let all = self.by_socket.values();
        let waiting = all.filter_map(|connection| Some((connection.waiting_since()?, connection)));
        if let Some((since, connection)) = waiting.min_by_key(|(since, _)| *since) {
            connection.evict(since);
        }
    }
}

/// The open connections of a server.
pub struct Connections {
    limits: ConnectionLimits,
    open: Mutex<OpenConnections>,
    /// Notified whenever a connection has closed.
    closed: Condvar,
    shutting_down: Arc<AtomicBool>,
}

impl Connections {
    /// Most connections that may be open.
    pub fn max_open(&self) -> usize {
        self.limits.max
    }

    /// An empty registry. `shutting_down` becomes true once the process was asked to stop.
    pub fn new(limits: ConnectionLimits, shutting_down: Arc<AtomicBool>) -> Connections {
        Connections { limits, open: Mutex::default(), closed: Condvar::new(), shutting_down }
    }

    /// How long the connection of `peer` may stay open after its last response, and for how many bytes.
    pub fn max_linger(&self, peer: IpAddr) -> (Duration, usize) {
        let is_proxy = is_trusted_proxy(peer, &self.limits.trusted_proxies);
        if is_proxy { MAX_PROXY_LINGER } else { MAX_LINGER }
    }

    /// Whether a network of `peer` has as many connections as it may have.
    pub fn network_is_full(&self, peer: IpAddr) -> bool {
        let open = lock(&self.open);
        let count = |network| open.per_network.get(&network).copied().unwrap_or_default();
        self.limits.networks(peer).any(|network| count(network) >= network.max)
    }

    /// Blocks until there is room for one more connection, evicting one that waits for its client, if any does. While
    /// all are busy, it takes until one of them has sent its response. A shutdown ends the wait although there is no
    /// room, so that the connection that was already accepted is still served.
    pub fn wait_for_room(&self) {
        let mut open = lock(&self.open);
        while open.by_socket.len() >= self.limits.max && !self.shutting_down.load(Ordering::SeqCst)
        {
            open.evict_one();
            let waited = self.closed.wait_timeout(open, RETRY_PAUSE);
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes the connection that has waited longest for its client, if any waits.
    pub fn evict_one(&self) {
        lock(&self.open).evict_one();
    }

    /// Registers a connection of `peer` until the returned guard is dropped.
    pub fn register(self: &Arc<Self>, socket: TcpStream, peer: IpAddr) -> ConnectionGuard {
        let connection = Arc::new(Connection::new(socket, self.shutting_down.clone()));
        let mut open = lock(&self.open);
        open.by_socket.insert(connection.socket.as_raw_fd(), connection.clone());
        for network in self.limits.networks(peer) {
            *open.per_network.entry(network).or_default() += 1;
        }
        drop(open);
        ConnectionGuard { connections: self.clone(), connection, peer }
    }

    /// Closes the connections that are between two requests, and waits up to `timeout` for the others to finish, but no
    /// longer than [`MAX_CLIENT_STOP`] for clients alone. Returns how many were cut off.
    pub fn shut_down(&self, timeout: Duration) -> usize {
        let began = Instant::now();
        let mut pause = SHUTDOWN_GRACE;
        let mut computed_at = began;
        let mut cut = 0;
        loop {
            let open = self.wait_until_empty(pause.min(timeout.saturating_sub(began.elapsed())));
            if open.by_socket.is_empty() || began.elapsed() >= timeout {
                return open.by_socket.len().max(cut);
            }
            // All of them are asked, because idle ones end by that.
            let computing = open.by_socket.values().filter(|it| it.wind_down(false)).count();
            computed_at = if computing > 0 { Instant::now() } else { computed_at };
            if computed_at.elapsed() >= MAX_CLIENT_STOP {
                cut = open.by_socket.values().filter(|it| !it.wind_down(true)).count().max(cut);
            }
            pause = STOP_PERIOD;
        }
    }

    fn wait_until_empty(&self, timeout: Duration) -> MutexGuard<'_, OpenConnections> {
        let waited = self
            .closed
            .wait_timeout_while(lock(&self.open), timeout, |open| !open.by_socket.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Keeps a connection registered; dropping it removes the connection.
pub struct ConnectionGuard {
    connections: Arc<Connections>,
    /// The registered connection.
    pub connection: Arc<Connection>,
    peer: IpAddr,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut open = lock(&self.connections.open);
        open.by_socket.remove(&self.connection.socket.as_raw_fd());
        for network in self.connections.limits.networks(self.peer) {
            if let Entry::Occupied(mut count) = open.per_network.entry(network) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
        drop(open);
        self.connections.closed.notify_all();
    }
}

/// One client connection, shared by the thread that serves it and by [`Connections`]. Other threads may ask whether it
/// waits, and close it while it does.
pub struct Connection {
    /// The client's socket, in blocking mode.
    pub socket: TcpStream,
    transfer: Mutex<Transfer>,
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
    /// To receive a part of a file, which the kernel sends by itself.
    FileReceipt,
}

/// How far the thread that serves a connection depends on the client.
#[derive(Default)]
struct Transfer {
    /// What the client has to do, again and again, until all is transferred. `None` if the thread computes: it needs
    /// no more of the request, and has sent nothing of the response.
    awaited: Option<Awaited>,
    /// Since when the thread waits for that, so that the connection may be closed to make room for another. Between two
    /// waits it is `None`: a part of an upload is stored, or the next rows of an export are computed. How often that
    /// happens is up to the client, so a stop does not take it for work of its own.
    waiting_since: Option<Instant>,
    /// Another thread has ended the transfer: either it has closed the connection to make room for another, or the
    /// process stops; then a request whose body is missing is still answered.
    is_ended: bool,
}

impl Connection {
    /// A connection whose thread computes. `shutting_down` becomes true once the process was asked to stop.
    pub fn new(socket: TcpStream, shutting_down: Arc<AtomicBool>) -> Connection {
        Connection { socket, transfer: Mutex::default(), shutting_down }
    }

    /// Marks the connection as computing: nothing more is needed of its client before the response begins.
    pub fn start_computing(&self) {
        *lock(&self.transfer) = Transfer::default();
    }

    /// Marks the connection as waiting for its client. Until [`Connection::stop_waiting`] it may be evicted.
    pub fn start_waiting(&self, awaited: Awaited) {
        let mut transfer = lock(&self.transfer);
        (transfer.awaited, transfer.waiting_since) = (Some(awaited), Some(Instant::now()));
    }

    /// Marks the wait as over. Fails with `ConnectionAborted` if another thread has ended the transfer.
    pub fn stop_waiting(&self) -> io::Result<()> {
        let mut transfer = lock(&self.transfer);
        transfer.waiting_since = None;
        if transfer.is_ended { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    /// Ends the connection if it is between two requests, because the process stops; with `cuts` also if it receives a
    /// request or sends a response. Returns whether it computes.
    pub fn wind_down(&self, cuts: bool) -> bool {
        let mut transfer = lock(&self.transfer);
        if transfer.awaited == Some(Awaited::Head) && transfer.waiting_since.is_some() {
            // Bytes that have already arrived can still be read, so a complete head among them is answered.
            let _ = self.socket.shutdown(Shutdown::Read);
        }
        transfer.is_ended |= cuts && transfer.awaited.is_some();
        if cuts && transfer.awaited == Some(Awaited::FileReceipt) {
            // The kernel may send one part to a slow client for long, while the other threads look each second. What
            // is sent without a length, as an export over HTTP/1.0, would seem complete if it was closed here.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
        transfer.awaited.is_none()
    }

    /// Whether the process was asked to stop.
    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down.load(Ordering::SeqCst)
    }
}

impl Client for Connection {
    fn waiting_since(&self) -> Option<Instant> {
        let transfer = lock(&self.transfer);
        transfer.waiting_since.filter(|_| !transfer.is_ended)
    }

    fn evict(&self, since: Instant) {
        let mut transfer = lock(&self.transfer);
        if transfer.waiting_since == Some(since) {
            transfer.is_ended = true;
            // An error means that the client has closed the connection already.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }

    fn is_evicted(&self) -> bool {
        lock(&self.transfer).is_ended
    }

    fn stop_reading(&self) {
        let _ = self.socket.shutdown(Shutdown::Read);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A registry without connections, in which a network may have three.
    fn registry() -> Arc<Connections> {
        let trusted_proxies = ["10.0.0.0/8", "2001:db8:1::/48"];
        let trusted_proxies = trusted_proxies.map(|text| text.parse().unwrap()).to_vec();
        let limits = ConnectionLimits { max: 99, max_per_network: 3, trusted_proxies };
        Arc::new(Connections::new(limits, Arc::default()))
    }

    #[test]
    fn connections_count_for_their_networks_unless_these_are_this_host_or_a_trusted_proxy() {
        let registry = registry();
        for (peer, networks) in [
            ("192.0.2.1", &[("192.0.2.1", 3)][..]),
            ("::ffff:192.0.2.1", &[("192.0.2.1", 3)]),
            ("2001:db8:0:1:2:3:4:5", &[("2001:db8:0:1::", 3), ("2001:db8::", 6)]),
            ("2001:db8::1:2:3:4", &[("2001:db8::", 3), ("2001:db8::", 6)]),
            ("127.0.0.1", &[]),
            ("::ffff:127.1.2.3", &[]),
            ("::1", &[]),
            ("10.1.2.3", &[]),
            ("::ffff:10.1.2.3", &[]),
            ("2001:db8:1::1", &[]),
        ] {
            let found = registry.limits.networks(peer.parse().unwrap());
            let found: Vec<_> = found.map(|network| (network.address, network.max)).collect();
            let networks = networks.iter().map(|(text, max)| (text.parse().unwrap(), *max));
            assert_eq!(found, networks.collect::<Vec<_>>(), "{peer}");
        }
    }

    /// A connection, and its client.
    fn connect() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Connection::new(listener.accept().unwrap().0, Arc::default()), client)
    }

    #[test]
    fn a_transfer_is_no_work_and_is_cut_during_a_wait_and_between_two() {
        for awaited in [Awaited::Body, Awaited::Receipt, Awaited::FileReceipt] {
            for is_waiting in [true, false] {
                let (connection, client) = connect();
                assert!(connection.wind_down(true), "a request has arrived");
                connection.start_waiting(awaited);
                if !is_waiting {
                    connection.stop_waiting().unwrap();
                }
                assert!(!connection.wind_down(false) && !connection.is_evicted());
                assert!(!connection.wind_down(true) && connection.is_evicted());
                // An end that is no reset would make an answer without a length seem complete.
                client.set_nonblocking(true).unwrap();
                assert_eq!(client.peek(&mut [0]).is_ok(), awaited == Awaited::FileReceipt);
                if !is_waiting {
                    connection.start_waiting(awaited);
                }
                assert!(connection.stop_waiting().is_err());
                // What has arrived completely meanwhile is still computed and answered.
                connection.start_computing();
                assert!(connection.wind_down(true));
                connection.start_waiting(Awaited::Receipt);
                connection.stop_waiting().unwrap();
            }
        }
    }

    #[test]
    fn a_site_with_many_networks_has_twice_the_connections_of_one() {
        let (registry, listener) = (registry(), TcpListener::bind("127.0.0.1:0").unwrap());
        let open = |peer: &str| {
            let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            registry.register(socket, peer.parse().unwrap())
        };
        let is_full = |peer: &str| registry.network_is_full(peer.parse().unwrap());
        // The first network begins with the address of the site.
        let first = ["2001:db8::1", "2001:db8::2", "2001:db8::3"].map(open);
        assert!(is_full("2001:db8::4") && !is_full("2001:db8:0:1::1"));
        let others = ["2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1"];
        let mut others: Vec<_> = others.into_iter().map(open).collect();
        assert!(is_full("2001:db8:0:4::1") && !is_full("2001:db8:2::1"));
        others.pop();
        assert!(!is_full("2001:db8:0:4::1") && is_full("2001:db8::4"));
        drop((first, others));
        assert!(lock(&registry.open).per_network.is_empty());
    }
}
