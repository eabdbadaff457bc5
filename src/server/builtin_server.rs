//! The state that all connections of the server share.

use std::sync::Arc;

use super::connections::{ConnectionLimits, Connections};
use super::limits::{self, ClientLimits};
use super::shutdown::ShutdownSignal;
use crate::config::{Config, ErrorFormat, LogFormat};
use crate::http::body::Body;
use crate::http::response::Response;
use crate::telemetry::metrics::Metrics;

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
}

impl Server {
    /// Makes a server without connections, which [`super::run`] starts. Raises the limit on open files.
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
        metrics.set_connections_max(connection_limits.max);
        let connections = Connections::new(connection_limits, stop.flag());
        Server {
            handler,
            client_limits: ClientLimits::new(config.head_timeout, config.idle_timeout),
            error_format: config.error_format,
            log_format: config.log_format,
            metrics,
            connections: Arc::new(connections),
        }
    }
}
