//! One request from its head to its response: all steps, in order.

use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::json;

use super::context::{App, CurrentUser, RefreshToken, RequestContext};
use super::endpoint::{Endpoint, Handler, Route};
use super::middleware::rate_limit::{self, Limit, Subject};
use super::middleware::{access_log, api_key, authenticate, cors};
use super::router;
use crate::error::Error;
use crate::http::body::Body;
use crate::http::client_address::{client_address, is_trusted};
use crate::http::request::Request;
use crate::http::request_id::request_id;
use crate::http::response::{self, Response};
use crate::model::audit::RefusedAction;
use crate::model::timestamp::Timestamp;
use crate::telemetry::access_log::AccessLogEntry;
use crate::telemetry::metrics::EndpointName;

/// Who sent a request, as far as its handler needs to know.
enum Sender {
    Anyone,
    User(CurrentUser),
    /// The bearer of a refresh token, or why the token is not accepted, which is reported only after the rate limit.
    Refresh(Result<RefreshToken, Error>),
}

/// Answers one request. Does not panic, even if a handler does.
pub fn answer(app: &App, head: &rouille::Request, body: Body) -> Response {
    let began = Instant::now();
    let _running = app.metrics.request_running();
    let request = Request::new(head, body);
    let id = request_id(request.header("X-Request-ID"));
    let client = find_client(app, &request);
    let mut context =
        RequestContext { app, request, id, client, account: None, limit: None, documented: &[] };
    let mut endpoint = None;
    let outcome = catch_panic(|| respond(&mut context, &mut endpoint));
    let outcome = outcome.and_then(response::check_headers);
    let error = outcome.as_ref().err().map(Error::message);
    let mut response = outcome.unwrap_or_else(|error| failure(&context, &error));
    add_headers(&context, &mut response);
    let (status, duration) = (response.status, began.elapsed());
    app.metrics.count_request(endpoint, status, duration);
    let entry = AccessLogEntry {
        method: Some(context.request.method()),
        path: Some(context.request.path()),
        status,
        duration,
        error: error.as_deref(),
        user: context.account,
        client,
        id,
    };
    access_log::write(&entry, app.config.log_format);
    response
}

/// Runs all checks and then the handler. If several checks would fail, the first one here decides the response. Rate
/// limits come before API keys and roles, so that no refusal can be provoked without limit. Notes the endpoint in
/// `name`, so that the metrics have it also if a later check fails.
fn respond(
    context: &mut RequestContext,
    name: &mut Option<EndpointName>,
) -> Result<Response, Error> {
    let config = &context.app.config;
    let route =
        router::find(context.request.path()).ok_or_else(|| context.app.route_not_found())?;
    if !(route.is_enabled)(config) {
        return Err(Error::FeatureOff);
    }
    let Some(endpoint) = route.endpoint(context.request.method()) else {
        let methods = route.methods();
        return cors::preflight(context, &methods).ok_or(Error::MethodNotAllowed(methods));
    };
    *name = Some(route.name(endpoint));
    context.documented = endpoint.operation.inputs;
    let sender = match identify(context, endpoint.handler) {
        // A missing or rejected token counts against the client's address, so that tokens cannot be guessed at will.
        Err(error) if error.status() == 401 => {
            rate_limit::enforce(context, Limit::General, Subject::Client)?;
            return Err(error);
        }
        outcome => outcome?,
    };
    let (account, subject) = match &sender {
        Sender::User(user) => (Some(user.id()), Subject::User(user.id())),
        // Otherwise one client could keep others behind the same address from refreshing their tokens.
        Sender::Refresh(Ok(token)) => (Some(token.user), Subject::Session(token.session)),
        Sender::Anyone | Sender::Refresh(Err(_)) => (None, Subject::Client),
    };
    context.account = account;
    if let Some(limit) = endpoint.limit {
        rate_limit::enforce(context, limit, subject)?;
        api_key::check(context, matches!(endpoint.handler, Handler::Export(_)))?;
    }
    let outcome = handle(context, &route, endpoint, sender);
    if matches!(outcome, Err(Error::AdminRequired)) {
        let details = json!({ "endpoint": route.name(endpoint).to_string() });
        context.record_failure(RefusedAction::Access, context.account, None, details);
    }
    outcome
}

/// Finds out who sent the request, if its handler needs to know.
fn identify(context: &mut RequestContext, handler: Handler) -> Result<Sender, Error> {
    match handler {
        Handler::Public(_) => Ok(Sender::Anyone),
        Handler::Export(_) if api_key::may_export_anonymously(context) => Ok(Sender::Anyone),
        Handler::Refresh(_) => Ok(Sender::Refresh(authenticate::refresh_token(context))),
        _ => authenticate::authenticate(context).map(Sender::User),
    }
}

/// Checks the kind of token, the role and the id in the path, as far as the handler needs them, and runs it.
fn handle(
    context: &mut RequestContext,
    route: &Route,
    endpoint: &Endpoint,
    sender: Sender,
) -> Result<Response, Error> {
    if let Sender::User(user) = &sender {
        endpoint.admit(user.credential())?;
    }
    let user = || match &sender {
        Sender::User(user) => Ok(user),
        _ => Err(Error::AuthenticationRequired),
    };
    match endpoint.handler {
        Handler::Public(handler) => handler(context),
        Handler::Refresh(handler) => match sender {
            Sender::Refresh(token) => handler(context, token?),
            _ => Err(Error::AuthenticationRequired),
        },
        Handler::User(handler) => handler(context, user()?),
        Handler::UserAt(handler) => handler(context, user()?, route.parse_id()?),
        Handler::Admin(handler) => handler(context, &user()?.require_admin()?),
        Handler::AdminAt(handler) => {
            let admin = user()?.require_admin()?;
            handler(context, &admin, route.parse_id()?)
        }
        Handler::Export(handler) => {
            if context.app.config.export_require_admin {
                user()?.require_admin()?;
            }
            handler(context)
        }
    }
}

/// Turns a panic into an error. Going on is safe, because what the request left half done is dropped with it, and what
/// requests share is changed only under locks, by code that does not panic.
fn catch_panic(run: impl FnOnce() -> Result<Response, Error>) -> Result<Response, Error> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(Error::Internal("a handler panicked".into())))
}

/// The response to a failed request. The cause of an unexpected error is logged with the request id and not shown.
fn failure(context: &RequestContext, error: &Error) -> Response {
    if let Error::Internal(cause) = error {
        log::error!("request {}: {cause}", context.id);
    }
    let now = Timestamp::now();
    response::error(error, context.app.config.error_format, now)
}

/// The client's address. Warns once if requests are forwarded by a peer that is not a trusted proxy, because then all
/// clients of that proxy share its address and the rate limits of that address.
fn find_client(app: &App, request: &Request) -> IpAddr {
    let trusted = &app.config.trusted_proxies;
    let peer = request.peer();
    let mut forwarded = request.headers("X-Forwarded-For").peekable();
    let is_ignored = forwarded.peek().is_some() && !is_trusted(peer, trusted);
    if is_ignored && !app.warned_of_forwarding.swap(true, Ordering::Relaxed) {
        log::warn!(
            "X-Forwarded-For from {peer}, which is not in CLOAKROOM_TRUSTED_PROXIES, is ignored (said once)"
        );
    }
    client_address(peer, forwarded, trusted)
}

/// Adds the headers that do not depend on the handler.
fn add_headers(context: &RequestContext, response: &mut Response) {
    response.add_header("X-Request-ID", context.id.to_string());
    response.add_header("X-Content-Type-Options", "nosniff");
    let has_cache_control = response.headers.iter().any(|(name, _)| *name == "Cache-Control");
    if router::is_api(context.request.path()) && !has_cache_control {
        response.add_header("Cache-Control", "no-store");
    }
    if let Some(decision) = &context.limit {
        rate_limit::add_headers(response, decision);
    }
    cors::add_headers(response, context.request.header("Origin"), &context.app.config.cors_origins);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error() {
        let outcome = catch_panic(|| panic!("on purpose"));
        assert!(matches!(outcome, Err(Error::Internal(_))));
    }
}
