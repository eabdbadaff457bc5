//! `cloakroom serve`: starts everything that the service consists of, and runs until it is asked to stop.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::doubtful_settings::{self, DoubtfulSetting};
use super::{installation, signing_secret};
use crate::api::context::App;
use crate::api::{self, pipeline};
use crate::auth::jwt::SigningKeys;
use crate::background::failures::FailureWriter;
use crate::background::{Background, OutboxSender};
use crate::config::{Config, HttpServer};
use crate::db;
use crate::mail::Mailer;
use crate::server::{self, RequestHandler, RouilleServer, Server, ShutdownSignal};
use crate::storage::Storage;
use crate::telemetry::logging;
use crate::telemetry::metrics::Metrics;

/// Opens the storage, loads the secret, opens the database, starts the background threads, and then serves. Everything
/// that can fail comes before the port is opened, so that clients never reach a service that has only half started.
pub fn serve(config: Config) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    for DoubtfulSetting { level, text, .. } in doubtful_settings::find(&config) {
        log::log!(level, "{text}");
    }
    ignore_file_size_signal()?;
    let storage = Arc::new(Storage::open(&config.data_dir)?);
    let secret = signing_secret::load(&config)?;
    let db = db::open_and_migrate(&config)?;
    installation::check(&config, &db, &storage)?;
    // Asked for before the background threads use the connection that is open: opening another one takes longer.
    let postgres = db::server_version(&db).map_err(|e| e.cause().into_owned())?;
    let old_secrets = config.jwt_old_secrets.iter().map(|secret| secret.expose().as_bytes());
    let issuer = config.jwt_issuer.clone();
    let signing_keys = SigningKeys::new(config.jwt_algorithm, &secret, old_secrets, issuer);
    let signing_keys = Arc::new(signing_keys);
    let (config, db) = (Arc::new(config), Arc::new(db));
    let metrics = Metrics::new();
    let outbox = OutboxSender {
        config: config.clone(),
        db: db.clone(),
        signing_keys: signing_keys.clone(),
        mailer: Mailer::new(&config),
        metrics: metrics.clone(),
    };
    let wake_mail = outbox.spawn().map_err(|e| format!("mail thread: {e}"))?;
    let background =
        Background { config: config.clone(), db: db.clone(), storage: storage.clone(), wake_mail };
    let wake = background.spawn().map_err(|e| format!("background thread: {e}"))?;
    let app = App::new(config, db, storage, signing_keys, metrics, wake, api::openapi_document);
    let app = Arc::new(app.map_err(|e| e.cause().into_owned())?);
    let failure_writer =
        FailureWriter::spawn(app.failures.clone(), app.db.clone(), app.metrics.clone())
            .map_err(|e| format!("thread of the audit log: {e}"))?;
    listen(app, &postgres)?;
    failure_writer.stop();
    Ok(())
}

/// Handles SIGXFSZ, which the kernel sends when a file would exceed the process's size limit (`ulimit -f`). Without a
/// handler it kills the process; with one, only the write fails.
pub(super) fn ignore_file_size_signal() -> Result<(), String> {
    let unused = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, unused)
        .map(drop)
        .map_err(|e| format!("signal handler: {e}"))
}

/// Runs the configured HTTP server until the process is asked to stop. `postgres` is the version of the database.
fn listen(app: Arc<App>, postgres: &str) -> Result<(), String> {
    let stop = ShutdownSignal::on_signals().map_err(|e| format!("signals: {e}"))?;
    let address = app.config.listen;
    let announce = |address| announce(&app.config, postgres, address);
    let bind_error = |e: &dyn Display| format!("cannot listen on {address}: {e}");
    let handler = handler(app.clone());
    match app.config.http_server {
        HttpServer::Builtin => {
            let listener = server::bind(address).map_err(|e| bind_error(&e))?;
            announce(listener.local_addr().map_err(|e| bind_error(&e))?);
            let server = Server::new(&app.config, app.metrics.clone(), &stop, handler);
            server::run(&Arc::new(server), listener, &stop);
        }
        HttpServer::Rouille => {
            let server = RouilleServer::bind(address, app.config.workers, handler)
                .map_err(|e| bind_error(&e))?;
            announce(server.address());
            server.run(stop);
        }
    }
    Ok(())
}

/// The function to which both servers pass each request.
fn handler(app: Arc<App>) -> Box<RequestHandler> {
    Box::new(move |head, body| pipeline::answer(&app, head, body))
}

/// Logs what is served where, in one line. Nobody knows the address beforehand if the configured port is 0.
fn announce(config: &Config, postgres: &str, address: SocketAddr) {
    let data_dir = config.data_dir.canonicalize().unwrap_or_else(|_| config.data_dir.clone());
    log::info!(
        "cloakroom {} with PostgreSQL {postgres} and data in {}, listening on http://{address}",
        env!("CARGO_PKG_VERSION"),
        data_dir.display()
    );
}
