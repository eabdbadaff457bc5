//! What handlers and middleware are given: the application, one request, and proof of who sent it.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use uuid::Uuid;

use crate::auth::jwt::{Claims, SigningKeys, TokenType};
use crate::auth::password_hasher::PasswordHasher;
use crate::auth::personal_token;
use crate::auth::token_bucket::{BucketDecision, TokenBuckets};
use crate::config::Config;
use crate::db::audit::{AuditOrigin, Failure};
use crate::db::sessions::SessionLookups;
use crate::db::{self, Database, FailureQueue, Readiness};
use crate::error::{Error, Forbidden, TokenProblem};
use crate::http::input::{DescribedInput, FormInput, Input};
use crate::http::multipart::Multipart;
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
    pub sessions: SessionLookups,
    pub storage: Arc<Storage>,
    pub signing_keys: Arc<SigningKeys>,
    pub hasher: PasswordHasher,
    pub buckets: TokenBuckets<BucketKey>,
    /// Failed sign-ins by SHA-256 of the name that was typed, in lower case.
    pub failed_sign_ins: TokenBuckets<Vec<u8>>,
    pub metrics: Metrics,
    /// Refused actions on their way into the audit log.
    pub failures: Arc<FailureQueue>,
    /// Wakes the background thread.
    background: SyncSender<()>,
    /// The moment from which the token buckets count time.
    pub started: Instant,
    /// Whether the warning about `X-Forwarded-For` from an untrusted peer was logged already.
    pub warned_of_forwarding: AtomicBool,
    /// The OpenAPI document as JSON. It is made when it is first asked for, because most processes are never asked.
    document: OnceLock<String>,
    /// Makes the document.
    describe: fn(&Config) -> String,
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
        signing_keys: Arc<SigningKeys>,
        metrics: Metrics,
        background: SyncSender<()>,
        describe: fn(&Config) -> String,
    ) -> Result<App, Error> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        Ok(App {
            hasher: PasswordHasher::new(config.scrypt, cores)?,
            buckets: TokenBuckets::new(Duration::from_secs(60)),
            failed_sign_ins: TokenBuckets::new(Duration::from_secs(3600)),
            metrics,
            readiness: Readiness::new(),
            sessions: SessionLookups::new(),
            started: Instant::now(),
            warned_of_forwarding: AtomicBool::new(false),
            document: OnceLock::new(),
            describe,
            config,
            db,
            storage,
            signing_keys,
            background,
            failures: Arc::new(FailureQueue::new()),
        })
    }

    /// The OpenAPI document of this service with its present settings, as JSON.
    pub fn document(&self) -> &str {
        self.document.get_or_init(|| (self.describe)(&self.config))
    }

    /// The error of a request to a path that the service does not have, or that the sender is not to know of.
    pub fn route_not_found(&self) -> Error {
        Error::RouteNotFound { has_docs: self.config.docs }
    }

    /// Makes the background thread look for work now. If the channel is full, it is about to do so anyway.
    pub fn wake_background(&self) {
        let _ = self.background.try_send(());
    }

    /// The claims of a token of the given type. Fails with [`Error::InvalidToken`].
    pub fn verify_token(&self, token: &str, token_type: TokenType) -> Result<Claims, Error> {
        let claims = self.signing_keys.verify(token, token_type, unix_time().as_secs());
        claims.map_err(Error::InvalidToken)
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
    /// The rate limit that the headers of the response tell the client about: the last one that the request counted
    /// against. `None` if it has not counted yet.
    pub limit: Option<BucketDecision>,
    /// What the OpenAPI document says that the endpoint reads.
    pub documented: &'static [&'static dyn DescribedInput],
}

impl<'a> RequestContext<'a> {
    /// Reads parameters from the query or the body. Fails with [`Error::Invalid`] if any of them breaks a rule. In
    /// debug builds it panics if the endpoint's operation in the OpenAPI document does not name `input`, so that a
    /// handler which reads something undocumented fails its first test.
    pub fn read<T>(&mut self, input: &'static Input<T>) -> Result<T, Error> {
        self.assert_documented(input);
        input.read(&mut self.request)
    }

    /// Begins to read a multipart form of at most `limit` bytes, see [`RequestContext::read`].
    pub fn read_form(
        &mut self,
        input: &'static FormInput,
        limit: u64,
    ) -> Result<Multipart<'_, 'a>, Error> {
        self.assert_documented(input);
        self.request.multipart(limit)
    }

    fn assert_documented(&self, input: &'static dyn DescribedInput) {
        debug_assert!(
            self.documented.iter().any(|documented| std::ptr::addr_eq(*documented, input)),
            "{} {} reads an input that its operation does not name",
            self.request.method(),
            self.request.path(),
        );
    }
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
    credential: Credential,
}

/// What a request proved its user with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    AccessToken {
        /// Tokens that other software signed have none.
        session: Option<Uuid>,
        /// The version of the user's credentials when the request was authenticated.
        credentials_version: i32,
    },
    PersonalToken {
        /// Whether it is accepted only for `GET` and `HEAD`.
        read_only: bool,
    },
    /// Authentication is switched off: the user is the development admin.
    Nothing,
}

impl CurrentUser {
    /// The user of an access token with these claims, looked up together with its session in one round trip, and in two
    /// where the token is refused. The role is the one in the token. That is safe, because the sessions of an account
    /// end when its role changes.
    pub(super) fn from_claims(app: &App, claims: &Claims) -> Result<CurrentUser, Error> {
        let Claims { user, session, issued_at, role, .. } = *claims;
        let max_age = app.config.session_max_age;
        let (account, credentials_version) =
            app.sessions.authenticate(&app.db, user, session, issued_at, max_age)?;
        let credential = Credential::AccessToken { session, credentials_version };
        Ok(CurrentUser { account: User { role, ..account }, credential })
    }

    /// The user of a personal access token, looked up in one round trip. The role is the one that the account has now.
    pub(super) fn from_personal_token(app: &App, token: &str) -> Result<CurrentUser, Error> {
        let hash = personal_token::hash(token);
        let hash = hash.ok_or(Error::InvalidToken(TokenProblem::NotOurs))?;
        let (account, read_only) = db::personal_tokens::authenticate(&app.db, &hash)?;
        Ok(CurrentUser { account, credential: Credential::PersonalToken { read_only } })
    }

    /// The user of every request while authentication is switched off.
    pub(super) fn development_admin(db: &Database) -> Result<CurrentUser, Error> {
        let account = db::users::development_admin(db)?;
        Ok(CurrentUser { account, credential: Credential::Nothing })
    }

    pub fn id(&self) -> Uuid {
        self.account.id
    }

    pub fn account(&self) -> &User {
        &self.account
    }

    pub fn credential(&self) -> Credential {
        self.credential
    }

    /// The session that the request belongs to, if any.
    pub fn session(&self) -> Option<Uuid> {
        match self.credential {
            Credential::AccessToken { session, .. } => session,
            Credential::PersonalToken { .. } | Credential::Nothing => None,
        }
    }

    /// The version of the user's credentials when the request was authenticated, for changes that must not happen
    /// once that version is another one. Fails with [`Error::NotPermitted`] if the request has no access token.
    pub fn credentials_version(&self) -> Result<i32, Error> {
        match self.credential {
            Credential::AccessToken { credentials_version, .. } => Ok(credentials_version),
            Credential::PersonalToken { .. } => Err(Error::NotPermitted(Forbidden::PersonalToken)),
            Credential::Nothing => Err(Error::NotPermitted(Forbidden::DevelopmentAdmin)),
        }
    }

    /// Fails with [`Error::NotPermitted`] for the development admin, whose account and password cannot be changed.
    pub fn require_changeable(&self) -> Result<(), Error> {
        match self.credential {
            Credential::Nothing => Err(Error::NotPermitted(Forbidden::DevelopmentAdmin)),
            Credential::AccessToken { .. } | Credential::PersonalToken { .. } => Ok(()),
        }
    }

    /// Proof that this user is an administrator. Fails with [`Error::AdminRequired`].
    pub fn require_admin(&self) -> Result<Admin<'_>, Error> {
        match self.account.role {
            Role::Admin => Ok(Admin(self)),
            Role::User => Err(Error::AdminRequired),
        }
    }
}

/// Proof that a request comes from an administrator. A handler that takes one cannot be reached by anyone else.
pub struct Admin<'a>(&'a CurrentUser);

impl Admin<'_> {
    pub fn user(&self) -> &CurrentUser {
        self.0
    }

    /// Fails with [`Error::NotPermitted`] if the account is the administrator's own and the request has a personal
    /// access token: whoever steals one must not be able to take over the account by a change of its password.
    pub fn require_may_change(&self, account: Uuid) -> Result<(), Error> {
        match self.0.credential {
            Credential::PersonalToken { .. } if account == self.0.id() => {
                Err(Error::NotPermitted(Forbidden::PersonalToken))
            }
            _ => Ok(()),
        }
    }
}
