//! Rate limits: which token buckets a request takes tokens from, and the headers that say how full they are.

use std::hash::Hash;
use std::time::Duration;

use uuid::Uuid;

use super::app::{BucketKey, BucketOwner, LoginBucketKey};
use super::context::RequestContext;
use super::identity::{Credential, RefreshToken, SignedIn};
use crate::auth::token_bucket::{BucketDecision, TokenBuckets};
use crate::error::Error;
use crate::http::client_address::{network, provider_network, site};
use crate::http::response::Response;
use crate::model::timestamp::unix_time;

/// All networks of an IPv6 site together have this many times the limit of one network, if [`Limit::Auth`] applies.
/// A client with a /48 has 65,536 networks of its own, and would otherwise have 65,536 times the limit.
const SITE_FACTOR: u32 = 8;

/// The sessions of one network together have this many times the limit of one session, if [`Limit::Auth`] applies, and
/// those of one user in one network, if [`Limit::Account`] does. Sessions are free: whoever knows a password can open
/// one after the other, to guess at another one or to keep the service busy.
const SESSIONS_FACTOR: u32 = 4;

/// Failed sign-ins to one account that are allowed in an hour, from all addresses together, and from each network that
/// it knows. NIST SP 800-63B, 5.2.2, allows at most 100 in a row.
const MAX_FAILED_LOGINS: u32 = 100;

/// Sign-ins of an account in an hour that lack only the code of the second factor and do not count. Clients that do not
/// know of second factors send the password alone first.
const MAX_MISSING_CODES: u32 = 20;

/// Wrong codes of one network for an account in an hour, as `sql/second_factors/count_wrong_code.sql` counts them.
const MAX_WRONG_CODES: u32 = 10;

/// Requests a minute of one session that [`Limit::Account`] allows.
const ACCOUNT_LIMIT: u32 = 30;

/// Requests a minute of one address that [`Limit::Links`] allows.
const LINKS_LIMIT: u32 = 600;

/// The rate limit that an endpoint counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Endpoints at which passwords or tokens can be guessed, such as sign-in. Each has its own buckets, under the name
    /// given here.
    Auth(&'static str),
    /// Sign-out, and all that lists, creates or ends sessions and tokens of one's own. It is counted for each session,
    /// so that whoever has stolen a token cannot keep its owner from revoking it, and for all sessions of a user in a
    /// network.
    Account,
    /// Uploads of files.
    Upload,
    /// Downloads by links.
    Links,
    /// Administration.
    Admin,
    /// Everything else.
    General,
}

/// Sign-in, whose refusals have a message of their own.
pub const LOGIN: Limit = Limit::Auth("login");
/// The refresh of tokens. Clients that share an address must not sign each other out.
pub const REFRESH: Limit = Limit::Auth("refresh");

impl Limit {
    /// Its name in bucket keys and metrics.
    fn name(self) -> &'static str {
        match self {
            Limit::Auth(endpoint) => endpoint,
            Limit::Account => "account",
            Limit::Upload => "upload",
            Limit::Links => "links",
            Limit::Admin => "admin",
            Limit::General => "general",
        }
    }
}

/// Who is calling: whose buckets a request counts against.
#[derive(Clone, Copy)]
pub enum Caller<'a> {
    /// Nobody who is known: without a token, or with one that is not accepted.
    Anonymous,
    /// The bearer of a refresh token with a valid signature.
    Refresh(&'a RefreshToken),
    User(&'a SignedIn),
}

/// Takes a token from each bucket that the request counts against, and notes in the context how full the emptiest one
/// of its class is, or the one that refused, for the headers of the response. Fails with [`Error::RateLimited`] if one
/// of them was empty; the buckets after that one keep their tokens, so one user or network alone cannot empty what it
/// shares with others. If rate limits are switched off, nothing happens.
pub fn enforce(context: &mut RequestContext, limit: Limit, caller: Caller) -> Result<(), Error> {
    if !context.app.config.rate_limit_enabled {
        return Ok(());
    }
    for (key, size) in buckets(context, limit, caller) {
        let (name, now) = (key.0, context.app.started.elapsed());
        let decision = context.app.buckets.take(&key, provider_network(context.client), size, now);
        if !decision.allowed {
            return Err(refuse(context, name, decision, limit == LOGIN));
        }
        // The client is told about the bucket that stops it first.
        let is_emptiest = context.limit.is_none_or(|other| decision.remaining < other.remaining);
        if name != SHARED && is_emptiest {
            context.limit = Some(decision);
        }
    }
    Ok(())
}

/// A bucket, and how many tokens it holds when it is full.
type Bucket = (BucketKey, u32);

/// The name of the limit that anonymous callers and young accounts of one address share.
const SHARED: &str = "address";

/// The buckets that a request counts against: this is the table of the limits of classes, and the bucket of
/// [`shared_bucket`] comes last. A user has two of each class, one for sessions and one for all personal access tokens,
/// so that whoever has stolen a personal access token cannot use up what the owner needs to revoke it.
fn buckets(
    context: &RequestContext,
    limit: Limit,
    caller: Caller,
) -> impl Iterator<Item = Bucket> + use<> {
    let (config, name, client) = (&context.app.config, limit.name(), context.client);
    let size = match limit {
        Limit::Auth(_) => config.rate_limit_auth,
        Limit::Account => ACCOUNT_LIMIT,
        Limit::Upload => config.rate_limit_upload,
        Limit::Links => LINKS_LIMIT,
        Limit::Admin => config.rate_limit_admin,
        Limit::General => config.rate_limit_general,
    };
    let bucket = |owner, size| Some(((name, owner), size));
    let of_network = |size| bucket(BucketOwner::Network(network(client)), size);
    let of_site = |size| bucket(BucketOwner::Site(site(client)?), SITE_FACTOR * size);
    let of_class = match (limit, caller) {
        (Limit::Auth(_), Caller::Anonymous) => [of_network(size), of_site(size), None],
        (_, Caller::Anonymous) => [of_network(size), None, None],
        (_, Caller::Refresh(token)) => {
            [bucket(BucketOwner::Session(token.session), size), None, None]
        }
        (Limit::Auth(_), Caller::User(user)) => {
            let in_all = SESSIONS_FACTOR * size;
            [bucket(session(user), size), of_network(in_all), of_site(in_all)]
        }
        (Limit::Account, Caller::User(user)) => {
            let owner = |network| BucketOwner::SessionsIn(network, user.id());
            let of_all = context.limited_network().map(owner);
            let of_all = of_all.and_then(|owner| bucket(owner, SESSIONS_FACTOR * size));
            [bucket(session(user), size), of_all, None]
        }
        (_, Caller::User(user)) => [bucket(tokens(user), size), None, None],
    };
    of_class.into_iter().flatten().chain(shared_bucket(context, limit, caller))
}

/// The bucket that anonymous callers and young accounts of one address share, if the request counts against it. `None`
/// for the refresh of tokens, for [`Limit::Account`], for users who are not new, and for a local peer that is no
/// trusted proxy: such a peer may be a proxy with many clients.
fn shared_bucket(context: &RequestContext, limit: Limit, caller: Caller) -> Option<Bucket> {
    let size = context.app.config.rate_limit_address;
    let counts = match caller {
        _ if size == 0 || limit == REFRESH || limit == Limit::Account => false,
        Caller::Anonymous => true,
        Caller::Refresh(_) => false,
        Caller::User(user) => user.account.is_young(),
    };
    let network = context.limited_network().filter(|_| counts);
    network.map(|network| ((SHARED, BucketOwner::Network(network)), size))
}

/// All tokens of the user that are of the kind that the request has.
fn tokens(user: &SignedIn) -> BucketOwner {
    match user.credential {
        Credential::PersonalToken(..) => BucketOwner::PersonalTokens(user.id()),
        Credential::AccessToken(_) | Credential::Nothing => BucketOwner::User(user.id()),
    }
}

/// The session of the request. All tokens of a user that have no session count as one.
fn session(user: &SignedIn) -> BucketOwner {
    user.session().map_or_else(|| tokens(user), BucketOwner::Session)
}

/// Counts a refusal in the metrics, lets the headers of the response tell of the bucket, and returns the error.
fn refuse(
    context: &mut RequestContext,
    class: &'static str,
    decision: BucketDecision,
    login: bool,
) -> Error {
    context.app.metrics.count_rate_limited(class);
    context.limit = Some(decision);
    Error::RateLimited { retry_after: whole_seconds(decision.retry_in).max(1), login }
}

/// Tokens that were taken from buckets for an attempt. They are given back when this is dropped, unless the attempt
/// counts.
pub struct Attempt<'a, K: Hash> {
    buckets: &'a TokenBuckets,
    taken: Vec<(K, u32)>,
}

impl<K: Hash> Attempt<'_, K> {
    /// Makes the attempt count: the tokens stay taken.
    pub fn count(mut self) {
        self.taken.clear();
    }
}

impl<K: Hash> Drop for Attempt<'_, K> {
    fn drop(&mut self) {
        for (key, size) in self.taken.drain(..) {
            self.buckets.give_back(&key, size);
        }
    }
}

/// Begins to make an account, if the client's address and its IPv6 site may have another one today. The attempt counts
/// once the account is made. Fails with [`Error::RateLimited`]. Requests from this host do not count, as in
/// [`shared_bucket`].
pub fn begin_registration<'a>(
    context: &mut RequestContext<'a>,
) -> Result<Attempt<'a, BucketOwner>, Error> {
    let (app, config) = (context.app, &context.app.config);
    let (name, size) = ("registrations", config.registrations_per_day);
    let network = context.limited_network().filter(|_| size > 0 && config.rate_limit_enabled);
    let address = network.map(|network| (BucketOwner::Network(network), size));
    let site = network.and_then(site).map(|site| (BucketOwner::Site(site), SITE_FACTOR * size));
    let mut attempt = Attempt { buckets: &app.registrations, taken: Vec::new() };
    for (owner, size) in [address, site].into_iter().flatten() {
        let (provider, now) = (provider_network(context.client), app.started.elapsed());
        let decision = app.registrations.take(&owner, provider, size, now);
        if !decision.allowed {
            return Err(refuse(context, name, decision, false));
        }
        attempt.taken.push((owner, size));
    }
    Ok(attempt)
}

/// Begins to check a password at sign-in, as `login` says, or of a token in a mail, if not too many have failed for the
/// account, from all addresses together. A name that no account has is limited alike, so that the limit does not tell
/// which accounts exist. The attempt counts if the password is wrong, and is counted from its beginning, so that
/// parallel ones cannot exceed the limit. Fails with [`Error::RateLimited`].
///
/// Each network that the account knows has the same limit of its own, and counts nowhere else: otherwise a stranger
/// could lock the owner out.
pub fn begin_login<'a>(
    context: &mut RequestContext<'a>,
    key: LoginBucketKey,
    login: bool,
) -> Result<Attempt<'a, LoginBucketKey>, Error> {
    let app = context.app;
    let mut attempt = Attempt { buckets: &app.failed_logins, taken: Vec::new() };
    if !app.config.rate_limit_enabled {
        return Ok(attempt);
    }
    let (network, now) = (provider_network(context.client), app.started.elapsed());
    let decision = app.failed_logins.take(&key, network, MAX_FAILED_LOGINS, now);
    if !decision.allowed {
        return Err(refuse(context, "login-name", decision, login));
    }
    attempt.taken.push((key, MAX_FAILED_LOGINS));
    Ok(attempt)
}

/// Gives a login its tokens back that lacks only the code of the second factor, if that has not happened too often
/// for the account within an hour. Then a user who signs in with a code needs no more of the limit than others.
pub fn refund_missing_code(context: &mut RequestContext, account: Uuid) {
    let app = context.app;
    let (network, now) = (provider_network(context.client), app.started.elapsed());
    if !app.config.rate_limit_enabled
        || !app.missing_codes.take(&account, network, MAX_MISSING_CODES, now).allowed
    {
        return;
    }
    for (key, size) in buckets(context, LOGIN, Caller::Anonymous) {
        app.buckets.give_back(&key, size);
    }
    if let Some(shown) = &mut context.limit {
        shown.remaining = shown.limit.min(shown.remaining + 1);
        shown.full_in = shown.full_in.saturating_sub(app.buckets.interval(shown.limit));
    }
}

/// The error of a request with a code of a second factor, after too many wrong ones from the client's network; the
/// headers of the response say so too. The database counts those, because several processes must not allow more.
pub fn refuse_code(context: &mut RequestContext, wait: Duration, login: bool) -> Error {
    let decision = BucketDecision {
        allowed: false,
        limit: MAX_WRONG_CODES,
        remaining: 0,
        full_in: wait,
        retry_in: wait,
    };
    refuse(context, "second-factor", decision, login)
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
