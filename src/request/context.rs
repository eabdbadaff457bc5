//! One request, as handlers are given it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use uuid::Uuid;

use super::app::App;
use super::permits::ExportPermits;
use crate::auth::hash_queue::HashRequest;
use crate::auth::token_bucket::{BucketDecision, Taken};
use crate::body_memory::{Owner, SMALL_BODY};
use crate::db::Database;
use crate::error::{Error, FieldError, FieldLocation};
use crate::http::client_address::{is_trusted_proxy, network};
use crate::http::request::Request;
use crate::model::audit::{Failure, RefusedAction};
use crate::model::rules;
use crate::model::timestamp::Timestamp;
use crate::telemetry::metrics::EndpointName;

/// One request and what it needs on its way through the pipeline.
pub struct RequestContext<'a> {
    pub app: &'a Arc<App>,
    /// The database, which all queries of the request together may wait for as long as one may.
    pub db: Database,
    pub request: Request<'a>,
    /// The value of `X-Request-ID`.
    pub id: Uuid,
    /// The client's address. Behind trusted proxies it comes from `X-Forwarded-For`.
    pub client: IpAddr,
    /// The endpoint, once it is found: the metrics name it also if a later check fails.
    pub endpoint: Option<EndpointName>,
    /// Whether browsers open the path themselves, and no script does, whatever the method.
    pub is_for_browsers: bool,
    /// Whether the endpoint is for administrators only, if need be by the settings.
    pub needs_admin: bool,
    /// The parameters of the path, in its order.
    pub path_params: Vec<PathParam>,
    /// The account that the request is known to come from. Authentication sets it.
    pub authenticated: Option<Uuid>,
    /// The account that the access log names: the one above, or the one that the client tries to log in to.
    pub account_in_log: Option<Uuid>,
    /// The action that a handler has begun and whose refusal is an event of the audit log, and the account that it is
    /// about.
    pub audited: Option<(RefusedAction, Option<Uuid>)>,
    /// The token bucket that the headers of the response tell the client about: the emptiest of those of its class, or
    /// the one that refused the request. `None` if it has not counted yet.
    pub limit: Option<BucketDecision>,
    /// The tokens that the request has taken in the class of its endpoint.
    pub taken: Option<Taken<'a>>,
}

/// A parameter of the path of a request, such as an id, as the client sent it.
pub struct PathParam {
    /// The name that the path's template has for it.
    pub name: &'static str,
    pub text: String,
}

impl RequestContext<'_> {
    /// Notes that the request comes from this account, and so its changes do. Through a trusted proxy its bodies count
    /// for that from here on.
    pub fn comes_from(&mut self, account: Uuid) {
        if let Some(room) = &self.request.body.room
            && is_trusted_proxy(self.request.peer(), &self.app.config.trusted_proxies)
        {
            room.count_for(Owner::User(account));
        }
        self.db.changes_are_of(account);
        self.db.actor = Some(account);
        self.authenticated = Some(account);
        self.account_in_log = Some(account);
    }

    /// The database for a query whose rows and the response that is made of them may take `most` bytes of memory. A
    /// query takes that room just before it runs.
    pub fn database_with_room(&self, most: usize) -> Database {
        let room = self.request.body.room.clone().filter(|_| most > SMALL_BODY);
        self.db.with_room(room.map(|room| (room, most)))
    }

    /// Whether the path has parameters and all of them are ids, once the endpoint is found.
    pub fn has_ids(&self) -> bool {
        let mut params = self.path_params.iter().map(|param| rules::uuid(&param.text));
        !self.path_params.is_empty() && params.all(|id| id.is_ok())
    }

    /// The only id in the path. Fails with [`Error::Invalid`] if it is not a UUID.
    pub fn path_id(&self) -> Result<Uuid, Error> {
        self.path_ids().map(|[id]| id)
    }

    /// All ids in the path. Fails with [`Error::Invalid`] if any of them is not a UUID.
    pub fn path_ids<const N: usize>(&self) -> Result<[Uuid; N], Error> {
        let mut ids = Vec::new();
        let mut errors = Vec::new();
        for id in &self.path_params {
            let location = FieldLocation::Path;
            match rules::uuid(&id.text) {
                Ok(uuid) => ids.push(uuid),
                Err(problem) => {
                    errors.push(FieldError { location, field: Some(id.name), problem });
                }
            }
        }
        if !errors.is_empty() {
            return Err(Error::Invalid(errors));
        }
        ids.try_into().map_err(|_| Error::Internal(format!("not {N} ids in the path")))
    }

    /// Whether the peer is on this host and no trusted proxy. It may be a proxy that the settings do not name, whose
    /// clients all have its address, so limits of an address do not hold for it.
    pub fn is_local_without_proxy(&self) -> bool {
        let peer = self.request.peer();
        peer.to_canonical().is_loopback()
            && !is_trusted_proxy(peer, &self.app.config.trusted_proxies)
    }

    /// The client's network, unless [`RequestContext::is_local_without_proxy`].
    pub fn limited_network(&self) -> Option<IpAddr> {
        (!self.is_local_without_proxy()).then(|| network(self.client))
    }

    /// The request for a permit of the hash queue.
    pub fn hash_request(&self) -> HashRequest {
        let is_signed_in = self.authenticated.is_some();
        HashRequest { is_signed_in, network: self.limited_network(), imported: 0 }
    }

    /// Waits for the permits to run an export, see [`super::permits::Permits::export`].
    pub fn export_permits(&self, deadline: Instant) -> Result<ExportPermits, Error> {
        let of_network = Owner::Network(network(self.client));
        let owner = self.authenticated.map_or(of_network, Owner::User);
        self.app.permits.export(owner, self.limited_network(), deadline)
    }

    /// The error of a sign-in with a wrong name or password.
    pub fn bad_credentials(&self) -> Error {
        Error::BadCredentials { may_wait: self.app.config.confirms_email() }
    }

    /// Says that from here on a refusal of the request is an event of the audit log: of this action, on the account
    /// `subject`, if that is known. The pipeline records it. A success is recorded by the statement that makes the
    /// change, in its transaction.
    pub fn audits(&mut self, action: RefusedAction, subject: Option<Uuid>) {
        self.audited = Some((action, subject));
    }

    /// Records in the audit log, within a second, that an action was refused with this error. Only some errors are a
    /// matter of security: a name that is taken, for instance, is none. The event reveals nothing that the client
    /// typed.
    pub fn record_refusal(&self, action: RefusedAction, subject: Option<Uuid>, error: &Error) {
        let because = |reason: &str| (action, json!({ "reason": reason }));
        let is_by_provider = action == RefusedAction::ProviderLogin;
        let (action, mut details) = match error {
            Error::AdminRequired | Error::AdminSecondFactorRequired => {
                (action, json!({ "endpoint": self.endpoint.map(|name| name.to_string()) }))
            }
            Error::BadCredentials { .. }
            | Error::WrongCurrentPassword
            | Error::InvalidProviderCode
            | Error::StaleProviderCode
            | Error::InvalidResetToken
            | Error::InvalidConfirmationToken => (action, action.details()),
            Error::InactiveAccount => because("inactive_account"),
            Error::LastAdmin => because("last_admin"),
            Error::InvalidCode { .. } => because("second_factor_invalid"),
            Error::SecondFactorRequired { is_password_refused: true } => {
                because("too_many_wrong_codes")
            }
            Error::SecondFactorRequired { is_password_refused: false } => {
                let action = RefusedAction::LoginWithoutCode;
                (action, action.details())
            }
            _ => return,
        };
        if is_by_provider {
            details["by"] = "oidc".into();
        }
        let is_event = self.app.failures.add(Failure {
            at: Timestamp::now(),
            id: Uuid::new_v4(),
            action,
            actor_id: self.authenticated,
            subject_id: subject,
            address: Some(self.client),
            request_id: Some(self.id),
            details,
        });
        if action != RefusedAction::LoginWithoutCode {
            self.app.metrics.count_audit_failure(is_event);
        }
    }
}
