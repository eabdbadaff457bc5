//! Probes for load balancers and supervisors, and the metrics of the process.

use serde_json::json;

use crate::db::state::DatabaseState;
use crate::db::stats;
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::request::app::App;
use crate::request::context::RequestContext;
use crate::storage::file_system::last_backup;
use crate::telemetry::metrics::Reading;

/// The media type of OpenMetrics 1.0.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `GET /healthz`: responds with 200 as long as the process serves requests.
pub fn alive(_: &mut RequestContext) -> Result<Response, Error> {
    response::probe("ok")
}

/// `GET /readyz`: responds with 200 if the database answers, otherwise with 503. The database is asked at most once
/// a second. If no change can be written, or no content stored, the status is still 200, because reads work, and no
/// other process would do better; the body says so.
pub fn ready(context: &mut RequestContext) -> Result<Response, Error> {
    let app = context.app;
    let mut reasons = Vec::new();
    match app.database_state() {
        DatabaseState::Lost => return Err(Error::Unavailable),
        DatabaseState::ReadOnly => reasons.push("DATABASE_REFUSES_CHANGES"),
        DatabaseState::Writable => {}
    }
    if !app.storage.takes_contents() {
        reasons.push("DATA_DIRECTORY_REFUSES_CONTENTS");
    }
    if app.storage.store_is_up() == Some(false) {
        reasons.push("STORE_UNAVAILABLE");
    }
    if reasons.is_empty() {
        return response::probe("ok");
    }
    response::json(200, &json!({ "status": "degraded", "reasons": reasons }))
}

/// `GET /metrics`: all metrics in the text format of OpenMetrics 1.0, for clients that `CLOAKROOM_METRICS` lets read
/// them.
pub fn metrics(context: &mut RequestContext) -> Result<Response, Error> {
    let app = context.app;
    let text = app.metrics.text(readings(app));
    let text = text.map_err(|e| Error::Internal(format!("metrics: {e}")))?;
    Ok(Response::new(200, OPENMETRICS, text.into_bytes()))
}

/// Reads the gauges that are not kept up to date. Those that the database or the file system does not tell are left
/// out. Those of the file system are named like the metrics of Prometheus's node exporter.
fn readings(app: &App) -> impl Iterator<Item = Reading> {
    let (config, db, storage) = (&app.config, &app.db, &app.storage);
    let (stored, disk) = (stats::stored(db).ok(), storage.disk_space().ok());
    let (stored, disk) = (stored.as_ref(), disk.as_ref());
    let is_writable = stored.map(|_| app.database_state() == DatabaseState::Writable);
    let (hashes_running, hashes_waiting) = app.hasher.queue.load();
    let backup = last_backup(&config.data_dir).map(|(at, _)| at.0.unix_timestamp());
    #[rustfmt::skip] // One row a gauge, as in a table.
    let readings = [
        Reading::new("database_up", "Whether the database answered just now", Some(stored.is_some())),
        Reading::new("database_writable", "Whether the database takes changes", is_writable),
        Reading::new("pool_size", "Database connections there may be", Some(db.pool.max_open())),
        Reading::new("pool_open", "Database connections", Some(db.pool.open())),
        Reading::new("pool_in_use", "Database connections in use", Some(db.pool.in_use())),
        Reading::new("pool_waiting", "Requests that wait for the database", Some(db.pool.waiting())),
        Reading::new("data_directory_writable", "Whether the data directory took a file just now",
            Some(storage.takes_contents())),
        Reading::new("storage_up", "Whether the store of contents answered just now", storage.store_is_up()),
        Reading::new("hashes_running", "Passwords being hashed", Some(hashes_running)),
        Reading::new("hashes_waiting", "Requests that wait to hash a password", Some(hashes_waiting)),
        Reading::new("storage_quota_bytes", "Bytes that all files may have together", Some(config.storage_quota)),
        #[cfg(feature = "extras")]
        Reading::new("changes_waiting", "Requests that wait for changes", Some(app.extras.waiters.count())),
        Reading::new("stored_bytes", "Bytes of all files, and of contents that wait for their removal",
            stored.map(|it| it.bytes)),
        Reading::new("deleted_bytes", "Bytes of deleted files that can be restored", stored.map(|it| it.deleted)),
        Reading::new("mail_waiting", "Messages that wait to be sent", stored.map(|it| it.mail_waiting)),
        Reading::new("mail_failed", "Messages that were given up in the last 30 days", stored.map(|it| it.mail_failed)),
        Reading::new("mail_oldest_seconds", "Age of the oldest message that waits to be sent",
            stored.map(|it| it.mail_oldest_seconds)),
        Reading::new("filesystem_size_bytes", "Size of the data directory's file system",
            disk.map(|it| it.total_bytes)),
        Reading::new("filesystem_avail_bytes", "Bytes that the service may take of the data directory's file system",
            disk.map(|it| it.free_bytes)),
        Reading::new("filesystem_files", "Inodes of the data directory's file system, 0 if it has no fixed number",
            disk.map(|it| it.total_inodes)),
        Reading::new("filesystem_files_free", "Free inodes of the data directory's file system",
            disk.map(|it| it.free_inodes)),
        Reading::new("last_backup_timestamp_seconds", "Unix time of the last whole backup of the data directory",
            backup),
    ];
    readings.into_iter().flatten()
}
