//! Counters, histograms and gauges, and the text that `/metrics` shows of them.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The name of an endpoint, used as a label: its method and the template of its path. There are only as many names as
/// endpoints, so no client can make the metrics grow, and all are static, so counting a request allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointName {
    pub method: &'static str,
    /// The beginning of the path, such as `/api/v1`, which `template` leaves out.
    pub prefix: &'static str,
    /// The rest of the path, with `{name}` in place of an id.
    pub template: &'static str,
}

impl fmt::Display for EndpointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.prefix, self.template)
    }
}

/// The label `endpoint`. Its text is `none` for requests that reached no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EndpointLabel(Option<EndpointName>);

impl EncodeLabelValue for EndpointLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        match self.0 {
            Some(name) => write!(encoder, "{name}"),
            None => encoder.write_str("none"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    endpoint: EndpointLabel,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DurationLabels {
    endpoint: EndpointLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AuditFailureLabels {
    recorded_as: &'static str,
}

/// All metrics of the process. Clones share the same values.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<RequestLabels, Counter>,
    durations: Family<DurationLabels, Histogram, fn() -> Histogram>,
    connections: Gauge,
    running: Gauge,
    rate_limited: Family<LimitLabels, Counter>,
    audit_failures: Family<AuditFailureLabels, Counter>,
    /// One for each number in [`GaugeValues`], in that order.
    gauges: [Gauge; 9],
    mail_sent: Counter,
}

/// Values that other parts of the process know. They are read only when the metrics are asked for.
pub struct GaugeValues {
    pub pool_in_use: usize,
    pub pool_open: usize,
    pub pool_waiting: usize,
    pub hashes_running: usize,
    pub hashes_waiting: usize,
    /// Bytes of all files; messages that wait to be sent, and that were given up; the age in seconds of the oldest that
    /// waits. `None` if the database did not answer.
    pub stored: Option<[i64; 4]>,
}

/// A histogram with sixteen buckets whose upper bounds double from half a millisecond to 16 seconds.
fn duration_histogram() -> Histogram {
    // Not `exponential_buckets`, for whose powers the whole mathematics library would be loaded.
    Histogram::new((0..16).map(|n| 0.0005 * f64::from(1 << n)))
}

impl Metrics {
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("cloakroom");
        let requests = Family::default();
        registry.register("requests", "Requests by endpoint and status", requests.clone());
        let durations = Family::new_with_constructor(duration_histogram as fn() -> Histogram);
        let help = "Time from a request's head to its response";
        registry.register("request_duration_seconds", help, durations.clone());
        let mut gauge = |name, help| {
            let gauge: Gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let connections = gauge("connections_open", "Open client connections");
        let running = gauge("requests_running", "Requests being answered");
        let gauges = [
            gauge("pool_in_use", "Database connections in use"),
            gauge("pool_open", "Database connections"),
            gauge("pool_waiting", "Requests that wait for the database"),
            gauge("hashes_running", "Passwords being hashed"),
            gauge("hashes_waiting", "Requests that wait to hash a password"),
            gauge("stored_bytes", "Bytes of all files"),
            gauge("mail_waiting", "Messages that wait to be sent"),
            gauge("mail_failed", "Messages that were given up in the last 30 days"),
            gauge("mail_oldest_seconds", "Age of the oldest message that waits to be sent"),
        ];
        let mail_sent = Counter::default();
        let help = "Messages that the mail server has taken";
        registry.register("mail_sent", help, mail_sent.clone());
        let rate_limited = Family::default();
        let help = "Requests refused by a rate limit, by its class";
        registry.register("rate_limit_refusals", help, rate_limited.clone());
        let audit_failures = Family::default();
        let help = "Refused actions in the audit log, as events or only in a count";
        registry.register("audit_failures", help, audit_failures.clone());
        let registry = Arc::new(registry);
        Metrics {
            registry,
            requests,
            durations,
            connections,
            running,
            rate_limited,
            audit_failures,
            gauges,
            mail_sent,
        }
    }

    /// Counts an answered request. `endpoint` is `None` if no endpoint was found for it.
    pub fn count_request(&self, endpoint: Option<EndpointName>, status: u16, duration: Duration) {
        let endpoint = EndpointLabel(endpoint);
        self.requests.get_or_create(&RequestLabels { endpoint: endpoint.clone(), status }).inc();
        let durations = self.durations.get_or_create(&DurationLabels { endpoint });
        durations.observe(duration.as_secs_f64());
    }

    /// Counts a request that the server refused with `status` while parsing it.
    pub fn count_malformed(&self, status: u16) {
        let endpoint = EndpointLabel(None);
        self.requests.get_or_create(&RequestLabels { endpoint, status }).inc();
    }

    /// Counts a request that was refused by the rate limit named `class`.
    pub fn count_rate_limited(&self, class: &'static str) {
        self.rate_limited.get_or_create(&LimitLabels { class }).inc();
    }

    /// Counts a message that the mail server has taken.
    pub fn count_mail_sent(&self) {
        self.mail_sent.inc();
    }

    /// Counts a refused action that became an event of the audit log, or only a part of the count in one.
    pub fn count_audit_failure(&self, is_event: bool) {
        let recorded_as = if is_event { "event" } else { "count" };
        self.audit_failures.get_or_create(&AuditFailureLabels { recorded_as }).inc();
    }

    /// Counts an open client connection until the returned guard is dropped.
    pub fn connection_open(&self) -> GaugeGuard {
        GaugeGuard::new(&self.connections)
    }

    /// Counts a request that is being answered until the returned guard is dropped.
    pub fn request_running(&self) -> GaugeGuard {
        GaugeGuard::new(&self.running)
    }

    /// All metrics in the text format of OpenMetrics 1.0. A gauge whose value is not known keeps its previous one.
    pub fn text(&self, values: &GaugeValues) -> Result<String, fmt::Error> {
        let counts = [
            values.pool_in_use,
            values.pool_open,
            values.pool_waiting,
            values.hashes_running,
            values.hashes_waiting,
        ];
        let stored = values.stored.into_iter().flatten();
        let numbers = counts.into_iter().map(|count| count as i64).chain(stored);
        for (gauge, number) in self.gauges.iter().zip(numbers) {
            gauge.set(number);
        }
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }
}

/// Adds one to a gauge until it is dropped.
pub struct GaugeGuard(Gauge);

impl GaugeGuard {
    fn new(gauge: &Gauge) -> GaugeGuard {
        gauge.inc();
        GaugeGuard(gauge.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}
