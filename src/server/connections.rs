//! The registry of open connections: it bounds their number, also for each client network, evicts one to make room for
//! another, and ends them when the process stops. Its lock is taken when a connection opens or closes, never for a
//! request.

use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;

use super::connection::Connection;
use super::limits::{RETRY_PAUSE, SHUTDOWN_GRACE};
use crate::http::client_address::{is_trusted, network};

/// All open connections by file descriptor, which is unique as long as the socket is open.
type OpenConnections = HashMap<RawFd, Arc<Connection>>;

/// How many connections may be open.
pub struct ConnectionLimits {
    /// Most connections in all.
    pub max: usize,
    /// Most connections of one client network, so that one client cannot evict all others.
    pub max_per_network: usize,
    /// Proxies, to which `max_per_network` does not apply, because they connect on behalf of many clients.
    pub trusted_proxies: Vec<IpNet>,
}

impl ConnectionLimits {
    /// The network for which a connection of `peer` counts; `None` where no limit applies, as for clients on this host.
    fn network(&self, peer: IpAddr) -> Option<IpAddr> {
        let is_exempt =
            peer.to_canonical().is_loopback() || is_trusted(peer, &self.trusted_proxies);
        (!is_exempt).then(|| network(peer))
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
    /// An empty registry. `shutting_down` becomes true once the process was asked to stop.
    pub fn new(limits: ConnectionLimits, shutting_down: Arc<AtomicBool>) -> Connections {
        Connections { limits, open: Mutex::default(), closed: Condvar::new(), shutting_down }
    }

    /// No code panics while it holds this lock, so a poisoned map would still be consistent.
    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the network of `peer` has fewer connections than it may have.
    pub fn has_room_for(&self, peer: IpAddr) -> bool {
        self.limits.network(peer).is_none_or(|network| {
            let open = self.open();
            let same = open.values().filter(|connection| connection.network == Some(network));
            same.count() < self.limits.max_per_network
        })
    }

    /// Blocks until there is room for one more connection, evicting one that waits for its client, if any does. While
    /// all are busy, it takes until one of them has sent its response. A shutdown ends the wait although there is no
    /// room, so that the connection that was already accepted is still served.
    pub fn make_room(&self) {
        let mut open = self.open();
        while open.len() >= self.limits.max && !self.shutting_down.load(Ordering::SeqCst) {
            evict_longest_waiting(&open);
            let waited = self.closed.wait_timeout(open, RETRY_PAUSE);
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes the connection that has waited longest for its client, if any waits.
    pub fn evict_one(&self) {
        evict_longest_waiting(&self.open());
    }

    /// Registers a connection of `peer` until the returned guard is dropped.
    pub fn register(self: &Arc<Self>, socket: TcpStream, peer: IpAddr) -> ConnectionGuard {
        let network = self.limits.network(peer);
        let connection = Arc::new(Connection::new(socket, network, self.shutting_down.clone()));
        self.open().insert(connection.socket.as_raw_fd(), connection.clone());
        ConnectionGuard { connections: self.clone(), connection }
    }

    /// Closes the connections that are between two requests, and waits up to `timeout` for the others to finish.
    /// Returns how many are still open then.
    pub fn shut_down(&self, timeout: Duration) -> usize {
        let deadline = Instant::now() + timeout;
        let open = self.wait_until_empty(SHUTDOWN_GRACE);
        for connection in open.values().filter(|connection| connection.is_between_requests()) {
            // Bytes that have already arrived can still be read, so a complete head among them is answered.
            let _ = connection.socket.shutdown(Shutdown::Read);
        }
        drop(open);
        self.wait_until_empty(deadline.saturating_duration_since(Instant::now())).len()
    }

    fn wait_until_empty(&self, timeout: Duration) -> MutexGuard<'_, OpenConnections> {
        let waited = self.closed.wait_timeout_while(self.open(), timeout, |open| !open.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn evict_longest_waiting(open: &OpenConnections) {
    let waiting =
        open.values().filter_map(|connection| Some((connection.waiting_since()?, connection)));
    if let Some((since, connection)) = waiting.min_by_key(|(since, _)| *since) {
        connection.evict(since);
    }
}

/// Keeps a connection registered; dropping it removes the connection.
pub struct ConnectionGuard {
    connections: Arc<Connections>,
    /// The registered connection.
    pub connection: Arc<Connection>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.connections.open().remove(&self.connection.socket.as_raw_fd());
        self.connections.closed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_count_for_their_network_unless_it_is_this_host_or_a_trusted_proxy() {
        let trusted_proxies = ["10.0.0.0/8", "2001:db8:1::/48"];
        let trusted_proxies = trusted_proxies.iter().filter_map(|text| text.parse().ok()).collect();
        let limits = ConnectionLimits { max: 9, max_per_network: 3, trusted_proxies };
        for (peer, network) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("::ffff:192.0.2.1", Some("192.0.2.1")),
            ("2001:db8::1:2:3:4", Some("2001:db8::")),
            ("127.0.0.1", None),
            ("::ffff:127.1.2.3", None),
            ("::1", None),
            ("10.1.2.3", None),
            ("::ffff:10.1.2.3", None),
            ("2001:db8:1::1", None),
        ] {
            let parse = |text: &str| text.parse::<IpAddr>().ok();
            assert_eq!(
                parse(peer).map(|peer| limits.network(peer)),
                Some(network.and_then(parse)),
                "{peer}"
            );
        }
    }
}
