//! What all connections of the server share.

use std::sync::Arc;
use std::time::Duration;

use super::connections::{ConnectionLimits, Connections};
use super::limits;
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
    /// Longest time from the first byte of a request head to its last.
    pub head_timeout: Duration,
    /// Longest time that a connection may stay open without a request.
    pub idle_timeout: Duration,
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
            head_timeout: config.head_timeout,
            idle_timeout: config.idle_timeout,
            error_format: config.error_format,
            log_format: config.log_format,
            metrics,
            connections: Arc::new(connections),
        }
    }
}
