//! What handlers are given: the application, and one context of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

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
    pub config: Arc<Config>,
    /// The database; streamed answers outlive the request that began them.
    pub db: Arc<Database>,
    /// Signs and checks tokens.
    pub key: Arc<jwt::Key>,
    /// Hashes and compares passwords.
    pub hasher: PasswordHasher,
    /// Contents of files.
    pub storage: Arc<Storage>,
    /// Rate limits.
    pub buckets: Buckets<BucketKey>,
    /// Wakes the background thread when this process has stored something for it to do.
    pub wake_background: SyncSender<()>,
    /// What is counted.
    pub metrics: Metrics,
    /// Start of the process, from which the buckets count.
    pub started: Instant,
    /// Whether the `X-Forwarded-For` of a stranger was warned about.
    pub warned_of_forwarding: AtomicBool,
}

impl App {
    /// An application on an open database.
    pub fn new(
        config: Arc<Config>,
        db: Arc<Database>,
        storage: Arc<Storage>,
        key: Arc<jwt::Key>,
        wake_background: SyncSender<()>,
    ) -> Result<App, Error> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        Ok(App {
            hasher: PasswordHasher::new(config.scrypt, cores)?,
            buckets: Buckets::new(),
            metrics: Metrics::new(),
            started: Instant::now(),
            warned_of_forwarding: AtomicBool::new(false),
            config,
            db,
            storage,
            key,
            wake_background,
        })
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
