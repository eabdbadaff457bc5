//! The application: all that lives longer than a request.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::permits::Permits;
use super::sessions::SessionLookups;
use crate::auth::failure_channel::FailureChannel;
use crate::auth::jwt::{Claims, SigningKeys, TokenType};
use crate::auth::password::PasswordHasher;
use crate::auth::refused_passwords::RefusedPasswords;
use crate::auth::sealing::SealingKeys;
use crate::auth::token_bucket::Buckets;
use crate::config::Config;
use crate::db::Database;
use crate::db::batches::Batches;
use crate::db::state::{DatabaseState, state};
use crate::db::stats::{QuotaOf, StoredBytes};
use crate::docs::pages::Pages;
use crate::error::Error;
use crate::model::file::{File, FileQuotas, NewFile};
use crate::model::timestamp::unix_time;
#[cfg(feature = "oidc")]
use crate::openid::Provider;
use crate::probe::Probe;
use crate::storage::Storage;
use crate::telemetry::metrics::Metrics;

/// How long an upload waits for those that are being recorded, before it is recorded beside them.
const MAX_QUEUED: Duration = Duration::from_millis(20);

/// Everything that lives longer than a request and is shared by all of them.
pub struct App {
    pub config: Arc<Config>,
    pub db: Arc<Database>,
    pub sessions: SessionLookups,
    /// Uploads that wait to be recorded.
    pub uploads: Batches<Arc<NewFile>, Option<File>>,
    pub storage: Arc<Storage>,
    /// What counts towards the quota of the service.
    pub stored_bytes: StoredBytes,
    /// What counts towards the share of young accounts.
    pub young_bytes: StoredBytes,
    pub signing_keys: Arc<SigningKeys>,
    #[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "nothing is sealed"))]
    pub sealing_keys: Arc<SealingKeys>,
    pub refused_passwords: RefusedPasswords,
    pub hasher: PasswordHasher,
    #[cfg(feature = "oidc")]
    pub provider: Option<Provider>,
    pub permits: Permits,
    #[cfg(feature = "extras")]
    pub extras: super::extras::Extras,
    /// The token buckets of all rate limits.
    pub buckets: Buckets,
    pub metrics: Metrics,
    /// Refused actions on their way into the audit log.
    pub failures: Arc<FailureChannel>,
    /// What the database could be used for lately.
    readiness: Probe<DatabaseState>,
    /// Wakes the background thread.
    background: SyncSender<()>,
    /// The moment from which the token buckets count time.
    pub started: Instant,
    /// Whether the warning about `X-Forwarded-For` from an untrusted peer was logged already.
    pub warned_of_forwarding: AtomicBool,
    /// They are made when one is first asked for, because most processes are never asked.
    pub pages: OnceLock<Pages>,
}

impl App {
    /// Fails only if the operating system gives no random bytes.
    pub fn new(
        config: Arc<Config>,
        db: Arc<Database>,
        storage: Arc<Storage>,
        (signing_keys, sealing_keys): (Arc<SigningKeys>, Arc<SealingKeys>),
        refused_passwords: RefusedPasswords,
        metrics: Metrics,
        background: SyncSender<()>,
    ) -> Result<App, Error> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        #[cfg(feature = "oidc")]
        let provider = config.provider.as_ref().map(Provider::new).transpose();
        Ok(App {
            #[cfg(feature = "oidc")]
            provider: provider.map_err(Error::Internal)?,
            hasher: PasswordHasher::new(config.scrypt, config.hashes_at_once(cores)),
            // One connection is left for everything else, if there are more.
            permits: Permits::new(cores.min(db.pool.max_open() - 1).max(1)),
            #[cfg(feature = "extras")]
            extras: super::extras::Extras::new(),
            buckets: Buckets::new(),
            metrics,
            // The service has written to the database before it listens. The database's own timeout ends each attempt.
            readiness: Probe::new(
                DatabaseState::Writable,
                DatabaseState::Lost,
                Duration::from_secs(1),
                Duration::MAX,
            ),
            sessions: SessionLookups::new(cores),
            // The files of each statement are committed at once, so the fewer statements there are, the fewer commits.
            uploads: Batches::new(1, MAX_QUEUED),
            stored_bytes: StoredBytes::new(config.storage_quota, QuotaOf::Service),
            young_bytes: StoredBytes::new(config.young_storage_quota(), QuotaOf::Young),
            started: Instant::now(),
            warned_of_forwarding: AtomicBool::new(false),
            pages: OnceLock::new(),
            config,
            db,
            storage,
            signing_keys,
            sealing_keys,
            refused_passwords,
            background,
            failures: Arc::new(FailureChannel::new()),
        })
    }

    /// The quotas of files.
    pub fn file_quotas(&self) -> FileQuotas {
        FileQuotas::of(&self.config)
    }

    /// The error of a request to a path that the service does not have, or that the sender is not to know of.
    pub fn route_not_found(&self) -> Error {
        Error::RouteNotFound { has_docs: self.config.docs }
    }

    /// What the database can be used for. However many probes of load balancers arrive, it is asked once a second.
    pub fn database_state(&self) -> DatabaseState {
        let db = self.db.clone();
        self.readiness.check(move || state(&db))
    }

    /// Makes the background thread look for work at the next full second. If the channel is full, it is about to do so
    /// anyway.
    pub fn wake_background(&self) {
        let _ = self.background.try_send(());
    }

    /// The claims of a token of the given type. Fails with [`Error::InvalidToken`].
    pub fn verify_token(&self, token: &str, token_type: TokenType) -> Result<Claims, Error> {
        let claims = self.signing_keys.verify(token, token_type, unix_time().as_secs());
        claims.map_err(Error::InvalidToken)
    }
}
