//! A build without the feature `oidc`: nobody signs in by an OpenID provider, and what a request says of that is not
//! read. It is in the place of the module `provider`.

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
