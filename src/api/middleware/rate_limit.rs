//! Rate limits: which token bucket a request takes from, and the headers that tell how full it is.

use std::time::Duration;

use uuid::Uuid;

use crate::api::context::{BucketKey, RequestContext};
use crate::auth::token_bucket::BucketDecision;
use crate::error::Error;
use crate::http::client_address::network;
use crate::http::response::Response;
use crate::model::timestamp::unix_time;

/// The limit that an endpoint counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Sign-in and the like: each such endpoint, named here, has a bucket of its own.
    Auth(&'static str),
    /// Uploads of files.
    Upload,
    /// Administration.
    Admin,
    /// Everything else.
    General,
}

impl Limit {
    /// The name of its buckets, also in the metrics.
    fn name(self) -> &'static str {
        match self {
            Limit::Auth(endpoint) => endpoint,
            Limit::Upload => "upload",
            Limit::Admin => "admin",
            Limit::General => "general",
        }
    }
}

/// Takes a token from the user's bucket or, where no user is known, from that of the client's network. `None` where
/// rate limits are off.
pub fn take(context: &RequestContext, limit: Limit, user: Option<Uuid>) -> Option<BucketDecision> {
    let (app, config) = (context.app, &context.app.config);
    let per_minute = match limit {
        Limit::Auth(_) => config.rate_limit_auth,
        Limit::Upload => config.rate_limit_upload,
        Limit::Admin => config.rate_limit_admin,
        Limit::General => config.rate_limit_general,
    };
    let key = match user {
        Some(id) => BucketKey::User(limit.name(), id),
        None => BucketKey::Address(limit.name(), network(context.client)),
    };
    config.rate_limit_enabled.then(|| app.buckets.take(key, per_minute, app.started.elapsed()))
}

/// Fails where the bucket was empty.
pub fn enforce(
    context: &RequestContext,
    limit: Limit,
    decision: Option<BucketDecision>,
) -> Result<(), Error> {
    match decision {
        Some(decision) if !decision.allowed => {
            context.app.metrics.count_rate_limited(limit.name());
            Err(Error::RateLimited {
                retry_after: whole_seconds(decision.retry_in).max(1),
                login: limit == Limit::Auth("login"),
            })
        }
        _ => Ok(()),
    }
}

/// Adds the headers that every response of a rate-limited endpoint carries.
pub fn add_headers(response: &mut Response, decision: &BucketDecision) {
    let reset = whole_seconds(unix_time() + decision.full_in);
    response.headers.extend([
        ("X-RateLimit-Limit".into(), decision.limit.to_string().into()),
        ("X-RateLimit-Remaining".into(), decision.remaining.to_string().into()),
        ("X-RateLimit-Reset".into(), reset.to_string().into()),
    ]);
}

/// Rounded up, so that a client that comes back then does not come too early.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
