//! Rate limits: which token buckets a request takes tokens from, and the headers that say how full they are.

#[cfg(feature = "extras")]
mod codes;

use std::net::IpAddr;
use std::time::Duration;

#[cfg(feature = "extras")]
pub use codes::{refund_missing_code, refuse_code};
use uuid::Uuid;

use super::app::App;
use super::context::RequestContext;
use super::identity::{Credential, RefreshToken, SignedIn};
use crate::auth::token_bucket::{BucketDecision, Taken, TokenBuckets};
use crate::error::Error;
use crate::http::client_address::{network, provider_network, site};
use crate::http::response::Response;
use crate::model::timestamp::unix_time;
use crate::model::user::LoginName;

/// All networks of an IPv6 site together have this many times the limit of one network, if [`Limit::Auth`] applies.
/// A client with a /48 has 65,536 networks of its own, and would otherwise have 65,536 times the limit.
const SITE_FACTOR: u32 = 8;

/// The sessions of one network together have this many times the limit of one session, if [`Limit::Auth`] applies, and
/// those of one user in one network, if [`Limit::Account`] does. Sessions are free: whoever knows a password can open
/// one after the other, to guess at another one or to keep the service busy.
const SESSIONS_FACTOR: u32 = 4;

/// What a request counts against: the class of its endpoint, and further limits of some endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "oidc"), expect(dead_code, reason = "some are of extras"))]
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
    /// Downloads by view tokens.
    Views,
    /// Sign-in by the OpenID provider. Each endpoint has its own buckets, as for [`Limit::Auth`]: a person needs all of
    /// them for one sign-in, and what is guessed there has 256 random bits.
    Provider(&'static str),
    /// Administration.
    Admin,
    /// All other endpoints.
    General,
    /// Requests of all classes by anonymous callers and young accounts of one address, see [`shares_address`].
    Address,
    /// Accounts that an address registers. Requests from this host do not count, as for [`Limit::Address`]. Counted
    /// only if the account is made, or the mail that makes it is queued.
    Registrations,
    /// Wrong passwords for an account, at sign-in or with a token of a mail, from all addresses together. A name that
    /// no account has is limited alike, so that the limit does not tell which accounts exist. Each network that the
    /// account knows has the same limit of its own, and counts nowhere else: otherwise a stranger could lock the owner
    /// out. The token is taken before the password is checked, so that parallel attempts cannot exceed the limit.
    FailedSignIns,
    /// Sign-ins of an account that lack only the code of the second factor and do not count. Clients that do not know
    /// of second factors send the password alone first.
    MissingCodes,
}

/// The refresh of tokens. Clients that share an address must not sign each other out.
pub const REFRESH: Limit = Limit::Auth("refresh");

impl Limit {
    /// The table of all limits: the name in bucket keys and metrics, the number of tokens, which is 0 for no limit, and
    /// where the buckets are stored, by the time in which so many tokens come back. Of failed sign-ins NIST SP 800-63B,
    /// 5.2.2, allows at most 100 in a row.
    #[rustfmt::skip] // One limit a line, as in a table.
    fn row(self, App { config, buckets, .. }: &App) -> (&'static str, u32, &TokenBuckets) {
        match self {
            Limit::Auth(endpoint) => (endpoint,        config.rate_limit_auth,       &buckets.minute),
            Limit::Account        => ("account",       30,                           &buckets.minute),
            Limit::Upload         => ("upload",        config.rate_limit_upload,     &buckets.minute),
            Limit::Links          => ("links",         600,                          &buckets.minute),
            Limit::Views          => ("views",         600,                          &buckets.minute),
            Limit::Provider(endpoint) => (endpoint,    60,                           &buckets.minute),
            Limit::Admin          => ("admin",         config.rate_limit_admin,      &buckets.minute),
            Limit::General        => ("general",       config.rate_limit_general,    &buckets.minute),
            Limit::Address        => ("address",       config.rate_limit_address,    &buckets.minute),
            Limit::FailedSignIns  => ("login-name",    100,                          &buckets.hour),
            Limit::MissingCodes   => ("missing-codes", 20,                           &buckets.missing_codes),
            Limit::Registrations  => ("registrations", config.registrations_per_day, &buckets.day),
        }
    }

    /// Whether it is the class of an endpoint. Every request counts against that, whatever becomes of it, and the
    /// headers of its response tell about it.
    fn is_class(self) -> bool {
        !matches!(
            self,
            Limit::Address | Limit::Registrations | Limit::FailedSignIns | Limit::MissingCodes
        )
    }
}

/// Who is calling: whose buckets a request counts against.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "extras"), expect(dead_code, reason = "links are extras"))]
pub enum Caller<'a> {
    /// Nobody who is known: without a token, or with one that is not accepted.
    Anonymous,
    /// The bearer of a refresh token with a valid signature.
    Refresh(&'a RefreshToken),
    User(&'a SignedIn),
    /// Somebody who sends a password for an account, or a name that no account has; and the network of the client, if
    /// it is one that the account knows.
    SigningIn(&'a LoginName, Option<&'a str>),
    /// Whoever has this link and sends a file by it, and the network of the client.
    Sending(Uuid, IpAddr),
}

/// The client or user whose requests count against a limit.
#[derive(Hash)]
enum BucketOwner<'a> {
    /// A network, see `client_address::network`.
    Network(IpAddr),
    /// An IPv6 /48, see `client_address::site`.
    Site(IpAddr),
    /// The sessions of a user.
    User(Uuid),
    /// All personal access tokens of a user.
    PersonalTokens(Uuid),
    Session(Uuid),
    /// The sessions of a user in a network.
    SessionsIn(IpAddr, Uuid),
    /// An account or a name that no account has, for one network that the account knows, or for all others.
    SignIns(&'a LoginName, Option<&'a str>),
    /// A link by which files are sent, in a network.
    Link(Uuid, IpAddr),
}

/// Takes a token from each bucket that the request counts against, and stores in the context how full the emptiest one
/// of its class is, or the one that refused, for the headers of the response. Fails with [`Error::RateLimited`] if one
/// of them was empty; the buckets after that one keep their tokens, so one user or network alone cannot empty what it
/// shares with others. If rate limits are switched off, nothing happens.
///
/// The tokens of a class count at once. Those of other limits are given back when the result is dropped, unless
/// [`Taken::count`] is called.
pub fn take<'a>(
    context: &mut RequestContext<'a>,
    limit: Limit,
    caller: Caller,
) -> Result<Taken<'a>, Error> {
    let app = context.app;
    let mut taken = Taken::new(limit.is_class());
    if !app.config.rate_limit_enabled {
        return Ok(taken);
    }
    let address = shares_address(limit, caller).then_some(Limit::Address);
    for limit in [limit].into_iter().chain(address) {
        let (name, tokens, buckets) = limit.row(app);
        if tokens == 0 {
            continue;
        }
        for (owner, factor) in owners(context, limit, caller) {
            let key = (name, owner);
            let network = provider_network(context.client);
            let decision = buckets.take(&key, network, factor * tokens, app.started.elapsed());
            if !decision.allowed {
                return Err(refuse(context, name, decision));
            }
            taken.add(buckets, &key, decision.limit);
            // The client is told about the bucket that stops it first.
            let is_emptiest =
                context.limit.is_none_or(|other| decision.remaining < other.remaining);
            if limit.is_class() && is_emptiest {
                context.limit = Some(decision);
            }
        }
    }
    Ok(taken)
}

/// Whose buckets the request counts against, and how many times the tokens of the table each of them holds. A user has
/// two buckets of most classes, one for sessions and one for all personal access tokens, so that whoever has stolen a
/// personal access token cannot use up what the owner needs to revoke it.
fn owners<'a>(
    context: &RequestContext,
    limit: Limit,
    caller: Caller<'a>,
) -> Vec<(BucketOwner<'a>, u32)> {
    let here = network(context.client);
    let network = |factor| Some((BucketOwner::Network(here), factor));
    let site = |factor| Some((BucketOwner::Site(site(here)?), factor));
    // A peer on this host that is no trusted proxy may be a proxy with many clients.
    let is_exempt = context.is_local_without_proxy();
    let owners = match (limit, caller) {
        (Limit::Address | Limit::Registrations, _) if is_exempt => vec![],
        (Limit::Registrations, _) | (Limit::Auth(_) | Limit::Provider(_), Caller::Anonymous) => {
            vec![network(1), site(SITE_FACTOR)]
        }
        (Limit::Auth(_), Caller::User(user)) => vec![
            Some((session(user), 1)),
            network(SESSIONS_FACTOR),
            site(SITE_FACTOR * SESSIONS_FACTOR),
        ],
        (Limit::Account, Caller::User(user)) => {
            let in_all = (BucketOwner::SessionsIn(here, user.id()), SESSIONS_FACTOR);
            vec![Some((session(user), 1)), Some(in_all).filter(|_| !is_exempt)]
        }
        (Limit::Address, _) | (_, Caller::Anonymous) => vec![network(1)],
        (_, Caller::Refresh(token)) => vec![Some((BucketOwner::Session(token.session), 1))],
        (_, Caller::User(user)) => vec![Some((tokens(user), 1))],
        (_, Caller::Sending(link, from)) => vec![Some((BucketOwner::Link(link, from), 1))],
        (_, Caller::SigningIn(name, known)) => vec![Some((BucketOwner::SignIns(name, known), 1))],
    };
    owners.into_iter().flatten().collect()
}

/// Whether a request of this class counts against [`Limit::Address`], too: those of anonymous callers and of young
/// accounts, because accounts are free and addresses are not. The refresh of tokens and [`Limit::Account`] are exempt.
fn shares_address(limit: Limit, caller: Caller) -> bool {
    let is_exempt = limit == REFRESH || limit == Limit::Account || !limit.is_class();
    match caller {
        Caller::Anonymous | Caller::Sending(..) => !is_exempt,
        Caller::User(user) => !is_exempt && user.account.is_young(),
        Caller::Refresh(_) | Caller::SigningIn(..) => false,
    }
}

/// All tokens of the user that are of the kind that the request has.
fn tokens(user: &SignedIn) -> BucketOwner<'static> {
    match user.credential {
        Credential::PersonalToken(..) => BucketOwner::PersonalTokens(user.id()),
        Credential::AccessToken(_) | Credential::Nothing => BucketOwner::User(user.id()),
    }
}

/// The session of the request. All tokens of a user that have no session count as one.
fn session(user: &SignedIn) -> BucketOwner<'static> {
    user.session().map_or_else(|| tokens(user), BucketOwner::Session)
}

/// Counts a refusal in the metrics, lets the headers of the response tell about the bucket, and returns the error.
fn refuse(context: &mut RequestContext, name: &'static str, decision: BucketDecision) -> Error {
    context.app.metrics.count_rate_limited(name);
    context.limit = Some(decision);
    // Sign-in has a message of its own.
    let login = context.endpoint.is_some_and(|name| name.template == "/auth/login");
    Error::RateLimited { retry_after: whole_seconds(decision.retry_in).max(1), login }
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
