//! One entry of the router's table: the path, the handler and who may call it, the rate limit, and the feature.

use super::context::{PathParam, RequestContext};
use super::identity::{
    Admin, Credential, CurrentUser, Exporter, RefreshToken, SignedIn, SignedInAdmin,
};
use super::limits::Limit;
use crate::config::{Config, MetricsAccess, Smtp};
use crate::error::{Error, Forbidden};
use crate::http::response::Response;
use crate::model::user::TokenScope;
use crate::telemetry::metrics::EndpointName;

/// The function that answers requests to an endpoint. Its variant says who may enter. A handler for users or
/// administrators takes a proof that only authentication can make, so it cannot be reached by others.
#[derive(Clone, Copy)]
pub enum Handler {
    Anyone(fn(&mut RequestContext) -> Result<Response, Error>),
    /// The bearer of a refresh token.
    Refresh(fn(&mut RequestContext, RefreshToken) -> Result<Response, Error>),
    /// A signed-in user, and not by a personal access token.
    User(fn(&mut RequestContext, &CurrentUser) -> Result<Response, Error>),
    /// A signed-in user, also by a personal access token.
    SignedIn(fn(&mut RequestContext, &SignedIn) -> Result<Response, Error>),
    /// An administrator, and not by a personal access token.
    #[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "only for extras"))]
    Admin(fn(&mut RequestContext, &Admin) -> Result<Response, Error>),
    /// An administrator, also by a personal access token.
    SignedInAdmin(fn(&mut RequestContext, &SignedInAdmin) -> Result<Response, Error>),
    /// Whoever may export by the settings, without a user if anyone may.
    Export(fn(&mut RequestContext, Exporter) -> Result<Response, Error>),
}

/// A part of the service that the settings can switch off.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "some are extras"))]
pub enum Feature {
    /// All that cannot be switched off.
    Core,
    Registration,
    PasswordResets,
    EmailConfirmation,
    Provider,
    PublicList,
    TestEndpoints,
    Docs,
    Console,
    /// The redirection to one of the last two.
    Start,
    Metrics,
}

impl Feature {
    /// Whether the feature exists for a client. `is_local` says whether that is on this host.
    pub fn is_on(self, config: &Config, is_local: bool) -> bool {
        match self {
            Feature::Core => true,
            Feature::Registration => config.registers(),
            Feature::PasswordResets => !matches!(config.smtp, Smtp::Off),
            Feature::EmailConfirmation => config.confirms_email(),
            Feature::Provider => config.provider.is_some(),
            Feature::PublicList => config.public_list,
            Feature::TestEndpoints => config.test_endpoints_enabled,
            Feature::Docs => config.docs,
            Feature::Console => config.console,
            Feature::Start => config.docs || config.console,
            Feature::Metrics => match config.metrics {
                MetricsAccess::Off => false,
                MetricsAccess::Loopback => is_local,
                MetricsAccess::Any => true,
            },
        }
    }

    /// The error of a request for it, whatever the method, if it is not on. Metrics are not for clients, so their path
    /// then is like an unknown one.
    pub fn refusal(self, config: &Config) -> Error {
        match self {
            Feature::Metrics => Error::RouteNotFound { has_docs: config.docs },
            _ => Error::FeatureOff,
        }
    }
}

/// One method of one path.
pub struct Endpoint {
    pub name: EndpointName,
    pub handler: Handler,
    /// `None` for an endpoint that is not limited.
    pub limit: Option<Limit>,
    /// Whether it needs the API key if the settings ask for one.
    pub needs_api_key: bool,
    pub feature: Feature,
    /// The parameters in the path of the request, in its order.
    pub path_params: Vec<PathParam>,
}

/// An endpoint with the rate limit that is usual for its kind of handler. `template` is its path, with `{name}` in
/// place of a parameter. It is rate-limited, and needs the API key if the settings ask for one, unless its line in the
/// router says [`Endpoint::unlimited`] or [`Endpoint::without_key`]. Neither implies the other.
pub fn at(template: &'static str, handler: Handler) -> Endpoint {
    let limit = match handler {
        Handler::Admin(_) | Handler::SignedInAdmin(_) => Limit::Admin,
        _ => Limit::General,
    };
    let name = EndpointName { method: "", prefix: "", template };
    Endpoint {
        name,
        handler,
        limit: Some(limit),
        needs_api_key: true,
        feature: Feature::Core,
        path_params: Vec::new(),
    }
}

/// Whether a segment after `/users` may be the id of a user. It may not if it begins another path.
pub fn is_user_id(segment: &str) -> bool {
    let literals = ["me", "change-password", "export", "exports", "test-only"];
    !literals.contains(&segment) && !segment.starts_with("export-")
}

/// Whether a segment after `/uploads` may be the id of a file. It may not if it begins another path.
pub fn is_file_id(segment: &str) -> bool {
    !matches!(segment, "delete" | "partial" | "public" | "restore" | "update" | "zip")
}

impl Endpoint {
    pub fn limit(self, limit: Limit) -> Endpoint {
        Endpoint { limit: Some(limit), ..self }
    }

    /// Does not limit requests: for probes and pages.
    pub fn unlimited(self) -> Endpoint {
        Endpoint { limit: None, ..self }
    }

    /// Never asks for the API key: for probes, pages, and people who have nothing but a link.
    pub fn without_key(self) -> Endpoint {
        Endpoint { needs_api_key: false, ..self }
    }

    pub fn part_of(self, feature: Feature) -> Endpoint {
        Endpoint { feature, ..self }
    }

    /// The endpoint of a request with this method. `segments` are those of its path below `prefix`.
    pub fn matched(
        self,
        method: &'static str,
        prefix: &'static str,
        segments: &[&str],
    ) -> Endpoint {
        let parts = self.name.template.split('/').skip(1).zip(segments);
        let params = parts.filter_map(|(part, text)| {
            let name = part.strip_prefix('{')?.strip_suffix('}')?;
            Some(PathParam { name, text: (*text).to_owned() })
        });
        let path_params = params.collect();
        Endpoint { name: EndpointName { method, prefix, ..self.name }, path_params, ..self }
    }

    /// Whether a file is uploaded by it, in one request or in several.
    fn is_upload(&self) -> bool {
        matches!(
            (self.name.method, self.name.template),
            ("POST", "/uploads" | "/uploads/partial") | (_, "/uploads/partial/{upload_id}")
        )
    }

    /// Fails with [`Error::NotPermitted`] if a request with this credential may not use the endpoint. A read-only token
    /// is accepted for `GET`, and so for `HEAD`, which has the same endpoint.
    pub fn accept(&self, credential: Credential) -> Result<(), Error> {
        match credential {
            Credential::PersonalToken(..)
                if matches!(self.handler, Handler::User(_) | Handler::Admin(_)) =>
            {
                Err(Error::NotPermitted(Forbidden::PersonalToken))
            }
            Credential::PersonalToken(TokenScope::Read, _) if self.name.method != "GET" => {
                Err(Error::NotPermitted(Forbidden::ReadOnlyToken))
            }
            Credential::PersonalToken(TokenScope::Upload, _) if !self.is_upload() => {
                Err(Error::NotPermitted(Forbidden::UploadToken))
            }
            _ => Ok(()),
        }
    }
}
