//! What handlers and middleware are given: the application, one request, and proof of who sent it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use serde_json::Value;
use uuid::Uuid;

use crate::auth::jwt::{Claims, SigningKey, TokenType};
use crate::auth::password_hasher::PasswordHasher;
use crate::auth::token_bucket::TokenBuckets;
use crate::config::Config;
use crate::db::audit::{AuditOrigin, Failure};
use crate::db::{self, Database, FailureQueue, Readiness};
use crate::error::Error;
use crate::http::request::Request;
use crate::model::audit::RefusedAction;
use crate::model::timestamp::{Timestamp, unix_time};
use crate::model::user::{Role, User};
use crate::storage::Storage;
use crate::telemetry::metrics::Metrics;

/// Everything that lives longer than a request and is shared by all of them.
pub struct App {
    pub config: Arc<Config>,
    pub db: Arc<Database>,
    pub readiness: Readiness,
    pub storage: Arc<Storage>,
    pub signing_key: Arc<SigningKey>,
    pub hasher: PasswordHasher,
    pub buckets: TokenBuckets<BucketKey>,
    pub metrics: Metrics,
    /// Refused actions on their way into the audit log.
    failures: Arc<FailureQueue>,
    /// Wakes the background thread.
    background: SyncSender<()>,
    /// The moment from which the token buckets count time.
    pub started: Instant,
    /// Whether the warning about `X-Forwarded-For` from an untrusted peer was logged already.
    pub warned_of_forwarding: AtomicBool,
}

/// The key of a token bucket: the name of a rate limit, and the client or user whose requests count against it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BucketKey {
    /// A network, see `client_address::network`.
    Address(&'static str, IpAddr),
    /// An IPv6 /48, see `client_address::site`.
    Site(&'static str, IpAddr),
    User(&'static str, Uuid),
    Session(&'static str, Uuid),
}

impl App {
    /// Fails only if the operating system gives no random bytes.
    pub fn new(
        config: Arc<Config>,
        db: Arc<Database>,
        storage: Arc<Storage>,
        signing_key: Arc<SigningKey>,
        background: SyncSender<()>,
        failures: Arc<FailureQueue>,
    ) -> Result<App, Error> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        Ok(App {
            hasher: PasswordHasher::new(config.scrypt, cores)?,
            buckets: TokenBuckets::new(),
            metrics: Metrics::new(),
            readiness: Readiness::new(),
            started: Instant::now(),
            warned_of_forwarding: AtomicBool::new(false),
            config,
            db,
            storage,
            signing_key,
            background,
            failures,
        })
    }

    /// Makes the background thread look for work now. If the channel is full, it is about to do so anyway.
    pub fn wake_background(&self) {
        let _ = self.background.try_send(());
    }

    /// The claims of a token of the given type. Fails with [`Error::InvalidToken`] if it is not valid now.
    pub fn verify_token(&self, token: &str, token_type: TokenType) -> Result<Claims, Error> {
        let claims = self.signing_key.verify(token, token_type, unix_time().as_secs());
        claims.ok_or(Error::InvalidToken)
    }
}

/// One request and what it needs on its way through the pipeline.
pub struct RequestContext<'a> {
    pub app: &'a App,
    pub request: Request<'a>,
    /// The value of `X-Request-ID`.
    pub id: Uuid,
    /// The client's address. Behind trusted proxies it comes from `X-Forwarded-For`.
    pub client: IpAddr,
    /// The account that the request comes from or tries to sign in to, for the log. `None` until it is known.
    pub account: Option<Uuid>,
}

impl RequestContext<'_> {
    /// Where a change by this request comes from, for the audit log.
    pub fn origin(&self) -> AuditOrigin {
        AuditOrigin { actor: self.account, address: Some(self.client), request_id: Some(self.id) }
    }

    /// Records in the audit log that an action was refused, within a second. `subject` is the account that the action
    /// was about, and `details` a JSON object, neither of which may reveal what the client typed.
    pub fn record_failure(
        &self,
        action: RefusedAction,
        actor: Option<Uuid>,
        subject: Option<Uuid>,
        details: Value,
    ) {
        let is_event = self.app.failures.add(Failure {
            at: Timestamp::now(),
            id: Uuid::new_v4(),
            action: action.name(),
            actor_id: actor,
            subject_id: subject,
            address: Some(self.client),
            request_id: Some(self.id),
            details,
        });
        self.app.metrics.count_audit_failure(is_event);
    }
}

/// What is in a refresh token whose signature and expiry are valid. Only the database knows whether the token may still
/// be used.
pub struct RefreshToken {
    pub user: Uuid,
    pub session: Uuid,
    /// The id of the token itself.
    pub id: Uuid,
}

/// Proof that a request comes from a signed-in user. Its fields are private, and only the `authenticate` middleware
/// uses its constructors.
pub struct CurrentUser {
    account: User,
    session: Option<Uuid>,
    is_development_admin: bool,
}

impl CurrentUser {
    /// The user of an access token with these claims, looked up together with its session in one round trip. The role
    /// is the one in the token. That is safe, because the sessions of an account end when its role changes.
    pub(super) fn from_claims(db: &Database, claims: &Claims) -> Result<CurrentUser, Error> {
        let account =
            db::sessions::authenticate(db, claims.user, claims.session, claims.issued_at)?;
        let account = User { role: claims.role, ..account };
        Ok(CurrentUser { account, session: claims.session, is_development_admin: false })
    }

    /// The user of every request while authentication is switched off.
    pub(super) fn development_admin(db: &Database) -> Result<CurrentUser, Error> {
        let account = db::users::development_admin(db)?;
        Ok(CurrentUser { account, session: None, is_development_admin: true })
    }

    pub fn id(&self) -> Uuid {
        self.account.id
    }

    pub fn account(&self) -> &User {
        &self.account
    }

    /// The session of the token. Tokens that other software signed have none.
    pub fn session(&self) -> Option<Uuid> {
        self.session
    }

    /// Fails with [`Error::NotPermitted`] for the development admin, whose account and password cannot be changed.
    pub fn require_changeable(&self) -> Result<(), Error> {
        if self.is_development_admin { Err(Error::NotPermitted) } else { Ok(()) }
    }

    /// Proof that this user is an administrator. Fails with [`Error::AdminRequired`].
    pub fn require_admin(&self) -> Result<Admin, Error> {
        match self.account.role {
            Role::Admin => Ok(Admin(())),
            Role::User => Err(Error::AdminRequired),
        }
    }
}

/// Proof that a request comes from an administrator. A handler that takes one cannot be reached by anyone else.
pub struct Admin(());
