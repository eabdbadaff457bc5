//! Rate limits (contract, 5): which bucket a request takes from, and the headers that say so.

use std::time::Duration;

use crate::api::context::{BucketKey, RequestContext};
use crate::api::middleware::authenticate::CurrentUser;
use crate::auth::token_bucket::Decision;
use crate::error::Error;
use crate::http::client_address::network;
use crate::http::response::Response;
use crate::model::timestamp::unix_time;

/// A class of endpoints that share a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Sign-in and the like, per client address and endpoint; the endpoint's name.
    Auth(&'static str),
    /// Uploads of files, per user.
    Upload,
    /// Administration, per user.
    Admin,
    /// Everything else.
    General,
}

impl Class {
    /// The name of its buckets.
    fn name(self) -> &'static str {
        match self {
            Class::Auth(endpoint) => endpoint,
            Class::Upload => "upload",
            Class::Admin => "admin",
            Class::General => "general",
        }
    }
}

/// Takes a token for the client's address.
pub fn by_address(context: &RequestContext, class: Class) -> Option<Decision> {
    let key = BucketKey::Address(class.name(), network(context.client));
    take(context, class, key)
}

/// Takes a token for the user.
pub fn by_user(context: &RequestContext, class: Class, user: &CurrentUser) -> Option<Decision> {
    let key = BucketKey::User(class.name(), user.user().id);
    take(context, class, key)
}

/// `None`: rate limits are off.
fn take(context: &RequestContext, class: Class, key: BucketKey) -> Option<Decision> {
    let config = &context.app.config;
    let limit = match class {
        Class::Auth(_) => config.rate_limit_auth,
        Class::Upload => config.rate_limit_upload,
        Class::Admin => config.rate_limit_admin,
        Class::General => config.rate_limit_general,
    };
    config
        .rate_limit_enabled
        .then(|| context.app.buckets.take(key, limit, context.app.started.elapsed()))
}

/// Refuses where the bucket was empty.
pub fn enforce(
    context: &RequestContext,
    decision: Option<Decision>,
    class: Class,
) -> Result<(), Error> {
    match decision {
        Some(decision) if !decision.allowed => {
            context.app.metrics.rate_limited(class.name());
            Err(Error::RateLimited {
                retry_after: whole_seconds(decision.retry_in).max(1),
                login: class == Class::Auth("login"),
            })
        }
        _ => Ok(()),
    }
}

/// The headers of every rate-limited endpoint's response.
pub fn add_headers(response: &mut Response, decision: &Decision) {
    let reset = whole_seconds(unix_time() + decision.full_in);
    response.headers.extend([
        ("X-RateLimit-Limit".into(), decision.limit.to_string().into()),
        ("X-RateLimit-Remaining".into(), decision.remaining.to_string().into()),
        ("X-RateLimit-Reset".into(), reset.to_string().into()),
    ]);
}

/// Rounded up: a client that comes back then is not too early.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
