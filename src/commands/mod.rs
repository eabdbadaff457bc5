//! What the command line does.

mod gc;
pub use gc::gc;

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::api::context::App;
use crate::api::pipeline;
use crate::auth::jwt::SigningKey;
use crate::auth::password_hasher::PasswordHasher;
use crate::background::Background;
use crate::config::{Config, Environment, HttpServer};
use crate::db;
use crate::http::body::Body;
use crate::model::rules;
use crate::server::{self, Server, ShutdownSignal};
use crate::storage::Storage;
use crate::telemetry::logging;

/// How often the stock server looks whether it is to stop.
const STOCK_POLL: Duration = Duration::from_millis(200);

/// The faults of settings that other modules know to check.
pub fn faults(config: &Config) -> Option<String> {
    let given = !config.database_url.expose().is_empty();
    db::check_settings(config).err().filter(|_| given)
}

/// `cloakroom serve`: runs until it is told to stop.
pub fn serve(config: Config) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    warn_about(&config);
    let secret = secret(&config)?;
    let db = db::open_and_migrate(&config)?;
    survive_file_limits()?;
    let storage = Arc::new(Storage::open(&config.data_dir).map_err(|e| format!("{e:?}"))?);
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
    let app = Arc::new(app);
    listen(app)
}

/// A limit on the size of files kills by a signal, unless someone listens; then the write fails instead.
fn survive_file_limits() -> Result<(), String> {
    let heard = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, heard)
        .map(drop)
        .map_err(|e| format!("signal handler: {e}"))
}

/// Until the process is asked to stop.
fn listen(app: Arc<App>) -> Result<(), String> {
    let stop = ShutdownSignal::on_signals().map_err(|e| format!("signals: {e}"))?;
    let address = app.config.listen;
    let fault = |e: &dyn std::fmt::Display| format!("cannot listen on {address}: {e}");
    match app.config.http_server {
        HttpServer::Builtin => {
            let listener = server::bind(address).map_err(|e| fault(&e))?;
            announce(listener.local_addr().map_err(|e| fault(&e))?);
            let answering = app.clone();
            let handler =
                Box::new(move |head: &_, body: Body| pipeline::answer(&answering, head, body));
            let front = Server::new(&app.config, app.metrics.clone(), &stop, handler);
            server::run(&Arc::new(front), listener, &stop);
        }
        HttpServer::Rouille => {
            let (answering, workers) = (app.clone(), app.config.workers);
            let server = rouille::Server::new(address, move |head| answer_stock(&answering, head))
                .map_err(|e| fault(&e))?
                .pool_size(workers);
            announce(server.server_addr());
            run_stock(server, stop);
        }
    }
    Ok(())
}

/// It notices the stop in a moment without requests, and answers until then, but not for longer than
/// [`server::MAX_STOP`]: it offers no more.
fn run_stock<F>(server: rouille::Server<F>, stop: ShutdownSignal)
where
    F: Fn(&rouille::Request) -> rouille::Response + Send + Sync + 'static,
{
    let stop = Arc::new(stop);
    let asked = stop.clone();
    let serving = std::thread::spawn(move || {
        while !asked.is_asked() {
            server.poll_timeout(STOCK_POLL);
        }
        server.join(); // answers in the making
    });
    stop.wait();
    let deadline = Instant::now() + server::MAX_STOP;
    while !serving.is_finished() && Instant::now() < deadline {
        std::thread::sleep(STOCK_POLL);
    }
}

/// The stock server hands the body with the head.
fn answer_stock(app: &App, head: &rouille::Request) -> rouille::Response {
    let announced = head.header("Content-Length").and_then(|text| text.parse().ok());
    let body = match head.data() {
        Some(data) => Body::new(data, announced),
        None => Body::new(io::empty(), announced),
    };
    pipeline::answer(app, head, body)
}

fn announce(address: SocketAddr) {
    log::info!("listening on http://{address}");
}

fn warn_about(config: &Config) {
    if config.api_key_enabled && config.api_keys.is_empty() {
        log::error!(
            "CLOAKROOM_API_KEY_ENABLED is true and CLOAKROOM_API_KEY holds no key: what asks for one is answered 500"
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

/// The signing secret: the configured one, or, in development, one made at first start and kept.
fn secret(config: &Config) -> Result<Vec<u8>, String> {
    if let Some(secret) = &config.jwt_secret {
        return Ok(secret.expose().as_bytes().to_vec());
    }
    let path = config.data_dir.join("jwt-secret");
    let fault = |e: io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(&config.data_dir).map_err(fault)?;
    if !path.exists() {
        write_secret(&path).map_err(fault)?;
    }
    let secret = fs::read(&path).map_err(fault)?;
    match secret.len() {
        length if length >= config.jwt_algorithm.least_secret_bytes() => Ok(secret),
        length => Err(format!(
            "{} holds {length} bytes, too few; remove it to have it made anew",
            path.display()
        )),
    }
}

/// Written aside and linked into place, so that of two processes that start together both read the
/// secret of the first, and a crash leaves no half of one.
fn write_secret(path: &Path) -> io::Result<()> {
    let secret: String = (0..4).map(|_| Uuid::new_v4().simple().to_string()).collect();
    let aside = path.with_extension(Uuid::new_v4().simple().to_string());
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
    file.write_all(secret.as_bytes())?;
    file.sync_all()?;
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside)?;
    match linked {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// `cloakroom migrate`.
pub fn migrate(config: &Config) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    db::open_and_migrate(config)?;
    println!("The database is up to date.");
    Ok(())
}

/// `cloakroom config`.
pub fn print_config(config: &Config) -> Result<(), String> {
    let mut out = io::stdout().lock();
    for (name, value) in &config.shown {
        writeln!(out, "{name}={value}").map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// `cloakroom create-admin`.
pub fn create_admin(config: &Config, email: &str, username: Option<&str>) -> Result<(), String> {
    logging::start(config.log_level, config.log_format);
    let password = match &config.admin_password {
        Some(password) => password.expose().to_owned(),
        None => first_line().map_err(|e| format!("password from standard input: {e}"))?,
    };
    let refuse =
        |name: &'static str| move |p: crate::error::Problem| format!("{name}: {}", p.message);
    let email = rules::email(email).map_err(refuse("email"))?;
    let username = username.map(rules::username).transpose().map_err(refuse("username"))?;
    let password = rules::password(&password).map_err(refuse("password"))?;
    let db = db::open_and_migrate(config)?;
    let hash = PasswordHasher::new(config.scrypt, 1).and_then(|hasher| hasher.hash(&password));
    let hash = hash.map_err(|e| format!("{e:?}"))?;
    let (username, is_new) = db::users::upsert_admin(&db, &email, username.as_deref(), &hash)
        .map_err(|e| e.message())?;
    let verb = if is_new { "created" } else { "is an active admin now, with this password" };
    println!("Admin {email} {verb}; username: {}.", username.as_deref().unwrap_or("none"));
    Ok(())
}

/// Without its line end.
fn first_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
