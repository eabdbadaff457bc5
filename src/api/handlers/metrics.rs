//! The metrics of the process.

use crate::api::context::RequestContext;
use crate::api::openapi::{Answer, Content, Operation, Tag};
use crate::config::MetricsAccess;
use crate::db::stats;
use crate::error::Error;
use crate::http::response::Response;
use crate::telemetry::metrics::GaugeValues;

/// The media type of OpenMetrics 1.0.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub const SHOW: Operation = Operation {
    id: "get_metrics",
    tag: Tag::Service,
    summary: "Show the metrics of the process",
    description: "In the text format of OpenMetrics 1.0. The setting `CLOAKROOM_METRICS` says who may read them; for \
                  everybody else this is an unknown path.",
    answers: &[Answer {
        status: 200,
        description: "All metrics.",
        content: Content::Text(OPENMETRICS),
        headers: &[],
    }],
    errors: |config| vec![Error::RouteNotFound { has_docs: config.docs }],
    ..Operation::EMPTY
};

/// `GET /metrics`: all metrics in the text format of OpenMetrics 1.0. Clients that `CLOAKROOM_METRICS` does not let
/// read them get the same 404 as for an unknown path.
pub fn show(context: &mut RequestContext) -> Result<Response, Error> {
    let app = context.app;
    let is_allowed = match app.config.metrics {
        MetricsAccess::Off => false,
        MetricsAccess::Loopback => context.request.is_local(),
        MetricsAccess::Any => true,
    };
    if !is_allowed {
        return Err(app.route_not_found());
    }
    let (hashes_running, hashes_waiting) = app.hasher.load();
    let text = app.metrics.text(&GaugeValues {
        pool_in_use: app.db.in_use(),
        pool_open: app.db.open(),
        pool_waiting: app.db.waiting(),
        hashes_running,
        hashes_waiting,
        stored: stats::stored(&app.db).ok(),
    });
    let text = text.map_err(|e| Error::Internal(format!("metrics: {e}")))?;
    Ok(Response::new(200, OPENMETRICS, text.into_bytes()))
}
