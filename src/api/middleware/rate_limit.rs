//! Rate limits: which token bucket a request takes a token from, and the headers that say how full it is.

use std::time::Duration;

use uuid::Uuid;

use crate::api::context::{BucketKey, RequestContext};
use crate::auth::password::PasswordCheck;
use crate::auth::token_bucket::BucketDecision;
use crate::error::Error;
use crate::http::client_address::{network, site};
use crate::http::response::Response;
use crate::model::timestamp::unix_time;

/// All networks of an IPv6 site together have this many times the limit of one network, where [`Limit::Auth`] applies.
/// A client with a /48 has 65,536 networks of its own, and would otherwise have 65,536 times the limit.
const SITE_FACTOR: u32 = 8;

/// Failed sign-ins with one name that are allowed in an hour, from all addresses together. NIST SP 800-63B, 5.2.2,
/// allows at most 100 in a row.
const MAX_FAILED_SIGN_INS: u32 = 100;

/// The rate limit that an endpoint counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Endpoints at which passwords or tokens can be guessed, such as sign-in. Each has its own buckets, under the name
    /// given here.
    Auth(&'static str),
    /// Uploads of files.
    Upload,
    /// Administration.
    Admin,
    /// Everything else.
    General,
}

impl Limit {
    /// The name of the limit in bucket keys and metrics.
    fn name(self) -> &'static str {
        match self {
            Limit::Auth(endpoint) => endpoint,
            Limit::Upload => "upload",
            Limit::Admin => "admin",
            Limit::General => "general",
        }
    }
}

/// Whose token bucket a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The bucket of the network that the request comes from.
    Client,
    User(Uuid),
    Session(Uuid),
}

/// Takes a token from the bucket of the subject, and notes in the context how full the bucket is, for the headers of
/// the response. Fails with [`Error::RateLimited`] if it was empty. If rate limits are switched off, nothing happens.
pub fn enforce(context: &mut RequestContext, limit: Limit, subject: Subject) -> Result<(), Error> {
    if !context.app.config.rate_limit_enabled {
        return Ok(());
    }
    let decision = take(context, limit, subject);
    context.limit = Some(decision);
    if decision.allowed {
        return Ok(());
    }
    context.app.metrics.count_rate_limited(limit.name());
    Err(refusal(&decision, limit == Limit::Auth("login")))
}

fn refusal(decision: &BucketDecision, login: bool) -> Error {
    Error::RateLimited { retry_after: whole_seconds(decision.retry_in).max(1), login }
}

/// Runs the check of a password at sign-in, if not too many have failed with the name that has this hash, from all
/// addresses together. It does not matter whether an account has the name. Fails with [`Error::RateLimited`].
///
/// A client in a network that the account knows is never refused: otherwise a stranger could lock the owner out.
pub fn limit_failed_sign_ins(
    context: &mut RequestContext,
    name_hash: &[u8],
    knows_network: bool,
    check: impl FnOnce() -> Result<PasswordCheck, Error>,
) -> Result<PasswordCheck, Error> {
    let app = context.app;
    if !app.config.rate_limit_enabled {
        return check();
    }
    // The attempt counts as failed from its beginning, so that parallel ones cannot exceed the limit.
    let now = app.started.elapsed();
    let decision = app.failed_sign_ins.take(name_hash.to_vec(), MAX_FAILED_SIGN_INS, now);
    if !decision.allowed && !knows_network {
        context.limit = Some(decision);
        app.metrics.count_rate_limited("login-name");
        return Err(refusal(&decision, true));
    }
    let outcome = check();
    if decision.allowed && !matches!(outcome, Ok(PasswordCheck::Wrong)) {
        app.failed_sign_ins.give_back(name_hash.to_vec(), MAX_FAILED_SIGN_INS);
    }
    outcome
}

/// Takes a token from the bucket of the subject and, if that is a client, from the bucket of its site.
fn take(context: &RequestContext, limit: Limit, subject: Subject) -> BucketDecision {
    let (app, config, name) = (context.app, &context.app.config, limit.name());
    let per_minute = match limit {
        Limit::Auth(_) => config.rate_limit_auth,
        Limit::Upload => config.rate_limit_upload,
        Limit::Admin => config.rate_limit_admin,
        Limit::General => config.rate_limit_general,
    };
    let key = match subject {
        Subject::Client => BucketKey::Address(name, network(context.client)),
        Subject::User(id) => BucketKey::User(name, id),
        Subject::Session(id) => BucketKey::Session(name, id),
    };
    let now = app.started.elapsed();
    let own = app.buckets.take(key, per_minute, now);
    // A request that its network's bucket refuses does not count for the site, so one network alone cannot empty the
    // site's bucket.
    let counts_for_site =
        own.allowed && subject == Subject::Client && matches!(limit, Limit::Auth(_));
    let Some(site) = site(context.client).filter(|_| counts_for_site) else {
        return own;
    };
    let of_site = app.buckets.take(BucketKey::Site(name, site), SITE_FACTOR * per_minute, now);
    // The client is told about the bucket that stops it first.
    if (of_site.allowed, of_site.remaining) < (true, own.remaining) { of_site } else { own }
}

/// Adds the headers that every response of a rate-limited endpoint carries.
pub fn add_headers(response: &mut Response, decision: &BucketDecision) {
    let reset = whole_seconds(unix_time() + decision.full_in);
    response.add_header("X-RateLimit-Limit", decision.limit.to_string());
    response.add_header("X-RateLimit-Remaining", decision.remaining.to_string());
    response.add_header("X-RateLimit-Reset", reset.to_string());
}

/// Rounds up, so that a client that waits this long does not come back too early.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}
