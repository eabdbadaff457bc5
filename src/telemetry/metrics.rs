//! What the process counts about itself, for `/metrics`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The endpoint of requests that reached none: a closed set of names keeps the memory bounded.
const NO_ENDPOINT: &str = "none";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Endpoint {
    endpoint: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Class {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    endpoint: String,
    status: u16,
}

/// Handles of all metrics; copies count into the same ones.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Outcome, Counter>,
    latency: Family<Endpoint, Histogram, fn() -> Histogram>,
    connections: Gauge,
    busy: Gauge,
    /// What others know is asked for when someone reads.
    gauges: [Gauge; 7],
    refusals: Family<Class, Counter>,
}

/// What others know at the moment.
pub struct Now {
    /// Database connections that requests hold.
    pub pool_in_use: usize,
    /// Database connections.
    pub pool_open: usize,
    /// Requests that wait for one.
    pub pool_waiting: usize,
    /// Passwords being hashed.
    pub hashes_running: usize,
    /// Requests that wait to hash one.
    pub hashes_waiting: usize,
    /// Bytes of all files, and messages that wait to be sent; unknown while the database is away.
    pub stored: Option<(i64, i64)>,
}

/// From half a millisecond to 16 seconds.
fn latency() -> Histogram {
    Histogram::new(exponential_buckets(0.0005, 2.0, 16))
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("cloakroom");
        let requests = Family::default();
        let latency = Family::new_with_constructor(latency as fn() -> Histogram);
        let (connections, busy) = (Gauge::default(), Gauge::default());
        registry.register("requests", "Requests by endpoint and status", requests.clone());
        registry.register(
            "request_duration_seconds",
            "Time from a request's head to its answer",
            latency.clone(),
        );
        registry.register("connections_open", "Open client connections", connections.clone());
        registry.register("requests_running", "Requests being answered", busy.clone());
        let gauges = [
            ("pool_in_use", "Database connections in use"),
            ("pool_open", "Database connections"),
            ("pool_waiting", "Requests that wait for the database"),
            ("hashes_running", "Passwords being hashed"),
            ("hashes_waiting", "Requests that wait to hash a password"),
            ("stored_bytes", "Bytes of all files"),
            ("mail_waiting", "Password reset messages that wait to be sent"),
        ]
        .map(|(name, help)| {
            let gauge: Gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        });
        let refusals = Family::default();
        registry.register(
            "rate_limit_refusals",
            "Requests refused by a rate limit, by its class",
            refusals.clone(),
        );
        Metrics {
            refusals,
            registry: Arc::new(registry),
            requests,
            latency,
            connections,
            busy,
            gauges,
        }
    }

    /// A request was answered by `endpoint`, or by none.
    pub fn answered(&self, endpoint: Option<String>, status: u16, took: Duration) {
        let endpoint = endpoint.unwrap_or_else(|| NO_ENDPOINT.to_owned());
        let mut labels = Outcome { endpoint, status };
        self.requests.get_or_create(&labels).inc();
        let endpoint = std::mem::take(&mut labels.endpoint);
        let latency = self.latency.get_or_create(&Endpoint { endpoint });
        latency.observe(took.as_secs_f64());
    }

    /// A rate limit refused a request.
    pub fn rate_limited(&self, class: &'static str) {
        self.refusals.get_or_create(&Class { class }).inc();
    }

    /// The listener refused what was no request.
    pub fn refused(&self, status: u16) {
        let endpoint = NO_ENDPOINT.to_owned();
        self.requests.get_or_create(&Outcome { endpoint, status }).inc();
    }

    /// A connection is open as long as the returned value lives.
    pub fn connection(&self) -> Held {
        Held::new(&self.connections)
    }

    /// A request is being answered as long as the returned value lives.
    pub fn running(&self) -> Held {
        Held::new(&self.busy)
    }

    /// All of it, in the text format of OpenMetrics 1.0.
    pub fn text(&self, now: &Now) -> Result<String, fmt::Error> {
        let counted = [
            now.pool_in_use,
            now.pool_open,
            now.pool_waiting,
            now.hashes_running,
            now.hashes_waiting,
        ];
        let stored = now.stored.iter().flat_map(|(bytes, mails)| [*bytes, *mails]);
        let values = counted.into_iter().map(|count| count as i64).chain(stored);
        for (gauge, value) in self.gauges.iter().zip(values) {
            gauge.set(value);
        }
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }
}

/// Counts one in a gauge until it is dropped.
pub struct Held(Gauge);

impl Held {
    fn new(gauge: &Gauge) -> Held {
        gauge.inc();
        Held(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}
