//! `cloakroom serve`: starts everything the service consists of, and runs until it is told to stop.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{installation, signing_secret};
use crate::api::context::App;
use crate::api::pipeline;
use crate::auth::jwt::SigningKey;
use crate::background::Background;
use crate::config::{Config, Environment, HttpServer};
use crate::db;
use crate::server::{self, RequestHandler, RouilleServer, Server, ShutdownSignal};
use crate::storage::Storage;
use crate::telemetry::logging;

/// Opens the secret, the database and the storage in this order, starts the background thread, and then
/// serves. What can fail comes before the port is opened, so that a client never meets a half-started service.
pub fn serve(config: Config) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    warn_about_settings(&config);
    let secret = signing_secret::load(&config)?;
    let db = db::open_and_migrate(&config)?;
    ignore_file_size_signal()?;
    let storage = Arc::new(Storage::open(&config.data_dir).map_err(|e| format!("{e:?}"))?);
    installation::check(&config, &storage)?;
    let signing_key = Arc::new(SigningKey::new(config.jwt_algorithm, &secret));
    let (config, db) = (Arc::new(config), Arc::new(db));
    let background = Background {
        config: config.clone(),
        db: db.clone(),
        storage: storage.clone(),
        signing_key: signing_key.clone(),
    };
    let wake = background.spawn().map_err(|e| format!("background thread: {e}"))?;
    let app = App::new(config, db, storage, signing_key, wake).map_err(|e| format!("{e:?}"))?;
    listen(Arc::new(app))
}

/// Logs what an operator should know about settings that are allowed but probably not meant.
fn warn_about_settings(config: &Config) {
    if config.api_key_enabled && config.api_keys.is_empty() {
        log::error!(
            "CLOAKROOM_API_KEY_ENABLED is true and CLOAKROOM_API_KEY holds no key: \
             what asks for one is answered 500"
        );
    }
    for (name, nearest) in &config.unknown {
        log::warn!("{name} is no setting; did you mean {nearest}?");
    }
    if config.environment == Environment::Production || config.listen.ip().is_loopback() {
        return;
    }
    let address = config.listen;
    log::warn!(
        "listening on {address} in development: set CLOAKROOM_ENV=production to face a network"
    );
    if !config.auth_enabled {
        log::error!(
            "CLOAKROOM_AUTH_ENABLED IS FALSE AND {address} IS NOT LOOPBACK: ANYONE WHO REACHES IT IS AN ADMIN"
        );
    }
}

/// Handles SIGXFSZ, which is sent when a file exceeds the process's size limit. Unhandled it would kill the
/// process; handled, only the write fails.
fn ignore_file_size_signal() -> Result<(), String> {
    let unused = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, unused)
        .map(drop)
        .map_err(|e| format!("signal handler: {e}"))
}

/// Runs the configured HTTP server until the process is asked to stop.
fn listen(app: Arc<App>) -> Result<(), String> {
    let stop = ShutdownSignal::on_signals().map_err(|e| format!("signals: {e}"))?;
    let address = app.config.listen;
    let fault = |e: &dyn Display| format!("cannot listen on {address}: {e}");
    let handler = handler(app.clone());
    match app.config.http_server {
        HttpServer::Builtin => {
            let listener = server::bind(address).map_err(|e| fault(&e))?;
            announce(listener.local_addr().map_err(|e| fault(&e))?);
            let server = Server::new(&app.config, app.metrics.clone(), &stop, handler);
            server::run(&Arc::new(server), listener, &stop);
        }
        HttpServer::Rouille => {
            let server =
                RouilleServer::bind(address, app.config.workers, handler).map_err(|e| fault(&e))?;
            announce(server.address());
            server.run(stop);
        }
    }
    Ok(())
}

/// What both servers give each request to.
fn handler(app: Arc<App>) -> Box<RequestHandler> {
    Box::new(move |head, body| pipeline::answer(&app, head, body))
}

/// Logs the address, which an operator needs to know where port 0 had a free port picked.
fn announce(address: SocketAddr) {
    log::info!("listening on http://{address}");
}
