//! The limits of the server that no setting changes. Each one bounds the time or memory that a client can cost.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

// Requests.

/// Longest request head in bytes, from the request line to the empty line. A longer one is answered 431. The read
/// buffer of a connection never grows beyond this size.
pub const MAX_HEAD: usize = 16 * 1024;
/// Size of the read buffer of a new connection in bytes. Most heads fit, and connections stay open for long.
pub const FIRST_READ_BUFFER: usize = 2 * 1024;
/// Most header fields in a request. More are answered 431.
pub const MAX_HEADERS: usize = 100;
/// Most empty lines before a request line. Some clients send one after a body (RFC 9112, section 2.2).
pub const MAX_EMPTY_LINES: usize = 2;
/// Longest chunk-size line of a chunked body in bytes, with its extensions and its line end.
pub const MAX_CHUNK_LINE: usize = 256;
/// Longest trailer section of a chunked body in bytes. Trailers are read and ignored.
pub const MAX_TRAILERS: usize = 8 * 1024;
/// Most bytes of a body that are read and dropped when the handler did not read them. A client with more to send
/// loses its connection: opening a new one is cheaper than receiving the rest.
pub const MAX_DRAIN: u64 = 64 * 1024;

// Responses.

/// How much of a response body is held in memory, in bytes. A response shorter than this leaves in one write.
pub const BODY_CHUNK: usize = 32 * 1024;
/// How much of a file the kernel is asked to send at once, in bytes. More costs less, but while it lasts the connection
/// looks as if its client had stopped reading.
pub const FILE_CHUNK: u64 = 256 * 1024;
/// How much of its write buffer a connection keeps between two responses, in bytes.
pub const MAX_IDLE_WRITE_BUFFER: usize = 4 * 1024;
/// Most bytes of a response that the kernel buffers for a connection and has not sent yet. Without this limit it may
/// accept megabytes at once. How fast the client reads would then be hidden, and a slow client would seem to read
/// nothing at all until the buffer has emptied.
pub const MAX_UNSENT: u32 = 16 * 1024;

/// Longest time of a lingering close, and most bytes that are read and dropped meanwhile. That covers a file well over
/// the default upload limit, because many clients look for the response only after they have sent the whole file.
pub const MAX_LINGER: (Duration, usize) = (Duration::from_secs(1), 16 * 1024 * 1024);
/// The same towards a trusted proxy. Apache and, while its writes succeed at once, nginx do not look for the response
/// before they have sent the whole body; if that fails, their client gets 502. By default Apache lets no larger body
/// pass, and these proxies wait for a response for twice as long.
pub const MAX_PROXY_LINGER: (Duration, usize) = (Duration::from_secs(30), 1024 * 1024 * 1024);

// Connections.

/// Connections that the kernel queues until they are accepted.
pub const LISTEN_BACKLOG: i32 = 4096;
/// Stack of a connection's thread in bytes; pages that are never touched cost nothing. In a debug build, JSON
/// nested 127 deep overflows 128 KiB.
pub const THREAD_STACK: usize = 512 * 1024;
/// Files that a connection may need at once: its socket, the upload or download that it carries, and the directory that
/// is synced when an upload has got its name there, or the socket of a store.
pub const FILES_PER_CONNECTION: usize = 3;
/// Files of a connection to the database: its socket, and those with which the driver waits for it (two of epoll, one
/// of eventfd).
const FILES_PER_DATABASE_CONNECTION: usize = 4;
/// All other files: the log, the listening socket, those of signals, of mail, of the sweeps, and a client that waits
/// for room. A service that has just started has ten.
const RESERVED_FILES: usize = 20;
/// Pause before the accept loop tries again: after a failed `accept`, and while every connection is busy.
pub const RETRY_PAUSE: Duration = Duration::from_millis(20);

// Shutdown.

/// How long a stop waits for clients alone, however fast they send or receive, while no request is computed.
pub const MAX_CLIENT_STOP: Duration = Duration::from_secs(5);
/// How often a stop looks whether requests are computed, and a thread whether it is to wait no longer for a body.
pub const STOP_PERIOD: Duration = Duration::from_secs(1);
/// How long idle connections stay open after the process was asked to stop. Requests that are on their way through
/// the network at that moment still arrive and are answered.
pub const SHUTDOWN_GRACE: Duration = Duration::from_millis(100);

/// How long a client may keep the server waiting. Each server is given these limits, because tests need shorter ones:
/// otherwise they would wait for half a minute.
#[derive(Clone, Copy)]
pub struct ClientLimits {
    /// Longest time from the first byte of a request head to its last.
    pub head_timeout: Duration,
    /// Longest time that a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// How long a client may keep the server waiting for a body in the beginning.
    pub body_grace: Duration,
    /// Slowest average rate of a request body after `body_grace`, in bytes a second: so many allow another second of
    /// waiting. A slower one is answered 408.
    pub min_body_rate: u64,
    /// The longest wait that a client can save up by sending faster. Otherwise the 10 MiB of a file, sent at once but
    /// for the last byte, would allow 42 minutes.
    pub max_body_allowance: Duration,
    /// How long a client may accept no byte of a response before its connection is closed. A thirtieth of it is the
    /// longest single wait of a write, after which this is looked at.
    pub max_write_stall: Duration,
    /// How long a client may keep the server waiting for it to accept a response, beyond the time that
    /// `min_response_rate` allows.
    pub response_grace: Duration,
    /// Slowest average rate at which a client may accept a response after `response_grace`, in bytes a second. The
    /// connection of a slower one is closed.
    pub min_response_rate: u64,
}

impl ClientLimits {
    /// The limits of the service, of which settings change these two.
    pub fn new(head_timeout: Duration, idle_timeout: Duration) -> ClientLimits {
        ClientLimits {
            head_timeout,
            idle_timeout,
            body_grace: Duration::from_secs(10),
            min_body_rate: 4 * 1024,
            max_body_allowance: Duration::from_secs(30),
            max_write_stall: Duration::from_secs(30),
            response_grace: Duration::from_secs(30),
            min_response_rate: 1024,
        }
    }
}

/// The number of connections that may be open at once, as [`connections_within`] says. Raises the soft limit on open
/// files to the hard limit first.
pub fn max_connections(config: &Config) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let max = connections_within(config, files);
    if max < config.max_connections {
        log::warn!("the file limit has room for {max} connections");
    }
    max
}

/// `CLOAKROOM_MAX_CONNECTIONS`, or fewer if a limit of `files` open files leaves no room for them; `None` is no limit.
pub fn connections_within(config: &Config, files: Option<u64>) -> usize {
    let pool = FILES_PER_DATABASE_CONNECTION * config.database_pool_size as usize;
    let room = |files: u64| (files as usize).saturating_sub(pool + RESERVED_FILES);
    let max = files.map_or(usize::MAX, |files| room(files) / FILES_PER_CONNECTION);
    config.max_connections.min(max.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn hints_name_these_limits() {
        let head =
            format!("at most {MAX_HEAD} bytes, and there may be at most {MAX_HEADERS} headers");
        assert!(Error::HeadersTooLarge.hint().is_some_and(|hint| hint.contains(&head)));
        let limits = ClientLimits::new(Duration::MAX, Duration::MAX);
        let rate = format!("at {} bytes a second", limits.min_body_rate);
        assert!(Error::BodyTooSlow.hint().is_some_and(|hint| hint.contains(&rate)));
    }
}
