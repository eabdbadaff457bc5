//! What handlers are given: the application, and one context of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use crate::auth::jwt;
use crate::auth::password_hasher::PasswordHasher;
use crate::auth::token_bucket::Buckets;
use crate::config::Config;
use crate::db::Database;
use crate::error::Error;
use crate::http::request::Request;
use crate::storage::Storage;
use crate::telemetry::metrics::Metrics;

/// Whose bucket a request takes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BucketKey {
    /// A class of endpoints, for a client's network.
    Address(&'static str, IpAddr),
    /// A class of endpoints, for a user.
    User(&'static str, Uuid),
}

/// Everything that outlives a request.
pub struct App {
    /// The settings.
    pub config: Config,
    /// The database; streamed answers outlive the request that began them.
    pub db: Arc<Database>,
    /// Signs and checks tokens.
    pub key: jwt::Key,
    /// Hashes and compares passwords.
    pub hasher: PasswordHasher,
    /// Contents of files.
    pub files: Storage,
    /// Rate limits.
    pub buckets: Buckets<BucketKey>,
    /// Wakes the background thread.
    pub bell: Bell,
    /// What is counted.
    pub metrics: Metrics,
    /// Start of the process, from which the buckets count.
    pub started: Instant,
    /// Whether the `X-Forwarded-For` of a stranger was warned about.
    pub warned_of_forwarding: AtomicBool,
}

impl App {
    /// An application on an open database.
    pub fn new(config: Config, secret: &[u8], db: Database) -> Result<App, Error> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        Ok(App {
            key: jwt::Key::new(config.jwt_algorithm, secret),
            hasher: PasswordHasher::new(config.scrypt, cores)?,
            files: Storage::open(&config.data_dir)?,
            buckets: Buckets::new(),
            bell: Bell::default(),
            metrics: Metrics::new(),
            started: Instant::now(),
            warned_of_forwarding: AtomicBool::new(false),
            config,
            db: Arc::new(db),
        })
    }
}

/// How often the background thread looks without being woken: other processes store requests too.
const PERIOD: Duration = Duration::from_secs(5);

/// Wakes the background thread when this process has stored a reset request.
#[derive(Default)]
pub struct Bell {
    waiting: Mutex<bool>,
    woken: Condvar,
}

impl Bell {
    /// There is something to do.
    pub fn ring(&self) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.woken.notify_one();
    }

    /// Returns when woken, at the latest after [`PERIOD`].
    pub fn wait(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.woken.wait_timeout_while(waiting, PERIOD, |waiting| !*waiting);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// One request on its way through the application.
pub struct RequestContext<'a> {
    /// The application.
    pub app: &'a App,
    /// What the client sent.
    pub request: Request<'a>,
    /// `X-Request-ID`.
    pub id: Uuid,
    /// The client's address, behind trusted proxies.
    pub client: IpAddr,
}

/// Seconds since 1970.
pub fn unix_time() -> Duration {
    // A clock before 1970 makes every token expired, which is the safe side.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
