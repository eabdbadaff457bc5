//! A build without the feature `oidc`: nobody signs in by an OpenID provider, and what a request says of that is not
//! read. It is in the place of the module `provider`.

/// The endpoints of that module, which are switched off here as they are where the settings name no provider.
#[cfg(feature = "extras")]
pub fn route(method: &str, path: &[&str]) -> Option<crate::request::endpoint::Endpoint> {
    use crate::error::Error;
    use crate::request::endpoint::{Feature, Handler, at};

    let template = match (method, path) {
        ("GET", ["auth", "oidc", "start"]) => "/auth/oidc/start",
        ("GET", ["auth", "oidc", "callback"]) => "/auth/oidc/callback",
        ("POST", ["auth", "oidc", "token"]) => "/auth/oidc/token",
        ("POST", ["auth", "oidc", "join"]) => "/auth/oidc/join",
        ("DELETE", ["auth", "oidc"]) => "/auth/oidc",
        _ => return None,
    };
    Some(at(template, Handler::Anyone(|_| Err(Error::FeatureOff))).part_of(Feature::Provider))
}

pub mod code {
    use crate::error::Error;
    use crate::http::params::Params;
    use crate::model::identity::Identity;
    use crate::request::context::RequestContext;

    pub struct SentCode;

    pub fn read(_: &mut Params, _: &str) -> Option<SentCode> {
        None
    }

    pub fn take(_: &RequestContext, _: &SentCode) -> Result<Identity, Error> {
        Err(Error::FeatureOff)
    }
}
