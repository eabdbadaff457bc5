//! Probes for load balancers and supervisors, and the metrics of the process.

use serde_json::json;

use crate::api::app::App;
use crate::api::context::RequestContext;
use crate::db::health::DatabaseState;
use crate::db::stats::{self, StoredTotals};
use crate::error::Error;
use crate::http::response::{self, Response};
use crate::model::timestamp::Timestamp;
use crate::storage::DiskSpace;
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

/// Reads the gauges that are not kept up to date. Those that the database or the file system does not tell are missing.
fn readings(app: &App) -> Vec<Reading> {
    let stored = stats::stored(&app.db);
    let is_up = usize::from(stored.is_ok());
    let takes_contents = usize::from(app.storage.takes_contents());
    let takes_contents_help = "Whether the data directory took a file just now";
    let (hashes_running, hashes_waiting) = app.hasher.load();
    let quota = app.config.storage_quota;
    let mut readings = vec![
        Reading::new("database_up", "Whether the database answered just now", is_up),
        Reading::new("pool_size", "Database connections there may be", app.db.max_open()),
        Reading::new("pool_open", "Database connections", app.db.open()),
        Reading::new("pool_in_use", "Database connections in use", app.db.in_use()),
        Reading::new("pool_waiting", "Requests that wait for the database", app.db.waiting()),
        Reading::new("data_directory_writable", takes_contents_help, takes_contents),
        Reading::new("hashes_running", "Passwords being hashed", hashes_running),
        Reading::new("hashes_waiting", "Requests that wait to hash a password", hashes_waiting),
        Reading::new("storage_quota_bytes", "Bytes that all files may have together", quota),
        Reading::new("changes_waiting", "Requests that wait for changes", app.waiters.count()),
    ];
    let storage_help = "Whether the store of contents answered just now";
    let storage_up = app.storage.store_is_up().map(usize::from);
    readings.extend(storage_up.map(|is_up| Reading::new("storage_up", storage_help, is_up)));
    readings.extend(stored.is_ok().then(|| database_writable(app)));
    readings.extend(stored.into_iter().flat_map(totals));
    readings.extend(app.storage.disk_space().into_iter().flat_map(disk_space));
    readings.extend(last_backup(&app.config.data_dir).map(|(at, _)| backup_time(at)));
    readings
}

/// Is left out while the database does not answer.
fn database_writable(app: &App) -> Reading {
    let is_writable = app.database_state() == DatabaseState::Writable;
    let help = "Whether the database takes changes";
    Reading::new("database_writable", help, usize::from(is_writable))
}

fn totals(stored: StoredTotals) -> [Reading; 5] {
    let failed_help = "Messages that were given up in the last 30 days";
    let oldest_help = "Age of the oldest message that waits to be sent";
    [
        Reading::new("stored_bytes", "Bytes of all files", stored.bytes),
        Reading::new(
            "deleted_bytes",
            "Bytes of deleted files that can be restored",
            stored.deleted,
        ),
        Reading::new("mail_waiting", "Messages that wait to be sent", stored.mail_waiting),
        Reading::new("mail_failed", failed_help, stored.mail_failed),
        Reading::new("mail_oldest_seconds", oldest_help, stored.mail_oldest_seconds),
    ]
}

/// Is left out until there is one.
fn backup_time(at: Timestamp) -> Reading {
    let help = "Unix time of the last whole backup of the data directory";
    Reading::new("last_backup_timestamp_seconds", help, at.0.unix_timestamp())
}

/// Named like the metrics of Prometheus's node exporter.
fn disk_space(space: DiskSpace) -> [Reading; 4] {
    let available_help = "Bytes that the service may take of the data directory's file system";
    let inodes_help = "Inodes of the data directory's file system, 0 if it has no fixed number";
    let size_help = "Size of the data directory's file system";
    let free_help = "Free inodes of the data directory's file system";
    [
        Reading::new("filesystem_size_bytes", size_help, space.total_bytes),
        Reading::new("filesystem_avail_bytes", available_help, space.free_bytes),
        Reading::new("filesystem_files", inodes_help, space.total_inodes),
        Reading::new("filesystem_files_free", free_help, space.free_inodes),
    ]
}
