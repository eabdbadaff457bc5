//! What the process counts about itself.

use crate::api::context::RequestContext;
use crate::config::MetricsAccess;
use crate::db::stats;
use crate::error::Error;
use crate::http::response::Response;
use crate::telemetry::metrics::Now;

/// `GET /metrics`: text of OpenMetrics 1.0, for whom `CLOAKROOM_METRICS` lets in.
pub fn show(context: &RequestContext) -> Result<Response, Error> {
    let app = context.app;
    let admitted = match app.config.metrics {
        MetricsAccess::Off => false,
        MetricsAccess::Loopback => context.request.is_local(),
        MetricsAccess::Any => true,
    };
    if !admitted {
        return Err(Error::RouteNotFound);
    }
    let (hashes_running, hashes_waiting) = app.hasher.load();
    let text = app.metrics.text(&Now {
        pool_in_use: app.db.in_use(),
        pool_open: app.db.open(),
        pool_waiting: app.db.waiting(),
        hashes_running,
        hashes_waiting,
        stored: stats::stored(&app.db).ok(),
    });
    let text = text.map_err(|e| Error::Internal(format!("metrics: {e}")))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(Response::from_data(kind, text))
}
