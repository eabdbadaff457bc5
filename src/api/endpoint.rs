//! What a line of the router's table consists of: a path, its methods, and for each of them the handler with the rules
//! of access, the rate limit and the description.

use uuid::Uuid;

use super::context::{Admin, Credential, CurrentUser, RefreshToken, RequestContext};
use super::middleware::rate_limit::Limit;
use super::openapi::{Access, DocumentedEndpoint, Operation};
use crate::config::Config;
use crate::error::{Error, FieldError, FieldLocation, Forbidden};
use crate::http::response::Response;
use crate::model::rules;
use crate::telemetry::metrics::EndpointName;

pub type Outcome = Result<Response, Error>;

/// The function that answers requests to an endpoint. Its variant says who may use the endpoint. A handler for users or
/// administrators takes a proof that only authentication can make, so mounting it for others does not compile.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Anyone.
    Public(fn(&mut RequestContext) -> Outcome),
    /// The bearer of a refresh token. The token is verified before the rate limit is applied, because requests count
    /// against the limit of the token's session.
    Refresh(fn(&mut RequestContext, RefreshToken) -> Outcome),
    /// A signed-in user.
    User(fn(&mut RequestContext, &CurrentUser) -> Outcome),
    /// A signed-in user; the handler is given the id in the path.
    UserAt(fn(&mut RequestContext, &CurrentUser, Uuid) -> Outcome),
    /// An administrator.
    Admin(fn(&mut RequestContext, &Admin) -> Outcome),
    /// An administrator; the handler is given the id in the path.
    AdminAt(fn(&mut RequestContext, &Admin, Uuid) -> Outcome),
    /// Whoever may export according to the settings.
    Export(fn(&mut RequestContext) -> Outcome),
}

/// One method of a path.
pub struct Endpoint {
    method: &'static str,
    pub handler: Handler,
    /// The rate limit. If `None`, requests are not limited and need no API key either.
    pub limit: Option<Limit>,
    /// What the OpenAPI document says about it.
    pub operation: &'static Operation,
    /// Whether a personal access token is accepted in place of an access token.
    accepts_personal_tokens: bool,
}

/// One path, matched by a request.
pub struct Route {
    /// The beginning of the path, such as `/api/v1`.
    prefix: &'static str,
    /// The rest of the path, with `{name}` in place of the id.
    template: &'static str,
    endpoints: &'static [Endpoint],
    /// The text that stands in place of the id in the request. Empty if the path has no id.
    id: String,
    /// Whether the settings enable this path.
    pub is_enabled: fn(&Config) -> bool,
}

/// A route that is always enabled. `endpoints` are listed in the order in which `Allow` lists them.
pub fn route(template: &'static str, endpoints: &'static [Endpoint]) -> Route {
    Route { prefix: "", template, endpoints, id: String::new(), is_enabled: |_| true }
}

impl Route {
    /// The same path below `prefix`.
    pub fn below(self, prefix: &'static str) -> Route {
        Route { prefix, ..self }
    }

    /// The route of a request. `segments` are those of the path below the prefix, which has matched.
    pub fn matched(self, segments: &[&str]) -> Route {
        let index = self.template.split('/').skip(1).position(|part| part.starts_with('{'));
        let id = index.and_then(|index| segments.get(index)).copied().unwrap_or_default();
        Route { id: id.to_owned(), ..self }
    }

    pub fn enabled_if(self, is_enabled: fn(&Config) -> bool) -> Route {
        Route { is_enabled, ..self }
    }

    /// The endpoint for a method. `HEAD` is answered by the endpoint for `GET`.
    pub fn endpoint(&self, method: &str) -> Option<&'static Endpoint> {
        let method = if method == "HEAD" { "GET" } else { method };
        self.endpoints.iter().find(|endpoint| endpoint.method == method)
    }

    /// The methods of all endpoints, as the value of `Allow`.
    pub fn methods(&self) -> String {
        let names = self.endpoints.iter().flat_map(|endpoint| match endpoint.method {
            "GET" => ["GET", "HEAD"].as_slice(),
            _ => std::slice::from_ref(&endpoint.method),
        });
        names.copied().collect::<Vec<_>>().join(", ")
    }

    /// The name that one of the route's endpoints has in the metrics.
    pub fn name(&self, endpoint: &Endpoint) -> EndpointName {
        EndpointName { method: endpoint.method, prefix: self.prefix, template: self.template }
    }

    /// The endpoints for the OpenAPI document.
    pub fn documented(self) -> impl Iterator<Item = DocumentedEndpoint> {
        self.endpoints.iter().map(move |endpoint| DocumentedEndpoint {
            method: endpoint.method,
            prefix: self.prefix,
            template: self.template,
            access: endpoint.handler.access(),
            limit: endpoint.limit,
            accepts_personal_tokens: endpoint.accepts_personal_tokens,
            operation: endpoint.operation,
        })
    }

    /// Parses the id in the path. If it is not a UUID, the error carries the name that the template has for it.
    pub fn parse_id(&self) -> Result<Uuid, Error> {
        let name = self.template.split(['{', '}']).nth(1);
        let error = |problem| FieldError { location: FieldLocation::Path, field: name, problem };
        rules::UUID.parse(&self.id).map_err(|problem| Error::Invalid(vec![error(problem)]))
    }
}

/// An endpoint with the rate limit that is usual for its kind of handler.
const fn endpoint(
    method: &'static str,
    handler: Handler,
    operation: &'static Operation,
) -> Endpoint {
    let limit = match handler {
        Handler::Public(_) | Handler::Refresh(_) => None,
        Handler::User(_) | Handler::UserAt(_) | Handler::Export(_) => Some(Limit::General),
        Handler::Admin(_) | Handler::AdminAt(_) => Some(Limit::Admin),
    };
    Endpoint { method, handler, limit, operation, accepts_personal_tokens: true }
}

impl Handler {
    fn access(&self) -> Access {
        match self {
            Handler::Public(_) => Access::Anyone,
            Handler::Refresh(_) => Access::RefreshToken,
            Handler::User(_) | Handler::UserAt(_) => Access::User,
            Handler::Admin(_) | Handler::AdminAt(_) => Access::Admin,
            Handler::Export(_) => Access::Export,
        }
    }
}

impl Endpoint {
    /// Refuses personal access tokens, because the endpoint is about the account itself, its sessions or its tokens.
    /// Whoever steals a token can then neither take over the account nor make another token that outlives this one.
    pub const fn no_personal_tokens(self) -> Endpoint {
        Endpoint { accepts_personal_tokens: false, ..self }
    }

    /// Fails with [`Error::NotPermitted`] if a request with this credential may not use the endpoint. A read-only token
    /// is accepted for `GET`, and so for `HEAD`, which has the same endpoint.
    pub fn admit(&self, credential: Credential) -> Result<(), Error> {
        match credential {
            Credential::PersonalToken { .. } if !self.accepts_personal_tokens => {
                Err(Error::NotPermitted(Forbidden::PersonalToken))
            }
            Credential::PersonalToken { read_only: true } if self.method != "GET" => {
                Err(Error::NotPermitted(Forbidden::ReadOnlyToken))
            }
            _ => Ok(()),
        }
    }

    pub const fn limit(self, limit: Limit) -> Endpoint {
        Endpoint { limit: Some(limit), ..self }
    }
}

pub const fn get(handler: Handler, operation: &'static Operation) -> Endpoint {
    endpoint("GET", handler, operation)
}

pub const fn post(handler: Handler, operation: &'static Operation) -> Endpoint {
    endpoint("POST", handler, operation)
}

pub const fn put(handler: Handler, operation: &'static Operation) -> Endpoint {
    endpoint("PUT", handler, operation)
}

pub const fn delete(handler: Handler, operation: &'static Operation) -> Endpoint {
    endpoint("DELETE", handler, operation)
}

pub const fn public(handler: fn(&mut RequestContext) -> Outcome) -> Handler {
    Handler::Public(handler)
}

pub const fn user(handler: fn(&mut RequestContext, &CurrentUser) -> Outcome) -> Handler {
    Handler::User(handler)
}

pub const fn user_at(handler: fn(&mut RequestContext, &CurrentUser, Uuid) -> Outcome) -> Handler {
    Handler::UserAt(handler)
}

pub const fn admin(handler: fn(&mut RequestContext, &Admin) -> Outcome) -> Handler {
    Handler::Admin(handler)
}

pub const fn admin_at(handler: fn(&mut RequestContext, &Admin, Uuid) -> Outcome) -> Handler {
    Handler::AdminAt(handler)
}

pub const fn export(handler: fn(&mut RequestContext) -> Outcome) -> Handler {
    Handler::Export(handler)
}
