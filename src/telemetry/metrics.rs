//! Counters, histograms and gauges, and the text that `/metrics` shows of them.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

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

impl EndpointName {
    /// Whether it is one that monitoring asks.
    pub fn is_probe(self) -> bool {
        matches!(self.template, "/healthz" | "/readyz" | "/metrics")
    }

    /// Whether it only sends browsers on, which open its address themselves and not by a script.
    pub fn is_for_browsers(self) -> bool {
        matches!(self.template, "/auth/oidc/start" | "/auth/oidc/callback")
    }
}

impl fmt::Display for EndpointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.prefix, self.template)
    }
}

/// The label `endpoint`. Its text is `none` for requests that reached no endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct EndpointLabel(Option<EndpointName>);

impl EncodeLabelValue for EndpointLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        match self.0 {
            Some(name) => write!(encoder, "{name}"),
            None => encoder.write_str("none"),
        }
    }
}

/// The name of a label and its value.
type Label<T> = [(&'static str, T); 1];

/// All metrics of the process. Clones share the same values.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<(Label<EndpointLabel>, Label<u16>), Counter>,
    durations: Family<Label<EndpointLabel>, Histogram, fn() -> Histogram>,
    connections: Gauge,
    connections_max: Gauge,
    running: Gauge,
    rate_limited: Family<Label<&'static str>, Counter>,
    audit_failures: Family<Label<&'static str>, Counter>,
    /// Failed attempts to write refused actions to the audit log.
    pub audit_write_errors: Counter,
    /// Refused actions that will never be in the audit log.
    pub audit_lost: Counter,
    #[cfg_attr(not(feature = "oidc"), expect(dead_code, reason = "such a build has no provider"))]
    provider_sign_ins: Family<Label<&'static str>, Counter>,
    /// Messages that the mail server has taken.
    pub mail_sent: Counter,
}

/// A gauge that is read only when the metrics are asked for: from another part of the process, the file system or the
/// database. If it cannot be read, it is left out, because its last value would look like the present one.
pub struct Reading {
    name: &'static str,
    help: &'static str,
    value: i64,
}

impl Reading {
    /// `name` is the name without the prefix `cloakroom_`. `None` if the value is not known.
    pub fn new(
        name: &'static str,
        help: &'static str,
        value: Option<impl TryInto<i64>>,
    ) -> Option<Reading> {
        Some(Reading { name, help, value: gauge_value(value?) })
    }
}

/// A number as the value of a gauge, at most the largest. No number that is shown comes near it.
fn gauge_value(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// A histogram with sixteen buckets whose upper bounds double from half a millisecond to 16 seconds.
fn duration_histogram() -> Histogram {
    // Not `exponential_buckets`, for whose powers the whole mathematics library would be loaded.
    Histogram::new((0..16).map(|n| 0.0005 * f64::from(1 << n)))
}

/// Makes a metric and registers it. The text form adds the suffix `_total` to the name of a counter.
fn register<M: Metric + Clone + Default>(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    /// `version` is what `--version` prints.
    pub fn new(version: &'static str) -> Metrics {
        let mut root = Registry::default();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let help = "Unix time at which the process started";
        root.register("process_start_time_seconds", help, ConstGauge::new(started.as_secs_f64()));
        let cloakroom = root.sub_registry_with_prefix("cloakroom");
        let build = Info::new(vec![("version", version)]);
        cloakroom.register("build", "The version of the program", build);
        let durations = Family::new_with_constructor(duration_histogram as fn() -> Histogram);
        let help = "Time from a request's head to its response";
        cloakroom.register("request_duration_seconds", help, durations.clone());
        let requests_help = "Requests by endpoint and status";
        let max_help = "Client connections there may be, 0 if the server has no limit";
        let rate_limited_help = "Requests refused by a rate limit, by its class";
        let failures_help = "Refused actions in the audit log, as events or only in a count";
        let write_errors_help = "Failed attempts to write refused actions to the audit log";
        let lost_help = "Refused actions that are missing from the audit log";
        let sign_ins_help = "Ways to the OpenID provider and back, by what has come of them";
        let sent_help = "Messages that the mail server has taken";
        Metrics {
            requests: register(cloakroom, "requests", requests_help),
            durations,
            connections: register(cloakroom, "connections_open", "Open client connections"),
            connections_max: register(cloakroom, "connections_max", max_help),
            running: register(cloakroom, "requests_running", "Requests being answered"),
            rate_limited: register(cloakroom, "rate_limit_refusals", rate_limited_help),
            audit_failures: register(cloakroom, "audit_failures", failures_help),
            audit_write_errors: register(cloakroom, "audit_write_errors", write_errors_help),
            audit_lost: register(cloakroom, "audit_failures_lost", lost_help),
            provider_sign_ins: register(cloakroom, "provider_sign_ins", sign_ins_help),
            mail_sent: register(cloakroom, "mail_sent", sent_help),
            registry: Arc::new(root),
        }
    }

    /// Counts an answered request. `endpoint` is `None` if no endpoint was found for it, or its head was refused.
    pub fn count_request(&self, endpoint: Option<EndpointName>, status: u16, duration: Duration) {
        let endpoint = [("endpoint", EndpointLabel(endpoint))];
        self.requests.get_or_create(&(endpoint, [("status", status)])).inc();
        self.durations.get_or_create(&endpoint).observe(duration.as_secs_f64());
    }

    /// Counts a request that was refused by the rate limit named `class`.
    pub fn count_rate_limited(&self, class: &'static str) {
        self.rate_limited.get_or_create(&[("class", class)]).inc();
    }

    /// Counts a refused action that became an event of the audit log, or only a part of the count in one.
    pub fn count_audit_failure(&self, is_event: bool) {
        let recorded_as = if is_event { "event" } else { "count" };
        self.audit_failures.get_or_create(&[("recorded_as", recorded_as)]).inc();
    }

    /// Counts a browser that has come back from the OpenID provider, or could not be sent there.
    #[cfg(feature = "oidc")]
    pub fn count_provider_sign_in(&self, outcome: &'static str) {
        self.provider_sign_ins.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// Sets the most client connections that the server allows.
    pub fn set_connections_max(&self, max: usize) {
        self.connections_max.set(gauge_value(max));
    }

    /// Counts an open client connection until the returned guard is dropped.
    pub fn connection_open(&self) -> GaugeGuard {
        GaugeGuard::new(&self.connections)
    }

    /// Counts a request that is being answered until the returned guard is dropped.
    pub fn request_running(&self) -> GaugeGuard {
        GaugeGuard::new(&self.running)
    }

    /// All metrics in the text format of OpenMetrics 1.0.
    pub fn text(&self, readings: impl IntoIterator<Item = Reading>) -> Result<String, fmt::Error> {
        let mut read_now = Registry::with_prefix("cloakroom");
        for Reading { name, help, value } in readings {
            read_now.register(name, help, ConstGauge::new(value));
        }
        let mut out = String::new();
        text::encode_registry(&mut out, &self.registry)?;
        text::encode_registry(&mut out, &read_now)?;
        text::encode_eof(&mut out)?;
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
