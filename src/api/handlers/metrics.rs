//! The metrics of the process.

use crate::api::context::{App, RequestContext};
use crate::api::openapi::{Answer, Content, Operation, Tag};
use crate::config::MetricsAccess;
use crate::db::stats;
use crate::error::Error;
use crate::http::response::Response;
use crate::telemetry::metrics::{Reading, gauge_value};

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
    let text = app.metrics.text(readings(app));
    let text = text.map_err(|e| Error::Internal(format!("metrics: {e}")))?;
    Ok(Response::new(200, OPENMETRICS, text.into_bytes()))
}

/// What is read only now. Values of the database and of the file system are missing while these do not answer.
fn readings(app: &App) -> Vec<Reading> {
    let reading = |name, help, value| Reading { name, help, value };
    let count = |name, help, count: usize| reading(name, help, gauge_value(count as u64));
    let (hashes_running, hashes_waiting) = app.hasher.load();
    let stored = stats::stored(&app.db);
    let mut readings = vec![
        count("pool_size", "Database connections that may be open", app.db.max_open()),
        count("pool_open", "Database connections", app.db.open()),
        count("pool_in_use", "Database connections in use", app.db.in_use()),
        count("pool_waiting", "Requests that wait for the database", app.db.waiting()),
        count("hashes_running", "Passwords being hashed", hashes_running),
        count("hashes_waiting", "Requests that wait to hash a password", hashes_waiting),
        count("database_up", "Whether the database answered just now", usize::from(stored.is_ok())),
        reading(
            "storage_quota_bytes",
            "Bytes that all files may have together",
            gauge_value(app.config.storage_quota),
        ),
    ];
    if let Ok(stored) = stored {
        let help = "Messages that were given up in the last 30 days";
        readings.extend([
            reading("stored_bytes", "Bytes of all files", stored.bytes),
            reading("mail_waiting", "Messages that wait to be sent", stored.mail_waiting),
            reading("mail_failed", help, stored.mail_failed),
            reading(
                "mail_oldest_seconds",
                "Age of the oldest of these",
                stored.mail_oldest_seconds,
            ),
        ]);
    }
    // Named as those of Prometheus's node exporter.
    if let Ok(space) = app.storage.disk_space() {
        readings.extend(
            [
                (
                    "filesystem_size_bytes",
                    "Size of the data directory's file system",
                    space.total_bytes,
                ),
                (
                    "filesystem_avail_bytes",
                    "Bytes that the service may still take of it",
                    space.free_bytes,
                ),
                (
                    "filesystem_files",
                    "Inodes of it, 0 if their number is not fixed",
                    space.total_inodes,
                ),
                ("filesystem_files_free", "Inodes that are free", space.free_inodes),
            ]
            .map(|(name, help, value)| reading(name, help, gauge_value(value))),
        );
    }
    readings
}
