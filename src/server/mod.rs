//! The HTTP/1.1 server that faces the internet directly: one thread and one read buffer of fixed size per connection,
//! and a deadline on every wait for a client. It exists because the server under `rouille` (`tiny_http`) has no
//! timeouts and no limits. Handlers receive a `rouille::Request` and a reader of its body, so they cannot tell which
//! of the two servers runs.
//!
//! A connection passes through these files: `listener` accepts it, `connections` registers it, `request_loop` reads
//! its requests with `client_stream`, `head`, `body` and `chunked`, and `response_writer` answers them.

mod body;
mod chunked;
mod client_stream;
mod connections;
mod head;
pub mod limits;
mod listener;
mod request_loop;
mod response_writer;
mod rouille_server;
mod shutdown;

pub use listener::{bind, run};
pub use rouille_server::RouilleServer;
pub use shutdown::ShutdownSignal;

use std::sync::Arc;

use crate::body_memory::BodyMemory;
use crate::config::{Config, ErrorFormat, LogFormat};
use crate::http::body::Body;
use crate::http::response::Response;
use crate::telemetry::metrics::Metrics;
use connections::{ConnectionLimits, Connections};
use limits::ClientLimits;

/// Answers one request. It should not panic: a panic ends the connection without a response.
pub type RequestHandler = dyn Fn(&rouille::Request, Body) -> Response + Send + Sync;

/// The server's handler, its settings and its open connections.
pub struct Server {
    /// Answers each request.
    pub handler: Box<RequestHandler>,
    /// How long clients may keep it waiting.
    pub client_limits: ClientLimits,
    /// Shape of the error bodies that the server itself sends.
    pub error_format: ErrorFormat,
    /// Shape of the log lines about requests that the server itself refuses.
    pub log_format: LogFormat,
    /// Counts open connections and refused requests.
    pub metrics: Metrics,
    /// The open connections.
    pub connections: Arc<Connections>,
    /// The budget of large bodies in memory.
    pub body_memory: Arc<BodyMemory>,
}

impl Server {
    /// Makes a server without connections, which [`run`] starts. Raises the limit on open files.
    pub fn new(
        config: &Config,
        metrics: Metrics,
        stop: &ShutdownSignal,
        handler: Box<RequestHandler>,
    ) -> Server {
        let connection_limits = ConnectionLimits {
            max: limits::max_connections(config),
            max_per_network: config.max_connections_per_address,
            trusted_proxies: config.trusted_proxies.clone(),
        };
        let connections = Connections::new(connection_limits, stop.flag());
        metrics.set_connections_max(connections.max_open());
        Server {
            handler,
            client_limits: ClientLimits::new(config.head_timeout, config.idle_timeout),
            error_format: config.error_format,
            log_format: config.log_format,
            metrics,
            connections: Arc::new(connections),
            body_memory: BodyMemory::new(config.body_memory as usize),
        }
    }
}
