//! `cloakroom serve`: starts everything that the service consists of, and runs until it is asked to stop.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{installation, signing_secret};
use crate::api::context::App;
use crate::api::{self, pipeline};
use crate::auth::jwt::SigningKeys;
use crate::background::failures::FailureWriter;
use crate::background::{Background, OutboxSender};
use crate::config::{self, Config, Environment, HttpServer, Smtp};
use crate::db;
use crate::mail::Mailer;
use crate::server::{self, RequestHandler, RouilleServer, Server, ShutdownSignal};
use crate::storage::Storage;
use crate::telemetry::logging;
use crate::telemetry::metrics::Metrics;

/// Opens the storage, loads the secret, opens the database, starts the background threads, and then serves. Everything
/// that can fail comes before the port is opened, so that clients never reach a service that has only half started.
pub fn serve(config: Config) -> Result<(), String> {
    config::apply_allocator_settings();
    logging::start(config.log_level, config.log_format);
    warn_about_settings(&config);
    ignore_file_size_signal()?;
    let storage = Arc::new(Storage::open(&config.data_dir)?);
    let secret = signing_secret::load(&config)?;
    let db = db::open_and_migrate(&config)?;
    installation::check(&config, &db, &storage)?;
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
    let failure_writer = FailureWriter::spawn(app.failures.clone(), app.db.clone())
        .map_err(|e| format!("thread of the audit log: {e}"))?;
    listen(app)?;
    failure_writer.stop();
    Ok(())
}

/// Warns about settings that are allowed but probably not intended.
fn warn_about_settings(config: &Config) {
    if config.api_key_enabled && config.api_keys.is_empty() {
        log::error!(
            "CLOAKROOM_API_KEY_ENABLED is true and CLOAKROOM_API_KEY holds no key: \
             what asks for one is answered 500"
        );
    }
    let restrictions = [
        (config.export_require_admin, "CLOAKROOM_EXPORT_REQUIRE_ADMIN"),
        (config.api_key_enabled, "CLOAKROOM_API_KEY_ENABLED"),
    ];
    let names: Vec<_> =
        restrictions.into_iter().filter(|(is_on, _)| *is_on).map(|(_, n)| n).collect();
    if config.allow_anonymous_export && !names.is_empty() {
        log::warn!(
            "CLOAKROOM_ALLOW_ANONYMOUS_EXPORT is true and so is {}: exports are not open to anyone",
            names.join(" and ")
        );
    }
    if config.environment == Environment::Production && !config.rate_limit_enabled {
        log::warn!(
            "CLOAKROOM_RATE_LIMIT_ENABLED is false: passwords and tokens can be guessed at will"
        );
    }
    warn_about_mail(config);
    for variable in &config.unknown {
        log::warn!("{}", variable.warning());
    }
    warn_about_open_access(config);
}

/// Warns where anyone may be an administrator, and where development faces a network.
fn warn_about_open_access(config: &Config) {
    let address = config.listen;
    if config.environment == Environment::Development && !address.ip().is_loopback() {
        log::warn!(
            "listening on {address} in development: set CLOAKROOM_ENV=production to face a network"
        );
        if !config.auth_enabled {
            log::error!(
                "CLOAKROOM_AUTH_ENABLED IS FALSE AND {address} IS NOT LOOPBACK: ANYONE WHO REACHES IT IS AN ADMIN"
            );
        }
    } else if !config.auth_enabled {
        log::warn!("CLOAKROOM_AUTH_ENABLED is false: every request is an administrator");
    }
}

/// Warns about a mail server that is not used, because it is not known who sends the mail and what it links to.
fn warn_about_mail(config: &Config) {
    if matches!(config.smtp, Smtp::Server(_)) && Mailer::new(config).is_none() {
        log::warn!(
            "CLOAKROOM_SMTP_URL is set, but CLOAKROOM_MAIL_FROM or CLOAKROOM_PASSWORD_RESET_URL is not: no mail is sent"
        );
    }
}

/// Handles SIGXFSZ, which the kernel sends when a file would exceed the process's size limit (`ulimit -f`). Without a
/// handler it kills the process; with one, only the write fails.
pub(super) fn ignore_file_size_signal() -> Result<(), String> {
    let unused = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, unused)
        .map(drop)
        .map_err(|e| format!("signal handler: {e}"))
}

/// Runs the configured HTTP server until the process is asked to stop.
fn listen(app: Arc<App>) -> Result<(), String> {
    let stop = ShutdownSignal::on_signals().map_err(|e| format!("signals: {e}"))?;
    let address = app.config.listen;
    let postgres = db::server_version(&app.db).map_err(|e| e.cause().into_owned())?;
    let announce = |address| announce(&app.config, &postgres, address);
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
