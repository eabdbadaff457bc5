//! Starts the service: reads the settings, opens the data directory, loads the secret, opens the database, compares the
//! installation ids, seals second factors anew, starts the background threads, and serves until it is asked to stop.
//! The commands `migrate`, `config` and `openapi` are here too.

mod create_admin;
#[cfg(feature = "extras")]
pub mod imported_hashes;
pub mod installation;
#[cfg(feature = "oidc")]
pub mod provider;
pub mod secrets;
pub mod warnings;

use std::env;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::thread::available_parallelism;
use std::time::Duration;

use log::Level;

use crate::arguments::VERSION;
use crate::auth::jwt::SigningKeys;
use crate::auth::refused_passwords::RefusedPasswords;
use crate::background::failures::FailureWriter;
use crate::background::{Background, OutboxSender};
use crate::config::{self, Config, HttpServer, ShownSetting, UnknownVariable, UsedSettings};
use crate::db;
use crate::error::Error;
use crate::mail::Mailer;
use crate::request::app::App;
use crate::server::{self, RequestHandler, RouilleServer, Server, ShutdownSignal};
use crate::service::{pipeline, router};
use crate::storage::Storage;
use crate::supervisor;
use crate::telemetry::logging;
use crate::telemetry::metrics::Metrics;

/// Why a command failed, as its user is shown it.
pub enum CommandError {
    /// Settings that the command uses are wrong or missing: one line each.
    Settings(Vec<String>),
    Failed(String),
}

impl From<String> for CommandError {
    fn from(message: String) -> CommandError {
        CommandError::Failed(message)
    }
}

/// The cause is what an operator is told about an error.
impl From<Error> for String {
    fn from(error: Error) -> String {
        error.cause().into_owned()
    }
}

/// Reads the settings that a command uses, and starts the log.
pub fn start(used: UsedSettings) -> Result<Config, CommandError> {
    let config = read_settings(used)?;
    logging::start(config.log_level, config.log_format);
    Ok(config)
}

/// Reads the settings that a command uses. Faults in other settings do not matter to it.
fn read_settings(used: UsedSettings) -> Result<Config, CommandError> {
    let (config, mut faults) = Config::from_environment(used, db::check_settings);
    if faults.is_empty() {
        return Ok(config);
    }
    if used == UsedSettings::All {
        faults.extend(RefusedPasswords::load(&config).err());
    }
    faults.extend(config.unknown.iter().map(UnknownVariable::warning));
    Err(CommandError::Settings(faults))
}

/// `cloakroom migrate`: waits for the database and applies pending migrations.
pub fn migrate() -> Result<(), CommandError> {
    let config = start(UsedSettings::Installation)?;
    installation::open_database(&config, &Storage::at(&config)?)?;
    print("The database is up to date.\n")?;
    Ok(())
}

/// Writes `text` to standard output at once. Returns false if nobody reads it any more: a reader such as `head`, which
/// has seen enough and closes the pipe, is no failure.
pub fn print(text: &str) -> Result<bool, String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(format!("standard output: {error}")),
    }
}

/// `cloakroom create-admin`, see [`create_admin::create_admin`].
pub fn create_admin(
    email: &str,
    username: Option<&str>,
    resets_second_factor: bool,
) -> Result<(), CommandError> {
    let config = start(UsedSettings::Installation)?;
    let refused = refused_passwords(&config)?;
    Ok(create_admin::create_admin(&config, &refused, email, username, resets_second_factor)?)
}

/// `cloakroom config`: prints the effective settings, secrets masked, and on standard error the variables that are
/// named like settings but are none. Or all settings with their defaults and meanings, whatever is set.
pub fn print_config(table: bool, sample: bool) -> Result<(), CommandError> {
    if table || sample {
        print(&if table { config::markdown_table() } else { config::sample() })?;
        return Ok(());
    }
    let config = read_settings(UsedSettings::All)?;
    refused_passwords(&config)?;
    let warnings = config.unknown.iter().map(UnknownVariable::warning);
    logging::write_lines(Level::Warn, warnings.map(|warning| format!("cloakroom: {warning}")));
    let line = |ShownSetting { name, value, .. }: &ShownSetting| format!("{name}={value}\n");
    print(&config.shown.iter().map(line).collect::<String>())?;
    Ok(())
}

/// `cloakroom openapi`: prints the OpenAPI document of a service with these settings.
pub fn print_openapi() -> Result<(), CommandError> {
    let document = router::document(&read_settings(UsedSettings::WithoutDatabase)?);
    print(&format!("{document}\n"))?;
    Ok(())
}

/// `cloakroom serve`: serves until the process is asked to stop, and tells the supervisor if it cannot.
pub fn serve() -> Result<(), CommandError> {
    start_and_serve().inspect_err(|error| match error {
        CommandError::Settings(faults) => supervisor::failed(&faults.join("; ")),
        CommandError::Failed(message) => supervisor::failed(message),
    })
}

/// Opens the storage, loads the secret, opens the database, starts the background threads, and then serves. Everything
/// that can fail comes before the port is opened, so that clients never reach a service that has only half started.
fn start_and_serve() -> Result<(), CommandError> {
    apply_allocator_settings();
    let config = start(UsedSettings::All)?;
    for (level, text, _) in warnings::find(&config) {
        log::log!(level, "{text}");
    }
    let refused = refused_passwords(&config)?;
    ignore_file_size_signal()?;
    let storage = Arc::new(Storage::open(&config)?);
    warn_of_space(&config, &storage);
    // Says so if they are full. Then the service does what it can, and the first to ask `/readyz` hears of it at once.
    storage.takes_contents();
    let secret = secrets::load(&config)?;
    let db = installation::open_database(&config, &storage)?;
    let is_reached = storage.reach()?.is_none();
    if is_reached {
        installation::check(&db, &storage)?;
    }
    // Asked for before the background threads use the connection that is open: opening another one takes longer.
    let postgres = db::server_version(&db).map_err(String::from)?;
    let sealing_keys = secrets::sealing_keys(&config, Some(&secret));
    #[cfg(feature = "extras")]
    crate::second_factor::reseal_all(&db, &sealing_keys);
    #[cfg(feature = "extras")]
    if let Ok(Some((level, text, advice))) = imported_hashes::find(&config, &db) {
        log::log!(level, "{text}. {advice}");
    }
    let sealing_keys = Arc::new(sealing_keys);
    let old_secrets = config.jwt_old_secrets.iter().map(|secret| secret.expose().as_bytes());
    let issuer = config.jwt_issuer.clone();
    let signing_keys = SigningKeys::new(config.jwt_algorithm, &secret, old_secrets, issuer);
    let signing_keys = Arc::new(signing_keys);
    let (config, db) = (Arc::new(config), Arc::new(db));
    if !is_reached {
        installation::check_later(storage.clone(), db.clone())
            .map_err(|e| format!("thread that waits for the store: {e}"))?;
    }
    let metrics = Metrics::new(VERSION);
    let outbox = OutboxSender {
        config: config.clone(),
        db: db.clone(),
        signing_keys: signing_keys.clone(),
        sealing_keys: sealing_keys.clone(),
        mailer: Mailer::new(&config),
        metrics: metrics.clone(),
    };
    let wake = start_background(outbox, storage.clone())?;
    let app = App::new(config, db, storage, (signing_keys, sealing_keys), refused, metrics, wake);
    let app = Arc::new(app.map_err(String::from)?);
    #[cfg(feature = "oidc")]
    look_at_provider(app.clone())?;
    let failure_writer =
        FailureWriter::spawn(app.failures.clone(), app.db.clone(), app.metrics.clone())
            .map_err(|e| format!("thread of the audit log: {e}"))?;
    listen(app, &postgres)?;
    failure_writer.stop();
    Ok(())
}

/// Asks the OpenID provider in a thread of its own, if there is one: the service does not wait for it.
#[cfg(feature = "oidc")]
fn look_at_provider(app: Arc<App>) -> Result<(), String> {
    let look = move || {
        let Some(provider) = &app.provider else { return };
        let counted = provider::count(provider, &app.config, &app.db).unwrap_or_default();
        for (level, text, advice) in provider::ask(provider, &app.config).into_iter().chain(counted)
        {
            log::log!(level, "{}", format!("{text}. {advice}").trim_end());
        }
    };
    let thread = std::thread::Builder::new().name("provider".to_owned()).spawn(look);
    thread.map(drop).map_err(|e| format!("thread that looks at the OpenID provider: {e}"))
}

/// Where glibc reads the settings of its memory allocator when the process starts. An operator who sets this variable
/// keeps all of their own.
const TUNABLES_VARIABLE: &str = "GLIBC_TUNABLES";
/// From `mmap_threshold` a block is mapped by itself, and unmapped when it is freed. By default glibc raises this limit
/// to the size of the first such block that is freed, and from then on keeps the 16 MiB of each password hash in the
/// heap of the thread that computed it. `trim_threshold` is the free memory that the end of a heap may have. With
/// `hugetlb` the kernel may give a large block huge pages, which saves most of the 4,096 page faults of a hash.
///
/// The others keep the memory small that connections leave behind. Each thread keeps blocks that it has freed, by
/// default up to 1032 bytes each and 7 of each size; with `tcache_max` only those of up to 128 bytes, as most blocks of
/// a request are. glibc also keeps the stacks of threads that have ended, by default 40 MiB in all, here 4 MiB.
const TUNABLES: &str = "glibc.malloc.mmap_threshold=1048576:glibc.malloc.trim_threshold=131072:glibc.malloc.hugetlb=1:\
                        glibc.malloc.tcache_max=128:glibc.pthread.stack_cache_size=4194304";
/// Heaps for each core, which the threads share. By default there are eight, each with free memory of its own; these
/// are enough, because most threads wait for their client or for the database.
const HEAPS_PER_CORE: usize = 2;
/// Set for the executed program, so that it does not execute itself again. `GLIBC_TUNABLES` cannot serve for that,
/// because glibc removes it from the environment of a program that has capabilities of its own (`setcap`).
const MARKER: &str = "CLOAKROOM_ALLOCATOR_SET";

/// Executes this program again with the settings: only unsafe code could change those of a running process (`mallopt`).
/// Must be called while there is one thread and nothing is open. Returns in the executed program, and if the operator
/// has settings of their own or executing fails: then the process only needs more memory.
fn apply_allocator_settings() {
    let is_set = |name| env::var_os(name).is_some();
    if !cfg!(target_env = "gnu") || is_set(MARKER) || is_set(TUNABLES_VARIABLE) {
        return;
    }
    let heaps = available_parallelism().map_or(1, NonZero::get) * HEAPS_PER_CORE;
    let tunables = format!("{TUNABLES}:glibc.malloc.arena_max={heaps}");
    let Ok(program) = env::current_exe() else { return };
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_default();
    let variables = [(TUNABLES_VARIABLE, &*tunables), (MARKER, "1")];
    // In place of the running program, so with the same process id. Returns only if it fails.
    let _ = Command::new(program).arg0(name).args(arguments).envs(variables).exec();
}

/// The passwords that nobody may set.
fn refused_passwords(config: &Config) -> Result<RefusedPasswords, CommandError> {
    RefusedPasswords::load(config).map_err(|fault| CommandError::Settings(vec![fault]))
}

/// Warns if the file system of the contents has less room than deleted files may take.
fn warn_of_space(config: &Config, storage: &Storage) {
    let Some(Ok(space)) = storage.trash().map(|_| storage.disk_space()) else { return };
    if space.free_bytes < config.deleted_quota && config.trash_days > 0 {
        log::warn!(
            "the file system of the data directory has {} bytes left, and deleted files may take {}: see \
             CLOAKROOM_DELETED_QUOTA",
            space.free_bytes,
            config.deleted_quota
        );
    }
}

/// Starts the threads that work beside requests, but for the one of the audit log. A message to the returned sender
/// wakes the one that looks up the accounts of password resets.
fn start_background(outbox: OutboxSender, storage: Arc<Storage>) -> Result<SyncSender<()>, String> {
    let (config, db) = (outbox.config.clone(), outbox.db.clone());
    let wake_mail = outbox.spawn().map_err(|e| format!("mail thread: {e}"))?;
    Background { config, db, storage, wake_mail }
        .spawn()
        .map_err(|e| format!("background threads: {e}"))
}

/// Handles SIGXFSZ, which the kernel sends when a file would exceed the process's size limit (`ulimit -f`). Without a
/// handler it kills the process; with one, only the write fails.
pub fn ignore_file_size_signal() -> Result<(), String> {
    let unused = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, unused)
        .map(drop)
        .map_err(|e| format!("signal handler: {e}"))
}

/// Runs the configured HTTP server until the process is asked to stop. `postgres` is the version of the database.
fn listen(app: Arc<App>, postgres: &str) -> Result<(), String> {
    let stopping = app.clone();
    let stop = ShutdownSignal::on_signals().map_err(|e| format!("signals: {e}"))?;
    let stop = stop.calling(move || begin_stop(&stopping));
    let address = app.config.listen;
    let announce = |address| announce(&app, postgres, address);
    let bind_error = |e: &dyn Display| format!("cannot listen on {address}: {e}");
    let shared = app.clone();
    let handler: Box<RequestHandler> =
        Box::new(move |head, body| pipeline::answer(&shared, head, body));
    match app.config.http_server {
        HttpServer::Builtin => {
            let listener = server::bind(address).map_err(|e| bind_error(&e))?;
            announce(listener.local_addr().map_err(|e| bind_error(&e))?);
            let server = Server::new(&app.config, app.metrics.clone(), &stop, handler);
            // Half of the connections is left to requests that do not wait.
            #[cfg(feature = "extras")]
            app.extras
                .waiters
                .start(server.connections.max_open() / 2, app.db.clone())
                .map_err(|e| format!("thread of changes: {e}"))?;
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

/// Says that the process stops, and ends all waits for a permit or for changes. Returns how long open requests may
/// take.
fn begin_stop(app: &App) -> Duration {
    log::info!("stopping: open requests are finished");
    supervisor::stopping(app.config.max_stop);
    app.permits.close();
    #[cfg(feature = "extras")]
    app.extras.link_permits.close();
    app.hasher.queue.close();
    #[cfg(feature = "extras")]
    app.extras.waiters.close();
    app.db.pool.close_changes();
    app.config.max_stop
}

/// Says that the service is ready: to the log with versions, data directory and address in one line, and to the
/// supervisor. The address is not known beforehand if the configured port is 0.
fn announce(app: &App, postgres: &str, address: SocketAddr) {
    let config = &app.config;
    let data_dir = config.data_dir.canonicalize().unwrap_or_else(|_| config.data_dir.clone());
    let store = match app.storage.trash() {
        Some(_) => String::new(),
        None => format!(", contents in {}", app.storage.place().0),
    };
    log::info!(
        "cloakroom {} with PostgreSQL {postgres} and data in {}{store}, listening on http://{address}",
        VERSION,
        data_dir.display()
    );
    supervisor::ready(address);
}
